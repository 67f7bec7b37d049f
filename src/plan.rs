//! What will be done: fully resolved and immutable. `options` makes it from what was typed; from
//! here on nothing asks for an option, an environment variable or a default again.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::conninfo::{Presentation, Target};
use crate::event::{Failure, SqlState};
use crate::program::Program;
use crate::script::ScriptSet;

/// What the program was called for. An option that makes no sense in a mode was refused before.
#[derive(Debug)]
pub enum Plan {
    /// Drive load and report.
    Run(Box<RunPlan>),
    /// Create and fill the tables.
    Init(Box<InitPlan>),
    /// Tell of runs that are over (`pgmark report`).
    Report(ReportPlan),
    /// Print where `suite.mk` lies.
    SuiteMk,
    /// Compare runs that are over.
    Compare(ComparePlan),
    /// Print a text and exit with 0: help, version, a list of scripts.
    Show(Text),
}

/// A text to print and the stream that it belongs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Help and version.
    Stdout(String),
    /// Lists of builtins and their texts, as pgbench prints them.
    Stderr(String),
}

/// Reports of runs that are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPlan {
    /// Their result files, at least one.
    pub files: Vec<PathBuf>,
    /// The file that gets their rows (`--csv`) in place of the text that is printed; `-` is standard
    /// output.
    pub csv: Option<PathBuf>,
    /// The same of a page (`--html`).
    pub html: Option<PathBuf>,
}

/// A comparison of runs that are over.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparePlan {
    /// Which runs.
    pub runs: Compared,
    /// Also those that did not do the same work.
    pub allow_different: bool,
    /// Percent by which a figure may be worse (`--fail-if-worse`).
    pub fail_if_worse: Option<f64>,
    /// The file that gets it as CSV in place of the text; `-` is standard output.
    pub csv: Option<PathBuf>,
    /// The same as JSON.
    pub json: Option<PathBuf>,
    /// The same as a page.
    pub html: Option<PathBuf>,
}

/// Which runs are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Those of these result files, at least one a side.
    Sides {
        /// Of the base.
        base: Vec<PathBuf>,
        /// Of what is compared with it.
        new: Vec<PathBuf>,
    },
    /// Those of all these files, of which there must be two kinds.
    Grouped {
        /// What tells them apart.
        by: Grouping,
        /// The first one is of the base.
        files: Vec<PathBuf>,
    },
}

/// What tells the sides of a comparison apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// The label of the run.
    Label,
    /// The value of a tag.
    Tag(String),
}

/// A benchmark run.
#[derive(Debug)]
pub struct RunPlan {
    /// The name that the program was called by.
    pub program: Program,
    /// The server under test.
    pub server: ServerChoice,
    /// What the clients execute.
    pub scripts: ScriptSet,
    /// How hard and how long.
    pub load: Load,
    /// How statements are sent.
    pub query_mode: QueryMode,
    /// SQL that each connection begins with, untimed.
    pub on_connect: Option<Vec<u8>>,
    /// `-s`: the scale stated for custom scripts; builtin scripts count `pgbench_branches`.
    pub scale: Option<u32>,
    /// What is vacuumed before the run.
    pub vacuum: Vacuum,
    /// What else is done before the run, in this order (`--before`).
    pub before: Vec<Preparation>,
    /// The seed of all random streams.
    pub seed: Seed,
    /// The log of transactions, if one is written.
    pub log: Option<LogPlan>,
    /// The file of intervals, if one is written.
    pub intervals: Option<IntervalPlan>,
    /// The file of tries, if one is written.
    pub tries: Option<TriesPlan>,
    /// The progress line, if one is printed.
    pub progress: Option<ProgressPlan>,
    /// Conditions under which the run counts as failed.
    pub fail_if: Vec<Condition>,
    /// What is kept of the result.
    pub keep: KeepPlan,
    /// What the summary shows.
    pub summary: SummaryPlan,
    /// Report each command of the scripts (`-r`).
    pub per_command: bool,
    /// Each thing that clients do is told on stderr (`--debug`).
    pub debug: bool,
    /// A client that has waited for the server so long is told of, above zero; `None` for never.
    pub long_wait: Option<Duration>,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl RunPlan {
    /// Whether a file is written that has a row for every interval, in our own format.
    pub fn logs_intervals(&self) -> bool {
        let log = self.log.as_ref();
        self.intervals.is_some()
            || log.is_some_and(|log| {
                matches!(
                    (log.format, &log.rows),
                    (LogFormat::Csv(_), LogRows::Intervals(_))
                )
            })
    }

    /// Whether a file is written that tells moments by the calendar or since 1970.
    pub fn logs_moments(&self) -> bool {
        let of_log = self.log.as_ref().is_some_and(|log| match log.format {
            LogFormat::Pgbench(_) => true,
            LogFormat::Csv(style) => match log.rows {
                LogRows::Transactions { .. } => style.time != LogTime::None,
                LogRows::Intervals(_) => false,
            },
        });
        let of_tries = self.tries.as_ref();
        of_log || of_tries.is_some_and(|tries| tries.time != LogTime::None)
    }
}

/// What the summary shows besides what it always does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryPlan {
    /// Failures by kind (`--failures-detailed`).
    pub failures_detailed: bool,
    /// Percentiles of latency, in percent, above 0 and at most 100 (`--latency-percentiles`).
    pub percentiles: Vec<f64>,
    /// What versions of pgbench would have printed for the same run (`--pgbench-figures`).
    pub pgbench_figures: bool,
}

impl Default for SummaryPlan {
    fn default() -> Self {
        SummaryPlan {
            failures_detailed: false,
            percentiles: vec![50.0, 90.0, 95.0, 99.0, 99.9],
            pgbench_figures: false,
        }
    }
}

/// What is kept of the result, and what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepPlan {
    /// The result file (`--json`).
    pub json: Option<PathBuf>,
    /// The page of the run (`--html`).
    pub html: Option<PathBuf>,
    /// The file that gets a row of the summary (`--summary-csv`).
    pub summary_csv: Option<PathBuf>,
    /// The HDR interval log (`--hdr`).
    pub hdr: Option<PathBuf>,
    /// `--label`.
    pub label: Option<String>,
    /// `--tag`, names and values.
    pub tags: Vec<(String, String)>,
    /// What was typed after the name of the program; what looks like a password is masked.
    pub command_line: Vec<String>,
}

impl KeepPlan {
    /// Whether something is made of the run that shows how it went over time.
    pub fn wants_course(&self) -> bool {
        self.json.is_some() || self.html.is_some()
    }

    /// Whether something is made of the run that tells where it took place.
    pub fn wants_place(&self) -> bool {
        self.json.is_some() || self.html.is_some() || self.summary_csv.is_some()
    }
}

/// The log of transactions (`-l`).
#[derive(Clone, Debug, PartialEq)]
pub struct LogPlan {
    /// Where. A name that ends in `.gz` asks for compression; further files get a number.
    pub path: PathBuf,
    /// What it looks like.
    pub format: LogFormat,
    /// What it has a row for.
    pub rows: LogRows,
}

/// What a log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// CSV with a header, one file for the run.
    Csv(CsvStyle),
    /// pgbench's lines, one file a thread.
    Pgbench(PgbenchFields),
}

/// How a CSV log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvStyle {
    /// How moments are told.
    pub time: LogTime,
    /// Go on in a new file after so many rows, at least 1.
    pub rows_each_file: Option<u64>,
}

/// How a log tells moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTime {
    /// Date and time in UTC.
    Utc,
    /// Date and time in the system's time zone.
    Local,
    /// Microseconds since 1970.
    Epoch,
    /// Not at all, but for the time since the window began.
    None,
}

/// Which fields pgbench's lines have; they depend on the options of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgbenchFields {
    /// The schedule lag (`--rate`).
    pub lag: bool,
    /// Retries (`--max-tries` other than 1).
    pub retries: bool,
    /// The kind of a failure (`--failures-detailed`), not the word `failed`.
    pub failures_detailed: bool,
    /// The sixteenth field of an aggregate (`--continue-on-error`).
    pub other_failures: bool,
}

/// What a log has a row for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogRows {
    /// Every transaction, or with a sampling rate (above 0, at most 1) that share of them.
    Transactions {
        /// The share.
        sampling_rate: Option<f64>,
    },
    /// Every interval of this length; for pgbench's format whole seconds.
    Intervals(Duration),
}

/// The file of intervals (`--interval-csv`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalPlan {
    /// Where. A name that ends in `.gz` asks for compression.
    pub path: PathBuf,
    /// Time from row to row.
    pub length: Duration,
}

/// The file of tries (`--log-tries`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriesPlan {
    /// Where. A name that ends in `.gz` asks for compression.
    pub path: PathBuf,
    /// How moments are told.
    pub time: LogTime,
}

/// The progress line (`-P`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressPlan {
    /// Time from line to line.
    pub interval: Duration,
    /// It tells the time since 1970 (`--progress-timestamp`).
    pub unix_time: bool,
    /// It ends with a percentile, which pgbench's does not.
    pub percentile: bool,
}

/// Which server.
#[derive(Debug)]
pub enum ServerChoice {
    /// One that is there already.
    Given(Box<Target>),
    /// A throwaway cluster, started and filled for this run and removed after it.
    Temporary {
        /// How it is made.
        cluster: ClusterPlan,
        /// How clients present themselves to it.
        presentation: Presentation,
    },
}

/// A throwaway cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPlan {
    /// Directory of the server binaries; else PATH, else the distribution's version directories.
    pub bindir: Option<PathBuf>,
    /// Configuration settings, in the order given; later ones win.
    pub config: Vec<(String, String)>,
    /// Leave it running at the end and say how to connect.
    pub keep: bool,
    /// Scale of the tables that are created in it.
    pub scale: u32,
    /// Whether to say less while the tables are filled.
    pub quiet: bool,
}

/// How hard and how long the server is driven.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Number of worker threads, 1 to `clients`.
    pub threads: u32,
    /// When it ends.
    pub stop: StopRule,
    /// When transactions begin.
    pub pacing: Pacing,
    /// What comes before the measured window.
    pub lead_in: LeadIn,
    /// After the window's end, transactions under way may finish for so long; `None` is no bound.
    pub finish_within: Option<Duration>,
    /// A new connection for each transaction (`-C`).
    pub reconnect: bool,
    /// A client that loses its connection makes another one and goes on (`--reconnect-on-loss`).
    pub reconnect_on_loss: bool,
    /// Transactions slower than this are counted as late.
    pub latency_limit: Option<Duration>,
    /// Times a transaction may be started in all; `None` is unlimited.
    pub max_tries: Option<u32>,
    /// What an error of the server does.
    pub on_error: OnError,
}

impl Load {
    /// One client that tries each transaction once and begins the next as soon as it can.
    pub fn of_one_client(stop: StopRule) -> Self {
        Load {
            clients: 1,
            threads: 1,
            stop,
            pacing: Pacing::ClosedLoop,
            lead_in: LeadIn::default(),
            finish_within: None,
            reconnect: false,
            reconnect_on_loss: false,
            latency_limit: None,
            max_tries: Some(1),
            on_error: OnError::default(),
        }
    }
}

/// The clients of a thread: contiguous blocks, each thread taking its share, rounded up, of the
/// clients and threads that remain, as pgbench deals them.
pub fn deal(clients: u32, threads: u32, thread: u32) -> Range<u32> {
    // So those that do not come out even go to the first threads, one each.
    let (each, left) = (clients / threads, clients % threads);
    let first = |thread: u32| thread * each + thread.min(left);
    first(thread)..first(thread + 1)
}

/// When transactions begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// As soon as the client is free.
    ClosedLoop,
    /// By a schedule of so many transactions a second, over all clients; more than 0.
    Rate(f64),
}

/// What comes before the measured window, after all clients have been released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeadIn {
    /// Clients begin one after the other, evenly over this time.
    pub ramp: Duration,
    /// All clients run, and nothing of it is in the figures.
    pub warmup: Duration,
}

impl LeadIn {
    /// From the release of the clients to the beginning of the window.
    pub fn total(&self) -> Duration {
        self.ramp + self.warmup
    }
}

impl OnError {
    /// Whether an error of the server with this SQLSTATE fails the transaction and leaves the
    /// client alive; others end the client.
    pub fn fails(&self, sqlstate: SqlState) -> bool {
        match Failure::of(sqlstate) {
            Failure::Serialization | Failure::Deadlock => true,
            Failure::Other => self.go_on,
        }
    }
}

/// What an error of the server does, besides failing or ending what it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnError {
    /// Errors that no repetition cures fail the transaction and leave the client alive.
    pub go_on: bool,
    /// The first aborted client ends the run.
    pub exit: bool,
    /// Each failed try is told.
    pub verbose: bool,
    /// Of failed transactions the first of each SQLSTATE is told.
    pub tell_first: bool,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// After this many transactions of each client, whatever their outcome.
    Transactions(u64),
    /// When this much time has passed since the measured window began.
    Time(Duration),
}

/// How statements are sent (`-M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryMode {
    /// One simple Query message, variables substituted as text.
    Simple,
    /// Unnamed Parse, Bind, Describe, Execute.
    Extended,
    /// Parsed once a connection, then bound and executed by name.
    Prepared,
}

impl QueryMode {
    /// The word used on the command line and in the summary.
    pub fn name(self) -> &'static str {
        match self {
            QueryMode::Simple => "simple",
            QueryMode::Extended => "extended",
            QueryMode::Prepared => "prepared",
        }
    }
}

/// What is vacuumed before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vacuum {
    /// Nothing (`-n`).
    None,
    /// Branches and tellers are vacuumed, history is truncated.
    Default,
    /// Also accounts (`-v`).
    All,
}

/// What can be done with the server before a run, untimed (`--before`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// The whole database is vacuumed and analyzed.
    Vacuum,
    /// A checkpoint, so that the next one is as far away as can be.
    Checkpoint,
    /// Tables and indexes are read into shared buffers, as far as they fit.
    Prewarm,
    /// The statistics of the database begin anew.
    Reset,
}

impl Preparation {
    /// All of them, in an order that makes sense.
    pub const ALL: [Preparation; 4] = [
        Preparation::Vacuum,
        Preparation::Checkpoint,
        Preparation::Prewarm,
        Preparation::Reset,
    ];

    /// The word that stands for it in the list.
    pub fn word(self) -> &'static str {
        match self {
            Preparation::Vacuum => "vacuum",
            Preparation::Checkpoint => "checkpoint",
            Preparation::Prewarm => "prewarm",
            Preparation::Reset => "reset",
        }
    }
}

/// The seed of all random streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The value in use.
    pub value: u64,
    /// Given by the user, so it is reported.
    pub explicit: bool,
    /// The one of the environment, where an option says otherwise: pgbench reports both.
    pub overridden: Option<u64>,
}

/// Creating and filling the tables.
#[derive(Debug)]
pub struct InitPlan {
    /// Where.
    pub target: Target,
    /// The tables to make.
    pub tables: Tables,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// The tables of the builtin scripts and how they are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// In the order given.
    pub steps: Vec<InitStep>,
    /// Rows: one branch, ten tellers and 100,000 accounts for each unit.
    pub scale: u32,
    /// Progress by time (5 s) instead of by rows.
    pub quiet: bool,
    /// What the tables look like to the server.
    pub layout: Layout,
    /// How rows get into them.
    pub loading: Loading,
}

/// What is decided about the tables when they are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The schema that they are in; `None` is the first of the search path.
    pub schema: Option<String>,
    /// Storage parameter of all tables but history, 10 to 100 percent.
    pub fillfactor: u32,
    /// Tablespace of the tables.
    pub tablespace: Option<String>,
    /// Tablespace of the primary keys.
    pub index_tablespace: Option<String>,
    /// Whether the tables are left out of the write-ahead log.
    pub unlogged: bool,
    /// How the accounts are partitioned, if they are.
    pub partitioning: Option<Partitioning>,
}

/// Partitions of the accounts table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitioning {
    /// By what.
    pub method: PartitionMethod,
    /// How many; at least 1 where they are made.
    pub partitions: u32,
}

/// What decides in which partition an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMethod {
    /// Equal ranges of account numbers.
    Range,
    /// A hash of the account number.
    Hash,
}

impl PartitionMethod {
    /// The word that SQL and the summary have for it.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }
    }
}

/// How rows get into the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loading {
    /// How rows that are made here are sent.
    pub mode: LoadMode,
    /// Rows after which is committed; `None` loads all in one transaction.
    pub batch_rows: Option<u32>,
    /// Connections that load and build keys at the same time, at least 1.
    pub connections: u32,
}

/// How rows that are made here are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadMode {
    /// In a stream, frozen where the server allows it.
    Copy,
    /// In INSERT statements of many rows.
    Insert,
}

impl Tables {
    /// Ordinary tables at `scale`, made by `steps` over one connection.
    pub fn plain(steps: Vec<InitStep>, scale: u32) -> Self {
        Tables {
            steps,
            scale,
            quiet: false,
            layout: Layout {
                schema: None,
                fillfactor: 100,
                tablespace: None,
                index_tablespace: None,
                unlogged: false,
                partitioning: None,
            },
            loading: Loading {
                mode: LoadMode::Copy,
                batch_rows: None,
                connections: 1,
            },
        }
    }
}

/// One step of the initialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitStep {
    /// `d`
    DropTables,
    /// `t`
    CreateTables,
    /// `g`: rows made here and sent to the server.
    GenerateClientSide,
    /// `G`: rows made by the server.
    GenerateServerSide,
    /// `v`
    Vacuum,
    /// `p`
    PrimaryKeys,
    /// `f`
    ForeignKeys,
}

impl InitStep {
    /// All steps, in an order that makes sense.
    pub const ALL: [InitStep; 7] = [
        InitStep::DropTables,
        InitStep::CreateTables,
        InitStep::GenerateClientSide,
        InitStep::GenerateServerSide,
        InitStep::Vacuum,
        InitStep::PrimaryKeys,
        InitStep::ForeignKeys,
    ];

    /// The letter that stands for it in `-I`.
    pub fn letter(self) -> char {
        match self {
            InitStep::DropTables => 'd',
            InitStep::CreateTables => 't',
            InitStep::GenerateClientSide => 'g',
            InitStep::GenerateServerSide => 'G',
            InitStep::Vacuum => 'v',
            InitStep::PrimaryKeys => 'p',
            InitStep::ForeignKeys => 'f',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_in_blocks_the_larger_ones_first() {
        let dealt: Vec<_> = (0..3).map(|thread| deal(5, 3, thread)).collect();
        assert_eq!(dealt, [0..2, 2..4, 4..5]);
        assert_eq!(deal(8, 1, 0), 0..8);
        assert_eq!(deal(2, 2, 1), 1..2);
    }

    #[test]
    fn each_thread_takes_its_share_rounded_up_of_what_remains() {
        for (clients, threads) in [(1_u32, 1), (5, 3), (7, 4), (64, 64), (1_000, 7), (11, 10)] {
            let mut next = 0;
            for thread in 0..threads {
                let share = (clients - next).div_ceil(threads - thread);
                assert_eq!(deal(clients, threads, thread), next..next + share);
                next += share;
            }
            assert_eq!(next, clients);
        }
    }
}
