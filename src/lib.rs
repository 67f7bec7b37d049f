//! pgmark: a PostgreSQL benchmarking client, a drop-in for pgbench whose figures are right.
//!
//! # One straight line
//!
//! ```text
//! argv ─ options ─▶ Plan ─ run ─▶ N worker threads ═ batches over a channel ═▶ 1 collector thread ─▶ RunResult ─ report ─▶ text
//!                (scripts parsed,  (each one mio Poll,                         (histograms, CSV log,
//!                 seed drawn)       its clients, its timers)                    progress, summary)
//! ```
//!
//! Arrows never go back. The only things that flow the other way are "stop" (an atomic and a
//! waker) and emptied batches. The *control plane* (options, initialisation, reports, throwaway
//! cluster) may be slow and friendly and uses the blocking `postgres` crate. The *data plane*
//! (client, session, recorder) allocates nothing, formats nothing and takes no lock in steady
//! state, but for the draw of a slot under a rate ([`schedule`]). What is rare may: the first error
//! of each kind is told, and told once over all threads.
//!
//! The exit status is what [`run_program`] returns, but for one way out: a server that does not
//! react to the cancelling of a control statement is left by [`run::Signals`], at the third signal.
//!
//! # Rooms
//!
//! | module | what for | what never |
//! |---|---|---|
//! | [`options`] | what was typed becomes a [`plan::Plan`] | sockets, threads |
//! | [`plan`] | what will be done, fully resolved | clap, I/O |
//! | [`program`] | the name that it was called by: pgmark's or pgbench's | measuring |
//! | [`conninfo`] | libpq's view of a server to connect to; in which order to try | sockets, names looked up |
//! | [`control`], [`server`], [`init`], [`cluster`] | the control plane: our own connection, what it learns, tables, throwaway server | workers |
//! | [`console`] | standard error, but for the time of a run | |
//! | [`time`] | the only reader of the clock | everything else |
//! | [`random`] | generator, streams, distributions, bit for bit those of pgbench | time |
//! | [`schedule`] | when transactions are due under a rate | sockets, reports |
//! | [`script`] | text in, commands out; evaluation | I/O, time, protocol |
//! | [`protocol`] | a session without a socket: bytes in, bytes and events out | sockets, time |
//! | [`context`] | what all workers of a run share: the plan, and what the server told | threads |
//! | [`told`] | what is told once in a run and otherwise counted | printing |
//! | [`values`] | files of values for scripts: read before the run, rows handed out during it | formatting |
//! | [`tls`] | encryption as libpq's settings ask for it: whom to believe, what SCRAM binds to | sockets |
//! | [`transport`] | one non-blocking socket, encrypted or not, until a session can begin on it; beside the loop, names looked up and cancellations sent | clients, scripts |
//! | [`event`] | plain records from worker to collector; latency and its siblings are methods there | anything that allocates |
//! | [`worker`] | a thread's loop, its clients as state machines, its timers | files, stdout |
//! | [`stats`] | distributions, counts, noise; `record` and `merge` are the only writers | threads, output |
//! | [`collector`] | reports in; log, progress and [`result::Measured`] out | sockets, scripts |
//! | [`result`] | a finished run as data; each figure is a method with its formula | formatting |
//! | [`condition`] | conditions that a run must not meet, and whether a result does | |
//! | [`report`] | a result to a writer | clocks, stdout |
//! | [`archive`] | a result as a JSON file, written whole or not at all, and read back | |
//! | [`page`] | a result as a page for a browser | files, network |
//! | [`compare`] | whether repeats of two kinds of run differ, and as what it is shown | files |
//! | [`run`] | prepare, start, watch, join, conclude; the exit status | parsing |
//! | [`beside`] | work that may block for ever, on a thread that is left to itself when time is over | |
//! | [`users`] | the users of this machine | directory services |
//! | [`printable`] | texts of somebody else, without what steers a terminal | |
//! | [`spreadsheet`] | texts as cells that no spreadsheet calculates | |
//! | [`spelling`] | which name was meant by a word that is none | names |
//! | [`sqlstate`] | codes of the server's errors | |
//! | [`error`] | errors by cause | formatting |
//!
//! # Invariants
//!
//! - Connecting never enters a latency, and a slow connect never shortens a run: all clients connect
//!   concurrently before the measured window begins ([`worker`], `run::supervise`).
//! - Replies are stamped when the poll reports them, not when the thread gets round to them; what
//!   lies between is reported as client delay ([`worker`]).
//! - Everything that was attempted or aborted has exactly one record; the sums are checked at the
//!   end of each run ([`result::RunResult::check_books`]).
//! - The collector is the only writer of standard error while workers run.
//! - Whatever the peer decides is bounded ([`protocol`]).
//! - One stream of random numbers for each purpose, drawn in pgbench's order ([`random::Seeds`]).
//!
//! # Where tests plug in
//!
//! Source text and a seed ([`script`]); byte arrays, also cut anywhere ([`protocol`]); bytes and
//! moments (the clients in [`worker`], whole runs in virtual time); a list of reports ([`collector`]); a
//! stored result ([`report`], [`compare`], [`page`]); a table of arguments ([`options`]); and, under `tests/`, the program
//! against a real server.
//!
//! # Where do I add …?
//!
//! - *A script function*: one row in [`script::FUNCTIONS`], its function and a test under it.
//! - *A meta command*: a variant of [`script::CommandKind`] and its row in the keyword table; the
//!   compiler then asks for its arm in the client.
//! - *An option*: a field with full-sentence help in its group of [`options`], a row in
//!   `options::modes`, a field in [`plan`], one line in `into_plan`, rows in the option table test, a
//!   line in the README.
//! - *A column of summaries*: a row of `archive::summary_row::COLUMNS`. *A figure that is compared*: a row of
//!   `compare::figures`. *A chart*: one more in `page::charts`; the script draws whatever is there.
//! - *Something that hears the run go on*: an implementation of [`collector::Listener`], kept by
//!   [`collector::Keepers`]; what wants whole intervals is a sink of `collector::by_interval`.
//! - *A log column*: the field list in `collector::log::transactions`, `tries` or `intervals`; header
//!   and row come from it.
//! - *Something the main thread tells while a run goes on*: a variant of [`event::Announcement`]; it
//!   has a channel of its own, which never waits.
//! - *A kind of failure, an initialisation step, a way to authenticate*: a variant of the enum; no
//!   wildcard arms over our own enums, so the compiler gives the list of places.

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("pgmark runs on Linux on x86-64 and aarch64 only");

pub mod archive;
pub mod beside;
pub mod cluster;
pub mod collector;
pub mod compare;
pub mod condition;
pub mod conninfo;
pub mod console;
pub mod context;
pub mod control;
pub mod error;
pub mod event;
pub mod init;
pub mod options;
pub mod page;
pub mod plan;
pub mod printable;
pub mod program;
pub mod protocol;
pub mod random;
pub mod report;
pub mod result;
pub mod run;
pub mod schedule;
pub mod script;
pub mod server;
pub mod spelling;
pub mod spreadsheet;
pub mod sqlstate;
pub mod stats;
pub mod time;
pub mod tls;
pub mod told;
pub mod transport;
pub mod users;
pub mod values;
pub mod worker;

use std::ffi::OsString;

use conninfo::ProcessEnvironment;
use console::Console;
use program::Program;
use run::{ExitStatus, Surroundings};
use time::Clock;

/// The program: the arguments, the first of which is its name, in; the exit status out.
pub fn run_program(argv: impl Iterator<Item = OsString>) -> ExitStatus {
    let mut argv = argv.peekable();
    let program = argv
        .peek()
        .map_or(Program::Pgmark, |name| Program::called(name));
    let console = Console::stderr(program);
    let done = options::parse(argv, &ProcessEnvironment).and_then(|plan| {
        run::execute(
            plan,
            &mut Surroundings {
                stdout: &mut std::io::stdout(),
                console: console.clone(),
                clock: Clock::start(),
            },
        )
    });
    done.unwrap_or_else(|error| {
        console.report(&error);
        ExitStatus::of_error(&error)
    })
}
