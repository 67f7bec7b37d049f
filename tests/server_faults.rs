//! Servers that fail in every way in the middle of a run, and runs that are stopped at any moment:
//! the exit status says what happened, the books balance, the log has every row, and nothing is left
//! behind, neither on the server nor in the directory.

mod support;

use std::fs::File;
use std::io::Read;
use std::process::Command;

use rand_xoshiro::Xoroshiro128StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use support::{Finished, Program, Running, Server, Signal, pgmark, wait_until};

const TRUST: &str = "local all all trust\n";

/// A program that is known on the server by its name, with a log.
fn tormented(server: &Server) -> Program {
    pgmark(server).env("PGAPPNAME", "tormented").logged()
}

/// What has to hold after every run, whatever happened.
#[track_caller]
fn check(server: &Server, finished: &Finished) {
    for sign in ["internal error", "panicked", "overflow", "do not balance"] {
        assert!(!finished.stderr.contains(sign), "{sign}: {finished}");
    }
    wait_until("no session is left", || server.sessions("tormented") == 0);
    for name in finished.files() {
        assert!(
            ["script1.sql", "transactions.csv"].contains(&name.as_str()),
            "{name} is left"
        );
    }
    if finished
        .stdout
        .contains("number of transactions actually processed")
    {
        let log = finished.log();
        assert_eq!(
            log.with_status("ok").count() as u64,
            finished.processed(),
            "{finished}"
        );
    }
}

/// Rows of the log that have this error.
fn errors(finished: &Finished, error: &str) -> usize {
    let log = finished.log();
    log.rows.iter().filter(|row| row.error == error).count()
}

fn create(server: &Server, sql: &str) {
    server
        .client("postgres")
        .batch_execute(sql)
        .expect("the server takes it");
}

#[test]
fn a_fast_shutdown_ends_all_clients_with_the_words_of_the_server() {
    let server = Server::with(TRUST, "");
    create(&server, "CREATE TABLE seen (n int)");
    let running = tormented(&server)
        .args("-c 4 -j 2 -T 60")
        .script("INSERT INTO seen VALUES (1);")
        .start();
    wait_until("it writes", || {
        server.value::<i64>("postgres", "SELECT count(*) FROM seen") > 100
    });
    server.stop_fast();
    let finished = running.finish().expect_status(2).expect_stderr(&[
        "terminating connection due to administrator command",
        "Run was aborted",
    ]);
    server.start_again();
    check(&server, &finished);
    let written: i64 = server.value("postgres", "SELECT count(*) FROM seen");
    let unknown = errors(&finished, "connection lost in commit") as i64;
    let counted = finished.processed() as i64;
    assert!(
        (counted..=counted + unknown + 4).contains(&written),
        "{written} rows: {finished}"
    );
}

#[test]
fn a_backend_that_is_killed_takes_all_others_with_it() {
    let server = Server::with(TRUST, "");
    let running = tormented(&server)
        .args("-c 4 -j 2 -T 60")
        .script("SELECT pg_sleep(0.01);")
        .start();
    let one = "SELECT coalesce(max(pid), 0) FROM pg_stat_activity \
               WHERE application_name = 'tormented' AND query LIKE '%pg_sleep%'";
    let mut pid = 0;
    wait_until("it works", || {
        pid = server.value("postgres", one);
        pid != 0
    });
    let victim = rustix::process::Pid::from_raw(pid).expect("a process of our server");
    rustix::process::kill_process(victim, Signal::KILL).expect("it is there");
    let finished = running
        .finish()
        .expect_status(2)
        .expect_stderr(&["connection lost"]);
    wait_until("the server has recovered", || server.is_up());
    check(&server, &finished);
}

#[test]
fn a_storm_of_deadlocks_is_counted_and_loses_no_update() {
    let server = Server::with(TRUST, "deadlock_timeout = '5ms'\n");
    for (options, retried) in [("-t 40", false), ("-t 40 --max-tries=1000", true)] {
        create(
            &server,
            "DROP TABLE IF EXISTS storm; CREATE TABLE storm AS SELECT i, 0 AS n FROM generate_series(1, 2) i",
        );
        let finished = tormented(&server)
            .args("-c 8 -j 2")
            .args(options)
            .script(
                "\\set a random(1, 2)\n\
                 BEGIN;\n\
                 UPDATE storm SET n = n + 1 WHERE i = :a;\n\
                 UPDATE storm SET n = n + 1 WHERE i = 3 - :a;\n\
                 END;\n",
            )
            .run()
            .expect_status(0);
        check(&server, &finished);
        let updates: i64 = server.value("postgres", "SELECT sum(n) FROM storm");
        assert_eq!(updates, 2 * finished.processed() as i64, "{finished}");
        let failed = errors(&finished, "SQLSTATE 40P01");
        let retries: u32 = finished.log().rows.iter().map(|row| row.retries).sum();
        assert_eq!(finished.processed() + failed as u64, 8 * 40, "{finished}");
        match retried {
            true => assert!(failed == 0 && retries > 0, "{finished}"),
            false => assert!(failed > 0 && retries == 0, "{finished}"),
        }
    }
}

#[test]
fn a_server_with_too_few_places_ends_those_who_find_none() {
    let server = Server::with(
        TRUST,
        "max_connections = 10\nsuperuser_reserved_connections = 3\n",
    );
    create(&server, "CREATE ROLE plain LOGIN");
    let crowd = || {
        tormented(&server)
            .env("PGUSER", "plain")
            .args("-c 20 -j 2")
            .script("SELECT 1;")
    };
    let finished = crowd().args("-t 5").run().expect_status(1).expect_no_tps();
    check(
        &server,
        &finished.expect_stderr(&["remaining connection slots are reserved"]),
    );
    let finished = crowd().args("-C -t 5").run().expect_status(2);
    check(
        &server,
        &finished.expect_stderr(&["remaining connection slots are reserved"]),
    );
}

#[test]
fn a_server_without_memory_or_disk_space_ends_clients_unless_they_go_on() {
    let server = Server::shared();
    for sqlstate in ["53200", "53100"] {
        let script = format!(
            "\\set n random(1, 10)\n\
             DO $$ BEGIN IF :n = 1 THEN RAISE 'no more' USING ERRCODE = '{sqlstate}'; END IF; END $$;\n"
        );
        let error = format!("SQLSTATE {sqlstate}");
        let finished = tormented(server)
            .args("-c 4 -j 2 -t 100")
            .script(&script)
            .run()
            .expect_status(2);
        check(server, &finished);
        assert_eq!(
            errors(&finished, &error),
            4,
            "each client ends with the first: {finished}"
        );
        let finished = tormented(server)
            .args("-c 4 -j 2 -t 100 --continue-on-error")
            .script(&script)
            .run()
            .expect_status(0);
        check(server, &finished);
        let failed = errors(&finished, &error) as u64;
        assert!(
            failed > 0 && finished.processed() + failed == 400,
            "{finished}"
        );
    }
}

/// Lets a run write until so many rows are there, and interrupts it then.
fn interrupt_after(server: &Server, rows: u64, options: &str) {
    create(
        server,
        "DROP TABLE IF EXISTS moments; CREATE TABLE moments (n int)",
    );
    let running = tormented(server)
        .args("-c 4 -j 2 -T 60")
        .args(options)
        .script("BEGIN;\nINSERT INTO moments VALUES (1);\nEND;\n")
        .start();
    wait_until("it has written enough", || {
        rows == 0 || server.value::<i64>("postgres", "SELECT count(*) FROM moments") as u64 >= rows
    });
    running.signal(Signal::INT);
    let finished = running.finish();
    // A signal that comes before anything is set up ends the program as it ends any other.
    assert!(
        [Some(130), None].contains(&finished.status),
        "{options}, {rows} rows: {finished}"
    );
    check(server, &finished);
    let written: i64 = server.value("postgres", "SELECT count(*) FROM moments");
    if rows > 0 {
        let counted = finished.processed() as i64;
        assert!(
            (counted..=counted + 4).contains(&written),
            "{written} rows: {finished}"
        );
    }
}

fn interrupt_at_random(server: &Server, times: u32) {
    let mut random = Xoroshiro128StarStar::seed_from_u64(6);
    for options in ["", "-M prepared", "-C", "-R 2000"] {
        for _ in 0..times {
            interrupt_after(server, random.next_u64() % 500, options);
        }
        interrupt_after(server, 0, options);
    }
}

#[test]
fn a_signal_at_any_moment_ends_the_run_with_its_books_balanced() {
    let server = Server::with(TRUST, "");
    interrupt_at_random(&server, 2);
}

#[test]
#[ignore = "takes a minute: make torture"]
fn many_signals_at_any_moment_end_runs_with_their_books_balanced() {
    let server = Server::with(TRUST, "");
    interrupt_at_random(&server, 25);
}

/// A run whose log is a pipe that nobody reads until `unread` is over: how it ended, and what came out
/// of the pipe.
fn into_a_stalled_pipe(program: Program, unread: impl FnOnce(&Running)) -> (Finished, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pipe = directory.path().join("log");
    let made = Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("it is everywhere");
    assert!(made.success());
    let running = program.arg("--log-file").arg(&pipe).start();
    let mut reader = File::open(&pipe).expect("it is there");
    unread(&running);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    (running.finish(), text)
}

#[test]
fn clients_keep_their_pace_while_nobody_takes_the_rows_of_the_log() {
    let server = Server::with(TRUST, "");
    create(&server, "CREATE SEQUENCE pace");
    let program = pgmark(&server)
        .args("-c 4 -j 2 -t 2000")
        .script("SELECT nextval('pace');");
    let (finished, text) = into_a_stalled_pipe(program, |_| {
        wait_until("all transactions are done", || {
            server.value::<i64>("postgres", "SELECT last_value FROM pace") == 8_000
        });
    });
    let finished = finished.expect_status(0);
    assert_eq!(
        text.lines().count(),
        1 + 8_000,
        "a header and all rows: {finished}"
    );
    assert!(!finished.stderr.contains("threads waited"), "{finished}");
}

#[test]
#[ignore = "takes half a minute: make torture"]
fn beyond_the_bound_clients_wait_for_the_log_and_the_summary_says_so() {
    let server = Server::shared();
    let program = pgmark(server)
        .args("-c 4 -j 2 -t 300000")
        .script("\\set nothing 0\n");
    let (finished, text) = into_a_stalled_pipe(program, |running| {
        // All that is bounded is full when the program no longer works.
        let mut seen = [0; 25];
        wait_until("it has come to a standstill", || {
            seen.rotate_left(1);
            seen[24] = running.processor_ticks();
            seen[0] == seen[24] && seen[24] > 0
        });
    });
    let finished = finished.expect_status(0).expect_stderr(&["threads waited"]);
    assert_eq!(text.lines().count(), 1 + 1_200_000, "a header and all rows");
    assert_eq!(finished.processed(), 1_200_000, "{finished}");
}
