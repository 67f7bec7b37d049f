//! Runs programs against the null server and says what they cost. Client programs share one core,
//! the server has another, so that neither waits for the other's processor.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Cores of the clients and of the server.
pub const CLIENT_CORE: usize = 0;
pub const SERVER_CORE: usize = 1;

/// The kernel's unit of a process's times, the same on all its architectures that pgmark runs on.
const TICK: Duration = Duration::from_millis(10);

/// What a program has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub user: Duration,
    pub system: Duration,
    pub wall: Duration,
    /// The most memory that it had at a time.
    pub resident_kb: u64,
}

impl Spent {
    /// Processor time.
    pub fn processor(&self) -> Duration {
        self.user + self.system
    }

    /// What is left of this, the longer run, when what the shorter one cost is taken off:
    /// starting and connecting cost the same in both.
    pub fn beyond(&self, shorter: &Spent) -> Spent {
        Spent {
            user: self.user.saturating_sub(shorter.user),
            system: self.system.saturating_sub(shorter.system),
            wall: self.wall.saturating_sub(shorter.wall),
            resident_kb: self.resident_kb,
        }
    }
}

/// Runs `command` to its end on the clients' core.
///
/// # Panics
/// If it cannot be run or fails: then its figures would be none.
pub fn run(command: &mut Command) -> Spent {
    let started = Instant::now();
    let mut child = spawn_on(
        CLIENT_CORE,
        command.stdin(Stdio::null()).stdout(Stdio::null()),
    )
    .unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let pid = Pid::from_child(&child);
    let mut resident_kb = 0;
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while waitid(WaitId::Pid(pid), ended)
        .expect("our child")
        .is_none()
    {
        resident_kb = resident(&child).unwrap_or(resident_kb);
        thread::sleep(Duration::from_millis(5));
    }
    let wall = started.elapsed();
    let (user, system) = times(&child).expect("it has not been waited for yet");
    let status = child.wait().expect("our child");
    assert!(status.success(), "{command:?} failed: {status}");
    Spent {
        user,
        system,
        wall,
        resident_kb,
    }
}

/// Starts `command` so that it runs on this core only.
pub fn spawn_on(core: usize, command: &mut Command) -> io::Result<Child> {
    let before = rustix::thread::sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(core);
    // A child runs where its parent may.
    sched_setaffinity(None, &only)?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child
}

fn times(child: &Child) -> Option<(Duration, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // The name of the program, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).map(|field| field.parse().ok());
    let mut next = || Some(TICK * ticks.next()??);
    Some((next()?, next()?))
}

fn resident(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A null server in a process of its own, on a core of its own. Ends when dropped.
pub struct Serving {
    child: Child,
}

impl Serving {
    /// Listens in `directory`.
    pub fn start(directory: &Path) -> Serving {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.arg("serve").arg(directory);
        let child = spawn_on(SERVER_CORE, &mut command).expect("this program can be run");
        let serving = Serving { child };
        while !crate::null_server::socket(directory).exists() {
            thread::sleep(Duration::from_millis(1));
        }
        serving
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
