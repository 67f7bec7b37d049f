//! Which option may be typed when, under which name of the program: one table. What else must be
//! true of an option is said in `into_plan`.

use clap::Arg;

use crate::program::Program;

/// What the program is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Make tables (`-i`).
    Tables,
    /// Run on a server that is there.
    Run,
    /// Run on a server made for this (`--temp-cluster`).
    ClusterRun,
}

use Mode::{ClusterRun, Run, Tables};

const ALWAYS: &[Mode] = &[Tables, Run, ClusterRun];
const RUNS: &[Mode] = &[Run, ClusterRun];
const GIVEN_SERVER: &[Mode] = &[Tables, Run];
/// Not an option of pgbench.
const NEVER: &[Mode] = &[];

/// An option, by its long name, with the modes in which pgmark takes it and those in which it does
/// so under the name pgbench. All options of pgbench 18 and 19 are there: their names also decide
/// which beginnings are unambiguous.
const OPTIONS: &[(&str, &[Mode], &[Mode])] = &[
    ("aggregate-interval", RUNS, RUNS),
    ("before", RUNS, NEVER),
    ("bindir", &[ClusterRun], NEVER),
    ("builtin", RUNS, RUNS),
    ("client", RUNS, RUNS),
    ("connect", RUNS, RUNS),
    ("continue-on-error", RUNS, RUNS),
    (DATABASE, GIVEN_SERVER, GIVEN_SERVER),
    ("dbname", GIVEN_SERVER, GIVEN_SERVER),
    ("debug", ALWAYS, ALWAYS),
    ("define", RUNS, RUNS),
    ("dry-run", ALWAYS, NEVER),
    ("exit-on-abort", RUNS, RUNS),
    ("fail-if", RUNS, NEVER),
    ("failures-detailed", RUNS, RUNS),
    ("file", RUNS, RUNS),
    ("fillfactor", &[Tables], &[Tables]),
    ("finish-within", RUNS, NEVER),
    ("foreign-keys", &[Tables], &[Tables]),
    ("help", ALWAYS, ALWAYS),
    ("host", GIVEN_SERVER, GIVEN_SERVER),
    ("index-tablespace", &[Tables], &[Tables]),
    ("init-batch", &[Tables], NEVER),
    ("init-mode", &[Tables], NEVER),
    ("init-steps", &[Tables], &[Tables]),
    ("initialize", &[Tables], &[Tables]),
    ("interval-csv", RUNS, NEVER),
    ("jobs", ALWAYS, RUNS),
    ("json", RUNS, NEVER),
    ("html", RUNS, NEVER),
    ("suite-mk", ALWAYS, ALWAYS),
    ("summary-csv", RUNS, NEVER),
    ("hdr", RUNS, NEVER),
    ("label", RUNS, NEVER),
    ("latency-limit", RUNS, RUNS),
    ("latency-percentiles", RUNS, NEVER),
    ("log", RUNS, RUNS),
    ("log-file", RUNS, NEVER),
    ("log-format", RUNS, NEVER),
    ("log-prefix", RUNS, RUNS),
    ("log-split-rows", RUNS, NEVER),
    ("log-time", RUNS, NEVER),
    ("log-tries", RUNS, NEVER),
    ("max-tries", RUNS, RUNS),
    ("no-vacuum", ALWAYS, ALWAYS),
    ("on-connect", RUNS, NEVER),
    ("partition-method", &[Tables], &[Tables]),
    ("partitions", &[Tables], &[Tables]),
    ("pgbench-figures", RUNS, NEVER),
    ("port", GIVEN_SERVER, GIVEN_SERVER),
    ("progress", RUNS, RUNS),
    ("progress-timestamp", RUNS, RUNS),
    ("protocol", RUNS, RUNS),
    ("quiet", &[Tables, ClusterRun], &[Tables]),
    ("ramp-clients", RUNS, NEVER),
    ("random-seed", RUNS, RUNS),
    ("rate", RUNS, RUNS),
    ("reconnect-on-loss", RUNS, NEVER),
    ("report-per-command", RUNS, RUNS),
    ("sampling-rate", RUNS, RUNS),
    ("scale", ALWAYS, ALWAYS),
    ("schema", GIVEN_SERVER, NEVER),
    ("select-only", RUNS, RUNS),
    ("show-script", ALWAYS, ALWAYS),
    ("skip-some-updates", RUNS, RUNS),
    ("tablespace", &[Tables], &[Tables]),
    ("tag", RUNS, NEVER),
    ("temp-cluster", &[ClusterRun], NEVER),
    ("temp-config", &[ClusterRun], NEVER),
    ("temp-keep", &[ClusterRun], NEVER),
    ("time", RUNS, RUNS),
    ("transactions", RUNS, RUNS),
    ("unlogged-tables", &[Tables], &[Tables]),
    ("username", GIVEN_SERVER, GIVEN_SERVER),
    ("vacuum-all", RUNS, RUNS),
    ("verbose-errors", RUNS, RUNS),
    ("version", ALWAYS, ALWAYS),
    ("warmup", RUNS, NEVER),
];

/// The name of a database without an option, which has no long name.
const DATABASE: &str = "positional";

/// The long names of pgbench's options.
pub(super) fn pgbench_names() -> impl Iterator<Item = &'static str> {
    let theirs = OPTIONS.iter().filter(|(_, _, modes)| !modes.is_empty());
    theirs
        .map(|(name, _, _)| *name)
        .filter(|name| *name != DATABASE)
}

/// Whether pgbench has an option of this long name.
pub(super) fn is_pgbenchs(long_name: &str) -> bool {
    pgbench_names().any(|name| name == long_name)
}

/// The modes in which an option may be typed.
fn modes_of(arg: &Arg, program: Program) -> &'static [Mode] {
    let long_name = arg.get_long().unwrap_or(DATABASE);
    let row = OPTIONS.iter().find(|(name, _, _)| *name == long_name);
    match (row, program) {
        (Some((_, modes, _)), Program::Pgmark) | (Some((_, _, modes)), Program::Pgbench) => modes,
        (None, Program::Pgmark | Program::Pgbench) => NEVER,
    }
}

/// Where an option is out of place, if it is in this mode.
pub(super) fn misplaced(arg: &Arg, mode: Mode, program: Program) -> Option<&'static str> {
    let modes = modes_of(arg, program);
    if modes.contains(&mode) {
        return None;
    }
    Some(match (mode, modes) {
        (Tables, _) => "initialization mode (-i)",
        (Run | ClusterRun, [Tables]) => "benchmarking mode, which is without -i",
        (Run, _) => "a run without --temp-cluster",
        (ClusterRun, _) => "a run with --temp-cluster, which brings a server of its own",
    })
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    #[test]
    fn every_option_has_one_row_and_every_row_an_option() {
        let command = command(Program::Pgmark);
        let known: Vec<&str> = command
            .get_arguments()
            .map(|arg| arg.get_long().unwrap_or(arg.get_id().as_str()))
            .collect();
        for name in &known {
            let rows = OPTIONS.iter().filter(|(row, _, _)| row == name).count();
            assert_eq!(rows, 1, "{name}");
        }
        for (row, modes, _) in OPTIONS {
            assert!(known.contains(row), "there is no {row}");
            assert!(!modes.is_empty(), "{row} may be typed somewhere");
        }
    }

    #[test]
    fn under_the_name_pgbench_nothing_may_be_typed_that_may_not_be_under_ours() {
        for (name, ours, theirs) in OPTIONS {
            assert!(theirs.iter().all(|mode| ours.contains(mode)), "{name}");
        }
    }
}
