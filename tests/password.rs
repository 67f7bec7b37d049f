//! Passwords: whoever knows none is asked on the terminal, and wherever one comes from, it shows
//! nowhere.

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use support::{Finished, Program, Server, Signal, Terminal, pgmark, pgmark_alone, pgmark_at};

/// That of the server's role `locked`.
const PASSWORD: &str = "open sesame";

const PROMPT: &str = "Password: ";

/// Fails unless the terminal was left as it was found, with no more on it than the prompt.
fn assert_discreet(terminal: Terminal, finished: &Finished) {
    assert!(terminal.echoes());
    assert_eq!(terminal.close(), "Password: \r\n");
    assert!(!format!("{finished}").contains(PASSWORD), "{finished}");
}

#[test]
fn it_is_asked_for_once_and_serves_all_connections() {
    let (server, terminal) = (Server::shared(), Terminal::new());
    let run = pgmark_at(Some(&terminal), server)
        .args("-U locked -c 3 -j 2 -t 5 -C")
        .script("SELECT 1;")
        .start();
    terminal.answer(PROMPT, "open sesame\n");
    let finished = run.finish().expect_status(0);
    assert_eq!(finished.processed(), 15);
    assert_discreet(terminal, &finished);
}

#[test]
fn tables_are_made_with_it() {
    let (server, terminal) = (Server::shared(), Terminal::new());
    server
        .client("postgres")
        .batch_execute("CREATE DATABASE typed OWNER locked")
        .expect("no other test uses this name");
    let run = pgmark_at(Some(&terminal), server)
        .args("-i -q -U locked typed")
        .start();
    terminal.answer(PROMPT, "open sesame\n");
    let finished = run.finish().expect_status(0);
    assert_discreet(terminal, &finished);
}

#[test]
fn a_wrong_one_is_not_asked_for_again_and_none_is_the_servers_refusal() {
    let server = Server::shared();
    let refused = |typed: &str| {
        let terminal = Terminal::new();
        let run = pgmark_at(Some(&terminal), server)
            .args("-U locked -t 1 -S")
            .start();
        terminal.answer(PROMPT, typed);
        let finished = run.finish().expect_status(1).expect_no_tps();
        assert_discreet(terminal, &finished);
        assert!(!format!("{finished}").contains("hush"), "{finished}");
        finished
    };
    refused("hush\n").expect_stderr(&["password authentication failed for user \"locked\""]);
    for nothing in ["\n", "\u{4}"] {
        refused(nothing).expect_stderr(&["asks for a password, and none was supplied"]);
    }
}

#[test]
fn a_signal_ends_the_waiting() {
    let server = Server::shared();
    // The terminal makes a signal of Ctrl-C, and shows nothing of it either. What is typed just before
    // another signal may come to a terminal that shows letters again, so nothing is.
    for (typed, signal, status) in [("\u{3}", None, 130), ("", Some(Signal::TERM), 143)] {
        let terminal = Terminal::new();
        let run = pgmark_at(Some(&terminal), server)
            .args("-U locked -t 1 -S")
            .start();
        terminal.answer(PROMPT, typed);
        if let Some(signal) = signal {
            run.signal(signal);
        }
        let finished = run.finish().expect_status(status);
        assert_discreet(terminal, &finished);
    }
}

#[test]
fn without_a_terminal_it_is_an_error_that_says_what_to_do() {
    let server = Server::shared();
    for arguments in ["-U locked -t 1 -S", "-i -U locked"] {
        pgmark_at(None, server)
            .args(arguments)
            .run()
            .expect_status(1)
            .expect_stderr(&[
                "asks for a password, and none was supplied",
                "hint: Use a password file (~/.pgpass) or PGPASSWORD",
            ]);
    }
}

/// Where a password can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    KeywordString,
    Uri,
    UriParameter,
    Variable,
    ServiceFile,
    PasswordFile,
}

impl Source {
    /// The command line is what other users can read.
    fn is_visible(self) -> bool {
        match self {
            Source::KeywordString | Source::Uri | Source::UriParameter => true,
            Source::Variable | Source::ServiceFile | Source::PasswordFile => false,
        }
    }

    /// Gives the program the password; files are made in `home`.
    fn supply(self, program: Program, password: &str, home: &Path) -> Program {
        let encoded = password.replace(' ', "%20");
        let file = |name: &str, text: String| {
            let path = home.join(name);
            let mut options = fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)
                .expect("the directory is ours");
            file.write_all(text.as_bytes()).expect("the file is ours");
            path
        };
        match self {
            Source::KeywordString => program.arg(format!("user=locked password='{password}'")),
            Source::Uri => program.arg(format!("postgres://locked:{encoded}@")),
            Source::UriParameter => {
                program.arg(format!("postgres://?user=locked&password={encoded}"))
            }
            Source::Variable => program.args("-U locked").env("PGPASSWORD", password),
            Source::ServiceFile => {
                let text = format!("[s]\nuser=locked\npassword={password}\n");
                program
                    .env("PGSERVICEFILE", file("services", text))
                    .args("-d service=s")
            }
            Source::PasswordFile => program.args("-U locked").env(
                "PGPASSFILE",
                file("pgpass", format!("*:*:*:*:{password}\n")),
            ),
        }
    }
}

const SOURCES: [Source; 6] = [
    Source::KeywordString,
    Source::Uri,
    Source::UriParameter,
    Source::Variable,
    Source::ServiceFile,
    Source::PasswordFile,
];

/// Fails if a part of the password is in what was written to the streams or to files.
#[track_caller]
fn assert_silent_of(part: &str, finished: &Finished) {
    assert!(!format!("{finished}").contains(part), "{finished}");
    for entry in fs::read_dir(finished.path("")).expect("it ran there") {
        let path = entry.expect("nobody else is there").path();
        let text = fs::read(&path).expect("it is a file");
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(part), "{}: {text}", path.display());
    }
}

#[test]
fn wherever_it_comes_from_it_shows_nowhere_and_the_command_line_is_warned_about() {
    let server = Server::shared();
    let home = tempfile::tempdir().expect("a temporary directory");
    for source in SOURCES {
        for (password, part, status) in [(PASSWORD, "sesame", 0), ("open barley", "barley", 1)] {
            let run = pgmark(server)
                .args("-c 2 -t 2 -r --interval-csv=intervals.csv")
                .script("SELECT 1;")
                .logged();
            let finished = source.supply(run, password, home.path()).run();
            assert_silent_of(part, &finished);
            let warned = finished.stderr.contains("visible to other users");
            assert_eq!(warned, source.is_visible(), "{source:?}\n{finished}");
            finished.expect_status(status);
        }
    }
}

#[test]
fn of_one_on_the_command_line_pgbench_says_nothing() {
    let server = Server::shared();
    let home = tempfile::tempdir().expect("a temporary directory");
    let pgbench = home.path().join("pgbench");
    symlink(env!("CARGO_BIN_EXE_pgmark"), &pgbench).expect("the directory is ours");
    let run = Program::new(&pgbench)
        .env("PGHOST", server.socket_directory())
        .env("PGPORT", server.port().to_string())
        .env("PGDATABASE", "postgres")
        .args("-t 2")
        .script("SELECT 1;");
    let run = Source::KeywordString.supply(run, PASSWORD, home.path());
    let finished = run.run().expect_status(0).expect_stderr_lines(0);
    assert_silent_of("sesame", &finished);
}

/// A connection that fails before anybody is asked for a password, or a string that is none.
#[test]
fn no_error_shows_it() {
    for arguments in [
        &["postgres://u:hush@%2Fnowhere/d"][..],
        &["-d", "host=/nowhere password=hush"],
        &["-d", "host=127.0.0.1 port=1 password=hush"],
        &["-d", "host=/nowhere password=hush sslmode=odd"],
        &["-d", "host=/nowhere password=hush connect_timeout=x"],
        &["-i", "-d", "host=/nowhere password=hush"],
        &["postgre://u:hush@h/d"],
        &["postgres://u:hush/@h/d"],
        &["-h", "postgres://u:hush@h/d"],
        &["-d", "host=h", "user=u", "password=hush"],
        &["-d", "host=h", "password=hush", "user=u"],
        &["-c", "postgres://u:hush@h/d"],
        &["--password=hush"],
        &["-Whush"],
    ] {
        let mut program = pgmark_alone().args("-t 1");
        for argument in arguments {
            program = program.arg(argument);
        }
        let finished = program.run().expect_status(1);
        assert_silent_of("hush", &finished);
    }
}
