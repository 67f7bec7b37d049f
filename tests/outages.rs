//! Runs whose server goes away in the middle and comes back.

mod support;

use std::time::Instant;

use support::{Finished, Server, Signal, measuring, pgmark, wait_until};

const RULES: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";

/// The server with tables, and what it takes to see that clients are at work.
fn server() -> Server {
    let server = Server::with(RULES, "");
    pgmark(&server).args("-i -q").run().expect_status(0);
    server
}

fn history(server: &Server) -> i64 {
    server.value("postgres", "SELECT count(*) FROM pgbench_history")
}

/// Waits until clients write, at first or again.
fn wait_for_writes(server: &Server) {
    let before = history(server);
    wait_until("the clients write", || history(server) > before + 50);
}

/// The number before `words` in the line that begins with `beginning`.
fn number(finished: &Finished, beginning: &str, words: &str) -> f64 {
    let line = finished
        .stdout
        .lines()
        .find(|line| line.starts_with(beginning));
    let line = line.unwrap_or_else(|| panic!("no line {beginning}: {finished}"));
    let before = line
        .split(words)
        .next()
        .expect("something stands before it");
    let number = before.rsplit([' ', '(']).next().expect("a word");
    number
        .parse()
        .unwrap_or_else(|_| panic!("{number:?} in {line:?}: {finished}"))
}

#[test]
fn a_restart_is_an_outage_and_the_run_goes_on() {
    let _alone = measuring();
    for options in ["-M simple", "-M prepared -R 300", "-C -h 127.0.0.1"] {
        let server = server();
        let running = pgmark(&server)
            .args("-c 4 -j 2 -T 6 --reconnect-on-loss --interval-csv intervals.csv")
            .args(options)
            .logged()
            .start();
        wait_for_writes(&server);
        let stopped = Instant::now();
        server.stop_immediately();
        let down = Instant::now();
        server.start_again();
        wait_for_writes(&server);
        let (gone, away) = (
            down.elapsed().as_secs_f64(),
            stopped.elapsed().as_secs_f64(),
        );
        let finished = running.finish().expect_status(0);

        let length = number(&finished, "outage 1 = ", " s without a completion");
        assert!(length <= away, "{length} of {away} s: {finished}");
        // From when it was down until many have written is longer than the outage's end.
        assert!(length > gone / 4.0, "{length} of {gone} s: {finished}");
        assert_eq!(
            number(&finished, "outage 1 = ", " of 4 clients,"),
            4.0,
            "{finished}"
        );
        assert!(finished.stdout.contains("recovered in "), "{finished}");
        assert!(!finished.stdout.contains("outage 2"), "{finished}");
        let lost = finished.figure("number of transactions lost with their connection: ");
        assert!((0.0..=4.0).contains(&lost), "{finished}");
        let missing = number(&finished, "lost writes = ", " of ");
        assert_eq!(missing, 0.0, "{finished}");
        let intervals = std::fs::read_to_string(finished.path("intervals.csv")).expect("written");
        for row in intervals.lines().skip(1) {
            let connected: i64 = row
                .split(',')
                .nth(4)
                .expect("a cell")
                .parse()
                .expect("a number");
            assert!((0..=4).contains(&connected), "{intervals}");
        }
        let log = finished.log();
        assert_eq!(log.with_status("aborted").count() as f64, lost);
        assert!(log.with_status("ok").count() as u64 >= finished.processed());
    }
}

#[test]
fn without_the_option_a_restart_ends_the_clients() {
    let server = server();
    let running = pgmark(&server).args("-c 3 -T 60").start();
    wait_for_writes(&server);
    server.stop_immediately();
    running
        .finish()
        .expect_status(2)
        .expect_stderr(&["connection lost", "Run was aborted"]);
    server.start_again();
}

#[test]
fn a_server_that_stays_away_lets_the_run_end_in_time_and_a_stop_reaches_it() {
    let server = server();
    for (options, status) in [("-T 3", 0), ("-T 600", 130)] {
        let running = pgmark(&server)
            .args("-n -c 3 --reconnect-on-loss")
            .args(options)
            .start();
        wait_for_writes(&server);
        server.stop_immediately();
        if status == 130 {
            running.signal(Signal::INT);
        }
        let finished = running.finish().expect_status(status);
        assert!(finished.stdout.contains("lost writes = n/a"), "{finished}");
        server.start_again();
    }
}

#[test]
fn an_error_that_does_not_pass_ends_the_client() {
    let server = server();
    let running = pgmark(&server)
        .args("-n -c 2 -T 60 --reconnect-on-loss -U few")
        .script("SELECT 1;")
        .start();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'";
    wait_until("the clients are connected", || {
        server.value::<i64>("postgres", sessions) == 2
    });
    server
        .client("postgres")
        .batch_execute(
            "ALTER ROLE few NOLOGIN; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'",
        )
        .expect("a superuser may");
    running
        .finish()
        .expect_status(2)
        .expect_stderr(&["role \"few\" is not permitted to log in"]);
}
