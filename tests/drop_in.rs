//! Called through a link named pgbench, the program passes for it: the same lines of the summary in
//! the same order, the same standard error, the same files, the same verdict on what was typed.
//! What it is compared with is the pgbench on this machine; where versions differ, 18 counts.

mod support;

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Once;

use support::{Finished, Program, Server, pgmark};

#[test]
fn summaries_have_pgbenchs_lines_and_nothing_else_is_said() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    make_tables(server);
    for options in [
        "-t 20 -c 2 -j 2",
        "-v -t 5",
        "-n -S -t 5 -s 7",
        "-n -S -T 1",
        "-n -S -T 3 -P 1 -c 2",
        "-n -S -T 3 -P 1 --max-tries=3 --progress-timestamp",
        "-n -S -C -t 10 -c 2 -M prepared",
        "-n -N -t 10 -L 10000 --random-seed=7",
        "-n -S -R 1000 -t 20 -c 2",
        "-n -S -R 1000 -t 20 -L 10000 -M extended",
        "-n -S -t 5 --failures-detailed",
        "-n -S -t 5 --max-tries=5 --failures-detailed",
        "-n -b select@3 -b simple@1 -t 20 -c 2 --max-tries=3",
        "-n -b select -b simple@0 -T 1 --max-tries=0",
    ] {
        let theirs = reach(server, Program::new(&pgbench)).args(options).run();
        let theirs = theirs.expect_status(0);
        let ours = reach(server, Program::new(&link())).args(options).run();
        let ours = ours.expect_status(0);
        assert_eq!(
            summary(&ours),
            summary(&theirs),
            "{options}\n{ours}\n{theirs}"
        );
        assert_eq!(
            messages(&ours),
            messages(&theirs),
            "{options}\n{ours}\n{theirs}"
        );
    }
}

#[test]
fn of_two_seeds_both_are_told() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    make_tables(server);
    let told = |program: &Path| {
        reach(server, Program::new(program))
            .env("PGBENCH_RANDOM_SEED", "5")
            .args("-n -S -t 1 --random-seed=7")
            .run()
            .expect_status(0)
            .stderr
    };
    let ours = told(&link());
    assert_eq!(ours, told(&pgbench));
    assert_eq!(ours.lines().count(), 2, "{ours}");
}

#[test]
fn the_banner_and_the_end_of_the_text_are_where_scrapers_look() {
    let server = Server::shared();
    make_tables(server);
    let run = reach(server, Program::new(&link()))
        .args("-n -S -t 5")
        .run();
    let run = run.expect_status(0);
    let version: String = server.value("postgres", "select current_setting('server_version')");
    let banner = format!("pgbench (18.0, server {version})");
    assert_eq!(run.stdout.lines().next(), Some(banner.as_str()), "{run}");
    let last = run.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("tps = "), "{run}");
    assert_eq!(run.stderr, "", "nothing is said of a run that went well");
}

#[test]
fn initialization_says_what_pgbench_says() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    for options in [
        "-i",
        "-i -s 2 -q --foreign-keys",
        "-i -I dtGvp -n",
        "-i --partitions=2 --partition-method=hash --unlogged-tables",
        "-i -I d",
    ] {
        let init = |program: &Path, database: &str| {
            let program = reach(server, Program::new(program));
            let finished = program.args(options).arg(database).run();
            finished.expect_status(0)
        };
        server.create_database("drop_in_theirs");
        server.create_database("drop_in_ours");
        let theirs = init(&pgbench, "drop_in_theirs");
        let ours = init(&link(), "drop_in_ours");
        assert_eq!(
            messages(&ours),
            messages(&theirs),
            "{options}\n{ours}\n{theirs}"
        );
        assert_eq!((ours.stdout.as_str(), theirs.stdout.as_str()), ("", ""));
        server
            .client("postgres")
            .batch_execute("DROP DATABASE drop_in_theirs")
            .and_then(|()| {
                server
                    .client("postgres")
                    .batch_execute("DROP DATABASE drop_in_ours")
            })
            .expect("nobody is connected to them any more");
    }
}

#[test]
fn logs_are_pgbenchs_files_with_pgbenchs_lines() {
    let server = Server::shared();
    make_tables(server);
    for (options, fields) in [
        ("", 6),
        ("-R 1000", 7),
        ("--max-tries=3", 7),
        ("-R 1000 --max-tries=3", 8),
    ] {
        let run = reach(server, Program::new(&link()))
            .args("-n -S -l -c 2 -j 2 -t 10 --log-prefix=mine")
            .args(options)
            .run()
            .expect_status(0);
        let mut names: Vec<String> = std::fs::read_dir(run.path("."))
            .expect("the directory where it ran")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        assert_eq!(names.len(), 2, "one a thread: {names:?}");
        assert_eq!(names[1], format!("{}.1", names[0]));
        for name in &names {
            let text = std::fs::read_to_string(run.path(name)).expect("a text");
            assert_eq!(text.lines().count(), 10, "{name}");
            for line in text.lines() {
                let numbers = line.split(' ').map(str::parse::<u64>);
                let numbers: Result<Vec<u64>, _> = numbers.collect();
                assert_eq!(numbers.map(|numbers| numbers.len()), Ok(fields), "{line}");
            }
        }
    }
}

#[test]
fn what_pgbench_refuses_is_refused_with_the_same_status() {
    let server = Server::shared();
    let Some(pgbench) = pgbench(server) else {
        return;
    };
    for options in [
        "--bogus",
        "-Z",
        "-c 0",
        "-c x",
        "-j 0",
        "-t 0",
        "-T 0",
        "-s 0",
        "-P 0",
        "-T 1.5",
        "-T 5s",
        "-P 500ms",
        "-R 0",
        "-R x",
        "-L 0",
        "-L x",
        "-F 5 -i",
        "-i -I x",
        "-t 1 -T 1",
        "-i -c 2",
        "-i -S",
        "-i -j 2",
        "-i -D x=1",
        "-i --random-seed=1",
        "-i --partition-method=hash",
        "-i --partitions=2 --partition-method=list",
        "-I d",
        "--foreign-keys",
        "-q",
        "--sampling-rate=0.5",
        "-l --sampling-rate=2",
        "-l --sampling-rate=0.5 --aggregate-interval=1",
        "--aggregate-interval=1",
        "-l --aggregate-interval=5 -T 2",
        "-l --aggregate-interval=2 -T 3",
        "--log-prefix=x",
        "--progress-timestamp",
        "--max-tries=-1",
        "--max-tries=0",
        "-M Simple",
        "-b nothing",
        "-b s",
        "-b select@x",
        "-b select@0",
        "-D x",
        "--random-seed=x",
        "-f no/such/file",
        "one two",
        "--p",
        "-c",
        "--temp-cluster",
        "--interval-csv=x -l",
        "-n -d no_such_database",
        "-n no_such_database",
    ] {
        let theirs = reach(server, Program::new(&pgbench)).args(options).run();
        let ours = reach(server, Program::new(&link())).args(options).run();
        // Before version 17 -d was debugging.
        let theirs_status = match options.contains("-d ") {
            true => Some(1),
            false => theirs.status,
        };
        assert_eq!(
            (ours.status, Some(1)),
            (theirs_status, ours.status),
            "{options}\n{ours}"
        );
        assert_eq!(ours.stdout, "", "{options}");
        assert!(
            ours.stderr.starts_with("pgbench: error: "),
            "{options}\n{ours}"
        );
        for of_pgmark in ["pgmark: ", "pgmark --help"] {
            assert!(!ours.stderr.contains(of_pgmark), "{options}\n{ours}");
        }
    }
}

#[test]
fn tables_that_are_missing_are_told_of_as_pgbench_does() {
    let server = Server::shared();
    server.create_database("drop_in_empty");
    let program = reach(server, Program::new(&link()));
    let run = program.args("-S -t 1 drop_in_empty").run().expect_status(1);
    let run = run.expect_stderr(&[
        "pgbench: error: could not count number of branches: ERROR:",
        "pgbench: hint: Perhaps you need to do initialization (\"pgbench -i\") in database \
         \"drop_in_empty\".",
    ]);
    assert_eq!(run.stdout.lines().count(), 1, "the banner alone: {run}");
}

/// The installed pgbench, if it knows what 15 knows; else the test is skipped, and says so.
fn pgbench(server: &Server) -> Option<PathBuf> {
    let program = server.program("pgbench").filter(|program| {
        let version = Program::new(program).args("--version").run().stdout;
        let major = version
            .split(['.', ' ', '\n'])
            .find_map(|word| word.parse().ok());
        major.is_some_and(|major: u32| major >= 15)
    });
    if program.is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: there is no pgbench of version 15 or later to compare with"
        );
    }
    program
}

/// A link named pgbench to the program.
fn link() -> PathBuf {
    let link = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pgbench");
    // Another test may have been faster.
    let _ = symlink(env!("CARGO_BIN_EXE_pgmark"), &link);
    link
}

/// The tables of the builtin scripts, made by whoever needs them first.
fn make_tables(server: &Server) {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        pgmark(server).args("-i -q -s 1").run().expect_status(0);
    });
}

fn reach(server: &Server, program: Program) -> Program {
    program
        .env("PGHOST", server.socket_directory())
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
}

/// The lines of the summary with `N` for each number, brought to the form of version 18: there two
/// lines stand in place of one, and a script that never ran has no further ones.
fn summary(finished: &Finished) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut of_idle_script = false;
    // The banner has a test of its own.
    for line in finished.stdout.lines().skip(1) {
        of_idle_script &= line.starts_with(" - ");
        if of_idle_script {
            continue;
        }
        of_idle_script = line.starts_with(" - 0 transactions (");
        match without_numbers(line).as_str() {
            " - N transactions (N% of total, tps = N)" => {
                lines.push(" - N transactions (N% of total)".to_owned());
                if !of_idle_script {
                    let processed = " - number of transactions actually processed: N (tps = N)";
                    lines.push(processed.to_owned());
                }
            }
            other => lines.push(other.to_owned()),
        }
    }
    lines
}

/// The different lines of standard error, with `N` for each number. How many lines of progress
/// there are depends on when its threads end.
fn messages(finished: &Finished) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in finished.stderr.lines() {
        // Since 17 the line of progress names the table.
        let line = without_numbers(line).replace(" of pgbench_accounts done", " done");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Each number, with its sign or decimals, becomes `N`; a number that is part of a word stays.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    let mut in_number = false;
    for letter in line.chars() {
        let digit = letter.is_ascii_digit() || (in_number && letter == '.');
        let in_word = text.ends_with(|last: char| last.is_alphabetic()) && !in_number;
        if digit && !in_word {
            if !in_number {
                text.push('N');
            }
            in_number = true;
        } else {
            in_number = false;
            text.push(letter);
        }
    }
    text
}
