//! Small situations in scripts, seen from outside: sleeping, nulls, conditions, COPY, pipelines,
//! shell commands.

mod support;

use std::path::Path;

use support::{Finished, Server, Signal, assert_close, measuring, pgmark, wait_until};

#[test]
fn a_sleep_beyond_32_bits_lasts_until_a_signal_ends_it() {
    let server = Server::shared();
    let running = pgmark(server)
        .args("-t 1")
        .env("PGAPPNAME", "sleeper")
        .script("SELECT 1 AS before_the_sleep;\n\\sleep 3000 s\nSELECT 2;")
        .start();
    wait_until("the client has slept for a while", || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sleeper' \
                   AND state = 'idle' AND query LIKE '%before_the_sleep%' \
                   AND clock_timestamp() - state_change > '0.2 s'";
        server.value::<i64>("postgres", sql) == 1
    });
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    assert_eq!(finished.processed(), 0, "{finished}");
}

#[test]
fn what_fails_while_running_is_told_with_its_place() {
    for (script, parts) in [
        (
            "SELECT 1;\n\\set x 9223372036854775807 + 1\n",
            [
                "client 0",
                "integer sum is out of range",
                "script1.sql, line 2: \\set x 9223372036854775807 + 1",
            ],
        ),
        (
            "\n\\sleep :undefined_v\n",
            [
                "client 0",
                "undefined variable \"undefined_v\"",
                "script1.sql, line 2: \\sleep :undefined_v",
            ],
        ),
    ] {
        let finished = pgmark(Server::shared()).args("-t 1").script(script).run();
        finished.expect_status(2).expect_stderr(&parts);
    }
}

#[test]
fn a_sleep_is_part_of_the_latency_with_and_without_progress() {
    let _turn = measuring();
    let latency_ms = |progress: &str| {
        let finished = pgmark(Server::shared())
            .args("-t 8")
            .args(progress)
            .script("\\sleep 200 ms\nSELECT 1;")
            .run()
            .expect_status(0);
        finished.figure("latency average = ")
    };
    let (without, with) = (latency_ms(""), latency_ms("-P 1"));
    assert!(without >= 200.0 && with >= 200.0, "{without} and {with}");
    assert_close("latency with and without -P", without, with, 1.5);
}

#[test]
fn a_null_is_bound_as_null_in_all_query_modes() {
    for mode in ["simple", "extended", "prepared"] {
        let finished = pgmark(Server::shared())
            .args("-t 1 -M")
            .arg(mode)
            .script("\\set n null\nSELECT :n::int IS NULL AS ok \\gset\n\\set v debug(:ok)\n")
            .run()
            .expect_status(0);
        assert_eq!(finished.debug_values(), ["boolean true"], "{mode}");
    }
}

/// What a file may hold, and the server must see: commas, quotes, line ends, UTF-8, nothing.
const KEYS: [Option<&str>; 6] = [
    Some("a,b"),
    Some("it's \"so\""),
    Some("two\nlines"),
    Some("grün \\ Ωmega"),
    None,
    Some("NULL?"),
];

#[test]
fn values_that_are_too_few_are_told_before_the_run_and_after_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("keys.csv");
    std::fs::write(&file, "id\n1\n2\n3\n").expect("a writable directory");
    let values = format!("\\values {} order=partitioned end=stop", file.display());
    let finished = pgmark(Server::shared())
        .args("-c 5 -t 100")
        .script(&format!("{values}\nSELECT :id;\n"))
        .run()
        .expect_status(0)
        .expect_stderr(&[
            "warning: of 5 clients, 2 have no part of ",
            "warning: 5 of 5 clients ended early, ",
            "keys.csv\" had no row (left) for them",
        ]);
    let processed = "number of transactions actually processed: 3/500";
    assert!(finished.stdout.contains(processed), "{finished}");
    assert!(finished.stdout.contains("\nrandom seed = "), "{finished}");
}

#[test]
fn values_from_a_file_arrive_unchanged_in_all_query_modes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("keys.csv");
    let mut rows = "number,id\n".to_owned();
    for (number, key) in KEYS.iter().enumerate() {
        let cell = key.map_or_else(String::new, |key| {
            format!("\"{}\"", key.replace('"', "\"\""))
        });
        rows.push_str(&format!("{number},{cell}\n"));
    }
    std::fs::write(&file, rows).expect("a writable directory");
    let server = Server::shared();
    let mut client = server.client("postgres");
    client
        .batch_execute("CREATE TABLE keys_demo (mode text, number int, id text)")
        .expect("no other test has it");
    for mode in ["simple", "extended", "prepared"] {
        let script = format!(
            "\\values {} end=stop\nINSERT INTO keys_demo VALUES ('{mode}', :number, :'id');\n",
            file.display()
        );
        pgmark(server)
            .args("-c 2 -j 2 -t 100 -M")
            .arg(mode)
            .script(&script)
            .run()
            .expect_status(0);
        let found: Vec<Option<String>> = client
            .query(
                "SELECT id FROM keys_demo WHERE mode = $1 ORDER BY number",
                &[&mode],
            )
            .expect("it exists")
            .iter()
            .map(|row| row.get(0))
            .collect();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, KEYS, "{mode}");
    }
}

#[test]
fn uuids_are_uuids_for_the_server() {
    let script = "\\set a random_uuid()\n\\set b uuid_v7()\n\
                  SELECT :'a'::uuid <> :'b'::uuid AND length(:'a') = 36 AS ok \\gset\n\
                  \\set v debug(:ok)\n";
    for mode in ["simple", "extended", "prepared"] {
        let finished = pgmark(Server::shared())
            .args("-t 1 -M")
            .arg(mode)
            .script(script)
            .run()
            .expect_status(0);
        assert_eq!(finished.debug_values(), ["boolean true"], "{mode}");
    }
}

#[test]
fn what_a_connection_begins_with_is_there_in_each_transaction_and_untimed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("begin.sql");
    std::fs::write(&file, "SELECT pg_sleep(0.2);\nSET search_path = 'hello';\n")
        .expect("a writable directory");
    let finished = pgmark(Server::shared())
        .args("-C -t 2 --on-connect")
        .arg(format!("@{}", file.display()))
        .script(
            "SELECT current_setting('search_path') = 'hello' AS ok \\gset\n\\set v debug(:ok)\n",
        )
        .logged()
        .run()
        .expect_status(0);
    assert_eq!(
        finished.debug_values(),
        ["boolean true", "boolean true"],
        "{finished}"
    );
    // Less than what each connection has slept.
    assert!(
        finished
            .log()
            .rows
            .iter()
            .all(|row| row.latency_us < Some(200_000)),
        "{finished}"
    );
}

#[test]
fn no_row_and_a_null_from_gset_end_the_client_in_all_query_modes() {
    for mode in ["simple", "extended", "prepared"] {
        for (script, essence) in [
            (
                "SELECT 1 AS a WHERE false \\gset\n",
                "expected one row, got 0",
            ),
            (
                "SELECT NULL::int AS z \\gset\n\\if :z is null\nSELECT 1;\n\\endif\n",
                "variable \"z\" is empty",
            ),
        ] {
            pgmark(Server::shared())
                .args("-t 1 -M")
                .arg(mode)
                .script(script)
                .run()
                .expect_status(2)
                .expect_stderr(&["client 0 aborted", essence]);
        }
    }
}

#[test]
fn of_nested_conditions_only_the_taken_branch_runs() {
    let server = Server::shared();
    let script = "\\if false\n\\if true\nSELECT 1/0;\n\\endif\n\\elif true\nSELECT 2;\n\\endif\n";
    pgmark(server)
        .args("-t 1")
        .env("PGAPPNAME", "nested conditions")
        .env("PGOPTIONS", "-c log_statement=all")
        .script(script)
        .run()
        .expect_status(0);
    let sent = server.logged_statements("nested conditions").concat();
    let mut sent: Vec<String> = sent
        .iter()
        .map(|statement| statement.text.clone())
        .collect();
    sent.retain(|text| !text.contains("pg_catalog."));
    assert_eq!(sent, ["SELECT 2;"]);
}

#[test]
fn copy_ends_the_client_with_one_error() {
    let server = Server::shared();
    server
        .client("postgres")
        .batch_execute("CREATE TABLE copied (number int)")
        .expect("no other test has it");
    for mode in ["simple", "extended", "prepared"] {
        for copy in [
            "COPY (SELECT 1) TO STDOUT;\n",
            // More than the sockets hold: nobody may wait for anybody.
            "COPY (SELECT generate_series(1, 300000)) TO STDOUT;\n",
            "COPY copied FROM STDIN;\n",
        ] {
            let finished = pgmark(server)
                .args("-t 1 -M")
                .arg(mode)
                .script(copy)
                .run()
                .expect_status(2);
            assert_eq!(
                errors_about(&finished, "COPY"),
                1,
                "{mode} {copy}{finished}"
            );
        }
    }
    for mode in ["extended", "prepared"] {
        for copy in [
            "COPY (SELECT 1) TO STDOUT",
            "COPY copied FROM STDIN",
            "/* hidden */ COPY copied FROM STDIN",
        ] {
            let finished = pgmark(server)
                .args("-t 1 -M")
                .arg(mode)
                .script(&format!(
                    "\\startpipeline\nSELECT 1;\n{copy};\nSELECT 2;\n\\endpipeline\n"
                ))
                .run()
                .expect_status(2);
            assert_eq!(errors_about(&finished, "COPY"), 1, "{mode} {finished}");
        }
    }
}

/// Error lines about a client that contain this. The source that follows them is not counted.
fn errors_about(finished: &Finished, text: &str) -> usize {
    let lines = finished.stderr.lines();
    lines
        .filter(|line| line.contains("client 0") && line.contains(text))
        .count()
}

#[test]
fn a_pipeline_that_cannot_be_is_told_with_its_line() {
    let open = "SELECT 1;\n\n\\startpipeline\nSELECT 2;\n";
    for (mode, script, parts) in [
        ("extended", open, ["client 0 aborted", "pipeline", "line 3"]),
        ("prepared", open, ["client 0 aborted", "pipeline", "line 3"]),
        (
            "simple",
            "\\startpipeline\nSELECT 1;\n\\endpipeline\n",
            ["client 0 aborted", "extended or prepared", "line 1"],
        ),
        (
            "prepared",
            "\\startpipeline\nSELECT 1;\n\\startpipeline\n\\endpipeline\n",
            ["client 0 aborted", "already in a pipeline", "line 3"],
        ),
    ] {
        pgmark(Server::shared())
            .args("-t 1 -M")
            .arg(mode)
            .script(script)
            .run()
            .expect_status(2)
            .expect_stderr(&parts);
    }
}

#[test]
fn an_empty_pipeline_runs() {
    for mode in ["extended", "prepared"] {
        let finished = pgmark(Server::shared())
            .args("-c 2 -t 10 -M")
            .arg(mode)
            .script("\\startpipeline\n\\endpipeline\n")
            .run()
            .expect_status(0);
        assert_eq!(finished.processed(), 20, "{finished}");
    }
}

#[test]
fn other_clients_of_the_thread_go_on_during_a_shell_command() {
    // The first client's command ends when the second client has done enough for it; if it had to
    // wait for the command, neither would ever end.
    let wait = "while ! test -e enough; do sleep 0.02; done";
    for command in [
        format!("\\shell {wait}"),
        format!("\\setshell status {wait} && echo 5"),
    ] {
        let script = format!(
            "\\if :client_id = 0\n\
             {command}\n\
             \\else\n\
             \\set done :done + 1\n\
             SELECT :done;\n\
             \\if :done = 20\n\
             \\shell touch enough\n\
             \\endif\n\
             \\endif\n"
        );
        let finished = pgmark(Server::shared())
            .args("-c 2 -j 1 -t 20 -D done=0")
            .script(&script)
            .logged()
            .run()
            .expect_status(0);
        let log = finished.log();
        let client = |id| log.rows.iter().filter(move |row| row.client_id == id);
        let first_us = client(0).map(|row| row.completed_us).min();
        let meanwhile = client(1).filter(|row| Some(row.completed_us) < first_us);
        assert!(meanwhile.count() >= 19, "{command}");
        assert_eq!(log.rows.len(), 40, "{command}");
    }
}

#[test]
fn a_signal_leaves_no_process_of_a_shell_command_behind() {
    let _turn = measuring();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    for command in ["\\shell", "\\setshell x"] {
        let (shell, child) = (file("shell"), file("child"));
        let _ = (std::fs::remove_file(&shell), std::fs::remove_file(&child));
        let running = pgmark(Server::shared())
            .args("-t 1")
            .script(&format!(
                "{command} sleep 600 >/dev/null 2>&1 & echo $! >{child}; echo $$ >{shell}; wait\n"
            ))
            .start();
        wait_until("the command is at work", || number_in(&shell).is_some());
        running.signal(Signal::INT);
        running.finish().expect_status(130);
        for name in [shell, child] {
            let pid = number_in(&name).expect("it was written before");
            wait_until(&format!("process {pid} of {command} is gone"), || {
                !is_alive(pid)
            });
        }
    }
}

/// The number in a file, if all of it is there.
fn number_in(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(name).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Whether a process has neither ended nor is about to be reaped.
fn is_alive(pid: u32) -> bool {
    let path = format!("/proc/{pid}/stat");
    let Ok(stat) = std::fs::read_to_string(Path::new(&path)) else {
        return false;
    };
    // The state follows the name, which is in parentheses.
    !stat
        .rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('Z'))
}
