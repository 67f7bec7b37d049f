//! Rates, limits, errors and the measured window, against a real server: what was due, attempted and
//! logged adds up, whatever happens.

mod support;

use support::{Finished, Server, assert_close, measuring, pgmark};

/// The numbers in the account of the schedule: due, processed, failed, skipped, abandoned.
fn schedule(run: &Finished) -> [u64; 5] {
    let line = run
        .stdout
        .lines()
        .find(|line| line.starts_with("schedule = "))
        .unwrap_or_else(|| panic!("no account of the schedule in\n{}", run.stdout));
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    numbers
        .try_into()
        .unwrap_or_else(|_| panic!("not five numbers: {line}"))
}

#[test]
fn an_overload_is_accounted_for_to_the_last_slot() {
    let _alone = measuring();
    let run = pgmark(Server::shared())
        .args("-n -c 1 -R 100 -T 2 --random-seed=42 --interval-csv intervals.csv")
        .script("SELECT pg_sleep(0.05);")
        .logged()
        .run()
        .expect_status(0)
        .expect_stderr(&["could not keep up"]);
    let [due, processed, failed, skipped, abandoned] = schedule(&run);
    assert_eq!(due, processed + failed + skipped + abandoned);
    // The slots of this seed up to 2 s; nothing that happens changes them.
    assert_eq!(due, 193);
    assert_eq!(processed, run.processed());
    assert_eq!(run.log().rows.len() as u64, processed);
    assert!(abandoned > due / 2, "the server does 20 of 100 a second");
    let intervals = std::fs::read_to_string(run.path("intervals.csv")).expect("it was written");
    let due_in_intervals = intervals.lines().skip(1).map(|row| {
        let cell = row.split(',').nth(5).expect("due");
        cell.parse::<u64>().expect("a number")
    });
    assert_eq!(due_in_intervals.sum::<u64>(), due, "{intervals}");
    // The last one waited about 1.6 s for its turn, and its latency says so.
    let latency = run.figure("latency average = ");
    let service = run.figure("service time = average ");
    assert!(latency > 5.0 * service, "{latency} against {service} ms");
    assert_close("latency", latency, run.log().latency_mean_ms(), 1.001);
}

#[test]
fn with_a_limit_old_slots_are_skipped_and_still_counted() {
    let _alone = measuring();
    let run = pgmark(Server::shared())
        .args("-n -c 1 -R 100 -T 2 -L 200 --random-seed=42")
        .script("SELECT pg_sleep(0.05);")
        .logged()
        .run()
        .expect_status(0);
    let [due, processed, failed, skipped, abandoned] = schedule(&run);
    assert_eq!(due, 193);
    assert_eq!(due, processed + failed + skipped + abandoned);
    assert!(skipped > due / 2, "{skipped} of {due}");
    let log = run.log();
    assert_eq!(log.with_status("skipped").count() as u64, skipped);
    assert_eq!(log.rows.len() as u64, processed + skipped);
    // None began later than the limit.
    assert!(run.figure("rate limit schedule lag: avg ") < 200.0);
}

#[test]
fn a_number_of_transactions_under_a_rate_counts_what_clients_took() {
    let run = pgmark(Server::shared())
        .args("-n -c 3 -j 2 -R 500 -t 20")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    assert_eq!(schedule(&run), [60, 60, 0, 0, 0]);
}

#[test]
fn errors_that_are_to_be_survived_fail_the_transaction_and_are_counted() {
    let server = Server::shared();
    server
        .client("postgres")
        .batch_execute("CREATE TABLE uniq_demo (id int PRIMARY KEY)")
        .expect("a new table");
    let insert = "INSERT INTO uniq_demo VALUES (1);";
    let run = pgmark(server)
        .args("-n -c 2 -t 50 --continue-on-error --failures-detailed")
        .script(insert)
        .logged()
        .run()
        .expect_status(0)
        .expect_stderr(&["23505", "first of its kind"]);
    assert_eq!(run.processed(), 1);
    assert!(run.stdout.contains("number of failed transactions: 99"));
    assert!(run.stdout.contains("number of other failures: 99"));
    assert_eq!(run.log().with_status("failed").count(), 99);
    pgmark(server)
        .args("-n -c 2 -t 50")
        .script(insert)
        .run()
        .expect_status(2);
}

#[test]
fn the_first_aborted_client_can_end_the_run_and_the_summary_is_printed() {
    let run = pgmark(Server::shared())
        .args("-n -c 2 -j 2 -T 60 --exit-on-abort")
        .script("\\if :client_id = 0\nSELECT 1/0;\n\\endif\nSELECT pg_sleep(0.01);")
        .run()
        .expect_status(2)
        .expect_stderr(&["division by zero", "incomplete"]);
    assert!(
        run.stdout
            .contains("number of transactions actually processed:")
    );
}

#[test]
fn deadlocks_and_serialization_failures_are_retried_and_the_books_balance() {
    let server = Server::shared();
    server
        .client("postgres")
        .batch_execute(
            "CREATE TABLE contended AS SELECT id, 0 AS n FROM generate_series(1, 2) AS id",
        )
        .expect("a new table");
    for (kind, script) in [
        (
            "deadlock",
            "BEGIN;\nUPDATE contended SET n = n + 1 WHERE id = 1 + :client_id % 2;\n\
             UPDATE contended SET n = n + 1 WHERE id = 2 - :client_id % 2;\nEND;",
        ),
        (
            "serialization",
            "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT sum(n) FROM contended;\n\
             UPDATE contended SET n = n + 1 WHERE id = 1;\nEND;",
        ),
    ] {
        let run = pgmark(server)
            .args("-n -c 4 -j 2 -t 25 --max-tries=3 --failures-detailed")
            .env("PGOPTIONS", "-c deadlock_timeout=10ms")
            .script(script)
            .logged()
            .run()
            .expect_status(0);
        assert!(run.figure("total number of retries: ") > 0.0, "{kind}");
        let log = run.log();
        assert_eq!(log.rows.len(), 100, "{kind}");
        assert_eq!(
            log.with_status("ok").count() as u64,
            run.processed(),
            "{kind}"
        );
    }
}

#[test]
fn what_belongs_to_ramp_and_warm_up_is_logged_and_in_no_figure() {
    let run = pgmark(Server::shared())
        .args("-n -c 4 -T 1 --ramp-clients 0.2s --warmup 0.3s")
        .script("SELECT pg_sleep(0.01);")
        .logged()
        .run()
        .expect_status(0);
    let log = run.log();
    let in_phase = |phase: &str| log.rows.iter().filter(|row| row.phase == phase).count();
    assert!(in_phase("ramp") > 0 && in_phase("warmup") > 0);
    assert_eq!(in_phase("run") as u64, run.processed());
}

#[test]
fn a_straggler_is_cut_off_when_its_time_to_finish_is_over() {
    let run = pgmark(Server::shared())
        .args("-n -c 2 -T 0.5s --finish-within 0.2s")
        .script("\\if :client_id = 0\nSELECT pg_sleep(300);\n\\endif\nSELECT pg_sleep(0.01);")
        .logged()
        .run()
        .expect_status(0);
    assert_eq!(run.log().with_status("aborted").count(), 1);
    assert!(run.processed() > 0);
}

#[test]
fn with_a_connection_each_the_time_of_a_client_tells_what_it_waited_for_its_slot() {
    let _alone = measuring();
    let run = pgmark(Server::shared())
        .args("-n -c 2 -C -R 20 -T 2 --random-seed=42")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    let line = run
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("time of a client = "))
        .unwrap_or_else(|| panic!("{run}"));
    let share = |what: &str| -> f64 {
        let part = line.split(", ").find_map(|part| part.strip_suffix(what));
        let percent = part.and_then(|part| part.strip_suffix("% "));
        percent.expect("its share").parse().expect("a number")
    };
    // One in ten of a second is due for each; connecting and working take milliseconds.
    assert!(share("waiting for its slot") > 50.0, "{line}");
    assert!(share("in pgmark") < 25.0, "{line}");
}
