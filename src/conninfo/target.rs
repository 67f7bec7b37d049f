//! The finished description of a server: what [`Target::resolve`](super::Target::resolve) makes, and what
//! clients, the control connection and the encryption layer read. Values only.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Host, Secret};

/// A server to connect to, with every setting resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Tried in this order; never empty.
    pub hosts: Vec<Host>,
    /// Database name.
    pub database: String,
    /// Role to connect as.
    pub user: String,
    /// Password for all hosts, if one was given. Where there is none, a host may have its own: ask
    /// [`Target::password_for`].
    pub password: Option<Secret>,
    /// The file that the passwords of hosts are from.
    pub password_file: Option<PathBuf>,
    /// Command-line options for the server process (`PGOPTIONS`).
    pub options: Option<String>,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
    /// Bound on each attempt to connect; `None` waits for ever.
    pub connect_timeout: Option<Duration>,
    /// Which hosts will do.
    pub session_attributes: SessionAttributes,
    /// In which order hosts and their addresses are tried.
    pub host_order: HostOrder,
    /// How it is logged in.
    pub login: LoginSettings,
    /// Whether and how connections are encrypted.
    pub tls: TlsSettings,
    /// What the kernel does to notice that a peer is gone.
    pub keepalive: KeepaliveSettings,
    /// The newest version of the protocol that is asked for.
    pub max_protocol: ProtocolVersion,
    /// The oldest version of the protocol that will do.
    pub min_protocol: ProtocolVersion,
    /// What the user should know before anything is connected.
    pub warnings: Vec<Warning>,
}

/// Something that works, but not as the user may think. Displayed, it is a line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The command line, which all users of the machine can read, holds a password.
    PasswordInArguments,
    /// A password file was passed over.
    PasswordFile {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A revocation list was named and is not there, so that nothing counts as revoked.
    NoRevocationList(PathBuf),
    /// A client certificate is not shown, since its key cannot be used.
    ClientKey {
        /// The file of the key.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::PasswordInArguments => f.write_str(
                "a password on the command line is visible to other users in the process list; use \
                 PGPASSWORD or a password file",
            ),
            Warning::PasswordFile { path, problem } => {
                write!(f, "password file \"{}\" {problem}", path.display())
            }
            Warning::NoRevocationList(path) => write!(
                f,
                "certificate revocation list \"{}\" does not exist",
                path.display()
            ),
            Warning::ClientKey { path, problem } => write!(
                f,
                "no client certificate is shown: private key file \"{}\" {problem}",
                path.display()
            ),
        }
    }
}

/// `target_session_attrs`: which of several servers will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAttributes {
    /// Any that lets us in.
    #[default]
    Any,
    /// One that accepts writing transactions by default.
    ReadWrite,
    /// One that does not.
    ReadOnly,
    /// One that is not in recovery.
    Primary,
    /// One in recovery.
    Standby,
    /// One in recovery, or any if no host is.
    PreferStandby,
}

/// `load_balance_hosts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder {
    /// As given.
    #[default]
    Given,
    /// Shuffled for each connection, and the addresses of a host too.
    Random,
}

/// How the server is let convince us and how we convince it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// `channel_binding`.
    pub channel_binding: ChannelBindingMode,
    /// `require_auth`; `None` takes whatever the server asks for.
    pub required: Option<RequiredAuthentication>,
    /// `requirepeer`: the system's name of the user who must own the server's process behind a local
    /// socket.
    pub required_peer: Option<String>,
}

/// `channel_binding`: whether SCRAM is bound to the encrypted connection below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBindingMode {
    /// Never.
    Disable,
    /// Where both sides can.
    #[default]
    Prefer,
    /// Or there is no connection.
    Require,
}

/// `require_auth`: methods of which the server has to use one, or must not use any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredAuthentication {
    /// As the user wrote them, for messages.
    pub text: String,
    /// The methods that are named.
    pub methods: Vec<AuthenticationMethod>,
    /// Whether they are forbidden (`!md5,!password`) instead of required.
    pub forbidden: bool,
}

/// A way to log in that `require_auth` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationMethod {
    /// The password in clear.
    Password,
    /// A salted MD5 hash of it.
    Md5,
    /// Kerberos; never done here, so that requiring it refuses every server.
    Gss,
    /// Windows; never done here.
    Sspi,
    /// SCRAM-SHA-256, bound to the connection or not.
    ScramSha256,
    /// A bearer token; never done here.
    Oauth,
    /// The server asks for nothing.
    None,
}

/// Whether and how connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// `sslmode`.
    pub mode: SslMode,
    /// `sslnegotiation`.
    pub negotiation: SslNegotiation,
    /// Certificates of authorities to trust.
    pub roots: Roots,
    /// `sslcrl` or the default file, if one is there.
    pub revocation_list: Option<PathBuf>,
    /// `sslcrldir`, if given: a directory of revocation lists.
    pub revocation_directory: Option<PathBuf>,
    /// What we show if the server asks who we are.
    pub client_certificate: Option<ClientCertificate>,
    /// `sslcertmode`.
    pub certificate_mode: CertificateMode,
    /// `sslsni`: whether the host's name is sent in clear, for proxies to route by.
    pub send_host_name: bool,
    /// `ssl_min_protocol_version`.
    pub min_version: Option<TlsVersion>,
    /// `ssl_max_protocol_version`.
    pub max_version: Option<TlsVersion>,
}

/// `sslmode`, in rising order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// Only if the server refuses a plain connection.
    Allow,
    /// If the server can, else plain.
    #[default]
    Prefer,
    /// Encrypted or not at all; with authorities given, as [`SslMode::VerifyCa`].
    Require,
    /// And the certificate comes from an authority that we trust.
    VerifyCa,
    /// And it was made for this host.
    VerifyFull,
}

/// `sslnegotiation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslNegotiation {
    /// The server is asked first, in clear, whether it can.
    #[default]
    Postgres,
    /// The handshake begins at once.
    Direct,
}

/// Certificates of authorities to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// None is known, because the file is not there: only modes that verify nothing will do.
    Missing(PathBuf),
    /// A PEM file, given with `sslrootcert` or there by default.
    File(PathBuf),
    /// Those of the operating system (`sslrootcert=system`).
    System,
}

/// What we show if the server asks who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// `sslcert` or the default file: a PEM file with the chain.
    pub certificate: PathBuf,
    /// `sslkey` or the default file: a PEM file with its key.
    pub key: PathBuf,
}

/// `sslcertmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateMode {
    /// Never shown.
    Disable,
    /// Shown if there is one and the server asks.
    #[default]
    Allow,
    /// The server has to ask, and there has to be one.
    Require,
}

/// A version of TLS that this program can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2, also meant where an older one is the lower bound.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// `keepalives…` and `tcp_user_timeout`: how the kernel notices that a peer is gone. Zero leaves the
/// system's own setting. TCP only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveSettings {
    /// Whether idle connections are probed at all.
    pub enabled: bool,
    /// Seconds without traffic before the first probe.
    pub idle_s: u32,
    /// Seconds between probes.
    pub interval_s: u32,
    /// Unanswered probes that end the connection.
    pub count: u32,
    /// Milliseconds that sent bytes may stay unacknowledged.
    pub user_timeout_ms: u32,
}

/// A version of the frontend/backend protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 3.0, what libpq 18 asks for by default.
    #[default]
    V3_0,
    /// 3.2: longer cancellation keys.
    V3_2,
}

impl Target {
    /// A target of which no more is said, with libpq's defaults for the rest, and without encryption,
    /// since nothing is known of files to verify it with.
    pub fn plain(hosts: Vec<Host>, user: &str, database: &str) -> Self {
        Target {
            hosts,
            database: database.to_owned(),
            user: user.to_owned(),
            password: None,
            password_file: None,
            options: None,
            application_name: String::new(),
            connect_timeout: None,
            session_attributes: SessionAttributes::default(),
            host_order: HostOrder::default(),
            login: LoginSettings::default(),
            tls: TlsSettings::disabled(),
            keepalive: KeepaliveSettings::default(),
            max_protocol: ProtocolVersion::default(),
            min_protocol: ProtocolVersion::default(),
            warnings: Vec::new(),
        }
    }

    /// The password for one of the hosts, if it is known.
    pub fn password_for(&self, host: usize) -> Option<&Secret> {
        let of_host = || self.hosts.get(host)?.password.as_ref();
        self.password.as_ref().or_else(of_host)
    }

    /// The password file that knows the password of one of the hosts, if that is where it is from.
    pub(super) fn password_file_of(&self, host: usize) -> Option<&Path> {
        let of_host = self.hosts.get(host)?.password.as_ref();
        of_host.filter(|_| self.password.is_none())?;
        self.password_file.as_deref()
    }
}

impl TlsSettings {
    /// Never encrypts.
    pub fn disabled() -> Self {
        TlsSettings {
            mode: SslMode::Disable,
            negotiation: SslNegotiation::default(),
            roots: Roots::Missing(PathBuf::new()),
            revocation_list: None,
            revocation_directory: None,
            client_certificate: None,
            certificate_mode: CertificateMode::default(),
            send_host_name: true,
            min_version: None,
            max_version: None,
        }
    }
}

impl Default for KeepaliveSettings {
    /// Probed at the system's pace.
    fn default() -> Self {
        KeepaliveSettings {
            enabled: true,
            idle_s: 0,
            interval_s: 0,
            count: 0,
            user_timeout_ms: 0,
        }
    }
}
