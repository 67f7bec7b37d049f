//! Shell commands of scripts (`\shell`, `\setshell`), run beside the loop: starting a process
//! blocks, and other clients of the thread go on meanwhile.
//!
//! Each command has a thread of its own that waits for the process. What came of it arrives over a
//! channel, and the worker's poll is woken. The shell leads a process group of its own, so that what
//! it has started ends with it when nobody waits any more: it is asked to, and before the worker
//! ends it is made to.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use mio::Waker;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::time::Clock;

/// A command for the system's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellOrder {
    /// The command line.
    pub line: Vec<u8>,
    /// What becomes of what it prints.
    pub capture: Capture,
}

/// Whether what a command prints is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It is: `\setshell`. The exit status is of no interest then.
    Yes,
    /// It goes to our standard output: `\shell`. An exit status other than 0 is an error.
    No,
}

/// What a command has printed, as far as it is wanted, or what went wrong.
pub type ShellOutput = Result<Vec<u8>, String>;

/// The most that is kept of what a command prints: a number is wanted, on the first line.
const OUTPUT_BYTES: u64 = 256;

/// How long a command that was asked to end may take to, as long as somebody waits at a terminal
/// without a thought.
const GRACE: Duration = Duration::from_secs(1);

/// The shell commands of one worker.
#[derive(Debug)]
pub struct Shells {
    sender: Sender<Ended>,
    ended: Receiver<Ended>,
    running: Vec<Option<Arc<Running>>>,
    /// Asked to end.
    ending: Vec<Arc<Running>>,
    serial: u64,
}

#[derive(Debug)]
struct Ended {
    slot: usize,
    serial: u64,
    output: ShellOutput,
}

/// The way back to the worker.
#[derive(Clone)]
struct Reply {
    slot: usize,
    serial: u64,
    sender: Sender<Ended>,
    waker: Arc<Waker>,
}

impl Reply {
    fn send(self, output: ShellOutput) {
        let _ = self.sender.send(Ended {
            slot: self.slot,
            serial: self.serial,
            output,
        });
        let _ = self.waker.wake();
    }
}

/// A command that runs, or is about to.
#[derive(Debug)]
struct Running {
    serial: u64,
    process: Mutex<Process>,
    /// Told when it is over.
    over: Condvar,
}

/// A process that has not been reaped has its number for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Starting,
    Started(Pid),
    /// Nobody waits for it any more, though it has not even started.
    Unwanted,
    /// Asked to end.
    Ending(Pid),
    /// Reaped, or never started.
    Over,
}

impl Shells {
    /// No commands yet, for so many clients.
    pub fn new(slots: usize) -> Self {
        let (sender, ended) = unbounded();
        Shells {
            sender,
            ended,
            running: vec![None; slots],
            ending: Vec::new(),
            serial: 0,
        }
    }

    /// Starts a command for the client in `slot`; `waker` is used when it has ended.
    pub fn start(&mut self, slot: usize, order: ShellOrder, waker: &Arc<Waker>) {
        self.serial += 1;
        let running = Arc::new(Running {
            serial: self.serial,
            process: Mutex::new(Process::Starting),
            over: Condvar::new(),
        });
        self.running[slot] = Some(Arc::clone(&running));
        let reply = Reply {
            slot,
            serial: self.serial,
            sender: self.sender.clone(),
            waker: Arc::clone(waker),
        };
        let (failed, never_ran) = (reply.clone(), Arc::clone(&running));
        let spawned = std::thread::Builder::new()
            .name("shell".to_owned())
            .spawn(move || {
                let output = run(&order, &running);
                running.note_over();
                reply.send(output);
            });
        if let Err(error) = spawned {
            never_ran.note_over();
            failed.send(Err(format!("could not create a thread: {error}")));
        }
    }

    /// A command that has ended, with the slot of its client.
    pub fn next_ended(&mut self) -> Option<(usize, ShellOutput)> {
        loop {
            let ended = self.ended.try_recv().ok()?;
            let running = self.running[ended.slot].as_ref();
            if running.is_some_and(|running| running.serial == ended.serial) {
                self.running[ended.slot] = None;
                return Some((ended.slot, ended.output));
            }
        }
    }

    /// The client in `slot` waits no longer: its command is ended.
    pub fn stop(&mut self, slot: usize) {
        if let Some(running) = self.running[slot].take() {
            running.stop();
            self.ending.push(running);
        }
    }
}

impl Drop for Shells {
    /// Nothing that was started here outlives the worker.
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|slot| self.stop(slot));
        let clock = Clock::start();
        let deadline = clock.now() + GRACE;
        for running in &self.ending {
            running.wait_or_kill(deadline - clock.now());
        }
    }
}

impl Running {
    fn stop(&self) {
        let mut process = self.lock();
        match *process {
            Process::Starting => *process = Process::Unwanted,
            Process::Started(pid) => *process = ask_to_end(pid),
            Process::Unwanted | Process::Ending(_) | Process::Over => {}
        }
    }

    fn wait_or_kill(&self, patience: Duration) {
        let under_way = |process: &mut Process| *process != Process::Over;
        let waited = self
            .over
            .wait_timeout_while(self.lock(), patience, under_way);
        let (process, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match *process {
            Process::Started(pid) | Process::Ending(pid) => {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            Process::Starting | Process::Unwanted | Process::Over => {}
        }
    }

    /// The process has started; ends it at once if nobody wants it any more.
    fn note_started(&self, pid: Pid) {
        let mut process = self.lock();
        *process = match *process {
            Process::Unwanted => ask_to_end(pid),
            Process::Starting | Process::Started(_) | Process::Ending(_) | Process::Over => {
                Process::Started(pid)
            }
        };
    }

    fn note_over(&self) {
        *self.lock() = Process::Over;
        self.over.notify_all();
    }

    /// Waits for the end of the process. While it is waited for it can be stopped; once its number
    /// may stand for another one it cannot.
    fn reap(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        let ended_unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let pid = Pid::from_child(child);
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), ended_unreaped))?;
        *self.lock() = Process::Over;
        child.wait()
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ask_to_end(pid: Pid) -> Process {
    let _ = kill_process_group(pid, Signal::TERM);
    Process::Ending(pid)
}

fn run(order: &ShellOrder, running: &Running) -> ShellOutput {
    let stdout = match order.capture {
        Capture::Yes => Stdio::piped(),
        Capture::No => Stdio::inherit(),
    };
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(OsStr::from_bytes(&order.line))
        .stdin(Stdio::null())
        .stdout(stdout)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("could not start the shell: {error}"))?;
    running.note_started(Pid::from_child(&child));
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // Not to the end: a process that is left in the background may hold the pipe for long.
        let mut first = BufReader::new(stdout.take(OUTPUT_BYTES));
        let _ = first.read_until(b'\n', &mut printed);
    }
    let status = running
        .reap(&mut child)
        .map_err(|error| format!("could not wait for the shell command: {error}"))?;
    match order.capture {
        Capture::No if !status.success() => Err(format!("the shell command failed: {status}")),
        Capture::No | Capture::Yes => Ok(printed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll, Token};

    /// Runs one command the way a worker does.
    fn output_of(line: &str, capture: Capture) -> ShellOutput {
        let mut poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let mut shells = Shells::new(1);
        let order = ShellOrder {
            line: line.as_bytes().to_vec(),
            capture,
        };
        shells.start(0, order, &waker);
        let mut events = Events::with_capacity(4);
        loop {
            // Other tests of this process send signals.
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => panic!("{error}"),
                Ok(()) | Err(_) => {}
            }
            if let Some((0, output)) = shells.next_ended() {
                return output;
            }
        }
    }

    #[test]
    fn what_is_printed_comes_back_and_the_status_of_setshell_is_of_no_interest() {
        assert_eq!(
            output_of("echo 42; exit 3", Capture::Yes),
            Ok(b"42\n".to_vec())
        );
        assert_eq!(
            output_of("yes '' | tr '\\n' x | head -c 100000", Capture::Yes)
                .unwrap()
                .len(),
            256
        );
    }

    #[test]
    fn the_first_line_is_enough_and_who_holds_the_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let line = format!("mkfifo {0}; echo 42; cat {0} &", fifo.display());
        assert_eq!(output_of(&line, Capture::Yes), Ok(b"42\n".to_vec()));
        // What runs in the background waits for this.
        drop(std::fs::File::create(fifo).unwrap());
    }

    #[test]
    fn a_failing_shell_command_is_an_error() {
        assert_eq!(output_of("exit 0", Capture::No), Ok(Vec::new()));
        assert!(output_of("exit 3", Capture::No).unwrap_err().contains('3'));
    }

    #[test]
    fn a_command_that_nobody_waits_for_is_ended_and_not_reported() {
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let mut shells = Shells::new(1);
        let order = ShellOrder {
            // The shell itself and a process that it has started, which holds the pipe open.
            line: b"sleep 1000 & sleep 1000; true".to_vec(),
            capture: Capture::Yes,
        };
        shells.start(0, order, &waker);
        shells.stop(0);
        // Returns only if the process has ended.
        let ended = shells.ended.recv().unwrap();
        assert_eq!((ended.slot, ended.output), (0, Ok(Vec::new())));
        assert!(shells.next_ended().is_none());
    }

    #[test]
    fn a_command_that_does_not_end_when_asked_is_killed_before_the_worker_ends() {
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let mut shells = Shells::new(1);
        let line = format!(
            "trap '' TERM; exec > {}; echo deaf; sleep 1000",
            fifo.display()
        );
        let order = ShellOrder {
            line: line.into_bytes(),
            capture: Capture::No,
        };
        shells.start(0, order, &waker);
        let mut said = BufReader::new(std::fs::File::open(&fifo).unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        assert_eq!(first, "deaf\n");
        drop(shells);
        // Ends only if nobody holds the pipe any more.
        assert_eq!(said.read_line(&mut first).unwrap(), 0);
    }
}
