//! The password that the server asks for and that is not known: the user is asked on the terminal.

mod support;

use support::{Finished, Server, Signal, Terminal, pgmark_at};

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
    // The terminal makes a signal of Ctrl-C, and shows nothing of it either.
    for (typed, signal, status) in [("\u{3}", None, 130), ("open ses", Some(Signal::TERM), 143)] {
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
