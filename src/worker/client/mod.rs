//! One client: a state machine that neither reads a socket nor waits.
//!
//! Inputs are the `handle_*` methods: bytes, moments and what became of the socket. Outputs are
//! [`Client::output`] (bytes to send), [`Client::take_action`] (what to do to the socket) and
//! [`Client::poll_timeout`] (when to be woken). After each input the worker sends the output, then
//! takes actions until there is none, then looks at the timeout.
//!
//! The story of a client: it connects, at first with all others before the start (with `-C` for
//! each transaction instead); stands by until it is released; then transaction after transaction
//! it chooses a script and works through its commands, waiting for each reply; in the end it says
//! goodbye and closes. An error of the server ends it early, except those that the transaction
//! can be repeated after: then the block is rolled back, if one is open, and the transaction is
//! tried again or given up.

mod commands;
mod connection;
mod debug;
mod failures;
mod pacing;
mod recovery;
mod reply;
mod statements;
mod timing;
mod transaction;
mod waiting;

#[cfg(test)]
pub(super) mod simulation;
#[cfg(test)]
pub(super) mod tests;

use crossbeam_channel::Sender;

use crate::conninfo::{self, Endpoint, Question};
use crate::context::RunContext;
use crate::event::{ClientEnd, ClientRecord, Event, SqlState};
use crate::protocol::Session;
use crate::random::Generator;
use crate::script::Variables;
use crate::time::Timestamp;
use crate::told::KnownNotices;
use crate::transport::cancel;
use crate::values::ValueCursor;

use super::control::Notice;
use super::delay::Delays;
use super::recorder::Recorder;
use super::shell::ShellOrder;
use super::window::Window;
use connection::Attempt;
use recovery::Recovery;
use reply::Reply;
use statements::Statements;
use timing::Timing;
use transaction::Transaction;

/// What a client may use while it acts.
pub struct Environment<'a> {
    /// The run: scripts, limits, endpoints, clock.
    pub run: &'a RunContext,
    /// The measured window.
    pub window: &'a Window,
    /// When the poll reported what is being handled.
    pub stamp: Timestamp,
    /// The thread's stream for choosing scripts.
    pub choose: &'a mut Generator,
    /// Where records and messages go.
    pub recorder: &'a mut Recorder,
    /// Where client delays go.
    pub delays: &'a mut Delays,
    /// SQLSTATEs of failed transactions that this thread has told of.
    pub told: &'a mut Vec<SqlState>,
    /// The way to the main thread.
    pub notices: &'a Sender<Notice>,
}

impl Environment<'_> {
    fn now(&self) -> Timestamp {
        self.run.clock.now()
    }
}

/// What a client wants done to its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a socket for [`Client::connection_attempt`]; answered by `handle_transport_ready`, `handle_lost`
    /// or `open_again_at`.
    Open,
    /// Close the socket; answered by `handle_closed`.
    Close,
    /// Run a shell command beside the loop; answered by `handle_shell`.
    Spawn(Box<ShellOrder>),
    /// Let others have their turn, then call `handle_timeout`.
    Yield,
}

/// How far a client is, as its worker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its initial connection is not made yet.
    Connecting,
    /// It stands by or runs.
    Active,
    /// Finished or aborted.
    Done,
}

/// One connection's worth of work.
pub struct Client {
    id: u32,
    session: Session,
    variables: Variables,
    generator: Generator,
    state: State,
    attempt: Attempt,
    /// Set from the loss of a connection until there is another one.
    recovery: Option<Recovery>,
    transaction: Transaction,
    statements: Statements,
    /// How far it has come in its parts of the files of values.
    values: ValueCursor,
    reply: Reply,
    timing: Timing,
    notices: KnownNotices,
    action: Option<Action>,
    /// Transactions so far: the running number of the last one.
    number: u64,
    /// Those of them that count towards the number to be done.
    counted: u64,
    think_ns: u64,
    /// Time spent waiting for slots within the measured window, ns.
    slot_wait_ns: u64,
    /// When something was last sent.
    sent_at: Timestamp,
    /// Whether the stamp of the present wake-up has not been answered by a begin or send yet.
    unanswered: bool,
    /// Whether its initial connection was made or, with `-C`, needs none.
    launched: bool,
    /// Whether the main thread knows how the server authenticated it.
    introduced: bool,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been asked of it yet.
    Idle,
    /// The socket is being opened, or the start-up exchange goes on.
    Connecting,
    /// The backlog of the socket is full: the attempt goes on at this moment.
    Backlogged { until: Timestamp },
    /// The server has let us in, and is asked whether it is of the kind that is wanted.
    Judging(Question),
    /// The commands that the connection begins with are awaited.
    Greeting { since: Timestamp },
    /// Connected before the start.
    Standby,
    /// Its turn in the ramp comes at this moment.
    Ramping { until: Timestamp },
    /// Another transaction begins in its next turn.
    Choosing,
    /// It goes on looking for a slot that is not too old in its next turn.
    Skipping,
    /// It has lost its connection, and tries to make another one at this moment.
    Recovering { until: Timestamp },
    /// Its slot in the schedule comes at this moment.
    Throttled {
        /// Since this moment.
        since: Timestamp,
        until: Timestamp,
    },
    /// A transaction is under way.
    Working(Work),
    /// The socket is being closed.
    Closing { since: Timestamp, then: Then },
    /// Finished, or aborted for good.
    Done,
}

impl State {
    /// Whether a transaction is under way.
    fn is_work(self) -> bool {
        matches!(self, State::Working(_))
    }
}

/// What a transaction that is under way waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Statements are being prepared for the command whose turn it is.
    Preparing,
    /// A command was sent; the reply is awaited.
    Waiting,
    /// A shell command runs.
    Shelling,
    /// Inside `\sleep`.
    Sleeping { since: Timestamp, until: Timestamp },
    /// The failed transaction's block is being rolled back.
    RollingBack,
}

/// What follows the closing of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The next endpoint, if there is one.
    NextAttempt,
    /// With `-C`: the next transaction.
    NextTransaction,
    /// Nothing: the client is done.
    End(ClientEnd),
}

impl Client {
    /// Client `id` on `thread`, which has not been asked for anything yet.
    pub fn new(id: u32, thread: u32, run: &RunContext) -> Self {
        let generator = run.client_generator(id);
        Client {
            id,
            session: Session::new(),
            variables: run.variables_of(id, thread),
            transaction: Transaction::new(generator.clone()),
            generator,
            state: State::Idle,
            attempt: Attempt::new(&run.addresses, run.host_generator(id)),
            recovery: None,
            statements: Statements::default(),
            values: ValueCursor::default(),
            reply: Reply::default(),
            timing: Timing::default(),
            notices: KnownNotices::default(),
            action: None,
            number: 0,
            counted: 0,
            think_ns: 0,
            slot_wait_ns: 0,
            sent_at: Timestamp::ZERO,
            unanswered: false,
            launched: run.plan.load.reconnect,
            introduced: false,
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        if self.state == State::Done {
            Progress::Done
        } else if self.launched {
            Progress::Active
        } else {
            Progress::Connecting
        }
    }

    /// Bytes to send.
    pub fn output(&self) -> &[u8] {
        let output = self.session.output();
        if self.statements.holds_back(output) {
            return &[];
        }
        output
    }

    /// Notes that the first `count` bytes of the output have been sent.
    pub fn consume_output(&mut self, count: usize) {
        self.session.consume_output(count);
    }

    /// What to do to the socket next.
    pub fn take_action(&mut self) -> Option<Action> {
        self.action.take()
    }

    /// When to call [`Client::handle_timeout`], if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let deadline = match self.state {
            State::Backlogged { until } => until.min(self.attempt.deadline()),
            State::Connecting | State::Judging(_) => self.attempt.deadline(),
            State::Ramping { until }
            | State::Recovering { until }
            | State::Throttled { until, .. }
            | State::Working(Work::Sleeping { until, .. }) => until,
            State::Idle
            | State::Greeting { .. }
            | State::Standby
            | State::Choosing
            | State::Skipping
            | State::Working(
                Work::Preparing | Work::Waiting | Work::Shelling | Work::RollingBack,
            )
            | State::Closing { .. }
            | State::Done => return None,
        };
        (deadline != Timestamp::MAX).then_some(deadline)
    }

    /// Whether something was sent at or after `stamp`.
    pub fn has_sent_since(&self, stamp: Timestamp) -> bool {
        self.sent_at >= stamp
    }

    /// What would cancel the command that is under way, if one is.
    pub fn cancel_order(&self, run: &RunContext) -> Option<cancel::Order> {
        if !matches!(self.state, State::Working(_) | State::Greeting { .. }) {
            return None;
        }
        Some(cancel::Order {
            endpoint: self.endpoint()?.clone(),
            encryption: match self.attempt.is_encrypted() {
                true => {
                    let connector = run.connector().ok()?.clone();
                    Some((connector, run.target.tls.negotiation))
                }
                false => None,
            },
            packet: self.session.cancel_request()?,
        })
    }

    /// What is to be tried to open a socket.
    pub fn connection_attempt(&self) -> Option<conninfo::Attempt<'_>> {
        self.attempt.current()
    }

    /// Where its socket is, or is to be opened.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.attempt.endpoint()
    }

    /// The clients are released.
    pub fn handle_start(&mut self, env: &mut Environment<'_>) {
        if matches!(self.state, State::Idle | State::Standby) {
            self.enter(env.stamp, env);
        }
    }

    /// Its deadline has passed, or its next turn has come.
    pub fn handle_timeout(&mut self, env: &mut Environment<'_>) {
        match self.state {
            State::Choosing | State::Ramping { .. } => self.next_transaction(env),
            State::Recovering { .. } => self.connect(env),
            State::Throttled { since, until } => {
                self.slot_wait_ns += env.window.overlap_ns(since, until);
                self.unanswered = true;
                self.approach(env);
            }
            State::Skipping => match &env.run.schedule {
                Some(schedule) => self.take_slot(schedule, env),
                None => self.approach(env),
            },
            State::Working(Work::Sleeping { since, .. }) => self.wake_up(since, env),
            State::Backlogged { until } if until <= env.stamp => self.open(),
            State::Connecting | State::Judging(_) | State::Backlogged { .. } => {
                self.handle_connect_timeout(env);
            }
            // What it waited for came in the same turn, before the deadline was looked at.
            State::Idle
            | State::Greeting { .. }
            | State::Standby
            | State::Working(_)
            | State::Closing { .. }
            | State::Done => {}
        }
    }

    /// The measured window has ended: what is under way may finish, but a connect is cut off.
    pub fn handle_window_end(&mut self, env: &mut Environment<'_>) {
        self.give_up_recovery(env);
        match self.state {
            State::Connecting | State::Judging(_) | State::Backlogged { .. } => {
                self.cut_connect(env);
            }
            State::Throttled { .. } => self.give_up_slot(env),
            State::Idle
            | State::Greeting { .. }
            | State::Standby
            | State::Ramping { .. }
            | State::Recovering { .. }
            | State::Choosing
            | State::Skipping => self.finish(env),
            State::Working(_) | State::Closing { .. } | State::Done => {}
        }
    }

    /// A stop signal: nothing new begins, and nobody sleeps on.
    pub fn handle_stop(&mut self, env: &mut Environment<'_>) {
        if let State::Working(Work::Sleeping { .. }) = self.state {
            return self.interrupt(env);
        }
        self.handle_window_end(env);
    }

    /// Whether it waits for the commands that its connection begins with. When the window ends they are
    /// cut off, and a server does not notice that by itself.
    pub fn is_greeting(&self) -> bool {
        matches!(self.state, State::Greeting { .. })
    }

    /// The server is asked to cancel what it does: what waits for something else is cut off.
    pub fn handle_cancel(&mut self, env: &mut Environment<'_>) {
        if let State::Working(Work::Sleeping { .. } | Work::Shelling) = self.state {
            self.interrupt(env);
        }
    }

    /// Time to finish is over: what is still under way is cut off.
    pub fn handle_close_due(&mut self, env: &mut Environment<'_>) {
        if let State::Working(_) = self.state {
            return self.interrupt(env);
        }
        self.handle_window_end(env);
    }

    /// Ends the client, its connection first if it has one.
    fn finish(&mut self, env: &mut Environment<'_>) {
        self.close(Then::End(ClientEnd::Finished), env);
    }

    fn end(&mut self, end: ClientEnd, at: Timestamp, env: &mut Environment<'_>) {
        if end == ClientEnd::Aborted && self.launched && env.run.plan.load.on_error.exit {
            let _ = env.notices.send(Notice::ClientAborted);
        }
        self.state = State::Done;
        self.launched = true;
        env.recorder.record(Event::ClientDone(ClientRecord {
            client: self.id,
            ended_at: at,
            end,
            think_ns: self.think_ns,
            slot_wait_ns: self.slot_wait_ns,
        }));
    }
}
