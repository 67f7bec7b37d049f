//! What is kept in files while a run goes on, against a real server: the sums over the rows are the
//! figures of the summary, whatever the format, and the files are complete to their last line.

mod support;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use support::{Finished, Server, Signal, pgmark, wait_until};

/// A transaction of which one in four fails, also when it is tried again with the same numbers:
/// the server says that it could not be serialized.
const CONTENDED: &str = "\\set kind random(1, 4)\n\
    \\if :kind = 1\n\
    DO $$ BEGIN RAISE EXCEPTION 'as if' USING errcode = '40001'; END $$;\n\
    \\else\n\
    SELECT 1;\n\
    \\endif\n";

const QUICK: &str = "SELECT 1;";

/// The cells of a CSV file by the names of its columns.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = text_of(path);
    assert!(text.ends_with('\n'), "the last line is cut off");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let rows = reader.records().map(|row| {
        let row = row.expect("as many cells as the header has");
        let cells = header.iter().zip(&row);
        cells
            .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
            .collect()
    });
    rows.collect()
}

/// The text of a file, uncompressed if its name says that it is compressed.
fn text_of(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|ending| ending != "gz") {
        return String::from_utf8(bytes).expect("text");
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("the file is complete");
    text
}

/// The files whose names begin like this, in their order.
fn files(finished: &Finished, beginning: &str) -> Vec<PathBuf> {
    let directory = finished.path("");
    let entries = std::fs::read_dir(&directory).expect("the run left its directory");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(beginning)
        })
        .collect();
    found.sort();
    found
}

fn sum(rows: &[BTreeMap<String, String>], script: &str, column: &str) -> u64 {
    let rows = rows.iter().filter(|row| row["script"] == script);
    rows.map(|row| -> u64 { row[column].parse().expect("a whole number") })
        .sum()
}

#[test]
fn a_checkpoint_stands_in_the_interval_in_which_it_was_seen() {
    let server = Server::with("local all all trust\n", "checkpoint_timeout = 1h\n");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("intervals.csv");
    let mut control = server.client("postgres");
    let running = pgmark(&server)
        .args("-n -T 30 --interval-csv")
        .arg(&path)
        .script("SELECT pg_sleep(0.01);")
        .start();
    let watches = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%checkpoints_req%' AND state = 'idle' AND pid <> pg_backend_pid()";
    wait_until("the checkpoints are looked at", || {
        control
            .query_one(watches, &[])
            .expect("an answer")
            .get::<_, i64>(0)
            > 0
    });
    control
        .batch_execute("CHECKPOINT")
        .expect("a superuser may");
    wait_until("it has been seen", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.lines().any(|row| row.ends_with(",1")))
    });
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    assert_eq!(sum(&table(&path), "all", "checkpoint"), 1, "{finished}");
}

#[test]
fn the_log_of_tries_has_a_row_for_each_try() {
    let finished = pgmark(Server::shared())
        .args("-n -c 3 -t 40 --max-tries 3 --log-file all.csv --log-tries tries.csv")
        .args("--sampling-rate 0.5 --log-time none")
        .script(CONTENDED)
        .run()
        .expect_status(0);
    let rows = table(&finished.path("tries.csv"));
    let of = |status: &str| rows.iter().filter(|row| row["status"] == status).count() as f64;
    let retries = finished.figure("total number of retries: ");
    assert!(retries > 0.0, "{finished}");
    assert_eq!(of("retried"), retries, "{finished}");
    assert_eq!(of("ok") + of("failed"), 120.0, "{finished}");
    assert_eq!(
        of("failed"),
        finished.figure("number of failed transactions: "),
        "{finished}"
    );
    let third = rows.iter().filter(|row| row["try"] == "3");
    assert!(third.clone().count() > 0);
    assert!(third.clone().all(|row| row["error"] == "SQLSTATE 40001"));
}

#[test]
fn a_run_that_never_began_leaves_its_files_as_they_were() {
    let server = Server::shared();
    server
        .client("postgres")
        .batch_execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1")
        .expect("a new role");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    std::fs::write(&old, "kept").expect("the directory is ours");
    pgmark(server)
        .args("-n -c 3 -t 1 -U lonely")
        .arg("--log-file")
        .arg(&old)
        .arg("--interval-csv")
        .arg(&new)
        .script("SELECT 1;")
        .run()
        .expect_status(1);
    assert_eq!(std::fs::read_to_string(&old).ok().as_deref(), Some("kept"));
    assert!(!new.exists());
}

#[test]
fn rows_of_intervals_add_up_to_the_summary() {
    let server = Server::shared();
    let finished = pgmark(server)
        .args("-c 4 -j 2 -T 2 --max-tries 2 --interval-csv intervals.csv")
        .args("-l --log-prefix run --aggregate-interval 500ms")
        .script(CONTENDED)
        .script(QUICK)
        .run()
        .expect_status(0);
    let failed = finished.figure("number of failed transactions: ") as u64;
    let retries = finished.figure("total number of retries: ") as u64;
    let log = &files(&finished, "run.")[0];
    for path in [&finished.path("intervals.csv"), log] {
        let rows = table(path);
        // Four intervals of three rows each; a straggler may have one of its own.
        assert!([12, 15].contains(&rows.len()), "{finished}");
        assert_eq!(sum(&rows, "all", "processed"), finished.processed());
        assert_eq!(sum(&rows, "all", "failed"), failed);
        assert_eq!(sum(&rows, "all", "retries"), retries);
        assert_eq!(
            sum(&rows, "all", "due"),
            finished.processed() + failed,
            "{finished}"
        );
        assert!(failed > 0 && retries > 0, "{finished}");
        for column in ["due", "processed", "failed", "retries"] {
            let scripts = ["script1.sql", "script2.sql"];
            let of_scripts = scripts.map(|script| sum(&rows, script, column));
            assert_eq!(of_scripts.iter().sum::<u64>(), sum(&rows, "all", column));
            assert!(of_scripts[0] > 0, "{column}\n{finished}");
        }
        assert!(rows[..9].iter().all(|row| row["clients_connected"] == "4"));
    }
}

#[test]
fn a_run_need_not_consist_of_whole_intervals() {
    let finished = pgmark(Server::shared())
        .args("-T 0.5 --interval-csv intervals.csv --aggregate-interval 0.2")
        .script(QUICK)
        .run()
        .expect_status(0);
    let rows = table(&finished.path("intervals.csv"));
    assert_eq!(rows.len(), 3, "{finished}");
    assert_eq!(sum(&rows, "all", "processed"), finished.processed());
}

#[test]
fn reconnecting_shows_in_the_rows_of_intervals() {
    let finished = pgmark(Server::shared())
        .args("-C -c 2 -t 20 --interval-csv intervals.csv")
        .script(QUICK)
        .run()
        .expect_status(0);
    let rows = table(&finished.path("intervals.csv"));
    assert_eq!(sum(&rows, "all", "connects"), 40);
    assert_eq!(rows.last().expect("a row")["clients_connected"], "0");
}

#[test]
fn compressed_files_are_complete_also_after_a_signal() {
    let server = Server::shared();
    let running = pgmark(server)
        .args("-c 2 -T 60 -P 200ms --log-file log.csv.gz --interval-csv intervals.csv.gz")
        .script(QUICK)
        .start();
    running.wait_for_stderr("progress: ");
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    let rows = table(&finished.path("log.csv.gz"));
    let processed = rows.iter().filter(|row| row["status"] == "ok").count();
    assert_eq!(processed as u64, finished.processed());
    let intervals = table(&finished.path("intervals.csv.gz"));
    assert_eq!(sum(&intervals, "all", "processed"), finished.processed());
}

#[test]
fn a_sample_is_the_one_that_the_seed_chooses() {
    let finished = pgmark(Server::shared())
        .args("-t 40 --random-seed 42 --sampling-rate 0.3 --log-file log.csv")
        .script(QUICK)
        .run()
        .expect_status(0);
    assert_eq!(finished.processed(), 40);
    let rows = table(&finished.path("log.csv"));
    let logged: Vec<&str> = rows.iter().map(|row| row["transaction"].as_str()).collect();
    let expected = ["1", "3", "12", "13", "16", "19", "24", "28", "32", "35"];
    assert_eq!(logged, expected);
}

#[test]
fn a_split_log_has_all_rows_in_its_files() {
    let finished = pgmark(Server::shared())
        .args("-c 2 -t 25 --log-file log.csv --log-split-rows 20 --log-time epoch")
        .script(QUICK)
        .run()
        .expect_status(0);
    let files = files(&finished, "log.");
    let rows: Vec<usize> = files.iter().map(|path| table(path).len()).collect();
    assert_eq!(rows, [20, 20, 10], "{files:?}");
    let moment: u64 = table(&files[0])[0]["completed_epoch_us"]
        .parse()
        .expect("a number");
    assert!(moment > 1_600_000_000_000_000);
}

#[test]
fn pgbenchs_lines_are_one_file_a_thread() {
    let finished = pgmark(Server::shared())
        .args("-c 3 -j 2 -t 30 --max-tries 2 -l --log-prefix pgbench_log --log-format pgbench")
        .script(CONTENDED)
        .run()
        .expect_status(0);
    let files = files(&finished, "pgbench_log.");
    let names: Vec<String> = files
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0]["pgbench_log.".len()..]
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    );
    assert_eq!(names[1], format!("{}.1", names[0]));

    let (mut processed, mut failed, mut retries) = (0, 0, 0);
    for (path, clients) in files.iter().zip([["0", "1"].as_slice(), &["2"]]) {
        for line in text_of(path).lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            assert_eq!(fields.len(), 7, "{line}");
            assert!(clients.contains(&fields[0]), "{line}");
            match fields[2] {
                "failed" => failed += 1,
                latency => {
                    let _: u64 = latency.parse().expect("microseconds");
                    processed += 1;
                }
            }
            let micros: u64 = fields[5].parse().expect("a number");
            assert!(fields[3] == "0" && micros < 1_000_000, "{line}");
            retries += fields[6].parse::<u64>().expect("a number");
        }
    }
    assert_eq!(processed, finished.processed());
    assert_eq!(
        failed,
        finished.figure("number of failed transactions: ") as u64
    );
    assert_eq!(retries, finished.figure("total number of retries: ") as u64);
}

#[test]
fn pgbenchs_aggregates_lose_nothing() {
    let finished = pgmark(Server::shared())
        .args("-c 2 -j 2 -T 2 -l --log-prefix log --log-format pgbench --aggregate-interval 1")
        .script(CONTENDED)
        .run()
        .expect_status(0);
    let (mut processed, mut failed) = (0, 0);
    let files = files(&finished, "log.");
    assert_eq!(files.len(), 2);
    for path in &files {
        let mut expected_s = None;
        for line in text_of(path).lines() {
            let fields: Vec<u64> = line
                .split(' ')
                .map(|field| field.parse().expect("a number"))
                .collect();
            assert_eq!(fields.len(), 15, "{line}");
            assert_eq!(fields[0], expected_s.unwrap_or(fields[0]), "{line}");
            expected_s = Some(fields[0] + 1);
            let (count, sum, sum_of_squares) = (fields[1], fields[2], fields[3]);
            let (min, max) = (fields[4], fields[5]);
            assert!(count * min <= sum && sum <= count * max, "{line}");
            assert!(sum * sum <= count * sum_of_squares, "{line}");
            processed += count;
            failed += fields[13];
        }
    }
    assert_eq!(processed, finished.processed());
    assert_eq!(
        failed,
        finished.figure("number of failed transactions: ") as u64
    );
}

#[test]
fn the_progress_line_ends_with_a_percentile_and_may_tell_the_time_of_day() {
    let finished = pgmark(Server::shared())
        .args("-T 1 -P 500ms --progress-timestamp")
        .script(QUICK)
        .run()
        .expect_status(0);
    let line = finished
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("progress: "))
        .unwrap_or_else(|| panic!("no line of progress\n{finished}"));
    let (time, rest) = line.split_once(" s, ").expect("a time");
    assert!(time.parse::<f64>().expect("a number") > 1.6e9, "{line}");
    let (_, p99) = rest.split_once(" failed, p99 ").expect("a percentile");
    assert!(p99.ends_with(" ms"), "{line}");
}
