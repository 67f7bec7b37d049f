//! The figures are right whatever connecting costs. What a connect costs is made up here: a second
//! by the server itself (`post_auth_delay`), or 100 ms by a proxy. The transaction is a sleep in
//! the server, so that the disk does not decide.

mod support;

use std::time::Duration;

use support::{DelayingProxy, Finished, Server, assert_close, measuring, pgmark};

/// Two measurements of the same thing, one right after the other, may differ by this factor. It
/// leaves room for a busy machine (on a quiet one they differ by less than a tenth of that), and
/// the smallest error that a wrong definition makes here is a factor of 1.5.
const TOLERANCE: f64 = 1.25;
const CLIENTS: u32 = 4;
/// Long against the milliseconds that a busy machine adds to a wake-up.
const SLEEP: &str = "SELECT pg_sleep(0.02);";

#[test]
fn a_slow_connect_changes_neither_latency_nor_throughput() {
    let _turn = measuring();
    let server = Server::shared();
    let run = |options: &str, settings: &str| {
        pgmark(server)
            .args("-T 2 -c 4")
            .args(options)
            .env("PGOPTIONS", settings)
            .script(SLEEP)
            .logged()
            .run()
            .expect_status(0)
    };
    for options in ["-j 1", "-j 4", "-j 1 -L 100", "-j 4 -L 100"] {
        let undelayed = run(options, "");
        let delayed = run(options, "-c post_auth_delay=1");
        for finished in [&undelayed, &delayed] {
            check_books(finished, 2.0);
            check_concurrency(finished);
        }
        for label in ["latency average = ", "tps = "] {
            let (with, without) = (delayed.figure(label), undelayed.figure(label));
            assert_close(label, with, without, TOLERANCE);
        }
        // One after the other, four connects would take 4 s.
        let connecting_ms = delayed.figure("initial connection time = ");
        assert!(
            (1000.0..1900.0).contains(&connecting_ms),
            "{options}\n{delayed}"
        );
        let limit_line = "number of transactions above the 100.0 ms latency limit: ";
        assert_eq!(
            delayed.stdout.contains(limit_line),
            options.contains("-L"),
            "{delayed}"
        );
    }
}

#[test]
fn one_thread_reconnects_for_its_clients_as_well_as_four_do() {
    let _turn = measuring();
    let server = Server::shared();
    let proxy = DelayingProxy::to(server, Duration::from_millis(100));
    let run = |threads: &str| {
        pgmark(server)
            .args("-C -T 3 -c 4 -h 127.0.0.1 -j")
            .arg(threads)
            .env("PGPORT", proxy.port().to_string())
            .script(SLEEP)
            .logged()
            .run()
            .expect_status(0)
    };
    let (one, four) = (run("1"), run("4"));
    for finished in [&one, &four] {
        check_books(finished, 3.0);
        check_concurrency(finished);
        let connect_ms = finished.figure("average connection time = ");
        assert!((100.0..150.0).contains(&connect_ms), "{finished}");
        // Connecting is in no latency.
        let latency_ms = finished.figure("latency average = ");
        assert!((20.0..40.0).contains(&latency_ms), "{finished}");
    }
    for label in [
        "latency average = ",
        "excluding reconnection times = ",
        "tps = ",
        "number of transactions actually processed: ",
    ] {
        assert_close(label, one.figure(label), four.figure(label), TOLERANCE);
    }
}

#[test]
fn excluding_reconnection_times_is_the_rate_of_a_connected_client() {
    let _turn = measuring();
    let server = Server::shared();
    let proxy = DelayingProxy::to(server, Duration::from_millis(100));
    let finished = pgmark(server)
        .args("-C -T 2 -c 4 -j 2 -h 127.0.0.1")
        .env("PGPORT", proxy.port().to_string())
        .script(SLEEP)
        .logged()
        .run()
        .expect_status(0);
    // Little's law over the time connected: clients / latency.
    let expected = f64::from(CLIENTS) / (finished.log().latency_mean_ms() / 1e3);
    let printed = finished.figure("excluding reconnection times = ");
    assert_close("excluding", printed, expected, TOLERANCE);
    assert!(
        printed > 2.0 * finished.figure("tps = "),
        "most of the time is connecting\n{finished}"
    );
}

#[test]
fn a_count_of_transactions_is_kept_by_each_client() {
    let server = Server::shared();
    let finished = pgmark(server)
        .args("-t 25 -c 4 -j 3")
        .script("SELECT 1;")
        .logged()
        .run()
        .expect_status(0);
    assert!(
        finished
            .stdout
            .contains("number of transactions actually processed: 100/100"),
        "{finished}"
    );
    let log = finished.log();
    for client in 0..CLIENTS {
        let numbers: Vec<u64> = log
            .rows
            .iter()
            .filter(|row| row.client_id == client)
            .map(|row| row.transaction)
            .collect();
        assert_eq!(numbers, (1..=25).collect::<Vec<u64>>(), "client {client}");
    }
    // The window ends with the last transaction, and connecting lies outside.
    let last_us = log.rows.iter().map(|row| row.completed_us).max();
    let window_s = last_us.expect("a hundred rows") as f64 / 1e6;
    assert_close("tps", finished.figure("tps = "), 100.0 / window_s, 1.001);
}

#[test]
fn the_server_has_committed_what_the_summary_says() {
    let server = Server::shared();
    server.create_database("counted");
    // What a run costs the server besides its transactions: connections and our own statements.
    let beside = |transactions: &str| {
        let before = steady_commits(server);
        let finished = pgmark(server)
            .args("-c 4 -j 2 -d counted -t")
            .arg(transactions)
            .script("SELECT 1;")
            .run()
            .expect_status(0);
        steady_commits(server) - before - finished.processed() as i64
    };
    let (short, long) = (beside("1"), beside("200"));
    assert_eq!(short, long, "commits that no transaction explains");
    assert!((0..100).contains(&short), "{short} statements of our own");
}

/// Commits in the database `counted` once no more are reported: a session reports its own when it
/// ends, which may be after the client has gone.
fn steady_commits(server: &Server) -> i64 {
    support::wait_until("all sessions have ended", || {
        let others = "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'counted'";
        server.value("postgres", others)
    });
    let commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'counted'";
    let mut count: i64 = server.value("postgres", commits);
    let mut looks_alike = 0;
    support::wait_until("the count is steady", || {
        let next = server.value("postgres", commits);
        looks_alike = if next == count { looks_alike + 1 } else { 0 };
        count = next;
        looks_alike == 10
    });
    count
}

/// The summary says the same as the log: counts, mean, deviation, percentiles, throughput.
fn check_books(finished: &Finished, duration_s: f64) {
    let log = finished.log();
    assert_eq!(log.rows.len() as u64, finished.processed(), "{finished}");
    assert_eq!(log.with_status("ok").count(), log.rows.len());
    assert!(log.rows.iter().all(|row| row.phase == "run"));

    // The log has whole microseconds.
    let near = |label: &str, computed: f64, relative: f64| {
        let printed = finished.figure(label);
        let allowed = relative * computed + 0.001;
        assert!(
            (printed - computed).abs() <= allowed,
            "{label}{printed}, by the log {computed}\n{finished}"
        );
    };
    near("latency average = ", log.latency_mean_ms(), 0.0);
    near("latency stddev = ", log.latency_stddev_ms(), 0.0);
    for (label, share) in [
        ("percentiles = p50 ", 0.5),
        (", p90 ", 0.9),
        (", p95 ", 0.95),
    ] {
        // A histogram keeps three digits. Fewer than 10 samples beyond are no percentile.
        if log.rows.len() as f64 * (1.0 - share) >= 10.0 {
            near(label, log.latency_percentile_ms(share), 0.001);
        }
    }
    near(", max ", log.latency_percentile_ms(1.0), 0.0);
    // Stamps in the log are rounded to a microsecond, and a second has a million.
    near("tps = ", log.tps(CLIENTS, duration_s), 1e-5);

    // The whole duration was measured, and not much more.
    let last_us = log.rows.iter().map(|row| row.completed_us).max();
    let last_s = last_us.expect("rows") as f64 / 1e6;
    assert!(
        (0.8 * duration_s..1.2 * duration_s).contains(&last_s),
        "the last transaction ends after {last_s} s"
    );
}

/// By Little's law: clients that do nothing else are always in a transaction, or wait for their
/// thread, which is told as client delay.
fn check_concurrency(finished: &Finished) {
    let latency_ms = finished.figure("latency average = ");
    let delay_ms = finished.figure("client delay ");
    let in_transactions = finished.figure("average concurrency = ");
    let with_delay = in_transactions * (latency_ms + delay_ms) / latency_ms;
    let clients = f64::from(CLIENTS);
    assert!(in_transactions <= 1.001 * clients, "{finished}");
    assert!(
        (0.97 * clients..1.03 * clients).contains(&with_delay),
        "{finished}"
    );
}
