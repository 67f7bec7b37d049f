//! What a worker tells the collector: plain `Copy` records, in batches.
//!
//! Stamps are facts; every figure (latency, service time, lag, response time) is a *method*, so
//! that there is one definition of it.

pub use crate::sqlstate::SqlState;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// How a transaction ended. Every transaction that was attempted or aborted has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The script ran to its end.
    Processed,
    /// Its slot under a rate was older than the latency limit; it never began.
    Skipped,
    /// Given up after an error that leaves the client alive; [`Failure::of`] its SQLSTATE is the
    /// kind.
    Failed,
    /// Ended together with its client, its connection, or the run.
    Aborted(Abort),
}

/// Why a transaction failed; its client lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// SQLSTATE 40001.
    Serialization,
    /// SQLSTATE 40P01.
    Deadlock,
    /// Any other SQLSTATE, where errors do not end the client.
    Other,
}

impl Failure {
    /// The kind of failure that an error with this SQLSTATE is.
    pub fn of(sqlstate: SqlState) -> Self {
        match &sqlstate.0 {
            b"40001" => Failure::Serialization,
            b"40P01" => Failure::Deadlock,
            _ => Failure::Other,
        }
    }
}

/// Why a transaction was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abort {
    /// An error of the server that ends the client; the record's SQLSTATE names it.
    Server,
    /// An error found by pgmark itself (a meta command, an expression, the protocol).
    Client,
    /// The connection was lost.
    ConnectionLost,
    /// The connection was lost after COMMIT had been sent and before its answer came.
    ConnectionLostInCommit,
    /// Cancelled by us: a stop signal, or the end of the time to finish.
    Interrupted,
}

/// The part of the run in which a transaction began (under a rate: was scheduled).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Clients are still being added.
    Ramp,
    /// Before the measured window.
    Warmup,
    /// Inside the measured window.
    Run,
}

impl Phase {
    /// Whether what belongs to it is in the figures.
    pub fn is_measured(self) -> bool {
        match self {
            Phase::Ramp | Phase::Warmup => false,
            Phase::Run => true,
        }
    }
}

/// One transaction as the worker saw it. 64 bytes, so that a batch of them is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// Index of the script, from 0.
    pub script: u8,
    /// How it ended.
    pub outcome: Outcome,
    /// The error's SQLSTATE for failed and aborted transactions.
    pub sqlstate: SqlState,
    /// Where it belongs.
    pub phase: Phase,
    /// Times the script was started for this transaction; 0 only if it was skipped.
    pub tries: u32,
    /// Running number within the client, from 1.
    pub number: u64,
    /// When it was due: its slot under a rate, else the same as `started_at`.
    pub scheduled_at: Timestamp,
    /// Just before the first command of the first try ("begun").
    pub started_at: Timestamp,
    /// When the last thing awaited was there ("completed"). For a skipped one: when it was skipped.
    pub finished_at: Timestamp,
    /// Time spent connecting for this transaction, ns.
    pub connecting_ns: u64,
    /// Time inside `\untimed` blocks, ns.
    pub untimed_ns: u64,
}

const _: () = assert!(size_of::<TransactionRecord>() == 64);

impl TransactionRecord {
    /// Completed − scheduled, less untimed parts and less connecting (ns). Spans all tries.
    /// Without a rate scheduled is begun, and connecting lies before it.
    pub fn latency_ns(&self) -> u64 {
        self.finished_at
            .nanos_since(self.scheduled_at)
            .saturating_sub(self.untimed_ns)
            .saturating_sub(self.connecting_in_wait_ns())
    }

    /// Begun − scheduled − connecting (ns): how late the client got round to it. For a skipped
    /// one: how late it was when it was skipped.
    pub fn lag_ns(&self) -> u64 {
        match self.outcome {
            Outcome::Skipped => self.finished_at.nanos_since(self.scheduled_at),
            Outcome::Processed | Outcome::Failed | Outcome::Aborted(_) => self
                .started_at
                .nanos_since(self.scheduled_at)
                .saturating_sub(self.connecting_in_wait_ns()),
        }
    }

    /// Completed − begun, less untimed parts (ns).
    pub fn service_ns(&self) -> u64 {
        self.finished_at
            .nanos_since(self.started_at)
            .saturating_sub(self.untimed_ns)
    }

    /// Completed − scheduled, connecting included (ns): what a caller waits.
    pub fn response_ns(&self) -> u64 {
        self.finished_at
            .nanos_since(self.scheduled_at)
            .saturating_sub(self.untimed_ns)
    }

    /// Retries of this transaction: tries − 1.
    pub fn retries(&self) -> u32 {
        self.tries.saturating_sub(1)
    }

    /// The part of the connecting that lies between scheduled and begun. Without a rate the
    /// client connects before the transaction is due, so none of it does.
    fn connecting_in_wait_ns(&self) -> u64 {
        self.connecting_ns
            .min(self.started_at.nanos_since(self.scheduled_at))
    }
}

/// A try of a transaction. Sent only where tries are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// Index of the script, from 0.
    pub script: u8,
    /// Where its transaction belongs.
    pub phase: Phase,
    /// How it ended.
    pub end: TryEnd,
    /// SQLSTATE of the error that ended it, if the server gave one.
    pub sqlstate: SqlState,
    /// Number of the try in its transaction, from 1.
    pub number: u32,
    /// Number of the transaction of this client, from 1.
    pub transaction: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; of one that failed, when it was rolled back.
    pub finished_at: Timestamp,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryEnd {
    /// By an error after which the transaction was tried again.
    Retried,
    /// Together with its transaction, which ended in this way.
    Last(Outcome),
}

/// What a client spent time on besides transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A connection was made, up to the first ReadyForQuery (on-connect commands included in the
    /// client's time connecting, but not in this span).
    Connect,
    /// An attempt to connect that ended without a connection.
    ConnectFailed,
    /// An attempt that the end of the window or a stop cut off.
    ConnectCut,
    /// Commands of `--on-connect`.
    OnConnect,
    /// From Terminate until the socket was closed.
    Disconnect,
}

/// A span of a client's time that is not part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// What was done.
    pub kind: SpanKind,
    /// Beginning of the span.
    pub started_at: Timestamp,
    /// End of the span.
    pub finished_at: Timestamp,
}

/// Something that a client without a connection went through. Sent only where such clients go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// When it was noticed.
    pub at: Timestamp,
    /// What it was.
    pub step: LossStep,
    /// Why, as far as it is known.
    pub cause: LossCause,
}

/// What happens to a client without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossStep {
    /// Its connection was lost.
    Lost,
    /// It tried to make another one and failed.
    TryFailed,
}

/// Why a connection was lost, or could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LossCause {
    /// The server said so.
    SqlState(SqlState),
    /// Nobody listens there.
    Refused,
    /// The peer broke it off.
    Reset,
    /// The peer closed it without a word.
    Closed,
    /// There was no answer in time.
    TimedOut,
    /// The socket's file is not there.
    NoSocket,
    /// Something else.
    Other,
}

impl LossCause {
    /// What the server said, or else the cause behind `words`.
    pub fn of(sqlstate: SqlState, words: &str) -> Self {
        match sqlstate {
            SqlState::NONE => LossCause::of_words(words),
            sqlstate => LossCause::SqlState(sqlstate),
        }
    }

    /// The cause behind the words of an error of the system or of ours.
    pub fn of_words(words: &str) -> Self {
        let lower = words.to_lowercase();
        let known = [
            ("connection refused", LossCause::Refused),
            ("connection reset", LossCause::Reset),
            ("broken pipe", LossCause::Reset),
            ("no such file", LossCause::NoSocket),
            ("timed out", LossCause::TimedOut),
            ("timeout expired", LossCause::TimedOut),
            ("closed the connection", LossCause::Closed),
        ];
        let found = known.iter().find(|(words, _)| lower.contains(words));
        found.map_or(LossCause::Other, |(_, cause)| *cause)
    }
}

impl From<LossCause> for String {
    fn from(cause: LossCause) -> String {
        cause.to_string()
    }
}

/// The reverse of what is displayed.
impl TryFrom<String> for LossCause {
    type Error = String;

    fn try_from(text: String) -> Result<LossCause, String> {
        let words = [
            LossCause::Refused,
            LossCause::Reset,
            LossCause::Closed,
            LossCause::TimedOut,
            LossCause::NoSocket,
            LossCause::Other,
        ];
        match words.into_iter().find(|word| word.to_string() == text) {
            Some(word) => Ok(word),
            None => SqlState::try_from(text).map(LossCause::SqlState),
        }
    }
}

impl std::fmt::Display for LossCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LossCause::SqlState(sqlstate) => sqlstate.as_str(),
            LossCause::Refused => "connection refused",
            LossCause::Reset => "connection reset",
            LossCause::Closed => "connection closed",
            LossCause::TimedOut => "timeout",
            LossCause::NoSocket => "no socket",
            LossCause::Other => "other",
        })
    }
}

/// What became of one execution of a command. Sent only where commands are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// Index of the script, from 0.
    pub script: u8,
    /// Index of the command in its script, from 0.
    pub command: u32,
    /// Where its transaction belongs.
    pub phase: Phase,
    /// What became of it.
    pub end: CommandEnd,
    /// From its beginning until what it waits for was there, ns; 0 unless it is done.
    pub duration_ns: u64,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandEnd {
    /// It was executed.
    Done,
    /// Its error made the transaction fail for good.
    Failed,
    /// Its error made the transaction begin again.
    Retried,
}

/// The last word about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    /// Global number of the client, from 0.
    pub client: u32,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: ClientEnd,
    /// Time inside `\sleep` within the measured window, ns.
    pub think_ns: u64,
    /// Time spent waiting for slots of the schedule within the measured window, ns.
    pub slot_wait_ns: u64,
}

/// How a client ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientEnd {
    /// With the run.
    #[default]
    Finished,
    /// There were no values left for its script: it has done less than it was to do, and nothing
    /// is wrong.
    RanOut,
    /// For good before the run did: its connection closes, others go on.
    Aborted,
}

/// How busy a worker thread was inside the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Number of the thread, from 0.
    pub worker: u32,
    /// Time not spent waiting in poll, ns.
    pub busy_ns: u64,
    /// The time over which `busy_ns` was taken, ns.
    pub observed_ns: u64,
    /// Wake-ups of clients that were acted on.
    pub delays: u64,
    /// Sum over them of the time from the stamp until the thread acted on it, ns.
    pub delay_sum_ns: u64,
    /// 99th percentile of that time, ns.
    pub delay_p99_ns: u64,
    /// The longest, ns.
    pub delay_max_ns: u64,
    /// Batches that had to wait for the collector.
    pub blocked_sends: u64,
    /// Time spent waiting for it, ns.
    pub blocked_ns: u64,
}

/// One thing that a worker tells the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A transaction ended (or was skipped).
    Transaction(TransactionRecord),
    /// A try of a transaction ended; the last one is told before its transaction.
    Try(TryRecord),
    /// A command was executed or failed.
    Command(CommandRecord),
    /// A client connected, failed to, or disconnected.
    Connection(ConnectionRecord),
    /// A client was without a connection.
    Loss(LossRecord),
    /// A client is done.
    ClientDone(ClientRecord),
    /// The thread is done: its last event.
    WorkerDone(WorkerRecord),
}

// As long as the longest of them, the last word of a thread, and its kind.
const _: () = assert!(size_of::<Event>() == 80);

/// Events of one worker, in the order in which they happened.
#[derive(Debug)]
pub struct Batch {
    /// Number of the worker thread, from 0; the emptied batch goes back to it.
    pub worker: u32,
    /// The events.
    pub events: Vec<Event>,
    /// Every event of this worker up to this moment has been sent: intervals that end before the
    /// smallest such moment of all workers are closed.
    pub complete_through: Timestamp,
}

/// A line for the user from the data plane. The collector is the only writer of stderr during a
/// run, so that lines never mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How it is prefixed.
    pub level: Level,
    /// The text: one line or several, without a trailing newline. Bytes of the server that are not
    /// UTF-8 are shown as `\xe9`.
    pub text: String,
}

/// Severity of a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Prefixed `error: `.
    Error,
    /// Prefixed `detail: `: more about the error before it.
    Detail,
    /// Only the program's name before it.
    Info,
    /// Printed as it is (output of `debug()`, `\shell`).
    Plain,
}

/// Everything that flows from workers to the collector, on one channel, so that order is kept.
#[derive(Debug)]
pub enum ToCollector {
    /// Measured events.
    Batch(Batch),
    /// A line for the user.
    Message(Message),
}

/// What the main thread tells the collector. It has a channel of its own, without a bound: whoever
/// takes signals must not wait for a log that takes no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The measured window begins (W1): sent once, before the clients are released, so that it is
    /// there before any transaction record.
    WindowBegins(Timestamp),
    /// The end of the window (E), where it is not that of the last transaction: a stop signal came,
    /// or an aborted client ended the run.
    WindowEnds(Timestamp),
    /// The server was asked at this moment, and began so many checkpoints since it was asked before.
    Checkpoints {
        /// When it had answered.
        at: Timestamp,
        /// How many; 0 the first time.
        begun: u64,
    },
    /// The server no longer says how many checkpoints there were.
    CheckpointsUnknown,
    /// A line for the user.
    Message(Message),
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// The first transaction of client 0, processed at the first try, for tests to vary.
    pub(crate) fn processed(started_at: Timestamp, finished_at: Timestamp) -> TransactionRecord {
        TransactionRecord {
            client: 0,
            script: 0,
            outcome: Outcome::Processed,
            sqlstate: SqlState::NONE,
            phase: Phase::Run,
            tries: 1,
            number: 1,
            scheduled_at: started_at,
            started_at,
            finished_at,
            connecting_ns: 0,
            untimed_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn record() -> TransactionRecord {
        testing::processed(at(100), at(110))
    }

    #[test]
    fn in_a_closed_loop_connecting_lies_before_the_transaction() {
        let connected = TransactionRecord {
            connecting_ns: 100_000_000,
            ..record()
        };
        assert_eq!(connected.latency_ns(), 10_000_000);
        assert_eq!(connected.service_ns(), 10_000_000);
        assert_eq!(connected.lag_ns(), 0);
    }

    #[test]
    fn under_a_rate_connecting_is_taken_out_of_latency_and_lag_but_not_of_response() {
        let throttled = TransactionRecord {
            scheduled_at: at(50),
            connecting_ns: 30_000_000,
            untimed_ns: 1_000_000,
            ..record()
        };
        assert_eq!(throttled.lag_ns(), 20_000_000);
        assert_eq!(throttled.service_ns(), 9_000_000);
        assert_eq!(throttled.latency_ns(), 29_000_000);
        assert_eq!(throttled.response_ns(), 59_000_000);
    }

    #[test]
    fn the_lag_of_a_skipped_one_is_how_late_it_was() {
        let skipped = TransactionRecord {
            outcome: Outcome::Skipped,
            tries: 0,
            scheduled_at: at(40),
            ..record()
        };
        assert_eq!(skipped.lag_ns(), 70_000_000);
        assert_eq!(skipped.retries(), 0);
    }
}
