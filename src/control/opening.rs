//! One attempt of the control connection: the driver's settings for it, the attempt within its
//! time, and what its failure means to the other attempts.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::config::{self, SslMode};
use postgres::{Client, Config, NoTls};

use super::adaptor::Adaptor;
use super::{db_message, proof, root_cause, rows};
use crate::beside;
use crate::conninfo::{
    Attempt, AttemptFailure, Attempts, ChannelBindingMode, Encryption, Endpoint, ServerState,
    SslNegotiation, Target, Verdict,
};
use crate::console::Console;
use crate::error::system_words;
use crate::sqlstate::SqlState;
use crate::time::Clock;
use crate::tls::TlsError;

/// How long a server may take to look at connections that wait on its socket, if the user sets no
/// bound: more than any that is alive takes, even one that many clients reach at the same time.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts at a socket with a full backlog, of which the system does not tell when it
/// has room again.
const BACKLOG_PAUSE: Duration = Duration::from_millis(10);

/// Everything that one attempt needs, on whichever thread.
pub(super) struct Opening {
    pub config: Config,
    pub target: Target,
    /// Place of the host in the target's list.
    pub host: usize,
    pub endpoint: Endpoint,
    /// `None` for a plain connection.
    pub encryption: Option<Adaptor>,
    /// Judge of the server's kind.
    pub attempts: Attempts,
}

/// How an attempt failed, with what to do about it where neither the server nor the failure itself
/// says so.
pub(super) struct Remedied {
    pub failure: AttemptFailure,
    pub remedy: Option<&'static str>,
}

impl From<AttemptFailure> for Remedied {
    fn from(failure: AttemptFailure) -> Self {
        Remedied {
            failure,
            remedy: None,
        }
    }
}

impl Opening {
    /// Connects within `bound`. The driver bounds only the way to a socket, not the exchange that
    /// follows, so it is left to itself on a thread of its own when the time is over.
    pub fn within(self, bound: Option<Duration>) -> Result<Client, Remedied> {
        let Some(bound) = bound else {
            return self.open();
        };
        match beside::within("opening", bound, move || self.open()) {
            Ok(opened) => opened.unwrap_or_else(|| Err(too_late())),
            Err(error) => {
                let words = system_words(&error);
                let reason = format!("could not create a thread for it: {words}");
                Err(AttemptFailure::Unreachable(reason).into())
            }
        }
    }

    fn open(self) -> Result<Client, Remedied> {
        if proof::is_needed(&self.target) {
            let connector = self.encryption.as_ref().map(|adaptor| &adaptor.connector);
            proof::log_in(&self.target, self.host, &self.endpoint, connector)?;
        }
        let mut client = self.connect()?;
        self.judge(&mut client)?;
        Ok(client)
    }

    /// Connects, after a while if so many connections wait on a Unix-domain socket that there is no
    /// room for another one.
    fn connect(&self) -> Result<Client, Remedied> {
        let clock = Clock::start();
        let bound = self.target.connect_timeout;
        let deadline = clock.now() + bound.unwrap_or(BACKLOG_PATIENCE);
        loop {
            let connected = match &self.encryption {
                Some(adaptor) => self.config.connect(adaptor.clone()),
                None => self.config.connect(NoTls),
            };
            match connected {
                Ok(client) => return Ok(client),
                Err(error) if is_backlog(&error) && clock.now() < deadline => {
                    std::thread::sleep(BACKLOG_PAUSE);
                }
                Err(error) if is_backlog(&error) && bound.is_some() => return Err(too_late()),
                Err(error) => return Err(self.explain(&error)),
            }
        }
    }

    /// Whether the server is of the kind that is wanted. The driver does not pass on what the server
    /// reported of itself, so it is asked.
    fn judge(&self, client: &mut Client) -> Result<(), Remedied> {
        let mut state = ServerState::default();
        loop {
            let question = match self.attempts.judge(state) {
                Verdict::Suitable => return Ok(()),
                Verdict::Unsuitable(reason) => {
                    return Err(AttemptFailure::Unsuitable(reason).into());
                }
                Verdict::Ask(question) => question,
            };
            let told = rows(client, question.sql()).map_err(|error| self.explain(&error))?;
            let Some(answer) = told.first().and_then(|row| row.get(0)) else {
                let complaint = format!("no answer to \"{}\"", question.sql());
                return Err(AttemptFailure::Unreachable(complaint).into());
            };
            state.note_answer(question, answer.as_bytes());
        }
    }

    fn explain(&self, error: &postgres::Error) -> Remedied {
        let failure = failure_of(error);
        let remedy = match &failure {
            AttemptFailure::Unreachable(_) => Some(match self.endpoint {
                Endpoint::Unix(_) => {
                    "Is the server running locally and accepting connections on that socket?"
                }
                Endpoint::Tcp { .. } => {
                    "Is the server running on that host and accepting TCP/IP connections?"
                }
            }),
            AttemptFailure::TimedOut
            | AttemptFailure::Refused { .. }
            | AttemptFailure::NoTls
            | AttemptFailure::Handshake(_)
            | AttemptFailure::PasswordRequired
            | AttemptFailure::Unsuitable(_)
            | AttemptFailure::Unacceptable(_) => None,
        };
        Remedied { failure, remedy }
    }
}

/// The user's bound on an attempt is over.
fn too_late() -> Remedied {
    Remedied {
        failure: AttemptFailure::TimedOut,
        remedy: Some("Something listens there, or drops what is sent to it; is it PostgreSQL?"),
    }
}

fn is_backlog(error: &postgres::Error) -> bool {
    let of_the_system = error.source().and_then(|cause| cause.downcast_ref());
    of_the_system.is_some_and(|error: &std::io::Error| error.kind() == ErrorKind::WouldBlock)
}

/// The driver keeps the kinds of its errors to itself, so that some are known by their words only.
fn failure_of(error: &postgres::Error) -> AttemptFailure {
    if let Some(refusal) = error.as_db_error() {
        let code = refusal.code().code().as_bytes();
        return AttemptFailure::Refused {
            sqlstate: SqlState(code.try_into().unwrap_or_default()),
            message: db_message(refusal),
        };
    }
    if let Some(error) = error
        .source()
        .and_then(|source| source.downcast_ref::<TlsError>())
    {
        return AttemptFailure::Handshake(error.to_string());
    }
    let (words, cause) = (error.to_string(), root_cause(error));
    if cause == "server does not support TLS" {
        AttemptFailure::NoTls
    } else if cause == "password missing" {
        AttemptFailure::PasswordRequired
    } else if words.starts_with("authentication error") || words.starts_with("invalid config") {
        AttemptFailure::Unacceptable(cause)
    } else if NONSENSE.iter().any(|words| cause.contains(words)) {
        AttemptFailure::Unreachable(format!(
            "what answers there does not speak PostgreSQL's protocol ({cause})"
        ))
    } else {
        AttemptFailure::Unreachable(cause)
    }
}

/// The driver's words for messages that are none.
const NONSENSE: [&str; 4] = [
    "bytes remaining on stream",
    "failed to fill whole buffer",
    "invalid message length",
    "unexpected message from server",
];

/// The driver's settings for one attempt: encrypted or plain, nothing in between.
pub(super) fn config(target: &Target, attempt: &Attempt<'_>, console: &Console) -> Config {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name(&target.application_name)
        .channel_binding(match target.login.channel_binding {
            ChannelBindingMode::Disable => config::ChannelBinding::Disable,
            ChannelBindingMode::Prefer => config::ChannelBinding::Prefer,
            ChannelBindingMode::Require => config::ChannelBinding::Require,
        })
        .ssl_negotiation(match target.tls.negotiation {
            SslNegotiation::Postgres => config::SslNegotiation::Postgres,
            SslNegotiation::Direct => config::SslNegotiation::Direct,
        })
        .ssl_mode(match attempt.encryption {
            Encryption::Plain => SslMode::Disable,
            Encryption::Preferred | Encryption::Required => SslMode::Require,
        });
    match attempt.endpoint {
        Endpoint::Unix(path) => {
            let (directory, port) = split_socket_path(path);
            config.host_path(directory).port(port)
        }
        Endpoint::Tcp { host, address } => config
            .host(host)
            .hostaddr(address.ip())
            .port(address.port()),
    };
    if let Some(password) = target.password_for(attempt.host) {
        config.password(password.reveal());
    }
    if let Some(options) = &target.options {
        config.options(options);
    }
    keep_alive(target, &mut config);
    let console = console.clone();
    config.notice_callback(move |notice| console.line(&db_message(&notice)));
    config
}

/// Zero leaves the system's own setting; the driver would take its own.
fn keep_alive(target: &Target, config: &mut Config) {
    let settings = &target.keepalive;
    config.keepalives(settings.enabled);
    if settings.idle_s > 0 {
        config.keepalives_idle(Duration::from_secs(settings.idle_s.into()));
    }
    if settings.interval_s > 0 {
        config.keepalives_interval(Duration::from_secs(settings.interval_s.into()));
    }
    if settings.count > 0 {
        config.keepalives_retries(settings.count);
    }
    if settings.user_timeout_ms > 0 {
        config.tcp_user_timeout(Duration::from_millis(settings.user_timeout_ms.into()));
    }
}

/// The driver wants directory and port, of which it makes the name of the socket again. What is
/// `@` for us, the abstract namespace, is a zero byte for it.
fn split_socket_path(path: &Path) -> (PathBuf, u16) {
    let bytes = path.as_os_str().as_bytes();
    let text = match bytes.strip_prefix(b"@") {
        Some(name) => [b"\0", name].concat(),
        None => bytes.to_vec(),
    };
    let path = PathBuf::from(OsString::from_vec(text));
    let port = path
        .extension()
        .and_then(|port| port.to_str()?.parse().ok());
    let directory = path.parent().map(Path::to_owned);
    directory
        .zip(port)
        .expect("a socket's path is made of its directory and its port")
}
