//! What a server may answer besides results, seen from outside: rows of any size, notices, prepared
//! statements that are gone, text in another encoding.

mod support;

use support::{Server, pgmark};

#[test]
fn a_result_may_be_larger_than_what_a_variable_may_hold() {
    let large = "SELECT 7 AS small, repeat('x', 70 * 1024 * 1024) AS large \\gset\n";
    for mode in ["simple", "extended"] {
        let finished = pgmark(Server::shared())
            .args("-t 1 -M")
            .arg(mode)
            .script(&format!("{large}\\set seen debug(:small)\n"))
            .run()
            .expect_status(0);
        assert!(finished.stderr.contains("7"), "{finished}");
    }
    pgmark(Server::shared())
        .args("-t 1")
        .script(&format!("{large}SELECT length(:'large');\n"))
        .run()
        .expect_status(2)
        .expect_stderr(&[
            "column \"large\" has a value of 73400320 bytes, which is too long for a variable",
            "line 1: SELECT 7",
        ]);
}

#[test]
fn of_notices_one_of_each_kind_is_shown_with_how_many_came() {
    let script = "\\set n random(1, 1000000)\n\
                  DO $$ BEGIN RAISE NOTICE 'number :n'; RAISE WARNING 'careful'; END $$;\n";
    let finished = pgmark(Server::shared())
        .args("-c 3 -j 2 -t 10")
        .script(script)
        .run()
        .expect_status(0);
    let shown = |text: &str| {
        finished
            .stderr
            .lines()
            .filter(|l| l.starts_with(text))
            .count()
    };
    assert_eq!(shown("NOTICE:  number "), 1, "{finished}");
    assert_eq!(shown("WARNING:  careful"), 1, "{finished}");
    finished.expect_stderr(&[
        "30 notices of this kind came, and the first was shown: NOTICE:  number ",
        "30 notices of this kind came, and the first was shown: WARNING:  careful",
    ]);
}

#[test]
fn statements_that_the_server_has_dropped_are_prepared_again() {
    let finished = pgmark(Server::shared())
        .args("-c 2 -t 5 -M prepared")
        .script("DEALLOCATE ALL;\nSELECT 1;\n")
        .run()
        .expect_status(0);
    assert_eq!(finished.processed(), 10, "{finished}");
    finished.expect_stderr(&[
        "DEALLOCATE",
        "-M simple",
        "prepared again",
        "part of the latencies",
    ]);
}

#[test]
fn words_of_the_server_in_another_encoding_are_shown_byte_by_byte() {
    let script = "SET client_encoding = 'LATIN1';\n\
                  DO $$ BEGIN RAISE EXCEPTION '%', 'caf' || chr(233); END $$;\n";
    pgmark(Server::shared())
        .args("-t 1")
        .script(script)
        .run()
        .expect_status(2)
        .expect_stderr(&["caf\\xe9"]);
}
