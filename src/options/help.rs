//! The text of `--help` and `--version`.

use clap::Command;

use crate::program::Program;

/// What it is, the forms of the command, four first steps, all options, the exit status.
pub(super) fn help(program: Program, command: &Command) -> String {
    let opening = match program {
        Program::Pgmark => OPENING,
        Program::Pgbench => PGBENCH_OPENING,
    };
    let mut command = command
        .clone()
        .before_help(opening)
        .after_help(EXIT_STATUS)
        .help_template("{before-help}{all-args}{after-help}\n")
        .max_term_width(100);
    command.render_help().to_string()
}

/// The line of `--version`; scripts look for the two version numbers in it.
pub(super) fn version(program: Program) -> String {
    let ours = env!("CARGO_PKG_VERSION");
    match program {
        Program::Pgmark => format!("pgmark {ours} (pgbench 18 compatible)\n"),
        Program::Pgbench => format!(
            "pgbench (PostgreSQL) {} (pgmark {ours})\n",
            Program::PGBENCH_VERSION
        ),
    }
}

const OPENING: &str = "\
pgmark drives load against a PostgreSQL server and measures it. It takes pgbench's options and
scripts; latency and throughput are measured per transaction, whatever connecting costs.

The forms of the command:
  pgmark [OPTIONS] [DBNAME]                 run a benchmark
  pgmark -i [OPTIONS] [DBNAME]              create and fill the tables of the builtin scripts
  pgmark --temp-cluster [OPTIONS]           both, on a throwaway server made for this run
  pgmark report [OPTIONS] RESULT.json...    the summaries of runs that wrote them with --json
  pgmark compare BASE.json NEW.json         whether runs differ, and how sure that is

First steps:
  pgmark --temp-cluster -c 8 -j 2 -T 10     needs nothing but the PostgreSQL programs
  pgmark -i -s 10                           tables for 1,000,000 accounts in your own database
  pgmark -c 8 -j 2 -T 60 -P 5               read and write them for a minute, with progress
  pgmark -S -c 8 -j 2 -T 60 -l              only read, and keep a row for every transaction
The database is the one called like the user, unless DBNAME stands there; createdb makes one. -h, -p
and -U say where the server is and as whom to connect.

Options, in the groups Connection, What to run, How hard, How long, On errors, What to show,
What to keep, Tables, Temporary cluster, About the program. A long name may be cut as long as it is
unambiguous, and options may stand in any order.
";

const PGBENCH_OPENING: &str = "\
pgbench is a benchmarking tool for PostgreSQL. This one is pgmark under that name: pgbench's options
and output, with latency and throughput measured per transaction, whatever connecting costs.

The forms of the command:
  pgbench [OPTIONS] [DBNAME]                run a benchmark
  pgbench -i [OPTIONS] [DBNAME]             create and fill the tables of the builtin scripts

First steps:
  pgbench -i -s 10                          tables for 1,000,000 accounts in your own database
  pgbench -c 8 -j 2 -T 60 -P 5              read and write them for a minute, with progress
  pgbench -S -c 8 -j 2 -T 60 -l             only read, and log every transaction
  pgbench -n -f mine.sql -T 60              a script of your own

A long name may be cut as long as it is unambiguous, and options may stand in any order.
";

const EXIT_STATUS: &str = "\
Exit status:
  0        the run went well, also if transactions failed and their clients went on
  1        wrong usage, no connection at the start, failed initialization, unwritable log
  2        a client was aborted; the summary covers what was done
  3        the run meets a condition of --fail-if
  129      ended by SIGHUP   \\
  130      ended by SIGINT    } after the summary of what was done until then
  143      ended by SIGTERM  /";
