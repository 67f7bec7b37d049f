//! A throwaway PostgreSQL cluster from the server binaries found on this machine, in a private
//! temporary directory and reachable through a socket in it alone. Dropping it stops the server
//! and removes everything.
//!
//! Changes no durability setting by itself, and speaks no protocol: that the server is ready is
//! read from its status file.

mod account;
mod binaries;
mod complaints;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use tempfile::TempDir;

use self::account::Account;
use crate::conninfo::{Host, HostName, Target};
use crate::error::{Error, Report};
use crate::plan::ClusterPlan;
use crate::program::Program;
use crate::time::Clock;
use crate::users;

/// Part of the socket's name; nothing listens on a network port.
const PORT: u16 = 5432;
/// Settings that this module decides, since the socket is how the server is found.
const OWN_SETTINGS: [&str; 3] = ["port", "unix_socket_directories", "data_directory"];
/// Bound on the start: a server on a slow disk needs a few seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server may take to stop after a signal before a harsher one is sent.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Between two looks at another process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Stops the server and removes the directory when this program has died without doing so: the
/// shell reads a pipe whose other end closes with us. A leftover status file names the server.
const GUARD_SCRIPT: &str = r#"
while read -r _; do :; done
status="$1/data/postmaster.pid"
for signal in INT 0 0 0 0 0 0 0 0 0 QUIT 0 0 0 0; do
    [ -e "$status" ] || break
    kill -s "$signal" "$(head -n 1 "$status")" 2>/dev/null || break
    sleep 1
done
rm -rf -- "$1"
"#;

/// A running server with its data, both of which end with this value.
#[derive(Debug)]
pub struct TemporaryCluster {
    bindir: PathBuf,
    account: Account,
    server: Option<Child>,
    guard: Option<Child>,
    log: File,
    /// Removed when dropped, after the server has stopped.
    directory: TempDir,
}

impl TemporaryCluster {
    /// Creates a cluster as planned, with slots for `connections` clients, and waits until it
    /// accepts them. `go_on` is asked again and again meanwhile, and an error of it ends the start.
    ///
    /// # Errors
    /// That of `go_on`, [`Error::Usage`] for a setting that is not the user's to make, [`Error::Environment`]
    /// where binaries or a user to run them are missing, or with what the server complains of where
    /// it does not start.
    pub fn start(
        plan: &ClusterPlan,
        connections: u32,
        go_on: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        refuse_own_settings(&plan.config)?;
        let path = std::env::var_os("PATH");
        let bindir = binaries::find(plan.bindir.as_deref(), path.as_deref(), Path::new("/"))?;
        let mut cluster = TemporaryCluster::prepare(bindir)?;
        cluster.spawn_guard()?;
        cluster.create_data(go_on)?;
        cluster.spawn_server(&server_settings(&plan.config, connections))?;
        cluster.wait_until_ready(go_on)?;
        Ok(cluster)
    }

    /// How to connect: its socket, its superuser, the database `postgres`.
    pub fn target(&self) -> Target {
        Target {
            application_name: Program::Pgmark.name().to_owned(),
            ..Target::plain(
                vec![Host::new(
                    HostName::SocketDirectory(self.directory.path().to_owned()),
                    PORT,
                )],
                &self.account.superuser,
                "postgres",
            )
        }
    }

    /// Stops the server and removes its directory, as dropping does.
    ///
    /// # Errors
    /// [`Error::Io`] where the directory cannot be removed.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end_processes();
        self.directory.disable_cleanup(true);
        let directory = self.directory.path();
        fs::remove_dir_all(directory).map_err(|e| Error::io("remove", directory, e))
    }

    /// Leaves the server running, and tells how to connect to it and how to stop it.
    pub fn keep(mut self) -> String {
        if let Some(guard) = self.guard.take() {
            end_guard(guard);
        }
        self.server = None;
        self.directory.disable_cleanup(true);
        let directory = quoted(self.directory.path());
        let run_as = match &self.account.lent {
            Some(lent) => format!("runuser -u {} -- ", quoted(&lent.name)),
            None => String::new(),
        };
        format!(
            "The temporary server keeps running.\n\
             To connect: psql -h {directory} -U {superuser} postgres\n\
             To stop and remove it: {run_as}{pg_ctl} -D {data} -m fast stop && \
             rm -rf {directory}",
            superuser = quoted(&self.account.superuser),
            pg_ctl = quoted(self.bindir.join("pg_ctl")),
            data = quoted(self.data()),
        )
    }

    /// The private directory and the log in it, owned by the user who runs the server.
    fn prepare(bindir: PathBuf) -> Result<Self, Error> {
        let account = Account::choose(geteuid().as_raw(), &users::all())?;
        let parent = temporary_parent(std::env::temp_dir(), account.lent.is_some());
        let directory = tempfile::Builder::new()
            .prefix("pgmark-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|e| Error::io("create a directory in", &parent, e))?;
        let log_path = directory.path().join("server.log");
        let log = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&log_path)
            .map_err(|e| Error::io("create", &log_path, e))?;
        if let Some(lent) = &account.lent {
            chown(directory.path(), Some(lent.uid), Some(lent.gid))
                .map_err(|e| Error::io("change the owner of", directory.path(), e))?;
        }
        Ok(TemporaryCluster {
            bindir,
            account,
            server: None,
            guard: None,
            log,
            directory,
        })
    }

    fn spawn_guard(&mut self) -> Result<(), Error> {
        let mut command = self.command(Path::new("/bin/sh"))?;
        command
            .args(["-c", GUARD_SCRIPT, "guard"])
            .arg(self.directory.path())
            .stdin(Stdio::piped());
        self.guard = Some(spawn(&mut command, Path::new("/bin/sh"))?);
        Ok(())
    }

    /// No flush to disk: nothing in a cluster this young is worth one.
    fn create_data(&self, go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        let initdb = self.bindir.join("initdb");
        let mut command = self.command(&initdb)?;
        command
            .arg("--pgdata")
            .arg(self.data())
            .args(["--username", &self.account.superuser])
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        let mut child = spawn(&mut command, &initdb)?;
        let status = loop {
            let status = child.try_wait();
            if let Some(status) = status.map_err(|e| Error::io("wait for", &initdb, e))? {
                break status;
            }
            if let Err(error) = go_on() {
                end_initdb(child);
                return Err(error);
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        match status.success() {
            true => Ok(()),
            false => Err(self.failure(&format!("initdb failed ({status})"))),
        }
    }

    fn spawn_server(&mut self, settings: &[String]) -> Result<(), Error> {
        let postgres = self.bindir.join("postgres");
        let mut command = self.command(&postgres)?;
        command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.directory.path())
            .args(["-p", &PORT.to_string()]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        self.server = Some(spawn(&mut command, &postgres)?);
        Ok(())
    }

    fn wait_until_ready(&mut self, go_on: &dyn Fn() -> Result<(), Error>) -> Result<(), Error> {
        let status_file = self.data().join("postmaster.pid");
        let clock = Clock::start();
        let deadline = clock.now() + START_TIMEOUT;
        loop {
            let server = self.server.as_mut().expect("the server was just started");
            if let Ok(Some(status)) = server.try_wait() {
                self.server = None;
                return Err(self.failure(&format!("the temporary server ended ({status})")));
            }
            if fs::read_to_string(&status_file).is_ok_and(|text| says_ready(&text)) {
                return Ok(());
            }
            go_on()?;
            if clock.now() >= deadline {
                let seconds = START_TIMEOUT.as_secs();
                return Err(self.failure(&format!(
                    "the temporary server was not ready after {seconds} s"
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// `program`, to be run by the cluster's user in a session of its own, so that Ctrl-C does
    /// not reach it, with what it says going to the log and no settings from the environment.
    fn command(&self, program: &Path) -> Result<Command, Error> {
        let path = std::env::var_os("PATH");
        let mut command = match binaries::find_program("setsid", path.as_deref()) {
            Some(setsid) => {
                let mut command = Command::new(setsid);
                command.arg(program);
                command
            }
            None => {
                let mut command = Command::new(program);
                command.process_group(0);
                command
            }
        };
        if let Some(lent) = &self.account.lent {
            command.uid(lent.uid).gid(lent.gid);
        }
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(self.log_handle()?)
            .stderr(self.log_handle()?);
        Ok(command)
    }

    fn log_handle(&self) -> Result<File, Error> {
        let clone = self.log.try_clone();
        clone.map_err(|e| Error::io("open", &self.directory.path().join("server.log"), e))
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// What went wrong, with what the server or initdb complains of.
    fn failure(&self, message: &str) -> Error {
        let complaints = complaints::last(&self.log).unwrap_or_default();
        Error::Environment(Report::new(match complaints.as_str() {
            "" => message.to_owned(),
            complaints => format!("{message}: {complaints}"),
        }))
    }

    fn end_processes(&mut self) {
        if let Some(server) = self.server.take() {
            end_server(server);
        }
        if let Some(guard) = self.guard.take() {
            end_guard(guard);
        }
    }
}

impl Drop for TemporaryCluster {
    fn drop(&mut self) {
        self.end_processes();
    }
}

fn refuse_own_settings(config: &[(String, String)]) -> Result<(), Error> {
    let own = |name: &str| {
        OWN_SETTINGS
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name))
    };
    match config.iter().find(|(name, _)| own(name)) {
        Some((name, _)) => Err(Error::Usage(Report::new(format!(
            "a temporary server's \"{name}\" cannot be set"
        )))),
        None => Ok(()),
    }
}

/// `name=value` in the order in which the server takes them: the last one wins, so the user's
/// come after ours.
fn server_settings(config: &[(String, String)], connections: u32) -> Vec<String> {
    // Beside the clients: the control connection, and the slots kept for superusers.
    let max_connections = connections.saturating_add(10).max(100);
    let ours = [
        "listen_addresses=".to_owned(),
        format!("max_connections={max_connections}"),
    ];
    let theirs = config.iter().map(|(name, value)| format!("{name}={value}"));
    ours.into_iter().chain(theirs).collect()
}

/// Where the private directory is made: `preferred`, or `/tmp` where that does not do. The path
/// of a socket has at most 107 bytes, a comma would separate two of them, and a lent user must
/// get through.
fn temporary_parent(preferred: PathBuf, lent: bool) -> PathBuf {
    let bytes = preferred.as_os_str().as_encoded_bytes();
    let socket_length = bytes.len() + format!("/pgmark-123456/.s.PGSQL.{PORT}").len();
    let fits = socket_length <= 107 && !bytes.contains(&b',');
    if fits && (!lent || preferred.ancestors().all(is_open_to_others)) {
        return preferred;
    }
    PathBuf::from("/tmp")
}

fn is_open_to_others(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|metadata| metadata.mode() & 0o001 != 0)
}

/// The eighth line of the status file says whether connections are accepted.
fn says_ready(status: &str) -> bool {
    status.lines().nth(7).map(str::trim) == Some("ready")
}

/// A word of a command line that the user copies into a shell.
fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn spawn(command: &mut Command, program: &Path) -> Result<Child, Error> {
    command.spawn().map_err(|e| Error::io("run", program, e))
}

/// Fast shutdown, else an immediate one, else the end of the process; reaped in each case.
fn end_server(mut server: Child) {
    let pid = Pid::from_child(&server);
    for signal in [Signal::INT, Signal::QUIT] {
        // It cannot be another process: it has not been reaped yet.
        let _ = kill_process(pid, signal);
        if wait_for(&mut server, STOP_TIMEOUT).is_some() {
            return;
        }
    }
    let _ = server.kill();
    let _ = server.wait();
}

/// With what it has started, which is in a process group with it. Asked first, since a server that is
/// killed leaves shared memory behind.
fn end_initdb(mut initdb: Child) {
    let group = Pid::from_child(&initdb);
    let _ = kill_process_group(group, Signal::TERM);
    if wait_for(&mut initdb, STOP_TIMEOUT).is_none() {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = initdb.wait();
    }
}

/// Killed before its pipe closes, so that it does nothing.
fn end_guard(mut guard: Child) {
    let _ = guard.kill();
    let _ = guard.wait();
}

/// The exit status, if the process ends within `patience`.
fn wait_for(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let clock = Clock::start();
    let deadline = clock.now() + patience;
    while clock.now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::console::tests::recorded;
    use crate::control;
    use rustix::process::{WaitOptions, waitpid};

    /// A cluster for the tests of other modules.
    pub(crate) fn temporary_cluster() -> TemporaryCluster {
        start(&[("fsync", "off")], 1).unwrap()
    }

    fn start(config: &[(&str, &str)], connections: u32) -> Result<TemporaryCluster, Error> {
        TemporaryCluster::start(&plan(config), connections, &|| Ok(()))
    }

    fn plan(config: &[(&str, &str)]) -> ClusterPlan {
        ClusterPlan {
            bindir: None,
            config: config
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            keep: false,
            scale: 1,
            quiet: true,
        }
    }

    #[test]
    fn a_cluster_accepts_connections_and_leaves_nothing_behind() {
        let settings = [("work_mem", "1MB"), ("work_mem", "2MB")];
        let cluster = start(&settings, 200).unwrap();
        let directory = cluster.directory.path().to_owned();
        let pid = cluster.server.as_ref().unwrap().id();
        let (console, _) = recorded();
        let mut client = control::connect(&cluster.target(), &console).unwrap();
        let show = |client: &mut postgres::Client, name: &str| -> String {
            let statement = format!("select current_setting('{name}')");
            client.query_one(&statement, &[]).unwrap().get(0)
        };
        assert_eq!(show(&mut client, "max_connections"), "210");
        assert_eq!(show(&mut client, "work_mem"), "2MB");
        assert_eq!(show(&mut client, "listen_addresses"), "");
        assert_eq!(show(&mut client, "fsync"), "on");
        assert_eq!(session_of(pid), pid, "a session of its own");
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        drop(cluster);
        assert!(!directory.exists());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    /// The sixth field of the process's status, the fourth after its name in parentheses.
    fn session_of(pid: u32) -> u32 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(3).unwrap().parse().unwrap()
    }

    #[test]
    fn when_this_program_dies_the_guard_cleans_up() {
        let mut cluster = temporary_cluster();
        let mut server = cluster.server.take().unwrap();
        let mut guard = cluster.guard.take().unwrap();
        cluster.directory.disable_cleanup(true);
        // Dropping the pipe is what the system does when a process dies.
        drop(guard.stdin.take());
        assert!(wait_for(&mut server, STOP_TIMEOUT).is_some());
        assert!(wait_for(&mut guard, STOP_TIMEOUT).is_some());
        assert!(!cluster.directory.path().exists());
    }

    #[test]
    fn a_kept_server_is_told_of_and_stays() {
        let cluster = temporary_cluster();
        let target = cluster.target();
        let directory = cluster.directory.path().to_owned();
        let pid = Pid::from_child(cluster.server.as_ref().unwrap());
        let text = cluster.keep();
        assert!(
            text.contains(&format!("psql -h {}", directory.display())),
            "{text}"
        );
        let (console, _) = recorded();
        assert!(control::connect(&target, &console).is_ok());
        kill_process(pid, Signal::QUIT).unwrap();
        waitpid(Some(pid), WaitOptions::empty()).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_server_that_does_not_start_says_why_and_nothing_else() {
        let error = start(&[("nonsense", "1")], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the temporary server ended (exit status: 1): \
             FATAL:  unrecognized configuration parameter \"nonsense\""
        );
    }

    #[test]
    fn a_start_that_is_not_wanted_any_more_ends_initdb() {
        let asked = std::cell::Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            Err(Error::Interrupted(crate::error::Signal::Interrupt))
        };
        let error = TemporaryCluster::start(&plan(&[]), 1, &go_on).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn words_for_a_shell_are_quoted_where_they_must_be() {
        for (word, expected) in [
            ("/tmp/pgmark-a1", "/tmp/pgmark-a1"),
            ("/my tmp/x", "'/my tmp/x'"),
            ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn settings_that_locate_the_server_are_refused() {
        for name in ["port", "Unix_Socket_Directories"] {
            let error = start(&[(name, "1")], 1).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{error}");
        }
    }

    #[test]
    fn ready_is_read_from_the_status_file() {
        let lines = "1\n/data\n0\n5432\n/tmp\n\n 1 2\n";
        assert!(says_ready(&format!("{lines}ready   \n")));
        assert!(!says_ready(&format!("{lines}starting\n")));
        assert!(!says_ready(lines));
        assert!(!says_ready(""));
    }

    #[test]
    fn a_directory_that_does_not_do_is_replaced_by_tmp() {
        let private = tempfile::tempdir().unwrap();
        fs::set_permissions(private.path(), Permissions::from_mode(0o700)).unwrap();
        let long = "/long".repeat(16);
        let cases = [
            (Path::new("/var/tmp"), true, "/var/tmp"),
            (Path::new(&long), false, "/tmp"),
            (Path::new("/a,b"), false, "/tmp"),
            (private.path(), true, "/tmp"),
            (private.path(), false, private.path().to_str().unwrap()),
        ];
        for (preferred, lent, expected) in cases {
            assert_eq!(
                temporary_parent(preferred.to_owned(), lent),
                Path::new(expected)
            );
        }
    }
}
