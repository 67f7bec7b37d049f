//! The control connection: a blocking client of our own for initialisation, detection and
//! vacuum, opened from a resolved [`Target`], and how it is asked. It is never part of the load.
//!
//! Reads no environment and no files: whatever matters is in the target.

use std::net::ToSocketAddrs;
use std::time::Duration;

use crossbeam_channel::bounded;
use postgres::config::SslMode;
use postgres::error::DbError;
use postgres::{Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::conninfo::{Host, HostName, Target};
use crate::console::Console;
use crate::error::{Error, Report};

/// Opens a connection to the first host of `target` that gives one. Notices of the server go to
/// `console` for as long as the connection lives.
///
/// # Errors
/// [`Error::Connect`] with the outcome of every attempt, one a line.
pub fn connect(target: &Target, console: &Console) -> Result<Client, Error> {
    let mut failures = Vec::new();
    for host in &target.hosts {
        let bound = target.connect_timeout.map(|each| each * addresses(host));
        match attempt(config(target, host, console), bound) {
            Ok(client) => return Ok(client),
            Err(failure) => failures.push((host, failure)),
        }
    }
    Err(Error::Connect(connect_report(target, &failures)))
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

/// Why a host gave no connection.
enum Failure {
    Refused(postgres::Error),
    /// Nobody refused, but the time for it is over.
    TimedOut,
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

/// How many addresses the driver will try for `host`, each with the whole timeout.
fn addresses(host: &Host) -> u32 {
    match &host.name {
        HostName::SocketDirectory(_) => 1,
        HostName::Network(name) => (name.as_str(), host.port)
            .to_socket_addrs()
            .map_or(1, |found| found.count().max(1) as u32),
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

fn config(target: &Target, host: &Host, console: &Console) -> Config {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name(&target.application_name)
        .port(host.port)
        .ssl_mode(SslMode::Disable);
    match &host.name {
        HostName::SocketDirectory(directory) => config.host_path(directory),
        HostName::Network(name) => config.host(name),
    };
    if let Some(password) = &target.password {
        config.password(password);
    }
    if let Some(options) = &target.options {
        config.options(options);
    }
    if let Some(timeout) = target.connect_timeout {
        config.connect_timeout(timeout);
    }
    let console = console.clone();
    config.notice_callback(move |notice| console.line(&db_message(&notice)));
    config
}

fn connect_report(target: &Target, failures: &[(&Host, Failure)]) -> Report {
    let attempts: Vec<String> = failures
        .iter()
        .map(|(host, failure)| {
            let reason = match failure {
                Failure::Refused(error) => server_message(error),
                Failure::TimedOut => "timeout expired".to_owned(),
            };
            format!("connection to server {} failed: {reason}", place(host))
        })
        .collect();
    let report = Report::new(attempts.join("\n")).detail(format!(
        "The database was \"{}\", the user \"{}\".",
        target.database, target.user
    ));
    match failures
        .last()
        .and_then(|(host, failure)| remedy(host, failure))
    {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// The address as libpq words it: `on socket "…"` or `at "…", port …`.
fn place(host: &Host) -> String {
    match &host.name {
        HostName::SocketDirectory(directory) => {
            let socket = directory.join(format!(".s.PGSQL.{}", host.port));
            format!("on socket \"{}\"", socket.display())
        }
        HostName::Network(name) => format!("at \"{name}\", port {}", host.port),
    }
}

fn remedy(host: &Host, failure: &Failure) -> Option<String> {
    let Failure::Refused(error) = failure else {
        return Some(
            "Something listens there, or drops what is sent to it; is it PostgreSQL?".into(),
        );
    };
    if error.as_db_error().is_some() {
        return None;
    }
    if driver_message(error).contains("password missing") {
        return Some("The server asks for a password: set PGPASSWORD or use ~/.pgpass.".into());
    }
    Some(match &host.name {
        HostName::SocketDirectory(_) => {
            "Is the server running locally and accepting connections on that socket?".into()
        }
        HostName::Network(_) => {
            "Is the server running on that host and accepting TCP/IP connections?".into()
        }
    })
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

/// The driver's own words with their causes: "error connecting to server: Connection refused".
fn driver_message(error: &postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::temporary_cluster;
    use crate::console::tests::recorded;

    fn socket(directory: &str) -> Host {
        Host {
            name: HostName::SocketDirectory(directory.into()),
            port: 5433,
        }
    }

    #[test]
    fn addresses_are_worded_like_libpqs() {
        let network = Host {
            name: HostName::Network("db.example".to_owned()),
            port: 6000,
        };
        assert_eq!(place(&network), "at \"db.example\", port 6000");
        assert_eq!(place(&socket("/run")), "on socket \"/run/.s.PGSQL.5433\"");
    }

    #[test]
    fn hosts_are_tried_in_order_and_every_failure_is_told() {
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
        let error = connect(&target, &console).err().unwrap();
        let report = error.report().unwrap();
        let lines: Vec<&str> = report.message.lines().collect();
        assert!(
            lines[0]
                .starts_with("connection to server on socket \"/nowhere/.s.PGSQL.5433\" failed: ")
                && lines[0].contains("No such file or directory"),
            "{error}"
        );
        assert!(
            lines[1].ends_with("failed: FATAL:  database \"absent\" does not exist"),
            "{error}"
        );
        let detail = report.detail.as_deref().unwrap();
        assert!(
            detail.starts_with("The database was \"absent\""),
            "{detail}"
        );
    }

    fn target_at(host: Host) -> Target {
        Target {
            hosts: vec![host],
            database: "d".to_owned(),
            user: "u".to_owned(),
            password: None,
            options: None,
            application_name: "a".to_owned(),
            connect_timeout: None,
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up_after_the_timeout() {
        // The kernel shakes hands for a listener that accepts nobody.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (console, _) = recorded();
        let target = Target {
            connect_timeout: Some(Duration::from_millis(20)),
            ..target_at(Host {
                name: HostName::Network("127.0.0.1".to_owned()),
                port: silent.local_addr().unwrap().port(),
            })
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
        let error = connect(&target_at(Host { name, port }), &console)
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
        target.hosts = vec![Host {
            name: HostName::Network("127.0.0.1".to_owned()),
            port: 1,
        }];
        assert!(hint(&target).contains("TCP/IP"));
    }
}
