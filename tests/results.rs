//! Result files: written whole at the end of a run however that ends, and told again; and conditions
//! that a run must not meet.

mod support;

use support::{Finished, Server, Signal, pgmark, pgmark_alone, wait_until};

/// The result file of a program with `--json result.json`.
fn document(finished: &Finished) -> serde_json::Value {
    let text = std::fs::read_to_string(finished.path("result.json")).expect("it was written");
    serde_json::from_str(&text).expect("JSON")
}

/// What `pgmark report` prints of it.
fn reported(finished: &Finished) -> String {
    let report = pgmark_alone()
        .args("report")
        .arg(finished.path("result.json"));
    report.run().expect_status(0).stdout
}

#[test]
fn a_result_is_told_again_as_it_was_printed() {
    for options in [
        "-t 50 -r",
        "-T 0.5 -R 300 -L 100",
        "-t 20 -C --max-tries 3 --failures-detailed",
        "-t 30 --warmup 0.2 --pgbench-figures --latency-percentiles 50,99",
    ] {
        let finished = pgmark(Server::shared())
            .args("-c 2 -j 2 --json result.json --label mine --tag branch=main")
            .args(options)
            .script("\\set n random(1, 9)\nSELECT :n;")
            .logged()
            .run()
            .expect_status(0);
        assert_eq!(reported(&finished), finished.stdout, "{options}");
        let document = document(&finished);
        assert_eq!(document["schema"], "pgmark-result");
        assert_eq!(document["run"]["label"], "mine");
        assert_eq!(document["run"]["tags"][0][1], "main");
        let place = &document["place"];
        assert!(place["host"]["processors"].as_u64() > Some(0), "{place}");
        assert_eq!(place["server"]["database"], "postgres");
        let settings = place["server"]["settings"].as_array().expect("a list");
        let fsync = settings.iter().find(|it| it["name"] == "fsync");
        assert_eq!(fsync.expect("it is set")["value"], "off");
        // printf '\\set n random(1, 9)\nSELECT :n;\n' | sha256sum
        let hash = "f7eb02796271f7e16bebc7546a7b411fdb5c5ebee0ff4369cb9d51973ce11370";
        assert_eq!(document["facts"]["scripts"][0]["sha256"], hash);
        let figures = &document["figures"];
        assert_eq!(figures["processed"], finished.processed(), "{options}");
        let tps = figures["tps"].as_f64().expect("a number");
        assert!((tps - finished.figure("tps = ")).abs() < 1e-5, "{finished}");
        // Nothing but the files that were asked for is left.
        let entries = std::fs::read_dir(finished.path("")).expect("it is there");
        assert_eq!(entries.count(), 3, "script, log and result");
    }
}

#[test]
fn passwords_are_in_no_result() {
    let settings = "primary_conninfo = 'host=elsewhere password=open-sesame'\n";
    let server = Server::with("local all all trust\n", settings);
    let connection = format!(
        "host={} port={} user=postgres password=open-sesame dbname=postgres",
        server.socket_directory().display(),
        server.port()
    );
    let finished = pgmark_alone()
        .args("-t 2 --json result.json")
        .script("SELECT 1;")
        .arg(connection)
        .run()
        .expect_status(0);
    let text = document(&finished).to_string();
    assert!(!text.contains("sesame"), "{text}");
    assert_eq!(text.matches("(masked)").count(), 2, "{text}");
}

#[test]
fn a_run_that_is_stopped_or_goes_wrong_leaves_its_result_too() {
    let server = Server::with("local all all trust\n", "");
    server
        .client("postgres")
        .batch_execute("CREATE SEQUENCE steps")
        .expect("a new server has no such thing");
    let running = pgmark(&server)
        .args("-T 60 --json result.json")
        .script("SELECT nextval('steps');")
        .start();
    wait_until("it works", || {
        server.value::<i64>("postgres", "SELECT last_value FROM steps") > 10
    });
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    assert_eq!(document(&finished)["exit_code"], 130);
    assert_eq!(reported(&finished), finished.stdout);

    let finished = pgmark(&server)
        .args("-t 3 --json result.json")
        .script("SELECT 1/0;")
        .run()
        .expect_status(2);
    assert_eq!(document(&finished)["exit_code"], 2);
    assert_eq!(reported(&finished), finished.stdout);
}

#[test]
fn a_result_that_cannot_be_written_is_known_before_the_run() {
    let finished = pgmark(Server::shared())
        .args("-t 3 --json no/such/result.json")
        .script("SELECT 1;")
        .run()
        .expect_status(1);
    finished
        .expect_no_tps()
        .expect_stderr(&["could not create \"no/such/result.json\""]);
}

#[test]
fn a_condition_that_is_met_makes_status_3_and_says_by_how_much() {
    let run = |conditions: &[&str]| {
        let mut program = pgmark(Server::shared()).args("-c 2 -t 20 --json result.json");
        for condition in conditions {
            program = program.arg("--fail-if").arg(condition);
        }
        program.script("SELECT pg_sleep(0.002);").run()
    };
    let finished = run(&["p99 > 1h", "tps < 0.1"]);
    finished
        .expect_status(1)
        .expect_stderr(&["is no bound for p99"]);
    run(&["p99 > 60s", "tps < 0.1", "failed > 0"]).expect_status(0);
    let finished = run(&["mean > 1ms", "tps=1000000", "failed > 0"]).expect_status(3);
    assert_eq!(document(&finished)["exit_code"], 3);
    finished.expect_stderr_lines(2).expect_stderr(&[
        "failed by --fail-if mean > 1ms: it is ",
        " ms more than the bound",
        "failed by --fail-if tps=1000000: it is ",
        "/s less than the bound",
    ]);
}
