//! Stop signals: SIGINT, SIGTERM, SIGHUP.
//!
//! A thread waits for them. What they do depends on what the program is at: a statement of the
//! control connection is cancelled at once; a run is told over a channel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never, select, unbounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals as Iterator;

use crate::conninfo::Target;
use crate::console::Console;
use crate::control::{self, Cancellation, Connection};
use crate::error::{Error, Report, Signal};
use crate::time::Clock;

use super::ExitStatus;

/// While the control connection is at work, the first signal cancels its statement. After this many
/// nothing is waited for any longer, whatever it is.
const PATIENCE: u32 = 3;

/// A signal of the same kind within this time is the same one: `timeout` sends its own both to the
/// process and to its group. Nobody's finger is that fast.
const SAME: Duration = Duration::from_millis(100);

/// The stop signals of this process.
#[derive(Debug)]
pub struct Signals {
    received: Receiver<Signal>,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    first: Option<Signal>,
    count: u32,
    statement: Option<Cancellation>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

impl Signals {
    /// From now on signals are caught.
    ///
    /// # Errors
    /// When the system refuses, which it has no reason to.
    pub fn catch() -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            Error::Environment(Report::new(format!("could not catch signals: {error}")))
        };
        let mut signals = Iterator::new([SIGINT, SIGTERM, SIGHUP, SIGXFSZ]).map_err(failed)?;
        let (sender, received) = unbounded();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let clock = Clock::start();
                let mut last = None;
                for number in signals.forever() {
                    let signal = match number {
                        SIGTERM => Signal::Terminate,
                        SIGHUP => Signal::Hangup,
                        // A file may not grow any more: whoever writes to it gets an error, as on a
                        // full disk, and is not killed for it.
                        SIGXFSZ => continue,
                        _ => Signal::Interrupt,
                    };
                    let now = clock.now();
                    if last.is_some_and(|(kind, at)| kind == signal && now - at < SAME) {
                        continue;
                    }
                    last = Some((signal, now));
                    flag.store(true, Ordering::Release);
                    cancel_statement(&shared, signal);
                    let _ = sender.send(signal);
                }
            })
            .map_err(failed)?;
        Ok(Signals {
            received,
            state,
            stopped,
        })
    }

    /// None is caught: for a run inside a process whose signals are not ours.
    pub fn none() -> Self {
        Signals {
            received: never(),
            state: Arc::default(),
            stopped: Arc::default(),
        }
    }

    /// Signals as they come.
    pub fn received(&self) -> &Receiver<Signal> {
        &self.received
    }

    /// Set as soon as a signal has come.
    pub fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// The first signal so far.
    pub fn first(&self) -> Option<Signal> {
        self.lock().first
    }

    /// Fails if a signal has come.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        self.first()
            .map_or(Ok(()), |signal| Err(Error::Interrupted(signal)))
    }

    /// Runs `work` on a control connection; a signal cancels the statement that it is at. If one
    /// came, that is the result, whatever became of the work.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or those of `work`.
    pub fn cancelling<T>(
        &self,
        client: &mut Connection,
        work: impl FnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        {
            // Under the lock, so that a signal is either seen here or finds what to cancel.
            let mut state = self.lock();
            if let Some(signal) = state.first {
                return Err(Error::Interrupted(signal));
            }
            state.statement = Some(client.cancellation());
        }
        let result = work(client);
        self.lock().statement = None;
        self.check()?;
        result
    }

    /// Connects as [`control::connect`] does. A signal ends the waiting, since no server says when
    /// it will answer.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or [`Error::Connect`].
    pub fn connecting(&self, target: &Target, console: &Console) -> Result<Connection, Error> {
        self.check()?;
        let (target, console) = (target.clone(), console.clone());
        let connected = self.beside(None, move || control::connect(&target, &console))?;
        connected.expect("there is no bound")
    }

    /// Does `work`, which may block for ever, on a thread of its own. `None` if it has not been
    /// done within `bound`. Nobody waits for a thread that was left to itself.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if a signal has come meanwhile, [`Error::Environment`] if there is no
    /// thread to be had.
    pub fn beside<T: Send + 'static>(
        &self,
        bound: Option<Duration>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let (sender, done) = bounded(1);
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                let _ = sender.send(work());
            })
            .map_err(|error| Error::no_thread(&error))?;
        let too_late = bound.map_or_else(never, crossbeam_channel::after);
        select! {
            recv(done) -> result => result.map(Some).map_err(|_| super::threads::internal("a thread")),
            recv(self.received) -> signal => Err(Error::Interrupted(
                signal.unwrap_or(Signal::Interrupt)
            )),
            recv(too_late) -> _ => Ok(None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the signal; whatever the control connection is doing is cancelled, on a thread of its own
/// since a server may be slow to take that. Should it fail, the statement ends in its own time, and
/// the signal is seen then, unless the user has lost patience: then the process ends here.
fn cancel_statement(state: &Mutex<State>, signal: Signal) {
    let (first, count, statement) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        let first = *state.first.get_or_insert(signal);
        (first, state.count, state.statement.clone())
    };
    if count >= PATIENCE {
        std::process::exit(ExitStatus::Interrupted(first).code().into());
    }
    let Some(statement) = statement else {
        return;
    };
    let _ = std::thread::Builder::new()
        .name("cancel".to_owned())
        .spawn(move || statement.send());
}
