//! A private PostgreSQL server, one for each test binary: on a Unix socket and on 127.0.0.1.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use postgres::{Client, NoTls};

use super::wait_until;

/// A running server with a superuser `postgres` and a database of the same name. Everyone is
/// trusted, except the role `locked`, which needs its password `open sesame` by SCRAM. The role
/// `few` may have three connections.
pub struct Server {
    /// Where the socket, the data and the log are.
    directory: PathBuf,
    bindir: PathBuf,
    port: u16,
    /// User and group that it runs as, if not ours.
    owner: Option<(u32, u32)>,
    /// Ends the server and removes the directory when its standard input closes, which happens
    /// when this process ends, however it ends: a static is never dropped.
    _keeper: Child,
}

impl Server {
    /// The server of this test binary, started by whoever asks first.
    pub fn shared() -> &'static Server {
        static SERVER: LazyLock<Server> = LazyLock::new(|| Server::with(RULES, ""));
        &SERVER
    }

    /// Directory of the Unix socket.
    pub fn socket_directory(&self) -> &Path {
        &self.directory
    }

    /// Port of both the socket and 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's own program of this name (`pgbench`, `pg_ctl`), if it is installed.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::iter::once(self.bindir.clone())
            .chain(std::env::split_paths(&path))
            .map(|directory| directory.join(name))
            .find(|program| program.is_file())
    }

    /// A connection of the test's own.
    pub fn client(&self, database: &str) -> Client {
        self.connect(database).expect("the server is up")
    }

    /// One value of one row.
    pub fn value<T: for<'a> postgres::types::FromSql<'a>>(&self, database: &str, sql: &str) -> T {
        let row = self.client(database).query_one(sql, &[]);
        row.unwrap_or_else(|error| panic!("{sql}: {error}")).get(0)
    }

    /// A new, empty database of this name.
    pub fn create_database(&self, name: &str) {
        self.client("postgres")
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .expect("no other test uses this name");
    }

    /// Sessions that call themselves `application_name`.
    pub fn sessions(&self, application_name: &str) -> i64 {
        self.client("postgres")
            .query_one(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
                &[&application_name],
            )
            .expect("the view is always there")
            .get(0)
    }

    /// Puts a file into the server's data directory that only the server can read.
    pub fn install(&self, name: &str, text: &str) {
        let path = self.directory.join("data").join(name);
        fs::write(&path, text).expect("the directory is there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = self.owner {
            chown(&path, Some(user), Some(group)).expect("root may give files away");
        }
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        let text = fs::read(self.directory.join("log")).expect("the server writes its log");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Statements of sessions that call themselves `application_name` and log their statements
    /// (`PGOPTIONS=-c log_statement=all`), one list a session, in the order in which they began.
    pub fn logged_statements(&self, application_name: &str) -> Vec<Vec<Statement>> {
        let entries = entries(&self.log());
        let mut sessions: Vec<(&str, Vec<Statement>)> = Vec::new();
        for entry in &entries {
            // LOG_LINE_PREFIX, then the severity.
            let mut parts = entry.splitn(3, '|');
            let (Some(session), Some(name), Some(message)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if name != application_name {
                continue;
            }
            let known = sessions.iter().position(|(id, _)| *id == session);
            let at = known.unwrap_or_else(|| {
                sessions.push((session, Vec::new()));
                sessions.len() - 1
            });
            note_message(message, &mut sessions[at].1);
        }
        sessions.retain(|(_, statements)| !statements.is_empty());
        sessions
            .into_iter()
            .map(|(_, statements)| statements)
            .collect()
    }

    /// A server of its own with these rules of who is let in (`pg_hba.conf`) and with more settings
    /// (`postgresql.conf`).
    pub fn with(rules: &str, settings: &str) -> Server {
        let bindir = bindir();
        let directory = tempfile::Builder::new()
            .prefix("pgmark-test-")
            .tempdir()
            .expect("a temporary directory")
            .keep();
        let owner = server_user();
        if let Some((user, group)) = owner {
            chown(&directory, Some(user), Some(group)).expect("root may give directories away");
        }
        // The socket must be reachable for whoever runs the tests.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("it is ours");
        initdb(&bindir, &directory, owner);
        let data = directory.join("data");
        fs::write(data.join("pg_hba.conf"), rules).expect("initdb has made this directory");
        fs::write(data.join("postgresql.auto.conf"), settings).expect("as above");

        let port = free_port();
        let keeper = keeper(&bindir, &directory, port, owner);
        let server = Server {
            directory,
            bindir,
            port,
            owner,
            _keeper: keeper,
        };
        wait_until("the server accepts connections", || {
            server.connect("postgres").is_ok()
        });
        server
            .client("postgres")
            .batch_execute(
                "CREATE ROLE locked LOGIN PASSWORD 'open sesame';
                 CREATE ROLE few LOGIN CONNECTION LIMIT 3",
            )
            .expect("a new server has no such roles");
        server
    }

    /// Stops the server without a goodbye, as if it had crashed; [`Server::start_again`] follows.
    pub fn stop_immediately(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Stops the server, which ends all sessions with a word; [`Server::start_again`] follows.
    pub fn stop_fast(&self) {
        self.control(&["-m", "fast", "stop"]);
    }

    /// Starts a stopped server, and waits until it accepts connections.
    pub fn start_again(&self) {
        let options = format!(
            "-k {} -p {} -c listen_addresses=127.0.0.1 -c fsync=off -c log_line_prefix='{LOG_LINE_PREFIX}'",
            self.directory.display(),
            self.port
        );
        let log = self.directory.join("log").display().to_string();
        self.control(&["-l", &log, "-o", &options, "start"]);
    }

    fn control(&self, arguments: &[&str]) {
        let status = as_user(&self.bindir.join("pg_ctl"), self.owner)
            .arg("-D")
            .arg(self.directory.join("data"))
            .args(["-w", "-s"])
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .expect("pg_ctl can be started");
        assert!(status.success(), "pg_ctl {arguments:?}: {status}");
    }

    /// As [`Server::client`], of a server that may be down or full.
    pub fn connect(&self, database: &str) -> Result<Client, postgres::Error> {
        postgres::Config::new()
            .host_path(&self.directory)
            .port(self.port)
            .user("postgres")
            .dbname(database)
            .application_name("pgmark tests")
            .connect(NoTls)
    }
}

/// A statement as the server logged it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// The name under which it was prepared; none if it came as a simple query.
    pub prepared_as: Option<String>,
    pub text: String,
    /// As in `$1 = '5', $2 = NULL`; empty if there are none.
    pub parameters: String,
}

impl std::fmt::Display for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        match self.parameters.as_str() {
            "" => Ok(()),
            parameters => write!(f, "  <{parameters}>"),
        }
    }
}

/// The entries of a log, each of one or more lines: all but the first begin with a tab.
fn entries(log: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in log.split('\n') {
        match (line.strip_prefix('\t'), entries.last_mut()) {
            (Some(more), Some(entry)) => {
                entry.push('\n');
                entry.push_str(more);
            }
            _ => entries.push(line.to_owned()),
        }
    }
    entries
}

/// Adds the statement that a message is about, or its parameters, which follow it.
fn note_message(message: &str, statements: &mut Vec<Statement>) {
    let statement = |prepared_as: Option<&str>, text: &str| Statement {
        prepared_as: prepared_as.map(str::to_owned),
        text: text.to_owned(),
        parameters: String::new(),
    };
    if let Some(text) = message.strip_prefix("LOG:  statement: ") {
        statements.push(statement(None, text));
    } else if let Some(executed) = message.strip_prefix("LOG:  execute ") {
        let (name, text) = executed.split_once(": ").expect("a name is followed by it");
        statements.push(statement(Some(name), text));
    } else if let Some(parameters) = message.strip_prefix("DETAIL:  parameters: ") {
        let last = statements.last_mut().expect("a detail follows its message");
        last.parameters = parameters.to_owned();
    }
}

/// Everyone is trusted but one.
const RULES: &str = "local all locked scram-sha-256
host all locked 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
";

/// The session and the name of the program, each followed by a bar.
const LOG_LINE_PREFIX: &str = "%c|%a|";

fn initdb(bindir: &Path, directory: &Path, owner: Option<(u32, u32)>) {
    let output = as_user(&bindir.join("initdb"), owner)
        .arg("-D")
        .arg(directory.join("data"))
        .args(["-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"])
        .args(["-A", "trust"])
        .current_dir(directory)
        .output()
        .expect("initdb can be started");
    assert!(
        output.status.success(),
        "initdb: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The server under a shell that waits for the end of its input.
fn keeper(bindir: &Path, directory: &Path, port: u16, owner: Option<(u32, u32)>) -> Child {
    let script = r#"
        "$1/postgres" -D "$2/data" -k "$2" -p "$3" -c listen_addresses=127.0.0.1 \
            -c fsync=off -c autovacuum=off -c log_line_prefix="$4" >"$2/log" 2>&1 </dev/null &
        cat >/dev/null
        # It may be another one by now.
        server=$(head -n 1 "$2/data/postmaster.pid")
        kill -INT "$server"
        wait
        while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
        rm -rf "$2""#;
    as_user(Path::new("/bin/sh"), owner)
        .args(["-c", script, "keeper"])
        .arg(bindir)
        .arg(directory)
        .arg(port.to_string())
        .arg(LOG_LINE_PREFIX)
        .current_dir("/")
        // A group of its own, so that Ctrl-C reaches the server only through the keeper.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell can be started")
}

fn as_user(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}

/// Whom to run the server as, where we are root: it refuses to run as root.
fn server_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("every system has it");
    ["postgres", "nobody"].into_iter().find_map(|wanted| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(wanted))?;
        let mut ids = line.split(':').skip(2).map(str::parse::<u32>);
        Some((ids.next()?.ok()?, ids.next()?.ok()?))
    })
}

/// PATH first, then the newest version that the distribution has installed.
fn bindir() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(installed_versions().unwrap_or_default())
        .find(|directory| directory.join("initdb").is_file())
        .expect("PostgreSQL is installed; scripts/setup sees to that")
}

fn installed_versions() -> io::Result<Vec<PathBuf>> {
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql")? {
        let path = entry?.path();
        let version = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        versions.extend(version.map(|version| (version, path.join("bin"))));
    }
    versions.sort();
    Ok(versions.into_iter().rev().map(|(_, path)| path).collect())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}
