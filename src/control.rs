//! The control connection: a blocking client of our own for initialisation, detection and
//! vacuum, opened from a resolved [`Target`], and how it is asked. It is never part of the load.
//!
//! Tries addresses in the order in which the clients do, so that it reaches the same server, and
//! encrypts as they do. Reads no environment; whatever matters is in the target.

mod adaptor;
mod opening;
mod proof;

use std::cell::OnceCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use postgres::error::DbError;
use postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::beside;
use crate::conninfo::{Attempt, AttemptFailure, Attempts, Encryption, Endpoint, Target};
use crate::console::Console;
use crate::error::{Error, system_words};
use crate::protocol::Shown;
use crate::random::Generator;
use crate::tls::Connector;
use crate::transport::look_up;
use adaptor::Adaptor;
use opening::{Opening, Remedied};

/// A control connection. For all but cancelling it is the driver's client.
pub struct Connection {
    /// Taken when it is dropped.
    client: Option<Client>,
    /// How it is encrypted, and further connections to the same server are.
    encryption: Option<Adaptor>,
}

/// What it takes to cancel what a control connection is doing, from any thread.
#[derive(Clone)]
pub struct Cancellation {
    token: postgres::CancelToken,
    encryption: Option<Adaptor>,
}

/// Opens a connection to the first address of `target` that gives one. Notices of the server go to
/// `console` for as long as the connection lives.
///
/// # Errors
/// [`Error::PasswordRequired`] if a server asks for a password and none is known, else
/// [`Error::Connect`], each with the outcome of every attempt, one a line.
pub fn connect(target: &Target, console: &Console) -> Result<Connection, Error> {
    let mut generator = Generator::new(RandomState::new().build_hasher().finish());
    let mut attempts = look_up::addresses(target).attempts(|bound| generator.index_below(bound));
    let connector = OnceCell::new();
    let mut remedy = None;
    while let Some(attempt) = attempts.current() {
        let may_go_plain = attempt.encryption == Encryption::Preferred;
        let failure = match open(&attempt, &attempts, target, console, &connector) {
            Ok(connection) => return Ok(connection),
            Err(Remedied {
                failure: AttemptFailure::NoTls,
                ..
            }) if may_go_plain => {
                attempts.go_on_plain();
                continue;
            }
            Err(failure) => failure,
        };
        remedy = failure.remedy;
        attempts.fail(failure.failure);
    }
    let report = attempts.report(target);
    if attempts.lack_password() {
        return Err(Error::PasswordRequired(report));
    }
    Err(Error::Connect(match remedy {
        Some(hint) => report.hint(hint),
        None => report,
    }))
}

/// One attempt, encrypted or plain; the files that encryption needs are read when the first needs
/// them.
fn open(
    attempt: &Attempt<'_>,
    attempts: &Attempts,
    target: &Target,
    console: &Console,
    connector: &OnceCell<Result<Connector, String>>,
) -> Result<Connection, Remedied> {
    let encryption = match (attempt.encryption, attempt.endpoint) {
        (Encryption::Plain, _) | (_, Endpoint::Unix(_)) => None,
        (Encryption::Preferred | Encryption::Required, Endpoint::Tcp { host, .. }) => {
            let made = connector
                .get_or_init(|| Connector::new(&target.tls).map_err(|error| error.to_string()));
            Some(Adaptor {
                connector: made.clone().map_err(AttemptFailure::Handshake)?,
                host: host.clone(),
            })
        }
    };
    let opening = Opening {
        config: opening::config(target, attempt, console),
        target: target.clone(),
        host: attempt.host,
        endpoint: attempt.endpoint.clone(),
        encryption: encryption.clone(),
        attempts: attempts.clone(),
    };
    let client = opening.within(target.connect_timeout)?;
    Ok(Connection {
        client: Some(client),
        encryption,
    })
}

impl Connection {
    /// What it takes to cancel what it is doing.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation {
            token: self.cancel_token(),
            encryption: self.encryption.clone(),
        }
    }
}

const PRESENT: &str = "it is there until it is dropped";

/// The driver's client says goodbye and waits for it to be sent, which a peer that makes no sense or
/// does not read keeps it from for ever.
impl Drop for Connection {
    fn drop(&mut self) {
        let client = self.client.take();
        // Without a thread nobody says goodbye, and the server notices the end by itself.
        let _ = beside::within("goodbye", GOODBYE, move || drop(client));
    }
}

/// The time for a goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect(PRESENT)
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect(PRESENT)
    }
}

impl Cancellation {
    /// Asks the server to cancel it. Whether that was of any use only the statement's end shows, so
    /// that nothing is told of a failure.
    pub fn send(&self) {
        let _ = match &self.encryption {
            Some(adaptor) => self.token.cancel_query(adaptor.clone()),
            None => self.token.cancel_query(NoTls),
        };
    }
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

/// What the server or the driver says about `error`, in one or more lines: the way in which
/// psql shows it.
pub fn server_message(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db_error) => db_message(db_error),
        None => driver_message(error),
    }
}

fn db_message(error: &DbError) -> String {
    let shown = |text: &'_ str| Shown(text.as_bytes()).to_string();
    let (severity, message) = (shown(error.severity()), shown(error.message()));
    let mut text = format!("{severity}:  {message}");
    for (label, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(part) = part {
            text.push_str(&format!("\n{label}:  {}", shown(part)));
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
    use std::time::Duration;

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

    /// What the driver cannot be told, and what it only knows by half.
    #[test]
    fn servers_are_refused_that_the_settings_exclude() {
        use crate::conninfo::{AuthenticationMethod, RequiredAuthentication, SessionAttributes};
        let cluster = temporary_cluster();
        let (console, _) = recorded();
        let required = |method, text: &str| {
            let mut target = cluster.target();
            target.login.required = Some(RequiredAuthentication {
                text: text.to_owned(),
                methods: vec![method],
                forbidden: false,
            });
            target
        };
        let run_by = |peer: &str| {
            let mut target = cluster.target();
            target.login.required_peer = Some(peer.to_owned());
            target
        };
        let of_kind = |kind, options: &str| Target {
            session_attributes: kind,
            options: Some(options.to_owned()),
            ..cluster.target()
        };
        let owner = server_owner(&cluster.target());
        let read_only = "-c default_transaction_read_only=on";
        for (target, complaint) in [
            (required(AuthenticationMethod::None, "none"), None),
            (
                required(AuthenticationMethod::ScramSha256, "scram-sha-256"),
                Some("\"scram-sha-256\" failed"),
            ),
            (run_by(&owner), None),
            (run_by("nobody-else"), Some("actual peer user name is")),
            (of_kind(SessionAttributes::ReadWrite, ""), None),
            (of_kind(SessionAttributes::ReadOnly, read_only), None),
            (of_kind(SessionAttributes::Primary, ""), None),
            (of_kind(SessionAttributes::PreferStandby, ""), None),
            (
                of_kind(SessionAttributes::ReadWrite, read_only),
                Some("session is read-only"),
            ),
            (
                of_kind(SessionAttributes::Standby, ""),
                Some("server is not in hot standby mode"),
            ),
        ] {
            match (connect(&target, &console), complaint) {
                (Ok(_), None) => {}
                (Ok(_), Some(complaint)) => panic!("not refused: {complaint}"),
                (Err(error), complaint) => {
                    let complaint = complaint.unwrap_or("nothing is wrong");
                    assert!(error.to_string().contains(complaint), "{error}");
                }
            }
        }
    }

    /// The system's user who runs a server on this machine.
    fn server_owner(target: &Target) -> String {
        let attempts = look_up::addresses(target).attempts(|_| 0);
        let Some(Endpoint::Unix(path)) = attempts.current().map(|attempt| attempt.endpoint) else {
            panic!("a temporary cluster has a socket only");
        };
        let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).unwrap());
        let users = crate::users::all();
        let owner = users.into_iter().find(|user| user.uid == uid);
        owner.expect("the server's user has a name").name
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
        let error = connect(&target, &console).err().unwrap().to_string();
        assert!(error.ends_with("failed: timeout expired"), "{error}");

        target.connect_timeout = None;
        let client = std::thread::spawn(move || connect(&target, &console).err().unwrap());
        // The one that waits, then ours, as soon as there is room for it; perhaps in between one that
        // was given up when its time was over. The thread ends with the tests.
        std::thread::spawn(move || while accept(&listener).is_ok() {});
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
