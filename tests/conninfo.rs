//! Connection settings are resolved as psql resolves them: every row is given to the psql that is
//! installed, which connects to a server made up here, and to this crate, whose attempts are
//! played through against the same rules. What both try, and what they say to the server, is
//! compared.

#[path = "conninfo/fake_server.rs"]
mod fake_server;
#[path = "conninfo/rows.rs"]
mod rows;

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use pgmark::conninfo::{
    Addresses, AttemptFailure, ConnectionOptions, Encryption, Endpoint, Environment, FileFacts,
    ProcessEnvironment, Secret, Target,
};
use pgmark::sqlstate::SqlState;

use fake_server::FakeServer;
use rows::{Expectation, Row};

/// Rows are shared out to so many servers of their own.
const LANES: usize = 4;

/// What is tried, in order, and what is said there; or one line that nothing is.
type Outcome = Vec<String>;

const REFUSED: &str = "refused";

/// What psql says when it does not like its settings, sometimes only once it is connecting.
const COMPLAINTS: [&str; 6] = [
    "invalid integer value",
    "keepalives parameter must be an integer",
    "root certificate file",
    "private key file",
    "certificate present, but not",
    "host name must be specified",
];

#[test]
fn psql_resolves_the_same() {
    let version = Command::new(psql()).arg("--version").output();
    assert!(
        version.is_ok_and(|output| output.status.success()),
        "psql is not installed: it comes with the server's package (postgresql-client)"
    );
    let rows = rows::all();
    let compared = rows.iter().filter(|row| row.is_compared()).count();
    assert!(compared >= 120, "only {compared} rows are compared");
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let (rows, problems) = (&rows, &problems);
            scope.spawn(move || {
                let server = FakeServer::start();
                for row in rows.iter().skip(lane).step_by(LANES) {
                    if let Err(problem) = check(row, &server) {
                        problems.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(
        problems.is_empty(),
        "{} of {} rows:\n{}",
        problems.len(),
        rows.len(),
        problems.join("\n")
    );
}

/// The program itself: what Debian has on the search path is a script that chooses a host.
fn psql() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    versions
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/psql")))
        .filter(|path| path.exists())
        .max()
        .unwrap_or_else(|| "psql".into())
}

fn check(row: &Row, server: &FakeServer) -> Result<(), String> {
    let home = Home::new(row, server);
    let ours = ours(row, &home, server);
    let is_as_expected = match &row.expectation {
        Expectation::AsPsql => ours == psqls(row, &home, server),
        Expectation::Newer(expected) => ours.join("; ") == home.fill(expected),
        Expectation::Differs { expected, .. } => {
            ours.join("; ") == home.fill(expected) && ours != psqls(row, &home, server)
        }
    };
    match is_as_expected {
        true => Ok(()),
        false => Err(format!(
            "{row:?}\n   ours: {}\n   psql: {}\n",
            ours.join("; "),
            psqls(row, &home, server).join("; ")
        )),
    }
}

/// A home directory of the row's own, with its files, and the names that rows use for places.
struct Home {
    directory: tempfile::TempDir,
    port: u16,
    sockets: PathBuf,
}

impl Home {
    fn new(row: &Row, server: &FakeServer) -> Home {
        let home = Home {
            directory: tempfile::tempdir().unwrap(),
            port: server.port,
            sockets: server.directory().to_owned(),
        };
        for (name, mode, text) in &row.files {
            let path = home.directory.path().join(name);
            let mut parents = std::fs::DirBuilder::new();
            parents.recursive(true).mode(0o700);
            parents.create(path.parent().unwrap()).unwrap();
            if text == "DIRECTORY" {
                parents.create(&path).unwrap();
                continue;
            }
            std::fs::write(&path, home.fill(text)).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        home
    }

    fn fill(&self, text: &str) -> String {
        text.replace("$port", &self.port.to_string())
            .replace("$home", self.directory.path().to_str().unwrap())
            .replace("$sockets", self.sockets.to_str().unwrap())
    }

    fn variables(&self, row: &Row) -> Vec<(String, OsString)> {
        let mut variables = vec![("HOME".to_owned(), self.directory.path().into())];
        for (name, value) in &row.variables {
            variables.push((name.clone(), self.fill(value).into()));
        }
        variables
    }
}

/// What psql does: the attempts that it tells of, then what the server heard.
fn psqls(row: &Row, home: &Home, server: &FakeServer) -> Outcome {
    server.expect(row.offers_tls);
    let mut command = Command::new(psql());
    command.env_clear().envs(home.variables(row));
    command.args(["-X", "-w"]).stdin(Stdio::null());
    for (option, value) in [
        ("-h", &row.host),
        ("-p", &row.port),
        ("-U", &row.user),
        ("-d", &row.database),
    ] {
        if let Some(value) = value {
            command.arg(option).arg(home.fill(value));
        }
    }
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let heard = server.heard();
    let complains = COMPLAINTS.iter().any(|complaint| told.contains(complaint));
    let mut outcome: Outcome = told.lines().filter_map(attempt_in).collect();
    if complains || outcome.is_empty() {
        return vec![REFUSED.to_owned()];
    }
    outcome.extend(heard);
    outcome
}

/// The place in a line of the form `…connection to PLACE failed: …`.
fn attempt_in(line: &str) -> Option<String> {
    let line = line.strip_prefix("psql: error: ").unwrap_or(line);
    let (place, _) = line
        .strip_prefix("connection to ")?
        .split_once(" failed: ")?;
    // It is shown as it was written.
    Some(match place.split_once(", port ") {
        Some((server, port)) => format!("{server}, port {}", port.trim_matches([' ', '+'])),
        None => place.to_owned(),
    })
}

/// What this crate does in psql's place.
fn ours(row: &Row, home: &Home, server: &FakeServer) -> Outcome {
    let option = |value: &Option<String>| value.as_ref().map(|value| home.fill(value));
    let options = ConnectionOptions {
        host: option(&row.host),
        port: option(&row.port),
        user: option(&row.user),
        database: option(&row.database),
        program_name: "psql".to_owned(),
    };
    match Target::resolve(&options, &RowEnvironment(home.variables(row))) {
        Ok(target) => play(&target, server, row.offers_tls),
        Err(_) => vec![REFUSED.to_owned()],
    }
}

/// Goes through the attempts as a client would, with the server's answers.
fn play(target: &Target, server: &FakeServer, offers_tls: bool) -> Outcome {
    let addresses = Addresses::look_up(target, |name, port| {
        Ok((name, port).to_socket_addrs()?.collect())
    });
    let mut attempts = addresses.attempts(|_| 0);
    let (mut places, mut said) = (Vec::new(), Vec::new());
    while let Some(attempt) = attempts.current() {
        let given = target.hosts[attempt.host].address;
        places.push(place(attempt.endpoint, given));
        let failure = match server.listens_at(attempt.endpoint) {
            false => AttemptFailure::Unreachable("nobody is there".to_owned()),
            true if attempt.encryption != Encryption::Plain && offers_tls => {
                said.push("asks for TLS".to_owned());
                said.push(client_hello(target, attempt.endpoint));
                AttemptFailure::Handshake("cut".to_owned())
            }
            true if attempt.encryption == Encryption::Required => {
                said.push("asks for TLS".to_owned());
                AttemptFailure::NoTls
            }
            true => {
                let (preferred, host) = (attempt.encryption == Encryption::Preferred, attempt.host);
                if preferred {
                    said.push("asks for TLS".to_owned());
                    attempts.go_on_plain();
                }
                log_in(target, host, &mut said)
            }
        };
        attempts.fail(failure);
    }
    places.extend(said);
    places
}

fn client_hello(target: &Target, endpoint: &Endpoint) -> String {
    let named = match endpoint {
        Endpoint::Tcp { host, .. } => host.parse::<IpAddr>().is_err(),
        Endpoint::Unix(_) => false,
    };
    match named && target.tls.send_host_name {
        true => "says hello to a name".to_owned(),
        false => "says hello".to_owned(),
    }
}

/// Says who we are; the server asks for the password and does not like it.
fn log_in(target: &Target, host: usize, said: &mut Vec<String>) -> AttemptFailure {
    said.push(fake_server::introduction(
        &target.user,
        &target.database,
        &target.application_name,
        target.options.as_deref().unwrap_or(""),
    ));
    match target.password_for(host).map(Secret::reveal) {
        Some(password) => {
            said.push(format!("password {password}"));
            AttemptFailure::Refused {
                sqlstate: SqlState(*b"28P01"),
                message: String::new(),
            }
        }
        None => AttemptFailure::Unacceptable("no password supplied".to_owned()),
    }
}

/// As libpq names it, which leaves the name out where an address was given.
fn place(endpoint: &Endpoint, given: Option<IpAddr>) -> String {
    match (endpoint, given) {
        (Endpoint::Tcp { address, .. }, Some(given)) => Endpoint::Tcp {
            host: given.to_string(),
            address: SocketAddr::new(given, address.port()),
        }
        .to_string(),
        (endpoint, _) => endpoint.to_string(),
    }
}

/// The variables of a row, and the real files.
struct RowEnvironment(Vec<(String, OsString)>);

impl Environment for RowEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        found.next_back().map(|(_, value)| value.clone())
    }

    fn user_name(&self) -> Result<String, String> {
        ProcessEnvironment.user_name()
    }

    fn has_directory(&self, path: &Path) -> bool {
        ProcessEnvironment.has_directory(path)
    }

    fn home_directory(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    fn file(&self, path: &Path) -> Option<FileFacts> {
        ProcessEnvironment.file(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        ProcessEnvironment.read(path)
    }
}
