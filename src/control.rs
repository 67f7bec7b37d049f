//! The control connection: a blocking client of our own for initialisation, detection and
//! vacuum, opened from a resolved [`Target`], and how it is asked. It is never part of the load.
//!
//! Tries addresses in the order in which the clients do, so that it reaches the same server. Reads
//! no environment and no files: whatever matters is in the target.

use std::error::Error as _;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::bounded;
use postgres::config::SslMode;
use postgres::error::DbError;
use postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::conninfo::{AttemptFailure, Encryption, Endpoint, Secret, Target};
use crate::console::Console;
use crate::error::{Error, system_words};
use crate::random::Generator;
use crate::sqlstate::SqlState;
use crate::time::Clock;
use crate::transport::look_up;

/// Opens a connection to the first address of `target` that gives one. Notices of the server go to
/// `console` for as long as the connection lives.
///
/// # Errors
/// [`Error::Connect`] with the outcome of every attempt, one a line.
pub fn connect(target: &Target, console: &Console) -> Result<Client, Error> {
    let mut generator = Generator::new(RandomState::new().build_hasher().finish());
    let mut attempts = look_up::addresses(target).attempts(|bound| generator.index_below(bound));
    let mut remedy = None;
    loop {
        // Nothing is encrypted here, so that there is no second way to the same address.
        attempts.go_on_plain();
        let Some(now) = attempts.current() else {
            break;
        };
        if now.encryption == Encryption::Required {
            attempts.fail(AttemptFailure::NoTls);
            continue;
        }
        let endpoint = now.endpoint;
        let password = target.password_for(now.host);
        let config = config(target, endpoint, password, console);
        let failure = match attempt_patiently(&config, target.connect_timeout) {
            Ok(client) => return Ok(client),
            Err(failure) => failure,
        };
        remedy = failure.remedy(endpoint);
        attempts.fail(failure.into());
    }
    let report = attempts.report(target);
    Err(Error::Connect(match remedy {
        Some(hint) => report.hint(hint),
        None => report,
    }))
}

/// The rows that `statement` gives. The simple protocol also works through poolers that know no
/// other.
///
/// # Errors
/// Those of the server and of the connection.
pub fn rows(client: &mut Client, statement: &str) -> Result<Vec<SimpleQueryRow>, postgres::Error> {
    let messages = client.simple_query(statement)?;
    Ok(messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })
        .collect())
}

/// Why an address gave no connection.
enum Failure {
    Refused(postgres::Error),
    /// Nobody refused, but the time for it is over.
    TimedOut,
}

/// How long a server may take to look at connections that wait on its socket, if the user sets no
/// bound: more than any that is alive takes, even one that many clients reach at the same time.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts at a socket with a full backlog, of which the system does not tell when it
/// has room again.
const BACKLOG_PAUSE: Duration = Duration::from_millis(10);

/// Connects, after a while if so many connections wait on a Unix-domain socket that there is no
/// room for another one.
fn attempt_patiently(config: &Config, bound: Option<Duration>) -> Result<Client, Failure> {
    let clock = Clock::start();
    let deadline = clock.now() + bound.unwrap_or(BACKLOG_PATIENCE);
    loop {
        match attempt(config.clone(), bound) {
            Err(Failure::Refused(error)) if is_backlog(&error) && clock.now() < deadline => {
                std::thread::sleep(BACKLOG_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn is_backlog(error: &postgres::Error) -> bool {
    let of_the_system = error.source().and_then(|cause| cause.downcast_ref());
    of_the_system.is_some_and(|error: &std::io::Error| error.kind() == ErrorKind::WouldBlock)
}

/// Connects within `bound`. The driver bounds only the way to a socket, not the exchange that
/// follows, so it is left to itself on a thread of its own when the time is over.
fn attempt(config: Config, bound: Option<Duration>) -> Result<Client, Failure> {
    let Some(bound) = bound else {
        return config.connect(NoTls).map_err(Failure::Refused);
    };
    let (sender, connected) = bounded(1);
    std::thread::spawn(move || {
        let _ = sender.send(config.connect(NoTls));
    });
    match connected.recv_timeout(bound) {
        Ok(result) => result.map_err(Failure::Refused),
        Err(_) => Err(Failure::TimedOut),
    }
}

/// What the server or the driver says about `error`, in one or more lines: the way in which
/// psql shows it.
pub fn server_message(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db_error) => db_message(db_error),
        None => driver_message(error),
    }
}

fn config(
    target: &Target,
    endpoint: &Endpoint,
    password: Option<&Secret>,
    console: &Console,
) -> Config {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name(&target.application_name)
        .ssl_mode(SslMode::Disable);
    match endpoint {
        Endpoint::Unix(path) => {
            let (directory, port) = split_socket_path(path);
            config.host_path(directory).port(port)
        }
        Endpoint::Tcp { host, address } => config
            .host(host)
            .hostaddr(address.ip())
            .port(address.port()),
    };
    if let Some(password) = password {
        config.password(password.reveal());
    }
    if let Some(options) = &target.options {
        config.options(options);
    }
    let console = console.clone();
    config.notice_callback(move |notice| console.line(&db_message(&notice)));
    config
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

impl Failure {
    /// What to do about it, where the server does not say so itself.
    fn remedy(&self, endpoint: &Endpoint) -> Option<&'static str> {
        let Failure::Refused(error) = self else {
            return Some("Something listens there, or drops what is sent to it; is it PostgreSQL?");
        };
        if error.as_db_error().is_some() {
            return None;
        }
        if root_cause(error).contains("password missing") {
            return Some("The server asks for a password: set PGPASSWORD or use ~/.pgpass.");
        }
        Some(match endpoint {
            Endpoint::Unix(_) => {
                "Is the server running locally and accepting connections on that socket?"
            }
            Endpoint::Tcp { .. } => {
                "Is the server running on that host and accepting TCP/IP connections?"
            }
        })
    }
}

impl From<Failure> for AttemptFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => AttemptFailure::TimedOut,
            Failure::Refused(error) => match error.as_db_error() {
                Some(refusal) => AttemptFailure::Refused {
                    sqlstate: SqlState(
                        refusal
                            .code()
                            .code()
                            .as_bytes()
                            .try_into()
                            .unwrap_or_default(),
                    ),
                    message: db_message(refusal),
                },
                None => AttemptFailure::Unreachable(root_cause(&error)),
            },
        }
    }
}

fn db_message(error: &DbError) -> String {
    let mut text = format!("{}:  {}", error.severity(), error.message());
    for (label, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            text.push_str(&format!("\n{label}:  {part}"));
        }
    }
    text
}

/// The driver's own words with their causes: "error communicating with the server: Broken pipe".
fn driver_message(error: &postgres::Error) -> String {
    let (text, cause) = (error.to_string(), root_cause(error));
    match text == cause {
        true => text,
        false => format!("{text}: {cause}"),
    }
}

/// Why in the end: "Connection refused".
fn root_cause(error: &postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(of_the_system) => system_words(of_the_system),
        None => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::cluster::tests::temporary_cluster;
    use crate::conninfo::{Host, HostName};
    use crate::console::tests::recorded;

    fn socket(directory: &str) -> Host {
        Host::new(HostName::SocketDirectory(directory.into()), 5433)
    }

    #[test]
    fn addresses_are_tried_in_order_until_a_server_answers() {
        let cluster = temporary_cluster();
        let (console, recording) = recorded();
        let mut target = cluster.target();
        target.hosts.insert(0, socket("/nowhere"));
        target.options = Some("-c work_mem=3MB".to_owned());
        let mut client = connect(&target, &console).unwrap();
        client
            .batch_execute("do $$ begin raise warning 'careful' using hint = 'slow'; end $$")
            .unwrap();
        assert_eq!(recording.text(), "WARNING:  careful\nHINT:  slow\n");
        let work_mem: String = client.query_one("show work_mem", &[]).unwrap().get(0);
        assert_eq!(work_mem, "3MB");

        target.database = "absent".to_owned();
        target.hosts.push(socket("/not/asked/any/more"));
        let error = connect(&target, &console).err().unwrap();
        let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert_eq!(
            lines[0],
            "connection to server on socket \"/nowhere/.s.PGSQL.5433\" failed: \
             No such file or directory"
        );
        assert!(
            lines[1].ends_with("failed: FATAL:  database \"absent\" does not exist"),
            "{error}"
        );
        let report = error.report().unwrap();
        assert!(report.detail.as_deref().unwrap().contains("\"absent\""));
        assert_eq!(report.hint, None);
    }

    #[test]
    fn sockets_in_the_abstract_namespace_are_reached() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("/pgmark-test-{}/.s.PGSQL.5433", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 1024]).unwrap();
            let fields = b"SFATAL\0VFATAL\0C28000\0Mgo away\0\0";
            let length = 4 + fields.len() as u32;
            client
                .write_all(&[b"E", &length.to_be_bytes()[..], fields].concat())
                .unwrap();
        });
        let (console, _) = recorded();
        let directory = format!("@/pgmark-test-{}", std::process::id());
        let error = connect(&target_at(socket(&directory)), &console).err();
        server.join().unwrap();
        let message = error.unwrap().to_string();
        assert!(message.ends_with("failed: FATAL:  go away"), "{message}");
    }

    #[test]
    fn a_socket_with_a_full_backlog_is_tried_again() {
        use rustix::net::{
            AddressFamily, SocketAddrUnix, SocketType, accept, bind, connect as join, listen,
            socket as new_socket,
        };
        let directory = tempfile::tempdir().unwrap();
        let address = SocketAddrUnix::new(directory.path().join(".s.PGSQL.5433")).unwrap();
        let stream = || new_socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (listener, waiting) = (stream(), stream());
        bind(&listener, &address).unwrap();
        // A backlog of none has room for one.
        listen(&listener, 0).unwrap();
        join(&waiting, &address).unwrap();

        let (console, _) = recorded();
        let mut target = target_at(socket(directory.path().to_str().unwrap()));
        target.connect_timeout = Some(Duration::from_millis(30));
        let clock = Clock::start();
        let error = connect(&target, &console).err().unwrap().to_string();
        assert!(
            error.ends_with("failed: Resource temporarily unavailable"),
            "{error}"
        );
        assert!(clock.now().nanos() >= 30_000_000, "it was not patient");

        target.connect_timeout = None;
        let client = std::thread::spawn(move || connect(&target, &console).err().unwrap());
        // The one that waits, then ours, as soon as there is room for it.
        accept(&listener).unwrap();
        drop(accept(&listener).unwrap());
        let error = client.join().unwrap().to_string();
        assert!(!error.contains("temporarily unavailable"), "{error}");
    }

    fn target_at(host: Host) -> Target {
        Target {
            application_name: "a".to_owned(),
            ..Target::plain(vec![host], "u", "d")
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up_after_the_timeout() {
        // The kernel shakes hands for a listener that accepts nobody.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (console, _) = recorded();
        let target = Target {
            connect_timeout: Some(Duration::from_millis(20)),
            ..target_at(Host::new(
                HostName::Network("127.0.0.1".to_owned()),
                silent.local_addr().unwrap().port(),
            ))
        };
        let error = connect(&target, &console).err().unwrap();
        assert!(
            error.to_string().ends_with("failed: timeout expired"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_password_is_not_taken_for_a_missing_server() {
        use std::io::{Read, Write};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"R\0\0\0\x0c\0\0\0\x05salt").unwrap();
            // Until the client leaves.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let (console, _) = recorded();
        let name = HostName::Network("127.0.0.1".to_owned());
        let error = connect(&target_at(Host::new(name, port)), &console)
            .err()
            .unwrap();
        server.join().unwrap();
        let hint = error.report().unwrap().hint.clone().unwrap();
        assert!(hint.contains("PGPASSWORD"), "{hint}");
    }

    #[test]
    fn a_server_that_is_not_there_gets_a_hint() {
        let (console, _) = recorded();
        let mut target = target_at(socket("/nowhere"));
        let hint = |target: &Target| {
            let error = connect(target, &console).err().unwrap();
            error.report().unwrap().hint.clone().unwrap()
        };
        assert!(hint(&target).contains("on that socket"));
        // Port 1 of this machine: nothing listens there.
        target.hosts = vec![Host::new(HostName::Network("127.0.0.1".to_owned()), 1)];
        assert!(hint(&target).contains("TCP/IP"));
    }
}
