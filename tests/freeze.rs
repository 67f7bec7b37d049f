//! A server that stands still for a while, under a rate: what callers would have waited is in the
//! latency, whether or not their transactions could begin.

mod support;

use std::thread;

use support::{Server, pgmark, wait_until};

#[test]
fn three_seconds_of_standstill_are_in_the_latency_of_all_that_were_due_in_them() {
    let server = Server::with("local all all trust\n", "");
    server
        .client("postgres")
        .batch_execute(
            "CREATE TABLE counters (id int PRIMARY KEY, value int); \
             INSERT INTO counters SELECT id, 0 FROM generate_series(1, 1000) id; \
             CREATE SEQUENCE steps;",
        )
        .expect("a new server has no such things");
    let running = pgmark(&server)
        .args("-n -c 16 -j 2 -T 10 --rate 200 --json result.json")
        .script(
            "\\set id random(1, 1000)\n\
             SELECT nextval('steps');\n\
             UPDATE counters SET value = value + 1 WHERE id = :id;",
        )
        .start();
    // 200 a second: the middle of the run is not far from here.
    wait_until("the run is well under way", || {
        server.value::<i64>("postgres", "SELECT last_value FROM steps") > 600
    });
    let mut holder = server.client("postgres");
    let freeze = thread::spawn(move || {
        holder.batch_execute("BEGIN; LOCK TABLE counters; SELECT pg_sleep(3); COMMIT;")
    });
    let finished = running.finish().expect_status(0);
    freeze.join().unwrap().expect("the lock was got");

    let text = std::fs::read_to_string(finished.path("result.json")).expect("it was written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let figures = &document["figures"];
    let figure = |name: &str| figures[name].as_f64().expect("a number");
    let ms = |distribution: &str, name: &str| {
        figures[distribution][name].as_f64().expect("a number") / 1e3
    };
    let not_processed = figure("due") - figure("processed");
    assert!((0.0..=1.0).contains(&not_processed), "{figures}");
    // Three tenths of all were due during the standstill and waited 1.5 s on average.
    assert!(
        (300.0..700.0).contains(&ms("latency", "avg_us")),
        "{figures}"
    );
    assert!(
        (1_500.0..2_600.0).contains(&ms("latency", "p90_us")),
        "{figures}"
    );
    assert!(
        (2_800.0..4_000.0).contains(&ms("latency", "max_us")),
        "{figures}"
    );
    // Only those that were under way wait inside the server: all the others wait to begin.
    assert!(ms("service", "p50_us") < 100.0, "{figures}");
    assert!(
        ms("service", "avg_us") < ms("latency", "avg_us") / 4.0,
        "{figures}"
    );
}
