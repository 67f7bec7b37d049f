//! What to connect to, as libpq understands it: options, connection strings and the environment
//! come in, one [`Target`] goes out, and with it in which order [`Attempts`] are made at it. Opens no
//! sockets and resolves no names; reads files through the [`Environment`] alone.

mod attempts;
mod encoding;
mod encryption;
mod environment;
mod error;
mod hostile;
mod hosts;
mod keywords;
mod login;
mod password_file;
mod resolve;
mod secret;
mod server_state;
mod service_file;
mod target;
mod uri;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use attempts::{Addresses, Attempt, AttemptFailure, Attempts, Encryption};
pub use environment::{Environment, FileFacts, ProcessEnvironment};
pub use error::SettingsError;
pub use hostile::drive_hostile;
pub use keywords::Origin;
pub use secret::{Secret, holds_password};
pub use server_state::{Question, ServerState, Verdict};
pub use target::{
    AuthenticationMethod, CertificateMode, ChannelBindingMode, ClientCertificate, HostOrder,
    KeepaliveSettings, LoginSettings, ProtocolVersion, RequiredAuthentication, Roots,
    SessionAttributes, SslMode, SslNegotiation, Target, TlsSettings, TlsVersion, Warning,
};

/// What the command line says about the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// `--host`: a name, an address, a socket directory, or a list of them.
    pub host: Option<String>,
    /// `--port`: a number, or a list with one for each host.
    pub port: Option<String>,
    /// `--username`.
    pub user: Option<String>,
    /// `--dbname` or the positional name: also a whole connection string or URI.
    pub database: Option<String>,
    /// Name of the program, for servers to show where the user gives no application name.
    pub program_name: String,
}

/// How a session presents itself, wherever the server is and whoever it connects as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentation {
    /// As in [`Target::options`].
    pub options: Option<String>,
    /// As in [`Target::application_name`].
    pub application_name: String,
    /// As in [`Target::connect_timeout`].
    pub connect_timeout: Option<Duration>,
}

impl Target {
    /// The part of it that says nothing about the server.
    pub fn into_presentation(self) -> Presentation {
        Presentation {
            options: self.options,
            application_name: self.application_name,
            connect_timeout: self.connect_timeout,
        }
    }

    /// The same server, with sessions that present themselves so.
    #[must_use]
    pub fn presented_as(self, presentation: Presentation) -> Target {
        Target {
            options: presentation.options,
            application_name: presentation.application_name,
            connect_timeout: presentation.connect_timeout,
            ..self
        }
    }
}

/// One server address as given, with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where it listens, and what a certificate is checked against.
    pub name: HostName,
    /// `hostaddr`: where it is, so that its name need not be looked up.
    pub address: Option<IpAddr>,
    /// Port number, also part of a socket's file name.
    pub port: u16,
    /// What the password file says about it, where no password was given otherwise.
    pub password: Option<Secret>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Directory of a Unix-domain socket, or with `@` before it the same in the abstract namespace.
    SocketDirectory(PathBuf),
    /// A host name or numeric address.
    Network(String),
}

/// One address that a socket can be opened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix-domain socket; in the abstract namespace if the path begins with `@`, which is not
    /// part of the name then.
    Unix(PathBuf),
    /// A TCP address, with the host name that it was resolved from.
    Tcp {
        /// As the user wrote it.
        host: String,
        /// What it resolved to.
        address: SocketAddr,
    },
}

impl Host {
    /// A host of which only this is known.
    pub fn new(name: HostName, port: u16) -> Self {
        Host {
            name,
            address: None,
            port,
            password: None,
        }
    }
}

impl HostName {
    /// An absolute path or `@` makes it a socket directory.
    pub fn parse(name: &str) -> Self {
        if name.starts_with(['/', '@']) {
            HostName::SocketDirectory(PathBuf::from(name))
        } else {
            HostName::Network(name.to_owned())
        }
    }
}

impl std::fmt::Display for Endpoint {
    /// As libpq names it, to follow "connection to".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "server on socket \"{}\"", path.display()),
            Endpoint::Tcp { host, address } => {
                let number = address.ip().to_string();
                write!(f, "server at \"{host}\"")?;
                if *host != number {
                    write!(f, " ({number})")?;
                }
                write!(f, ", port {}", address.port())
            }
        }
    }
}

impl std::fmt::Debug for ConnectionOptions {
    /// As derived, but a connection string, which may hold a password, never reaches a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain_name = |name: &&String| !name.contains(['=', ':']);
        f.debug_struct("ConnectionOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database.as_ref().filter(plain_name))
            .field("program_name", &self.program_name)
            .finish()
    }
}
