//! Result files: written whole at the end of a run however that ends, and told again; and conditions
//! that a run must not meet.

mod support;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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

/// The columns of a file of summaries as a table has them: numbers, texts, and one moment.
fn column_type(name: &str) -> &'static str {
    const TEXTS: [&str; 19] = [
        "schema",
        "run_id",
        "label",
        "tags",
        "status",
        "pgmark_version",
        "server_version",
        "database",
        "client_host",
        "scripts",
        "script_sha",
        "query_mode",
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "settings_sha",
        "warnings",
        "result_file",
        "same_host",
    ];
    match name {
        "started_utc" => "timestamp",
        "connect_per_transaction" => "boolean",
        text if TEXTS.contains(&text) => "text",
        _ => "numeric",
    }
}

/// Asserts that the last row of the file is the one that is made of the result again.
fn assert_same_row(summaries: &Path, result: &Path) {
    let text = std::fs::read_to_string(summaries).expect("it was written");
    let table = pgmark_alone().args("report --csv -").arg(result);
    let table = table.run().expect_status(0).stdout;
    assert_eq!(table.lines().next(), text.lines().next());
    // The last cell is how the result file was named.
    let row = |text: &str| {
        let row = text.lines().last().and_then(|row| row.rsplit_once(','));
        row.expect("there is one").0.to_owned()
    };
    assert_eq!(row(&table), row(&text));
}

#[test]
fn summaries_of_runs_are_rows_of_a_table() {
    let directory = tempfile::tempdir().expect("a place");
    let summaries = directory.path().join("summary.csv");
    for (label, options) in [
        ("=1+1", "-t 50"),
        ("-C", "-C -t 5 --tag a=b --tag c=d"),
        ("rated", "-T 1 -R 100 -L 50 --json result.json"),
    ] {
        let finished = pgmark(Server::shared())
            .args("-c 2")
            .args(options)
            .arg("--label")
            .arg(label)
            .arg("--summary-csv")
            .arg(&summaries)
            .script("SELECT 1;")
            .run()
            .expect_status(0);
        if label == "rated" {
            assert_same_row(&summaries, &finished.path("result.json"));
        }
    }
    let text = std::fs::read_to_string(&summaries).expect("it was written");
    let header = text.lines().next().expect("a header");
    let columns: Vec<String> = header
        .split(',')
        .map(|name| format!("{name} {} NOT NULL", column_type(name)))
        .collect();
    let mut client = Server::shared().client("postgres");
    let columns = columns.join(", ");
    client
        .batch_execute(&format!("CREATE TEMPORARY TABLE summaries ({columns})"))
        .expect("names of columns");
    let copy = "COPY summaries FROM STDIN (FORMAT csv, HEADER match, FORCE_NOT_NULL \
                (label, tags, database, client_host, settings_sha, warnings, result_file))";
    let mut writer = client.copy_in(copy).expect("it copies");
    std::io::Write::write_all(&mut writer, text.as_bytes()).expect("all of it");
    assert_eq!(writer.finish().expect("every row fits"), 3);
    let told = client
        .query(
            "SELECT label, tags, processed::int8, due::int8, \
                    (tps > 0 AND p50_us > 0 AND p50_us <= max_us), connects::int8, \
                    result_file, status \
             FROM summaries ORDER BY started_utc",
            &[],
        )
        .expect("columns");
    type Told = (String, String, i64, bool, i64, String, String);
    let told: Vec<Told> = told
        .iter()
        .map(|row| {
            let (label, processed): (String, i64) = (row.get(0), row.get(2));
            let due: i64 = row.get(3);
            assert!(due >= processed, "{due} {processed}");
            let processed = if label == "rated" { -1 } else { processed };
            (
                label,
                row.get(1),
                processed,
                row.get(4),
                row.get(5),
                row.get(6),
                row.get(7),
            )
        })
        .collect();
    let expected = |label: &str, tags: &str, processed, connects, result: &str| -> Told {
        let text = str::to_owned;
        (
            text(label),
            text(tags),
            processed,
            true,
            connects,
            text(result),
            text("ok"),
        )
    };
    assert_eq!(
        told,
        [
            expected("'=1+1", "", 100, 0, ""),
            expected("'-C", "a=b;c=d", 10, 10, ""),
            expected("rated", "", -1, 0, "result.json"),
        ]
    );
}

#[test]
fn the_course_of_a_run_is_kept_second_by_second() {
    let finished = pgmark(Server::shared())
        .args("-c 2 -T 2.5 -R 200 --json result.json --hdr run.hlog")
        .script("SELECT pg_sleep(0.001);")
        .run()
        .expect_status(0);
    let document = document(&finished);
    let slices = document["measured"]["course"]["slices"].as_array();
    let slices = slices.expect("there is a course");
    assert_eq!(slices.len(), 3);
    let sum = |what: &str| -> u64 { slices.iter().map(|it| it[what].as_u64().unwrap()).sum() };
    assert_eq!(sum("processed"), finished.processed());
    assert_eq!(sum("due"), document["figures"]["due"].as_u64().unwrap());
    for slice in slices {
        let of = |what: &str| slice["latency"][what].as_u64().expect("a number");
        assert!(
            1_000_000 <= of("p50_ns") && of("p50_ns") <= of("p99_ns"),
            "{slice}"
        );
        assert!(of("p99_ns") <= of("max_ns"), "{slice}");
        assert_eq!(slice["clients_connected"], 2);
    }
    let log = std::fs::read_to_string(finished.path("run.hlog")).expect("it was written");
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[1].starts_with("#[Histogram log format version"),
        "{log}"
    );
    assert!(lines[4].starts_with("0.000,1.000,"), "{log}");
    assert_eq!(lines.len(), 7, "{log}");
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
fn a_name_that_no_file_can_have_is_known_before_the_run() {
    for options in ["--json new/", "--html new/", "--summary-csv new/"] {
        pgmark(Server::shared())
            .args("-t 3")
            .args(options)
            .script("SELECT 1;")
            .run()
            .expect_status(1)
            .expect_no_tps()
            .expect_stderr(&["\"new/\": is a directory"]);
    }
}

fn pipe(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo can be started").success());
    path
}

#[test]
fn what_goes_through_a_pipe_arrives_whole() {
    for option in ["--json", "--html", "--summary-csv"] {
        let directory = tempfile::tempdir().expect("a place");
        let pipe = pipe(directory.path());
        let running = pgmark(Server::shared())
            .args("-t 3")
            .arg(option)
            .arg(&pipe)
            .script("SELECT 1;")
            .start();
        let read = std::fs::read_to_string(&pipe).expect("somebody writes");
        running.finish().expect_status(0);
        let (begins, ends) = match option {
            "--json" => ("{\n", "}\n"),
            "--html" => ("<!DOCTYPE html>", "</html>\n"),
            _ => ("schema,run_id,", "\n"),
        };
        assert!(read.starts_with(begins) && read.ends_with(ends), "{read}");
    }
}

/// A page is longer than a pipe is.
#[test]
fn a_reader_that_stops_reading_is_left_at_a_signal() {
    let directory = tempfile::tempdir().expect("a place");
    let pipe = pipe(directory.path());
    let running = pgmark(Server::shared())
        .args("-t 3 --json result.json --html")
        .arg(&pipe)
        .script("SELECT 1;")
        .start();
    let mut reader = File::open(&pipe).expect("somebody writes");
    reader.read_exact(&mut [0]).expect("the page has begun");
    running.signal(Signal::TERM);
    let finished = running.finish().expect_status(1);
    assert_eq!(reported(&finished), finished.stdout);
    finished.expect_stderr(&["its reader let us wait until a signal came"]);
}

/// While the run waits for the reader of a pipe, it has not begun.
#[test]
fn a_signal_before_anything_was_measured_leaves_no_result_and_says_so() {
    let server = Server::with("local all all trust\n", "");
    let running = pgmark(&server)
        .args("-t 3 --json result.json --summary-csv rows.csv")
        .arg("--on-connect")
        .arg("SELECT pg_sleep(60)")
        .script("SELECT 1;")
        .start();
    wait_until("it waits", || {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        server.value::<i64>("postgres", waiting) == 1
    });
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    for name in ["result.json", "rows.csv"] {
        assert!(!finished.path(name).exists(), "{name}");
    }
    finished
        .expect_stderr(&["nothing was measured before the signal, so that no result is written"]);
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
