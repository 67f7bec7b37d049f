//! Every figure of a run follows from its log and its table of clients alone.

mod support;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use pgmark::conninfo::Environment;
use pgmark::console::Console;
use pgmark::options;
use pgmark::plan::{Plan, RunPlan, ServerChoice};
use pgmark::result::{ClientResult, RunResult};
use pgmark::run::{Signals, Surroundings, measure};
use pgmark::time::Clock;

use support::{Log, Row, Server, measuring};

/// What is the same sum of the same numbers, in another order.
const EXACT: Tolerance = Tolerance {
    relative: 1e-6,
    absolute: 0.0,
};
/// The log has whole microseconds, and a histogram keeps three digits. In µs.
const NEAR: Tolerance = Tolerance {
    relative: 1e-3,
    absolute: 1.0,
};
/// A mean of rounded times by a time that is not rounded.
const ROUNDED: Tolerance = Tolerance {
    relative: 1e-2,
    absolute: 0.0,
};

#[test]
fn a_run_with_lasting_connections() {
    recompute("-T 1 -c 5 -j 2");
    recompute("-t 200 -c 3 -j 3");
}

#[test]
fn a_run_that_reconnects() {
    recompute("-C -T 1 -c 5 -j 2");
    recompute("-C -t 20 -c 3 -j 1");
}

fn recompute(options: &str) {
    let _turn = measuring();
    let place = tempfile::tempdir().expect("a temporary directory");
    let result = run(options, place.path());
    let log = Log::read(&place.path().join("run.csv"));

    assert_eq!(result.check_books(), Vec::<String>::new(), "{options}");
    assert_eq!(log.with_status("ok").count(), log.rows.len(), "{options}");
    check_latency(&result, &log);
    check_rates(&result, &log);
    check_scripts(&result, &log);
    let (excluding, tps) = (
        result.measured.tps_excluding_reconnection(),
        result.measured.tps(),
    );
    // A client that is done before the others says goodbye inside the window.
    assert!(excluding >= tps, "{options}: {excluding} < {tps}");
    if options.contains("-C") {
        assert!(
            excluding > 1.01 * tps,
            "{options}: reconnecting takes time, {excluding} against {tps}"
        );
    }
}

/// Runs two scripts of unequal weight and length.
fn run(options: &str, place: &Path) -> RunResult {
    let plan = plan(options, place);
    let ServerChoice::Given(target) = &plan.server else {
        panic!("a server was given");
    };
    let target = (**target).clone();
    let mut around = Surroundings {
        stdout: &mut Vec::new(),
        console: Console::to(Box::new(Vec::new())),
        clock: Clock::start(),
    };
    measure(plan, target, &Signals::none(), &mut around).expect("the server is up")
}

fn plan(options: &str, place: &Path) -> RunPlan {
    let server = Server::shared();
    let file = |name: &str, text: &str| {
        let path = place.join(name);
        fs::write(&path, text).expect("the directory is ours");
        path.display().to_string()
    };
    let (host, port) = (server.socket_directory().display(), server.port());
    let scripts = [
        format!("-f{}@3", file("short.sql", "SELECT 1;")),
        format!("-f{}@1", file("long.sql", "SELECT pg_sleep(0.002);")),
    ];
    let others = [
        "pgmark".to_owned(),
        "-n".to_owned(),
        format!("--log-file={}", place.join("run.csv").display()),
        format!("host={host} port={port} user=postgres dbname=postgres"),
    ];
    let options = options.split_whitespace().map(str::to_owned);
    let argv = others.into_iter().chain(scripts).chain(options);
    match options::parse(argv.map(OsString::from), &Bare) {
        Ok(Plan::Run(plan)) => *plan,
        other => panic!("these are good options for a run: {other:?}"),
    }
}

/// No variables, so that nothing but the options counts.
struct Bare;

impl Environment for Bare {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn user_name(&self) -> Result<String, String> {
        Err("nobody asks".to_owned())
    }

    fn has_directory(&self, _: &Path) -> bool {
        false
    }
}

fn check_latency(result: &RunResult, log: &Log) {
    let total = &result.measured.total;
    let latency = &total.latency;
    NEAR.check("mean", latency.mean_ns() / 1e3, log.latency_mean_ms() * 1e3);
    let stddev_us = log.latency_stddev_ms() * 1e3;
    NEAR.check("stddev", latency.stddev_ns() / 1e3, stddev_us);
    for percent in [50.0, 90.0, 95.0, 99.0, 99.9] {
        let said_us = latency.percentile_ns(percent) as f64 / 1e3;
        let computed_us = log.latency_percentile_ms(percent / 100.0) * 1e3;
        NEAR.check(&format!("p{percent}"), said_us, computed_us);
    }
}

fn check_rates(result: &RunResult, log: &Log) {
    let measured = &result.measured;
    let over_clients = |time_ns: fn(&ClientResult) -> u64, amount: &dyn Fn(&Row) -> f64| {
        let clients = (0..).zip(&measured.clients);
        clients
            .map(|(number, client)| {
                let own = log.rows.iter().filter(|row| row.client_id == number);
                own.map(amount).sum::<f64>() * 1e9 / time_ns(client) as f64
            })
            .sum::<f64>()
    };
    let all = |client: &ClientResult| client.ends.nanos_since(client.starts);
    let connected =
        |client: &ClientResult| client.ends.nanos_since(client.starts) - client.connecting_ns;
    let latency_s = |row: &Row| row.latency_us.expect("it was processed") as f64 / 1e6;

    EXACT.check("tps", measured.tps(), over_clients(all, &|_| 1.0));
    EXACT.check(
        "tps excluding reconnection",
        measured.tps_excluding_reconnection(),
        over_clients(connected, &|_| 1.0),
    );
    ROUNDED.check(
        "average concurrency",
        measured.average_concurrency(),
        over_clients(connected, &latency_s),
    );
}

fn check_scripts(result: &RunResult, log: &Log) {
    let names = ["short.sql", "long.sql"];
    assert_eq!(result.measured.scripts.len(), names.len());
    for (script, name) in result.measured.scripts.iter().zip(names) {
        let rows = log.rows.iter().filter(|row| row.script == name).count();
        assert!(rows > 0, "{name} has a weight");
        assert_eq!(script.processed, rows as u64, "{name}");
    }
    assert_eq!(result.measured.total.processed, log.rows.len() as u64);
}

struct Tolerance {
    relative: f64,
    absolute: f64,
}

impl Tolerance {
    #[track_caller]
    fn check(&self, what: &str, said: f64, computed: f64) {
        let allowed = self.relative * computed + self.absolute;
        assert!(
            (said - computed).abs() <= allowed,
            "{what}: {said}, from the log {computed}"
        );
    }
}
