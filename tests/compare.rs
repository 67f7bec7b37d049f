//! Comparisons of result files: what is refused, what is shown in which form, and the exit status.

mod support;

use std::path::{Path, PathBuf};

use support::{Finished, Server, pgmark, pgmark_alone};

/// Result files of four runs of a script that takes so many ms, as if an optimised program had made
/// them.
fn results(directory: &Path, label: &str, sleep_ms: f64) -> Vec<PathBuf> {
    let result = |number: u32| {
        let finished = pgmark(Server::shared())
            .args("-n -c 2 -t 20 --json result.json --tag side=x")
            .arg(format!("--label={label}"))
            .arg(format!("--random-seed={}", number + 1))
            .script(&format!(
                "\\sleep {} us\nSELECT 1;",
                (sleep_ms * 1e3) as u64
            ))
            .run()
            .expect_status(0);
        let text = std::fs::read_to_string(finished.path("result.json")).expect("it was written");
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let debug = &mut document["facts"]["build"]["debug"];
        assert!(debug.is_boolean(), "{document}");
        *debug = false.into();
        let path = directory.join(format!("{}-{number}.json", label.len()));
        std::fs::write(&path, document.to_string()).expect("the directory is ours");
        path
    };
    (0..4).map(result).collect()
}

fn compare(options: &str, base: &[PathBuf], new: &[PathBuf]) -> Finished {
    let mut program = pgmark_alone().args("compare").args(options).arg("--base");
    for path in base {
        program = program.arg(path);
    }
    program = program.arg("--new");
    for path in new {
        program = program.arg(path);
    }
    program.run()
}

#[test]
fn a_slower_script_is_shown_to_be_slower_in_every_form() {
    let directory = tempfile::tempdir().expect("a place");
    let hostile = "<script>alert(1)</script>";
    let base = results(directory.path(), "base", 2.0);
    let new = results(directory.path(), hostile, 8.0);

    compare("", &base, &new)
        .expect_status(1)
        .expect_stderr(&["did not do the same work: scripts: ", "--allow-different"]);

    let text = compare("--allow-different", &base, &new)
        .expect_status(0)
        .stdout;
    let line = |name: &str| -> String {
        let found = text.lines().find(|line| line.starts_with(name));
        found
            .unwrap_or_else(|| panic!("no {name}: {text}"))
            .to_owned()
    };
    assert!(line("different work = ").contains("scripts: "), "{text}");
    assert!(line("throughput").ends_with("  worse"), "{text}");
    assert!(line("mean latency").ends_with("  worse"), "{text}");
    // Forty transactions have no 99th percentile.
    assert!(line("p99 ").ends_with("  not measured"), "{text}");
    assert!(
        text.contains("Runs with the same seed were compared in pairs"),
        "{text}"
    );

    let csv = compare("--allow-different --csv -", &base, &new)
        .expect_status(0)
        .stdout;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 7, "{csv}");
    let ratio: f64 = rows[0][8].parse().expect("a number");
    assert!((0.1..0.8).contains(&ratio), "{csv}");
    assert_eq!(&rows[0][11], "worse");

    let json = compare("--allow-different --json -", &base, &new)
        .expect_status(0)
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "pgmark-comparison");
    assert_eq!(json["new"]["name"], hostile);
    assert_eq!(json["lines"][0]["verdict"], "worse");

    let page = compare("--allow-different --html -", &base, &new)
        .expect_status(0)
        .stdout;
    assert!(!page.contains("<script>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");

    compare("--allow-different --fail-if-worse 3%", &base, &new)
        .expect_status(3)
        .expect_stderr(&["failed by --fail-if-worse 3%: throughput is worse by "]);
    compare("--allow-different --fail-if-worse 3%", &new, &base).expect_status(0);
    compare("--allow-different --fail-if-worse 5000%", &base, &new).expect_status(0);
}

#[test]
fn the_same_is_not_different_and_a_single_run_is_no_verdict() {
    let directory = tempfile::tempdir().expect("a place");
    let runs = results(directory.path(), "same", 4.0);
    let (base, new) = runs.split_at(2);
    let same = compare("--fail-if-worse 50%", base, new).expect_status(0);
    let text = &same.stdout;
    assert!(text.contains("Welch"), "{text}");

    let single = compare("", &base[..1], new).expect_status(0).stdout;
    assert_eq!(single.matches("no verdict\n").count(), 3, "{single}");
    compare("--fail-if-worse 3", &base[..1], new)
        .expect_status(1)
        .expect_stderr(&["cannot tell from a single run a side"]);
    compare("", base, base)
        .expect_status(1)
        .expect_stderr(&["is given twice"]);

    let by = |what: &str, files: &[PathBuf]| {
        let program = pgmark_alone().args("compare --by").arg(what);
        files
            .iter()
            .fold(program, |program, path| program.arg(path))
            .run()
    };
    by("label", &runs)
        .expect_status(1)
        .expect_stderr(&["two kinds of run can be compared, and these are 1: \"same\""]);
    let others = results(directory.path(), "another", 4.0);
    let both: Vec<PathBuf> = runs.iter().chain(&others).cloned().collect();
    let text = by("label", &both).expect_status(0).stdout;
    assert!(
        text.starts_with("base = same, 4 runs\nnew = another, 4 runs\n"),
        "{text}"
    );
}

#[test]
fn what_is_read_is_not_written_over() {
    let directory = tempfile::tempdir().expect("a place");
    let runs = results(directory.path(), "only", 1.0);
    let before = std::fs::read(&runs[0]).expect("it was written");
    let first = runs[0].display();
    for options in [
        format!("--json {first}"),
        format!("--csv {first} --allow-different"),
        "--csv - --html -".to_owned(),
    ] {
        compare(&options, &runs[..1], &runs[1..2])
            .expect_status(1)
            .expect_stderr(&["Give each file a name of its own"]);
    }
    for options in [format!("--csv {first}"), "--csv - --html -".to_owned()] {
        pgmark_alone()
            .args(&format!("report {options} {first}"))
            .run()
            .expect_status(1)
            .expect_stderr(&["Give each file a name of its own"]);
    }
    assert_eq!(std::fs::read(&runs[0]).expect("it is there"), before);
}

#[test]
fn what_a_debug_build_has_made_is_refused() {
    let finished = pgmark(Server::shared())
        .args("-t 2 --json result.json")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    let result = [finished.path("result.json")];
    compare("--allow-different", &result, &result)
        .expect_status(1)
        .expect_stderr(&["was made by a debug build"]);
}
