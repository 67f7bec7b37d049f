//! What may be typed: the options in groups, in the order in which the help shows them. A field's
//! first line is its help. What it means for the run is decided in `into_plan`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser};

use super::values::{self, LogFormatName, Percentiles, Preparations, SeedSource, Steps};
use crate::condition::Condition;
use crate::plan::{LoadMode, LogTime, PartitionMethod, QueryMode};

/// The command line as typed.
#[derive(Debug, Parser)]
#[command(
    name = "pgmark",
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true
)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub connection: Connection,
    #[command(flatten)]
    pub work: Work,
    #[command(flatten)]
    pub pressure: Pressure,
    #[command(flatten)]
    pub length: RunLength,
    #[command(flatten)]
    pub errors: OnErrors,
    #[command(flatten)]
    pub show: Show,
    #[command(flatten)]
    pub keep: Keep,
    #[command(flatten)]
    pub tables: TableOptions,
    #[command(flatten)]
    pub cluster: TemporaryCluster,
    #[command(flatten)]
    pub about: About,
}

/// Which server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct Connection {
    /// Database to connect to, or a whole connection string (postgresql://... or key=value ...); the default is $PGDATABASE, else the user's name.
    #[arg(value_name = "DBNAME")]
    pub positional: Option<String>,
    /// Database to connect to, the same as DBNAME without an option, with the same default.
    #[arg(short = 'd', long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Host name or address of the server, or the directory of its Unix-domain socket; the default is $PGHOST, else the local socket.
    #[arg(short = 'h', long, value_name = "HOST")]
    pub host: Option<String>,
    /// Port of the server; the default is $PGPORT, else 5432.
    #[arg(short = 'p', long, value_name = "PORT")]
    pub port: Option<String>,
    /// User to connect as; the default is $PGUSER, else the name of the operating system's user.
    #[arg(short = 'U', long, value_name = "USER")]
    pub username: Option<String>,
    /// SQL commands that each new connection of a client begins with, such as SET, or @ and the name of a file with them; the time they take is in no figure of transactions; none by default.
    #[arg(long, value_name = "SQL|@FILE")]
    pub on_connect: Option<OsString>,
}

/// What the clients execute.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to run")]
pub(super) struct Work {
    /// Run a builtin script: tpcb-like (the default if no script is given), simple-update or select-only, or an unambiguous beginning; a number after @ is its weight among several scripts (1 by default); "list" shows them.
    #[arg(short = 'b', long, value_name = "NAME[@W]")]
    pub builtin: Vec<OsString>,
    /// Run the script in this file (- is the standard input) in place of a builtin one; a number after the last @ is its weight (1 by default).
    #[arg(short = 'f', long, value_name = "FILE[@W]")]
    pub file: Vec<OsString>,
    /// Run the builtin script simple-update, the same as -b simple-update.
    #[arg(short = 'N', long, action = ArgAction::Append, num_args = 0, default_missing_value = "simple-update", value_name = "")]
    pub skip_some_updates: Vec<OsString>,
    /// Run the builtin script select-only, the same as -b select-only.
    #[arg(short = 'S', long, action = ArgAction::Append, num_args = 0, default_missing_value = "select-only", value_name = "")]
    pub select_only: Vec<OsString>,
    /// Define a variable for the scripts of all clients.
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    pub define: Vec<OsString>,
    /// How statements are sent: simple (the default, variables put in as text), extended (with parameters) or prepared (also parsed only once a connection).
    #[arg(short = 'M', long, value_name = "MODE", value_parser = values::query_mode)]
    pub protocol: Option<QueryMode>,
    /// Do not vacuum before the run, nor truncate pgbench_history; with -i, leave out the step v.
    #[arg(short = 'n', long)]
    pub no_vacuum: bool,
    /// Vacuum and analyze pgbench_accounts too before the run.
    #[arg(short = 'v', long)]
    pub vacuum_all: bool,
    /// What else is done before the run, untimed and in this order, separated by commas: vacuum (and analyze the database), checkpoint, prewarm (read tables and indexes into shared buffers), reset (statistics of the database); nothing by default.
    #[arg(long, value_name = "LIST", value_parser = values::preparations)]
    pub before: Option<Preparations>,
    /// Seed of all random numbers: a number, "time" (the default) or "rand"; the same number gives the same statements as pgbench; without the option, $PGBENCH_RANDOM_SEED is asked.
    #[arg(long, value_name = "SEED", value_parser = values::seed)]
    pub random_seed: Option<SeedSource>,
    /// Print the text of a builtin script to stderr, as pgbench does, and exit.
    #[arg(long, value_name = "NAME")]
    pub show_script: Option<OsString>,
}

/// How hard the server is driven.
#[derive(Debug, Args)]
#[command(next_help_heading = "How hard")]
pub(super) struct Pressure {
    /// Number of clients, each with a connection of its own; 1 by default.
    #[arg(short = 'c', long, value_name = "N", value_parser = values::count)]
    pub client: Option<u32>,
    /// Number of worker threads that serve the clients, at most one a client; with -i, of connections that fill tables and build keys at the same time; 1 by default.
    #[arg(short = 'j', long, value_name = "N", value_parser = values::count)]
    pub jobs: Option<u32>,
    /// Make a new connection for each transaction.
    #[arg(short = 'C', long)]
    pub connect: bool,
    /// Begin transactions by a random schedule of this many a second in all, or with a unit (0.2, 6/min, 100/h); latency then counts from when a transaction was due; by default they begin as soon as a client is free.
    #[arg(short = 'R', long, value_name = "RATE", value_parser = values::rate)]
    pub rate: Option<f64>,
}

/// When the run ends.
#[derive(Debug, Args)]
#[command(next_help_heading = "How long")]
pub(super) struct RunLength {
    /// Begin transactions for this time, in seconds or with a unit (90, 1.5s, 5m), counted from when all clients are connected; without it, -t decides.
    #[arg(short = 'T', long, value_name = "TIME", value_parser = values::seconds)]
    pub time: Option<Duration>,
    /// Number of transactions that each client runs; 10 by default if there is no -T.
    #[arg(short = 't', long, value_name = "N", value_parser = values::count)]
    pub transactions: Option<u32>,
    /// Let all clients run for this time, in seconds or with a unit, before the measured time begins; these transactions are logged and in no figure; 0 by default.
    #[arg(long, value_name = "TIME", value_parser = values::seconds_or_none)]
    pub warmup: Option<Duration>,
    /// Let the clients begin one after the other, evenly over this time, in seconds or with a unit, before the measured time and the warm-up begin; 0 by default.
    #[arg(long, value_name = "TIME", value_parser = values::seconds_or_none)]
    pub ramp_clients: Option<Duration>,
    /// Cancel the transactions that are still under way this long after the end, in seconds or with a unit; without it they may finish.
    #[arg(long, value_name = "TIME", value_parser = values::seconds_or_none)]
    pub finish_within: Option<Duration>,
}

/// What happens after an error.
#[derive(Debug, Args)]
#[command(next_help_heading = "On errors")]
pub(super) struct OnErrors {
    /// How often in all a transaction is tried that ends with a serialization or deadlock error; 1 by default, 0 is no limit and needs -L or -T.
    #[arg(long, value_name = "N", value_parser = values::from_zero)]
    pub max_tries: Option<u32>,
    /// Count a transaction that the server ends with any error as failed, and let its client go on.
    #[arg(long)]
    pub continue_on_error: bool,
    /// Let a client that loses its connection make another one and go on, for as long as the run lasts, and report each outage; without it, such a client is aborted.
    #[arg(long)]
    pub reconnect_on_loss: bool,
    /// End the run when the first client is aborted, with a summary of what was done until then.
    #[arg(long)]
    pub exit_on_abort: bool,
    /// Tell each error that makes a transaction fail or be tried again, on stderr.
    #[arg(long)]
    pub verbose_errors: bool,
}

/// What is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to show")]
pub(super) struct Show {
    /// Count transactions that take longer than this, in milliseconds or with a unit (100, 2s); no limit by default.
    #[arg(short = 'L', long, value_name = "TIME", value_parser = values::milliseconds)]
    pub latency_limit: Option<Duration>,
    /// Show how many transactions failed of serialization, deadlocks and other errors.
    #[arg(long)]
    pub failures_detailed: bool,
    /// Show the mean time of each command of the scripts and its percentiles, in milliseconds, and how often it failed.
    #[arg(short = 'r', long)]
    pub report_per_command: bool,
    /// Show these percentiles of latency, in percent and separated by commas; 50,90,95,99,99.9 by default.
    #[arg(
        long,
        alias = "percentiles",
        value_name = "LIST",
        value_parser = values::percentiles
    )]
    pub latency_percentiles: Option<Percentiles>,
    /// End with status 3 if the run meets this condition, as in 'p99 > 10ms' (or p99=10ms: at most), 'tps < 1000' (or tps=1000: at least); mean, max, response_p99, failed, achieved, within_limit and skipped are figures, too; can be given several times; no condition by default.
    #[arg(long, value_name = "COND", value_parser = values::condition)]
    pub fail_if: Vec<Condition>,
    /// Show besides what versions 13 to 18 of pgbench would have printed for this run, to go on with an archive of their figures.
    #[arg(long)]
    pub pgbench_figures: bool,
    /// Tell each thing that the clients do, on stderr.
    #[arg(long)]
    pub debug: bool,
    /// Print a line of progress each time this many seconds (or, with a unit, this time) have passed; no such lines by default.
    #[arg(short = 'P', long, value_name = "TIME", value_parser = values::interval)]
    pub progress: Option<Duration>,
    /// Only print what would be done: the effective workload and each script's commands as they would be sent, or with -i the rows, bytes and statements; nothing is done, and no server is needed.
    #[arg(long)]
    pub dry_run: bool,
    /// Tell the time of those lines in seconds since 1970, not since the beginning of the measured time.
    #[arg(long)]
    pub progress_timestamp: bool,
}

/// What is kept in files.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to keep")]
pub(super) struct Keep {
    /// Write a row for every transaction to a CSV file, pgmark_log.PID.csv by default; it is compressed if its name ends in .gz.
    #[arg(short = 'l', long)]
    pub log: bool,
    /// Name that file PREFIX.PID.csv; pgmark_log by default; needs -l.
    #[arg(long, value_name = "PREFIX")]
    pub log_prefix: Option<OsString>,
    /// Write it to exactly this file, replacing it; implies -l; without it, the prefix names the file.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// How the log looks: csv (the default), or pgbench: its lines without a header, one file a thread (PREFIX.PID, PREFIX.PID.1, ...).
    #[arg(long, value_name = "FORMAT", value_parser = values::log_format)]
    pub log_format: Option<LogFormatName>,
    /// How the last column of a CSV log tells when a transaction ended: utc (the default), local, epoch (microseconds since 1970), or none for no such column.
    #[arg(long, value_name = "TIME", value_parser = values::log_time)]
    pub log_time: Option<LogTime>,
    /// Go on in a new file after this many rows of a CSV log: PATH.1.csv, PATH.2.csv and so on, each with its header; one file by default.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub log_split_rows: Option<u32>,
    /// Log only this share of the transactions, above 0 and at most 1; the same random seed chooses the same ones; 1, all of them, by default; needs -l.
    #[arg(long, value_name = "SHARE", value_parser = values::sampling_rate)]
    pub sampling_rate: Option<f64>,
    /// Log a row for each interval of this many seconds (or, with a unit, this time) in place of one for each transaction, the default; with --interval-csv, the length of its intervals, 1 second by default.
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    pub aggregate_interval: Option<Duration>,
    /// Write a CSV row for each second of the run to this file (or for each --aggregate-interval), replacing it; with several scripts, a row for each of them too; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub interval_csv: Option<PathBuf>,
    /// Write a CSV row for each try of a transaction to this file, replacing it, whatever --sampling-rate says; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub log_tries: Option<PathBuf>,
    /// Write the whole result to this file as JSON when the run is over, replacing it; pgmark report reads it; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page for a browser to this file when the run is over, replacing it: figures, charts over time, tables, settings, all in one file; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Append a CSV row with the figures of the run to this file when it is over, with a header if the file is new; several runs may do so at once; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub summary_csv: Option<PathBuf>,
    /// Write an HDR interval log to this file, replacing it: the latencies of each second of the measured window, for programs that read HDR histograms; no such file by default.
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Call the run like this in the result; no name by default.
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Note in the result that NAME is VALUE for this run; can be given several times; nothing by default.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::tag)]
    pub tag: Vec<(String, String)>,
}

/// The tables of the builtin scripts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tables")]
pub(super) struct TableOptions {
    /// Create and fill the tables of the builtin scripts (pgbench_accounts and its like, dropped first if they exist) instead of running a benchmark.
    #[arg(short = 'i', long)]
    pub initialize: bool,
    /// Size of the tables: 100,000 accounts for each unit, about 15 MB; 1 by default; in a run, what scripts of your own find in :scale.
    #[arg(short = 's', long, value_name = "N", value_parser = values::count)]
    pub scale: Option<u32>,
    /// Steps of -i in their order, repeats allowed: d drops the tables, t creates them, g fills them with rows sent from here, G with rows made by the server, v vacuums, p makes primary keys, f foreign keys; dtgvp by default.
    #[arg(short = 'I', long, value_name = "STEPS", value_parser = values::init_steps)]
    pub init_steps: Option<Steps>,
    /// Say how the filling gets on every 5 seconds only, not every 100,000 rows.
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Make foreign keys between the tables, which is step f at the end of -i.
    #[arg(long)]
    pub foreign_keys: bool,
    /// Number of partitions of pgbench_accounts; 0, the default, is none.
    #[arg(long, value_name = "N", value_parser = values::from_zero)]
    pub partitions: Option<u32>,
    /// What decides the partition of an account: range (the default, equal ranges of numbers) or hash; needs --partitions.
    #[arg(long, value_name = "METHOD", value_parser = values::partition_method)]
    pub partition_method: Option<PartitionMethod>,
    /// How full the pages of the tables are made, 10 to 100 percent; 100 by default.
    #[arg(short = 'F', long, value_name = "PERCENT", value_parser = values::fillfactor)]
    pub fillfactor: Option<u32>,
    /// Tablespace of the tables; the server's default if not given.
    #[arg(long, value_name = "NAME")]
    pub tablespace: Option<String>,
    /// Tablespace of the primary keys; the server's default if not given.
    #[arg(long, value_name = "NAME")]
    pub index_tablespace: Option<String>,
    /// Leave all tables out of the write-ahead log: faster, but emptied by a crash of the server.
    #[arg(long)]
    pub unlogged_tables: bool,
    /// Schema of the tables, created by step t if it is missing; in a run, where the scripts look for tables; the first of search_path if not given.
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,
    /// How step g sends rows: copy (the default) or insert, for servers that have no COPY.
    #[arg(long, value_name = "MODE", value_parser = values::load_mode)]
    pub init_mode: Option<LoadMode>,
    /// Commit each time this many rows are loaded, for servers that refuse large transactions; without it a table is loaded in one.
    #[arg(long, value_name = "ROWS", value_parser = values::count)]
    pub init_batch: Option<u32>,
}

/// A server made for one run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Temporary cluster")]
pub(super) struct TemporaryCluster {
    /// Start a throwaway PostgreSQL in a private directory, create the tables in it at the scale -s, run, and remove all of it.
    #[arg(long)]
    pub temp_cluster: bool,
    /// Directory of its server programs (initdb, postgres); the default is $PATH, else the newest version that the distribution has installed.
    #[arg(long, value_name = "DIR")]
    pub bindir: Option<PathBuf>,
    /// Set a configuration parameter of it; may be given several times; what is not set here, durability too, stays at the server's default.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::setting)]
    pub temp_config: Vec<(String, String)>,
    /// Leave it running at the end, and print how to connect to it.
    #[arg(long)]
    pub temp_keep: bool,
}

/// About the program.
#[derive(Debug, Args)]
#[command(next_help_heading = "About the program")]
pub(super) struct About {
    /// Print the version and exit.
    #[arg(short = 'V', long)]
    pub version: bool,
    /// Print this help and exit.
    #[arg(short = '?', long)]
    pub help: bool,
    /// Print where suite.mk lies, which a Makefile includes to run a matrix of benchmarks, and exit.
    #[arg(long)]
    pub suite_mk: bool,
}
