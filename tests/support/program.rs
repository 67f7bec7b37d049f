//! The program under test, told as a story: `pgmark(&server).args("-c 4 -T 2").run()`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use rustix::process::Signal;

use super::{Log, Server, Terminal, wait_until};

/// The program, set up to reach `server` as its superuser, in an empty directory of its own.
pub fn pgmark(server: &Server) -> Program {
    pgmark_alone().reaching(server)
}

/// As [`pgmark`], in a session of its own: on that terminal, or without any.
pub fn pgmark_at(terminal: Option<&Terminal>, server: &Server) -> Program {
    let mut program = Program::new(Path::new("setsid"));
    if let Some(terminal) = terminal {
        program.command.arg("--ctty").stdin(terminal.device());
    }
    program.arg(env!("CARGO_BIN_EXE_pgmark")).reaching(server)
}

/// The program without any server.
pub fn pgmark_alone() -> Program {
    Program::new(Path::new(env!("CARGO_BIN_EXE_pgmark")))
}

/// A command that can be added to and then run.
pub struct Program {
    command: Command,
    directory: TempDir,
    scripts: usize,
}

impl Program {
    /// Any program, in an empty directory of its own and without PostgreSQL's environment.
    pub fn new(path: &Path) -> Program {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new(path);
        command.current_dir(directory.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        Program {
            command,
            directory,
            scripts: 0,
        }
    }

    fn reaching(self, server: &Server) -> Program {
        self.env("PGHOST", server.socket_directory())
            .env("PGPORT", server.port().to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres")
    }

    /// Arguments, separated by blanks.
    pub fn args(mut self, words: &str) -> Program {
        self.command.args(words.split_whitespace());
        self
    }

    /// One argument as it is.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Program {
        self.command.arg(argument);
        self
    }

    /// An environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Program {
        self.command.env(name, value);
        self
    }

    /// `-f` with a file of this text; without preparing tables (`-n`), since it has its own.
    pub fn script(mut self, text: &str) -> Program {
        self.scripts += 1;
        let name = format!("script{}.sql", self.scripts);
        std::fs::write(self.directory.path().join(&name), text).expect("the directory is ours");
        self.args("-n -f").arg(name)
    }

    /// `--log-file` with a name that [`Finished::log`] knows.
    pub fn logged(self) -> Program {
        self.args("--log-file").arg(LOG_NAME)
    }

    /// Runs it to its end.
    pub fn run(self) -> Finished {
        self.start().finish()
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        Running {
            stdout: Output::follow(child.stdout.take().expect("piped")),
            stderr: Output::follow(child.stderr.take().expect("piped")),
            child,
            directory: self.directory,
        }
    }
}

const LOG_NAME: &str = "transactions.csv";

/// No test needs as long as this: the program hangs.
const PATIENCE: Duration = Duration::from_secs(100);

/// A program under way.
pub struct Running {
    child: Child,
    stdout: Output,
    stderr: Output,
    directory: TempDir,
}

impl Running {
    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // It may have ended by itself in the meantime.
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Whether all of its threads sleep, none of them for want of a processor.
    pub fn is_asleep(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        threads.expect("it runs").flatten().all(|thread| {
            // It may end between the two.
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('S'))
        })
    }

    /// Waits until it has written this to stderr.
    pub fn wait_for_stderr(&self, text: &str) {
        wait_until(&format!("stderr says {text:?}"), || {
            self.stderr.so_far().contains(text)
        });
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// Waits for its end; fails the test if that does not come.
    pub fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE;
        let mut hangs = false;
        while !self.has_ended() {
            if Instant::now() > deadline {
                hangs = true;
                let _ = self.child.kill();
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait().expect("it is our child");
        let finished = Finished {
            status: status.code(),
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
            directory: self.directory,
        };
        assert!(!hangs, "the program hangs\n{finished}");
        finished
    }
}

/// A stream that a thread reads, so that the program never waits for us.
pub(super) struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    pub(super) fn follow(mut stream: impl Read + Send + 'static) -> Output {
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = text.clone();
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                sink.lock()
                    .expect("no one panics with it")
                    .extend(&buffer[..count]);
            }
        });
        Output { text, reader }
    }

    pub(super) fn so_far(&self) -> String {
        let text = self.text.lock().expect("no one panics with it");
        String::from_utf8_lossy(&text).into_owned()
    }

    pub(super) fn all(self) -> String {
        self.reader.join().expect("reading does not panic");
        let text = self.text.lock().expect("no one panics with it");
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A program that has ended.
pub struct Finished {
    /// Its exit status; none if a signal ended it.
    pub status: Option<i32>,
    /// All that it wrote to stdout.
    pub stdout: String,
    /// All that it wrote to stderr.
    pub stderr: String,
    directory: TempDir,
}

impl Finished {
    /// Fails unless it ended with this status.
    #[track_caller]
    pub fn expect_status(self, status: i32) -> Finished {
        assert_eq!(self.status, Some(status), "{self}");
        self
    }

    /// Fails unless stderr contains all of these.
    #[track_caller]
    pub fn expect_stderr(self, parts: &[&str]) -> Finished {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in\n{self}");
        }
        self
    }

    /// Fails unless stderr has so many lines.
    #[track_caller]
    pub fn expect_stderr_lines(self, count: usize) -> Finished {
        assert_eq!(self.stderr.lines().count(), count, "{self}");
        self
    }

    /// What `debug()` wrote, without saying where.
    pub fn debug_values(&self) -> Vec<String> {
        let lines = self.stderr.lines();
        lines
            .filter_map(|line| line.strip_prefix("debug(")?.split_once("): "))
            .map(|(_, value)| value.to_owned())
            .collect()
    }

    /// Fails if stdout shows a throughput.
    #[track_caller]
    pub fn expect_no_tps(self) -> Finished {
        assert!(!self.stdout.contains("tps"), "{self}");
        self
    }

    /// The first number after `label` in stdout, as in `figure("latency average = ")`.
    #[track_caller]
    pub fn figure(&self, label: &str) -> f64 {
        let Some((_, rest)) = self.stdout.split_once(label) else {
            panic!("{label:?} is not in\n{self}");
        };
        let end = rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(rest.len());
        rest[..end]
            .parse()
            .unwrap_or_else(|_| panic!("no number after {label:?} in\n{self}"))
    }

    /// Transactions processed, by the summary.
    #[track_caller]
    pub fn processed(&self) -> u64 {
        self.figure("number of transactions actually processed: ") as u64
    }

    /// The log of a program that was `logged`.
    #[track_caller]
    pub fn log(&self) -> Log {
        Log::read(&self.path(LOG_NAME))
    }

    /// A file in the directory where it ran.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "status {:?}", self.status)?;
        writeln!(f, "--- stdout\n{}", self.stdout)?;
        writeln!(f, "--- stderr\n{}", self.stderr)
    }
}
