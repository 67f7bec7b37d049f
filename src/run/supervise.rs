//! Starting and stopping the workers, from the main thread.
//!
//! The main thread counts who is ready, releases all at once, passes signals on, and waits until
//! every worker has said that it is done. A worker that panics says so, too.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, select};
use mio::Waker;

use crate::conninfo::Endpoint;
use crate::context::RunContext;
use crate::error::{Error, Report as Problem, Signal};
use crate::event::Announcement;
use crate::server::ServerFacts;
use crate::sqlstate::SqlState;
use crate::time::Timestamp;
use crate::worker::{Control, Notice};

use super::checkpoints::CheckpointWatch;
use super::first_look::FirstLook;
use super::watchdog::{self, Watch};

/// What the main thread holds of the workers.
pub struct Supervisor<'a> {
    /// Orders to them.
    pub control: &'a Control,
    /// One waker each.
    pub wakers: Vec<Arc<Waker>>,
    /// What they say.
    pub notices: Receiver<Notice>,
    /// Stop signals.
    pub signals: &'a Receiver<Signal>,
    /// The way to the collector; sending on it never waits.
    pub announcements: Sender<Announcement>,
    /// What is run.
    pub run: &'a Arc<RunContext>,
    /// The server, which may have too few connections to give.
    pub server: &'a ServerFacts,
}

/// How far the workers are.
#[derive(Default)]
struct Workers {
    ready: usize,
    done: usize,
    watch: Watch,
    checkpoints: Option<CheckpointWatch>,
}

/// How the first client was let in.
#[derive(Debug)]
pub struct Introduction {
    /// Where.
    pub endpoint: Endpoint,
    /// Protocol and cipher, if the connection is encrypted.
    pub tls: Option<String>,
    /// How it was authenticated.
    pub method: &'static str,
}

/// How the workers ended.
#[derive(Debug, Default)]
pub struct Ending {
    /// The clients were released.
    pub started: bool,
    /// The signal that ended the run early.
    pub interrupted: Option<Signal>,
    /// An initial connection failed, so that there was no run.
    pub failure: Option<Error>,
    /// Where the first client was let in, and how it was authenticated.
    pub introduction: Option<Introduction>,
    /// What the server had counted when the window began, if that is not when the clients connected.
    pub first_look: Option<FirstLook>,
    /// The user did not want to wait any longer.
    pub abandoned: bool,
}

impl Supervisor<'_> {
    /// Sees the workers through from connecting to their end.
    pub fn watch(&self) -> Ending {
        let mut ending = Ending::default();
        let (mut state, mut signals) = (Workers::default(), 0);
        while state.done < self.wakers.len() && !ending.abandoned {
            select! {
                recv(self.notices) -> notice => match notice {
                    Ok(notice) => self.hear(notice, &mut state, &mut ending),
                    Err(_) => break,
                },
                recv(state.watch.answered) -> answer => {
                    let answer = answer.unwrap_or_else(|_| Err("no thread to ask it".to_owned()));
                    for message in state.watch.conclude(&answer, self.run) {
                        let _ = self.announcements.send(Announcement::Message(message));
                    }
                },
                recv(self.signals) -> signal => if let Ok(signal) = signal {
                    signals += 1;
                    ending.interrupted.get_or_insert(signal);
                    self.obey(signals, &mut ending);
                },
            }
        }
        ending
    }

    fn hear(&self, notice: Notice, state: &mut Workers, ending: &mut Ending) {
        match notice {
            Notice::Authenticated {
                endpoint,
                tls,
                method,
            } => {
                ending.introduction.get_or_insert(Introduction {
                    endpoint,
                    tls,
                    method,
                });
            }
            Notice::Ready => {
                state.ready += 1;
                if state.ready == self.wakers.len() && ending.may_start() {
                    let begins = self.start();
                    ending.first_look = FirstLook::begin(self.run, self.server.version_num, begins);
                    state.checkpoints = CheckpointWatch::begin(
                        self.run,
                        self.server.version_num,
                        self.announcements.clone(),
                    );
                    ending.started = true;
                }
            }
            Notice::ConnectFailed { client, report } => self.fail(client, report, ending),
            Notice::ClientAborted => self.end_early(),
            Notice::Overdue => {
                if state.watch.heed_overdue(self.run.clock.now()) {
                    self.control.take_census();
                    self.wake();
                }
            }
            Notice::Waits(waits) => state.watch.note(waits),
            Notice::Done => state.done += 1,
        }
        let running = self.wakers.len() - state.done;
        let inquire = |processes| watchdog::inquire(&self.run.target, processes);
        state.watch.go_on(running, inquire);
    }

    /// Releases the clients: the measured window begins, at once or after ramp and warm-up. Tells when.
    fn start(&self) -> Timestamp {
        let now = self.run.clock.now();
        let begins = now + self.run.plan.load.lead_in.total();
        if let Some(schedule) = &self.run.schedule {
            schedule.start(now, begins);
        }
        let _ = self.announcements.send(Announcement::WindowBegins(begins));
        self.control.start(now);
        self.wake();
        begins
    }

    fn fail(&self, client: u32, report: Problem, ending: &mut Ending) {
        if ending.failure.is_some() {
            return;
        }
        let detail = match report.detail {
            Some(detail) => {
                format!("{detail} (could not create connection for client {client})")
            }
            None => format!("could not create connection for client {client}"),
        };
        let message = match report.sqlstate {
            SqlState::TOO_MANY_CONNECTIONS => {
                let limits = connection_limits(self.server);
                let (message, clients) = (report.message, self.run.plan.load.clients);
                format!("{message} (client {client} of {clients}, SQLSTATE 53300{limits})")
            }
            _ => report.message,
        };
        ending.failure = Some(Error::Connect(Problem {
            message,
            detail: Some(detail),
            ..report
        }));
        self.control.close(self.run.clock.now());
        self.wake();
    }

    /// The first signal lets what is under way finish, the second cuts it off, the third leaves.
    fn obey(&self, signals: u32, ending: &mut Ending) {
        let now = self.run.clock.now();
        match signals {
            1 if ending.started => {
                let _ = self.announcements.send(Announcement::WindowEnds(now));
                self.control.stop(now);
            }
            1 | 2 => self.control.close(now),
            _ => ending.abandoned = true,
        }
        self.wake();
    }

    /// A client was aborted, and that was to end the run.
    fn end_early(&self) {
        let now = self.run.clock.now();
        let _ = self.announcements.send(Announcement::WindowEnds(now));
        self.control.close(now);
        self.wake();
    }

    fn wake(&self) {
        wake_all(&self.wakers);
    }
}

/// Lets all workers look at their orders.
pub(super) fn wake_all(wakers: &[Arc<Waker>]) {
    for waker in wakers {
        // A worker that cannot be woken looks at its orders within the flush interval.
        let _ = waker.wake();
    }
}

impl Ending {
    fn may_start(&self) -> bool {
        self.interrupted.is_none() && self.failure.is_none()
    }
}

/// What is known of the limits when the server has no connection left. It is not said before that:
/// a pooler may give more connections than its server has.
fn connection_limits(server: &ServerFacts) -> String {
    let mut limits = String::new();
    if let Some(most) = server.max_connections {
        let reserved = server.reserved_connections.unwrap_or(0);
        limits.push_str(&format!(
            "; max_connections is {most}, {reserved} of them reserved"
        ));
    }
    for (whose, limit) in [
        ("role", server.role_connections),
        ("database", server.database_connections),
    ] {
        if let Some(most) = limit {
            limits.push_str(&format!("; the limit of the {whose} is {most}"));
        }
    }
    limits
}

/// Says that a worker has ended when it is dropped, so also when the thread panics.
pub struct Farewell(pub Sender<Notice>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(Notice::Done);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crossbeam_channel::unbounded;
    use mio::{Poll, Token};

    use super::*;
    use crate::conninfo::Target;
    use crate::options::tests::run_plan;
    use crate::time::{Clock, Timestamp};
    use crate::transport::look_up;
    use crate::values::ValueSources;

    /// A log that takes no rows keeps the collector from hearing anything, and workers from ending.
    #[test]
    fn every_signal_is_obeyed_while_neither_collector_nor_workers_hear_anything() {
        let target = Target::plain(Vec::new(), "someone", "bench");
        let addresses = look_up::addresses(&target);
        let run = Arc::new(RunContext::new(
            run_plan("-S"),
            target,
            addresses,
            ValueSources::default(),
            1,
            Clock::manual(0),
        ));
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let (notices, noticed) = unbounded();
        let (sender, signals) = unbounded();
        let (announcements, told) = unbounded();
        let control = Control::default();
        let supervisor = Supervisor {
            control: &control,
            wakers: vec![waker],
            notices: noticed,
            signals: &signals,
            announcements,
            run: &run,
            server: &ServerFacts::default(),
        };
        let (begins, ending) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| supervisor.watch());
            notices.send(Notice::Ready).unwrap();
            let begins = told.recv_timeout(Duration::from_secs(60));
            for signal in [Signal::Interrupt, Signal::Terminate, Signal::Interrupt] {
                sender.send(signal).unwrap();
            }
            (begins, watching.join().unwrap())
        });
        assert_eq!(begins, Ok(Announcement::WindowBegins(Timestamp::ZERO)));
        assert!(ending.started && ending.abandoned);
        assert_eq!(ending.interrupted, Some(Signal::Interrupt));
        assert!(control.closed_at().is_some());
        let ends = Announcement::WindowEnds(Timestamp::ZERO);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [ends]);
    }

    #[test]
    fn only_limits_that_are_known_are_named() {
        let mut server = ServerFacts::default();
        assert_eq!(connection_limits(&server), "");
        server.max_connections = Some(100);
        server.reserved_connections = Some(3);
        let of_server = "; max_connections is 100, 3 of them reserved";
        assert_eq!(connection_limits(&server), of_server);
        server.role_connections = Some(5);
        server.database_connections = Some(7);
        assert_eq!(
            connection_limits(&server),
            format!("{of_server}; the limit of the role is 5; the limit of the database is 7")
        );
    }
}
