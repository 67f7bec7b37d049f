//! What to connect to, as libpq understands it: options, connection strings and the environment
//! come in, one [`Target`] goes out. Opens no sockets and resolves no names.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A server to connect to, with every setting resolved.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Tried in this order; never empty.
    pub hosts: Vec<Host>,
    /// Database name.
    pub database: String,
    /// Role to connect as.
    pub user: String,
    /// Password, if one is known.
    pub password: Option<String>,
    /// Command-line options for the server process (`PGOPTIONS`).
    pub options: Option<String>,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
    /// Bound on each attempt to connect; `None` waits for ever.
    pub connect_timeout: Option<Duration>,
}

/// One server address as given, with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where it listens.
    pub name: HostName,
    /// Port number, also part of a socket's file name.
    pub port: u16,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Directory of a Unix-domain socket.
    SocketDirectory(PathBuf),
    /// A host name or numeric address.
    Network(String),
}

/// One address that a socket can be opened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix-domain socket.
    Unix(PathBuf),
    /// A TCP address, with the host name that it was resolved from.
    Tcp {
        /// As the user wrote it.
        host: String,
        /// What it resolved to.
        address: SocketAddr,
    },
}

impl std::fmt::Debug for Target {
    /// As derived, but a password never reaches a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("hosts", &self.hosts)
            .field("database", &self.database)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("options", &self.options)
            .field("application_name", &self.application_name)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}
