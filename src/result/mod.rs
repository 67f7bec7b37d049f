//! A finished run as data. Every figure that is printed about transactions is a method here, with
//! its formula, over two sources: what was recorded of the transactions, and the table of clients.
//! Formats nothing and measures nothing.

mod books;
mod course;
mod outages;
mod pgbench;
mod place;
mod server;

pub use course::{Course, Slice, SliceLatency};
pub use outages::{Outage, Outages};
pub use pgbench::{DerivedLatency, PgbenchFigures};
pub use place::{Host, Place, ServerPlace, ServerSetting};
pub use server::{ExpectedCommits, ServerActivity};

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Signal;
use crate::event::{ClientEnd, WorkerRecord};
use crate::plan::{Partitioning, QueryMode, StopRule, SummaryPlan};
use crate::program::{Build, Program};
use crate::schedule::Due;
use crate::stats::{CommandStats, Histogram, Noise, Series, Stats};
use crate::time::Timestamp;

/// Everything that is known about a run when it is over.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// What was done, and to what.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// Where, if the result is kept.
    pub place: Option<Place>,
}

/// What was done and to what, as the plan and the server tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// The name that the program was called by.
    pub program: Program,
    /// The program itself.
    pub build: Build,
    /// As the server tells it, such as `15.18`.
    pub server_version: String,
    /// In the order of their indexes; never empty.
    pub scripts: Vec<ScriptFacts>,
    /// The scale of the tables, or as stated with `-s`.
    pub scale: u64,
    /// How the accounts table is partitioned, if it is.
    pub partitions: Option<Partitioning>,
    /// How statements were sent.
    pub query_mode: QueryMode,
    /// Number of clients.
    pub clients: u32,
    /// Number of worker threads.
    pub threads: u32,
    /// Times a transaction may be started in all; `None` is unlimited.
    pub max_tries: Option<u32>,
    /// When the run was to end.
    pub stop: StopRule,
    /// What the schedule owed, under a rate.
    pub schedule: Option<ScheduleFacts>,
    /// Transactions slower than this are late.
    pub latency_limit: Option<Duration>,
    /// A new connection for each transaction (`-C`).
    pub connect_per_transaction: bool,
    /// Clients that lost their connections went on (`--reconnect-on-loss`).
    pub reconnect_on_loss: bool,
    /// Acknowledged commits that were looked for afterwards, where that could be done.
    pub lost_writes: Option<LostWrites>,
    /// Errors that no repetition cures failed their transaction and left the client alive.
    pub continue_on_error: bool,
    /// The first aborted client ended the run.
    pub exit_on_abort: bool,
    /// Lines of progress were printed (`-P`).
    pub progress: bool,
    /// What the summary shows.
    pub summary: SummaryPlan,
    /// By what means the clients connected; `None` if none was let in.
    pub connection: Option<Connection>,
    /// What the server did meanwhile, where it could be asked.
    pub server: Option<ServerActivity>,
    /// The signal that ended the run before its stop rule did.
    pub interrupted: Option<Signal>,
    /// Files of values that had no row for a client that wanted one.
    pub exhausted_values: Vec<String>,
    /// What the random numbers were drawn from.
    pub seed: u64,
    /// Files tell moments by the calendar or since 1970.
    pub logs_moments: bool,
    /// How far the wall clock was stepped until the run was over, ns; positive is forward.
    pub wall_step_ns: i64,
}

/// Whether what the server had acknowledged was still there after the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostWrites {
    /// It was looked for.
    Counted {
        /// Transactions that were processed and leave a row in `pgbench_history`.
        acknowledged: u64,
        /// Rows of them that are missing.
        missing: u64,
    },
    /// It could not be told, for this reason.
    Unknown(String),
}

impl Facts {
    /// Whether a transaction may have to connect for itself, so that what a caller waits is more
    /// than its latency.
    pub fn connects_for_transactions(&self) -> bool {
        self.connect_per_transaction || self.reconnect_on_loss
    }
}

/// The schedule of a run with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleFacts {
    /// Transactions a second.
    pub rate: f64,
    /// What was due in the measured window.
    pub due: Due,
}

impl ScheduleFacts {
    /// Due transactions that never began: the end came, their client died, their connect was cut
    /// off, or nobody had taken them.
    pub fn abandoned(&self, total: &Stats) -> u64 {
        self.due.slots.saturating_sub(total.recorded())
    }
}

/// A script as the summary names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFacts {
    /// `<builtin: …>`, or the file's name as typed.
    pub description: String,
    /// Its share among the weights of all.
    pub weight: u64,
    /// Sources of its commands.
    pub commands: Vec<String>,
    /// SHA-256 of these, each followed by a line end, in hexadecimal digits: scripts that are the
    /// same but for comments and blanks between commands have the same.
    pub sha256: String,
}

/// SHA-256 of texts, each followed by a line end, in hexadecimal digits.
pub fn sha256_of_lines(texts: impl Iterator<Item: AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text);
        hash.update(b"\n");
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// By what means clients connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Over what.
    pub transport: Transport,
    /// Protocol and cipher, if it is encrypted.
    pub tls: Option<String>,
    /// `trust`, `scram-sha-256` and the like.
    pub authentication: Cow<'static, str>,
}

/// What bytes travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A Unix-domain socket.
    Socket,
    /// A TCP connection.
    Tcp,
}

/// What the collector measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The measured window; `None` if the run was stopped before it began.
    pub window: Option<Window>,
    /// When the first client began to connect before the start; `None` under `-C`.
    pub first_connect_at: Option<Timestamp>,
    /// One row a client, by number.
    pub clients: Vec<ClientResult>,
    /// Transactions of the window by script.
    pub scripts: Vec<Stats>,
    /// All transactions of the window: the scripts merged.
    pub total: Stats,
    /// Executions of commands by transactions of the window, by script and by command; empty
    /// unless commands are reported.
    pub commands: Vec<Vec<CommandStats>>,
    /// Transactions recorded that began before the window.
    pub before_window: u64,
    /// Connections made and not made.
    pub connections: Connections,
    /// One row a thread that said its last word.
    pub workers: Vec<WorkerRecord>,
    /// The window in points of time.
    pub series: Series,
    /// The window second by second, if the result is kept.
    #[serde(default)]
    pub course: Option<Course>,
    /// Times in which clients had lost their connections; `None` where a loss ends the client.
    pub outages: Option<Outages>,
    /// What became of the log and the file of intervals, as far as they were written.
    pub logs: Vec<LogResult>,
}

/// The measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When the clients were released, W0.
    pub released_at: Timestamp,
    /// Its beginning, W1: W0, ramp and warm-up.
    pub begins: Timestamp,
    /// Its end, E.
    pub ends: Timestamp,
}

impl Window {
    /// The window of a run that never came to it.
    pub const EMPTY: Window = Window {
        released_at: Timestamp::ZERO,
        begins: Timestamp::ZERO,
        ends: Timestamp::ZERO,
    };

    /// E − W1, ns.
    pub fn nanos(&self) -> u64 {
        self.ends.nanos_since(self.begins)
    }
}

/// One client's row in the table from which, with the log, every figure can be recomputed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientResult {
    /// When its first connection was made.
    pub connected_at: Option<Timestamp>,
    /// start_k: W1, or the end of the warm-up transaction that was under way then.
    pub starts: Timestamp,
    /// end_k: the later of E and the end of its own last transaction.
    pub ends: Timestamp,
    /// The end of the last thing that it did itself, at most `ends`.
    pub last_end: Timestamp,
    /// c_k: time inside [start_k, end_k] spent connecting, in on-connect commands and
    /// disconnecting, ns.
    pub connecting_ns: u64,
    /// Time from begun to completed of its processed, failed and aborted transactions, untimed
    /// parts included, ns.
    pub in_transactions_ns: u64,
    /// Time inside `\sleep`, ns.
    pub think_ns: u64,
    /// Time spent waiting for slots of the schedule, ns.
    pub slot_wait_ns: u64,
    /// Processed transactions by script.
    pub processed_by_script: Vec<u64>,
    /// Failed transactions.
    pub failed: u64,
    /// Skipped transactions.
    pub skipped: u64,
    /// Aborted transactions.
    pub aborted: u64,
    /// It ended for good before the run did.
    pub end: ClientEnd,
}

impl ClientResult {
    /// a_k = end_k − start_k, ns.
    pub fn measured_ns(&self) -> u64 {
        self.ends.nanos_since(self.starts)
    }

    /// a_k − c_k, ns.
    pub fn connected_ns(&self) -> u64 {
        self.measured_ns().saturating_sub(self.connecting_ns)
    }

    /// n_k: processed transactions of all scripts.
    pub fn processed(&self) -> u64 {
        self.processed_by_script.iter().sum()
    }

    /// Transactions of every outcome.
    pub fn recorded(&self) -> u64 {
        self.processed() + self.failed + self.skipped + self.aborted
    }
}

/// Connections of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Connections {
    /// Connection times of those made before the window.
    pub initial: Histogram,
    /// Connection times of those made in the window.
    pub in_window: Histogram,
    /// Attempts that failed; one cut off by the end of the window is not a failure.
    pub failed: u64,
}

/// What became of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogResult {
    /// Where it lies, as it is shown.
    pub path: String,
    /// What its rows are rows of.
    pub rows: LoggedRows,
    /// Rows that the file took whole.
    pub rows_written: u64,
    /// Rows that it could not take.
    pub rows_lost: u64,
    /// Why not, in the system's words.
    pub failure: Option<String>,
}

/// What the rows of a log are rows of, and what is needed to see that none is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoggedRows {
    /// All transactions, but for those that sampling left out.
    Transactions {
        /// How many that were.
        left_out: u64,
    },
    /// In pgbench's format aborted transactions and those before the window have no row.
    AttemptedInWindow {
        /// How many of the others sampling left out.
        left_out: u64,
    },
    /// Intervals with all transactions.
    Intervals {
        /// How many of them are in the rows.
        transactions: u64,
    },
    /// Tries of all transactions.
    Tries {
        /// How many there were.
        tries: u64,
    },
    /// Intervals of the window with the latencies of processed transactions.
    IntervalsOfProcessed {
        /// How many transactions are in the rows.
        transactions: u64,
    },
    /// Intervals in pgbench's format.
    IntervalsOfAttempted {
        /// How many transactions are in the rows.
        transactions: u64,
    },
}

/// Shares of the time of all clients, together 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeShares {
    /// Connecting and disconnecting.
    pub connecting: f64,
    /// In transactions.
    pub in_transactions: f64,
    /// Waiting for slots of the schedule.
    pub waiting_for_slots: f64,
    /// The rest: in pgmark itself.
    pub in_pgmark: f64,
}

impl Measured {
    /// tps = Σ over clients of n_k / a_k, per second.
    pub fn tps(&self) -> f64 {
        self.sum_over_clients(ClientResult::measured_ns, |client| {
            client.processed() as f64
        })
    }

    /// As [`Measured::tps`], of one script. Those of all scripts add up to it.
    pub fn tps_of_script(&self, script: usize) -> f64 {
        self.sum_over_clients(ClientResult::measured_ns, |client| {
            client.processed_by_script[script] as f64
        })
    }

    /// Σ n_k / (a_k − c_k), per second: computed, not measured, since without reconnecting backends
    /// would have warm caches.
    pub fn tps_excluding_reconnection(&self) -> f64 {
        self.sum_over_clients(ClientResult::connected_ns, |client| {
            client.processed() as f64
        })
    }

    /// Σ over clients of time in transactions / (a_k − c_k). By Little's law near the number of
    /// clients in a closed loop; the shortfall is time that clients spent in pgmark.
    pub fn average_concurrency(&self) -> f64 {
        self.sum_over_clients(ClientResult::connected_ns, |client| {
            client.in_transactions_ns as f64 / 1e9
        })
    }

    /// Shares of Σ (the client's own last end − start_k); `None` where that is nothing.
    pub fn time_of_a_client(&self) -> Option<TimeShares> {
        let sum = |nanos: fn(&ClientResult) -> u64| {
            self.clients
                .iter()
                .map(|client| nanos(client) as f64)
                .sum::<f64>()
        };
        let whole = sum(|client| client.last_end.nanos_since(client.starts));
        if whole == 0.0 {
            return None;
        }
        let connecting = sum(|client| client.connecting_ns) / whole;
        let in_transactions = sum(|client| client.in_transactions_ns) / whole;
        let waiting_for_slots = sum(|client| client.slot_wait_ns) / whole;
        let known = connecting + in_transactions + waiting_for_slots;
        Some(TimeShares {
            connecting,
            in_transactions,
            waiting_for_slots,
            in_pgmark: (1.0 - known).max(0.0),
        })
    }

    /// W0 − first connect started; `None` where nothing connected before the start.
    pub fn initial_connection_time(&self) -> Option<Duration> {
        Some(self.window?.released_at - self.first_connect_at?)
    }

    /// Time of all clients inside `\sleep`.
    pub fn think_time(&self) -> Duration {
        Duration::from_nanos(self.clients.iter().map(|client| client.think_ns).sum())
    }

    /// Noise of throughput and mean latency within the window.
    pub fn noise(&self) -> Option<Noise> {
        Noise::of(&self.series, self.window?.nanos())
    }

    /// Largest share of the window that a thread did not spend waiting; `None` if no thread said.
    pub fn busiest_thread(&self) -> Option<f64> {
        self.workers
            .iter()
            .filter(|worker| worker.observed_ns > 0)
            .map(|worker| worker.busy_ns as f64 / worker.observed_ns as f64)
            .max_by(f64::total_cmp)
    }

    /// Mean time from the stamp of a wake-up until a thread acted on it, ns; `None` if there were
    /// no wake-ups.
    pub fn client_delay_mean_ns(&self) -> Option<f64> {
        let wakeups: u64 = self.workers.iter().map(|worker| worker.delays).sum();
        (wakeups > 0).then(|| self.client_delay_sum_ns() as f64 / wakeups as f64)
    }

    /// Σ client delay over all threads, ns.
    pub fn client_delay_sum_ns(&self) -> u64 {
        self.workers.iter().map(|worker| worker.delay_sum_ns).sum()
    }

    /// Σ over clients of `amount` per second of `time_ns`; a client without time adds nothing.
    fn sum_over_clients(
        &self,
        time_ns: fn(&ClientResult) -> u64,
        amount: impl Fn(&ClientResult) -> f64,
    ) -> f64 {
        self.clients
            .iter()
            .filter(|client| time_ns(client) > 0)
            .map(|client| amount(client) * 1e9 / time_ns(client) as f64)
            .sum()
    }
}

/// Results for tests to vary.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::collector::testing::Story;

    /// Facts of a plain run on one thread, of which nothing else is known.
    pub(crate) fn facts(clients: u32, stop: StopRule) -> Facts {
        Facts {
            program: Program::Pgmark,
            build: Build::own(),
            server_version: String::new(),
            scripts: Vec::new(),
            scale: 1,
            partitions: None,
            query_mode: QueryMode::Simple,
            clients,
            threads: 1,
            max_tries: Some(1),
            stop,
            schedule: None,
            latency_limit: None,
            connect_per_transaction: false,
            reconnect_on_loss: false,
            lost_writes: None,
            continue_on_error: false,
            exit_on_abort: false,
            progress: false,
            summary: SummaryPlan::default(),
            connection: None,
            server: None,
            interrupted: None,
            exhausted_values: Vec::new(),
            seed: 42,
            logs_moments: false,
            wall_step_ns: 0,
        }
    }

    /// A run of one client with three transactions, `-t 3`.
    pub(crate) fn three_transactions() -> RunResult {
        let stop = StopRule::Transactions(3);
        let mut story = Story::new(1, stop);
        story.works(0, 10, 0, 30);
        story.done(0, ClientEnd::Finished, 30);
        RunResult {
            facts: facts(1, stop),
            measured: story.tell(),
            place: None,
        }
    }
}
