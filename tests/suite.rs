//! Suites by make: what runs, what is kept, what runs again, and what is refused.

mod support;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use support::{Server, wait_until};

/// A directory with a Makefile of somebody, and the suite's server, which ends with it.
struct Suite {
    directory: tempfile::TempDir,
}

impl Suite {
    fn new(variables: &str) -> Suite {
        let suite = Suite {
            directory: tempfile::tempdir().expect("a place"),
        };
        suite.set(variables);
        suite
    }

    /// Writes the Makefile.
    fn set(&self, variables: &str) {
        let program = env!("CARGO_BIN_EXE_pgmark");
        let text = format!(
            "PGMARK = {program}\nDURATION = 1\nWARMUP = 0\nBEFORE =\n{variables}\n\
             include $(shell $(PGMARK) --suite-mk)\n"
        );
        std::fs::write(self.path("Makefile"), text).expect("the directory is ours");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new("make");
        command
            .current_dir(self.directory.path())
            .args(words.split_whitespace())
            .env("TMPDIR", "/tmp")
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL");
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
            command.env_remove(name);
        }
        command
    }

    /// Standard output and error of make, and whether it went well.
    fn make(&self, words: &str) -> (String, bool) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().expect("make is there");
        let text = [stdout, stderr].concat();
        (
            String::from_utf8_lossy(&text).into_owned(),
            status.success(),
        )
    }

    /// As [`Suite::make`], with a server that is there.
    fn make_at(&self, server: &Server, words: &str) -> (String, bool) {
        let output = self
            .command(words)
            .env("PGHOST", server.socket_directory())
            .env("PGPORT", server.port().to_string())
            .env("PGUSER", "postgres")
            .output()
            .expect("make is there");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (text, output.status.success())
    }

    /// As [`Suite::make`], in a process group of its own, which goes on.
    fn start(&self, words: &str) -> Group {
        let child = self
            .command(words)
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Group(child.expect("make is there"))
    }

    /// The results by name, each with what makes it another file.
    fn results(&self) -> BTreeMap<String, (u64, String)> {
        use std::os::unix::fs::MetadataExt;
        let Ok(entries) = std::fs::read_dir(self.path("results/runs")) else {
            return BTreeMap::new();
        };
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        let results = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
        results
            .map(|path| {
                let inode = std::fs::metadata(&path).expect("it is there").ino();
                (name(&path), (inode, run_id(&path)))
            })
            .collect()
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        let place = std::fs::read_to_string(self.path("results/server")).unwrap_or_default();
        self.make("stop-server");
        let place = place.trim();
        if place.starts_with("/tmp/pgmark-suite.") {
            let _ = std::fs::remove_dir_all(place);
        }
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a file");
    name.to_string_lossy().into_owned()
}

fn document(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("it is there");
    serde_json::from_str(&text).expect("JSON")
}

fn run_id(path: &Path) -> String {
    document(path)["run"]["id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

/// A process group that ends with us.
struct Group(Child);

impl Group {
    fn kill(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        self.0.wait().expect("it is our child");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Two variants, three numbers of clients and two repeats: twelve runs.
const TWELVE: &str =
    "CLIENTS = 1 2 3\nREPEATS = 2\nSCRIPTS = select-only\nVARIANTS = a b\na =\nb = work_mem=8MB";

#[test]
fn a_suite_that_was_killed_goes_on_and_grows_by_what_is_new() {
    let suite = Suite::new(TWELVE);
    let (plan, _) = suite.make("plan");
    assert!(plan.contains("runs = 12 of 1 s each"), "{plan}");
    assert!(plan.contains("to go = 12"), "{plan}");
    let (dry, _) = suite.make("-n suite");
    let lines: Vec<&str> = dry
        .lines()
        .filter(|line| line.contains(" --json "))
        .collect();
    assert_eq!(lines.len(), 12, "{dry}");
    assert_eq!(dry.lines().count(), 13, "{dry}");
    // A B, and in the next repeat B A; the same seed for both.
    let labels: Vec<bool> = lines
        .iter()
        .map(|line| line.contains("--label a "))
        .collect();
    assert_eq!(labels[..2], [true, false]);
    assert_eq!(labels[6..8], [false, true]);
    let seeds = |seed: &str| lines.iter().filter(|line| line.contains(seed)).count();
    assert_eq!(
        (seeds("--random-seed 421 "), seeds("--random-seed 422 ")),
        (6, 6)
    );
    assert!(suite.results().is_empty(), "nothing was run");

    let mut running = suite.start("suite");
    let fourth = || {
        suite.results().len() == 3
            && std::fs::read_dir(suite.path("results/runs")).is_ok_and(|entries| {
                entries
                    .flatten()
                    .filter(|it| it.path().extension().is_some_and(|it| it == "args"))
                    .count()
                    == 4
            })
    };
    wait_until("the fourth run is going on", fourth);
    let (refused, good) = suite.make("suite");
    assert!(!good && refused.contains("another make"), "{refused}");
    running.kill();
    let before = suite.results();
    assert_eq!(before.len(), 3);

    let (text, good) = suite.make("suite");
    assert!(good, "{text}");
    let after = suite.results();
    assert_eq!(after.len(), 12, "{text}");
    assert!(
        before
            .iter()
            .all(|(name, result)| after.get(name) == Some(result)),
        "three were kept"
    );
    let (text, good) = suite.make("report");
    assert!(good, "{text}");
    let summary =
        std::fs::read_to_string(suite.path("results/summary.csv")).expect("it was written");
    assert_eq!(summary.lines().count(), 13);
    let ids: std::collections::BTreeSet<&str> = summary
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(1))
        .collect();
    assert_eq!(ids.len(), 12, "no row comes twice");
    let index = std::fs::read_to_string(suite.path("results/index.html")).expect("it was written");
    assert!(
        index.contains("<h1>12 runs</h1>") && index.contains("<svg"),
        "{index}"
    );
    // The variant had its setting.
    let setting = |name: &str| {
        let settings =
            document(&suite.path(&format!("results/runs/{name}")))["place"]["server"]["settings"]
                .to_string();
        settings.contains("work_mem")
    };
    for name in after.keys() {
        assert_eq!(setting(name), name.starts_with("b@"), "{name}");
    }

    // One more number of clients runs only what is new.
    suite.set(&TWELVE.replace("1 2 3", "1 2 3 4"));
    let (plan, _) = suite.make("plan");
    assert!(
        plan.contains("done = 12\n") && plan.contains("to go = 4"),
        "{plan}"
    );
    // A changed setting runs only those that it touches.
    suite.set(
        &TWELVE
            .replace("work_mem=8MB", "work_mem=16MB")
            .replace("1 2 3", "1"),
    );
    let (text, good) = suite.make("suite");
    assert!(good, "{text}");
    let now = suite.results();
    let changed: Vec<&String> = now
        .keys()
        .filter(|name| now.get(*name) != after.get(*name))
        .collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(
        changed
            .iter()
            .all(|name| name.starts_with("b@") && name.contains("@1@1@")),
        "{changed:?}"
    );

    // Another version is another experiment.
    let versions = suite.path("results/versions");
    let known = std::fs::read_to_string(&versions).expect("it was noted");
    std::fs::write(&versions, known.replace("pgmark ", "pgmark 0.0."))
        .expect("the directory is ours");
    suite.set(&TWELVE.replace("REPEATS = 2", "REPEATS = 3"));
    let (text, good) = suite.make("suite");
    assert!(!good && text.contains("take another RESULTS"), "{text}");
}

#[test]
fn a_condition_keeps_the_result_and_fails_the_suite_in_the_end() {
    let suite = Suite::new(
        "CLIENTS = 1 2\nREPEATS = 1\nSCRIPTS = mine.sql\nSETUP = setup.sql\nFAIL_IF = tps=100000000",
    );
    std::fs::write(suite.path("mine.sql"), "SELECT * FROM mine;\n").expect("the directory is ours");
    std::fs::write(suite.path("setup.sql"), "CREATE TABLE mine (a int);\n")
        .expect("the directory is ours");
    let (text, good) = suite.make("suite");
    assert!(
        !good && text.contains("runs that met a condition of FAIL_IF"),
        "{text}"
    );
    assert_eq!(suite.results().len(), 2, "{text}");
    let before = suite.results();
    let (text, good) = suite.make("suite");
    assert!(!good && text.contains("FAIL_IF"), "{text}");
    assert_eq!(suite.results(), before, "nothing ran again");
    // Where the results lie is no part of them.
    std::fs::rename(suite.path("results"), suite.path("moved")).expect("the directory is ours");
    let (plan, _) = suite.make("plan RESULTS=moved");
    assert!(plan.contains("done = 2\n"), "{plan}");
    std::fs::rename(suite.path("moved"), suite.path("results")).expect("the directory is ours");
    // What has changed runs again, with the data that it needs.
    std::fs::write(suite.path("setup.sql"), "CREATE TABLE mine (b text);\n")
        .expect("the directory is ours");
    std::fs::write(suite.path("mine.sql"), "SELECT b FROM mine;\n").expect("the directory is ours");
    let (plan, _) = suite.make("plan");
    assert!(plan.contains("to go = 2,"), "{plan}");
    suite.make("suite");
    let names =
        |results: &BTreeMap<String, (u64, String)>| results.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&suite.results()), names(&before));
    assert!(
        suite
            .results()
            .iter()
            .all(|(name, result)| before.get(name) != Some(result))
    );
    // A run that fails leaves no result.
    std::fs::write(suite.path("mine.sql"), "SELECT 1 FROM nothing;\n")
        .expect("the directory is ours");
    let (text, good) = suite.make("suite");
    assert!(!good && text.contains("ended with status 2"), "{text}");
    assert_eq!(suite.results().len(), 1, "{text}");
}

#[test]
fn slips_of_the_pen_are_told_before_anything_runs() {
    for (variables, words, essence) in [
        ("VARIANTS = base bgi\nbig = work_mem=8MB", "suite", "bgi"),
        ("SCRIPTS = a@b.sql", "suite", "rename the file"),
        ("DURATION = 5x", "plan", "DURATION is \"5x\""),
    ] {
        let suite = Suite::new(variables);
        let (text, good) = suite.make(words);
        assert!(!good && text.contains(essence), "{variables}: {text}");
        assert!(suite.results().is_empty());
    }
}

#[test]
fn times_and_rates_may_have_units() {
    let suite = Suite::new("RATES = 600/min max\nREPEATS = 1\nDURATION = 1.5m\nWARMUP = 500ms");
    let (plan, _) = suite.make("plan");
    assert!(plan.contains("runs = 2 of 91 s each"), "{plan}");
    let (dry, _) = suite.make("-n suite");
    assert!(
        dry.contains(" -R 600/min ") && dry.contains("@600+min@"),
        "{dry}"
    );
    assert!(!suite.path("results").exists(), "only shown");
}

#[test]
fn a_matrix_may_be_larger_than_a_command_line() {
    let suite = Suite::new("CLIENTS = 1 2 3 4 5 6 7 8 9 10\nREPEATS = 250");
    let (dry, _) = suite.make("-n suite");
    let runs = dry.lines().filter(|line| line.contains(" --json "));
    assert_eq!(runs.count(), 2500);
    // Its first run is one that can be begun, if only to be refused.
    let (text, good) = suite.make("suite SERVER=neither");
    assert!(!good && text.contains("SERVER is \"neither\""), "{text}");
    let (text, _) = suite.make("report");
    assert!(text.contains("there are no results"), "{text}");
}

#[test]
fn a_server_that_does_not_start_with_a_setting_is_there_without_it() {
    let setting = "CLIENTS = 1\nREPEATS = 1\nSCRIPTS = select-only\nVARIANTS = a\na = ";
    let suite = Suite::new(&format!(
        "{setting}shared_preload_libraries=no_such_library"
    ));
    let (text, good) = suite.make("suite");
    assert!(
        !good && text.contains("does not start with the settings of a"),
        "{text}"
    );
    assert!(text.contains("could not access file"), "{text}");
    // Nothing of it is left, and a list stays a list.
    suite.set(&format!("{setting}shared_buffers=1MB datestyle=ISO,DMY"));
    let (text, good) = suite.make("suite");
    assert!(good, "{text}");
    let results = suite.results();
    let name = results.keys().next().expect("one run");
    let place = document(&suite.path(&format!("results/runs/{name}")))["place"].clone();
    let settings = place["server"]["settings"]
        .as_array()
        .expect("a list")
        .clone();
    let value = |name: &str| {
        let found = settings.iter().find(|setting| setting["name"] == name);
        found.map(|setting| setting["value"].as_str().expect("text").to_owned())
    };
    assert_eq!(value("shared_buffers").as_deref(), Some("128"));
    assert_eq!(value("DateStyle").as_deref(), Some("ISO, DMY"));
    assert_eq!(value("shared_preload_libraries"), None);
}

#[test]
fn a_given_server_keeps_its_settings_and_loses_what_is_left_of_a_run() {
    let given = "SERVER = given\nREPEATS = 1\nSCRIPTS = select-only\n";
    let suite = Suite::new(given);
    let (text, good) = suite.make("suite PGHOST=/nowhere");
    assert!(!good && text.contains("cannot be reached"), "{text}");
    assert!(!suite.path("results/versions").exists(), "it told of none");
    let server = Server::shared();
    let (text, good) = suite.make_at(server, "suite");
    assert!(good, "{text}");
    // A session of a run that was killed.
    let connect = format!(
        "host={} port={} user=postgres dbname=pgmark_suite",
        server.socket_directory().display(),
        server.port()
    );
    let mut left = postgres::Client::connect(&connect, postgres::NoTls).expect("it is there");
    suite.set(&format!("{given}CLIENTS = 1 2"));
    let (text, good) = suite.make_at(server, "suite");
    assert!(good, "{text}");
    assert_eq!(suite.results().len(), 2);
    assert!(left.simple_query("SELECT 1").is_err(), "it was ended");
    suite.set(&format!("{given}VARIANTS = a\na = work_mem=8MB"));
    let (text, good) = suite.make_at(server, "suite");
    assert!(
        !good && text.contains("settings of a given server"),
        "{text}"
    );
}
