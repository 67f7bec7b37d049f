//! What the server says of itself: its own count of commits beside ours, counters of its views, and
//! servers that do not tell.

mod support;

use support::{Finished, Server, pgmark, pgmark_alone};

fn activity(finished: &Finished) -> serde_json::Value {
    let text = std::fs::read_to_string(finished.path("result.json")).expect("it was written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    document["facts"]["server"].clone()
}

fn counter(activity: &serde_json::Value, name: &str) -> f64 {
    let value = activity["counters"][name].as_f64();
    value.unwrap_or_else(|| panic!("no {name}: {activity}"))
}

/// A server on which nobody else is.
fn server() -> Server {
    Server::with("local all all trust\n", "")
}

#[test]
fn the_servers_count_of_commits_and_ours_agree() {
    let server = server();
    server
        .client("postgres")
        .batch_execute("CREATE TABLE t AS SELECT 1 AS a")
        .expect("a new server has no such table");
    for (script, commits) in [
        ("SELECT 1;", 1),
        ("BEGIN;\nUPDATE t SET a = a + 1;\nEND;\nSELECT 2;", 2),
    ] {
        let finished = pgmark(&server)
            .args("-n -c 1 -t 3000 --json result.json")
            .script(script)
            .run()
            .expect_status(0);
        let activity = activity(&finished);
        assert_eq!(activity["expected_commits"]["transactions"], 3000 * commits);
        let counted = counter(&activity, "pg_stat_database.xact_commit");
        let expected = f64::from(3000 * commits);
        assert!(
            (expected..expected * 1.01 + 70.0).contains(&counted),
            "{activity}"
        );
        assert!(
            !finished.stderr.contains("the server counted"),
            "{}",
            finished.stderr
        );
    }
    // What comes before the window counts, too.
    let finished = pgmark(&server)
        .args("-n -c 1 -T 1 --warmup 1 -R 2000 -M prepared --json result.json")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    let activity_with_warmup = activity(&finished);
    let expected = activity_with_warmup["expected_commits"]["transactions"].as_u64();
    let processed = finished.processed();
    // The counters are of the window, but for a second of which sessions had not told yet.
    let counted = counter(&activity_with_warmup, "pg_stat_database.xact_commit");
    let whole = activity_with_warmup["expected_commits"]["counted"].as_f64();
    assert!(Some(counted) < whole, "{activity_with_warmup}");
    assert!(expected > Some(processed * 3 / 2), "{activity_with_warmup}");
    assert!(
        !finished.stderr.contains("the server counted"),
        "{}",
        finished.stderr
    );

    // Under -C nobody can tell.
    let finished = pgmark(&server)
        .args("-n -C -t 5 --json result.json")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    assert!(activity(&finished)["expected_commits"].is_null());
}

#[test]
fn commits_of_others_are_told() {
    let server = server();
    // Whoever is there before the run makes the count void.
    let running = pgmark(&server)
        .args("-n -T 3 -R 200 -P 0.5")
        .script("SELECT 1;")
        .start();
    running.wait_for_stderr("progress: ");
    let mut other = server.client("postgres");
    for _ in 0..2_000 {
        other
            .batch_execute("SELECT 1")
            .expect("a server that answers");
    }
    drop(other);
    running
        .finish()
        .expect_status(0)
        .expect_stderr(&["the server counted ", "others were at work there"]);
}

#[test]
fn what_a_write_run_costs_the_server_is_counted() {
    let finished = pgmark_alone()
        .args("--temp-cluster --temp-config shared_buffers=1MB -s 1 -c 2 -t 300 --json result.json")
        .run()
        .expect_status(0);
    let activity = activity(&finished);
    assert!(
        counter(&activity, "pg_stat_wal.wal_records") > 600.0,
        "{activity}"
    );
    assert!(activity["wal_bytes"].as_u64() > Some(60_000), "{activity}");
    assert!(
        counter(&activity, "pg_stat_database.tup_updated") >= 1_800.0,
        "{activity}"
    );
    assert!(
        counter(&activity, "pg_stat_database.blks_read") > 300.0,
        "{activity}"
    );
    assert!(
        finished
            .stdout
            .contains("% of reads from outside shared buffers"),
        "{finished}"
    );
}

#[test]
fn a_server_that_does_not_tell_is_no_failure() {
    let server = server();
    server
        .client("postgres")
        .batch_execute(
            "REVOKE SELECT ON pg_catalog.pg_stat_wal FROM PUBLIC; CREATE ROLE plain LOGIN; \
             GRANT EXECUTE ON FUNCTION pg_stat_reset() TO plain",
        )
        .expect("a new server has no such role");
    let finished = pgmark(&server)
        .args("-n -U plain -t 50 --json result.json")
        .script("SELECT 1;")
        .run()
        .expect_status(0)
        .expect_stderr(&[
            "the server cannot be asked what it did during the run: pg_stat_wal: ",
            "permission denied",
        ]);
    let told = activity(&finished);
    assert!(
        told["counters"]["pg_stat_wal.wal_records"].is_null(),
        "{told}"
    );
    assert!(
        counter(&told, "pg_stat_database.xact_commit") >= 50.0,
        "{told}"
    );

    // Counters that are reset meanwhile say nothing, and nothing is made of them.
    let finished = pgmark(&server)
        .args("-n -t 50 --json result.json")
        .script("SELECT pg_stat_reset();")
        .run()
        .expect_status(0);
    assert!(
        !finished.stderr.contains("the server counted"),
        "{}",
        finished.stderr
    );
}
