//! What goes wrong is said, counted and cleaned up, and the exit status tells it.

mod support;

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use support::{
    DelayingProxy, Program, Server, Signal, measuring, pgmark, pgmark_alone, wait_until,
};

#[test]
fn an_sql_error_ends_one_client_and_the_others_go_on() {
    let finished = pgmark(Server::shared())
        .args("-c 3 -j 2 -t 20")
        .script("SELECT 1 / :client_id;")
        .logged()
        .run()
        .expect_status(2)
        .expect_stderr(&["client 0", "division by zero"]);
    assert_eq!(finished.processed(), 40, "{finished}");
    assert!(finished.stdout.contains("tps = "), "{finished}");
    let log = finished.log();
    let aborted: Vec<_> = log.with_status("aborted").collect();
    assert_eq!(log.with_status("ok").count(), 40);
    assert_eq!(aborted.len(), 1);
    assert_eq!(aborted[0].client_id, 0);
    assert_eq!(aborted[0].error, "SQLSTATE 22012");
}

#[test]
fn a_killed_session_ends_one_client_and_the_others_go_on() {
    // Client 0 ends the session of client 1, which waits for that in its first transaction.
    let script = "\\set victim :client_id\n\
                  SELECT CASE WHEN :victim = 1 THEN set_config('application_name', 'victim', false) END;\n\
                  SELECT pg_sleep(CASE WHEN :victim = 1 THEN 60 ELSE 0.05 END);\n\
                  SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE application_name = 'victim' AND state = 'active' AND :victim = 0;\n";
    let finished = pgmark(Server::shared())
        .args("-c 3 -j 1 -t 20")
        .script(script)
        .logged()
        .run()
        .expect_status(2)
        .expect_stderr(&["client 1"]);
    assert_eq!(finished.processed(), 40, "{finished}");
    assert_eq!(finished.log().with_status("aborted").count(), 1);
}

#[test]
fn a_refused_connection_is_told_in_full() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
        .to_string();
    pgmark_alone()
        .args("-n -S -h 127.0.0.1 -U someone -d somewhere -p")
        .arg(&unused)
        .run()
        .expect_status(1)
        .expect_stderr(&["127.0.0.1", &unused, "someone", "somewhere", "refused"])
        .expect_no_tps();
}

#[test]
fn a_wrong_password_is_the_servers_word() {
    let login = |password: &str| {
        pgmark(Server::shared())
            .args("-U locked -t 1 -c 2")
            .env("PGPASSWORD", password)
            .script("SELECT 1;")
            .run()
    };
    login("open sesame").expect_status(0);
    login("open barley")
        .expect_status(1)
        .expect_stderr(&["locked", "password authentication failed"])
        .expect_no_tps();
}

#[test]
fn too_many_clients_for_the_server_end_the_start_of_all() {
    let server = Server::shared();
    // The role `few` may have three connections.
    pgmark(server)
        .args("-U few -c 6 -j 3 -T 60")
        .env("PGAPPNAME", "crowd")
        .script("SELECT 1;")
        .run()
        .expect_status(1)
        .expect_stderr(&[
            "too many connections for role \"few\"",
            " of 6, SQLSTATE 53300; max_connections is ",
            "; the limit of the role is 3)",
            "hint: ",
            "fewer clients",
        ])
        .expect_no_tps();
    assert_none_left(server, "crowd");
}

/// The program under limits of open files, soft and hard, in units of the shell's `ulimit -n`.
fn limited(server: &Server, soft: u32, hard: u32) -> Program {
    under(
        server,
        &format!("ulimit -S -n {soft} && ulimit -H -n {hard}"),
    )
}

/// The program after a command of the shell that sets limits.
fn under(server: &Server, limits: &str) -> Program {
    Program::new(Path::new("sh"))
        .env("PGHOST", server.socket_directory())
        .env("PGPORT", server.port().to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
        .args("-c")
        .arg(format!("{limits} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_pgmark"))
}

#[test]
fn the_limit_of_open_files_is_raised_or_named_before_anything_connects() {
    let server = Server::shared();
    limited(server, 20, 200)
        .args("-c 50 -t 1")
        .script("SELECT 1;")
        .run()
        .expect_status(0);
    for (script, clients, need) in [("SELECT 1;", 300, 336), ("\\shell true", 40, 276)] {
        let finished = limited(server, 20, 200)
            .args(&format!("-c {clients} -t 1"))
            .env("PGPORT", "1")
            .script(script)
            .run()
            .expect_status(1)
            .expect_stderr(&[
                &format!("{need} open files are needed for {clients} clients"),
                "the system limit is 200",
            ])
            .expect_no_tps();
        let errors = finished.stderr.matches("error: ").count();
        assert_eq!(errors, 1, "{finished}");
    }
}

#[test]
fn a_missing_database_and_missing_tables_are_told() {
    let server = Server::shared();
    pgmark(server)
        .args("-n -S -d nowhere")
        .run()
        .expect_status(1)
        .expect_stderr(&["database \"nowhere\" does not exist"]);
    server.create_database("bare");
    pgmark(server)
        .args("-n -S -d bare")
        .run()
        .expect_status(1)
        .expect_stderr(&["pgbench_branches", "-i"]);
}

#[test]
fn a_signal_ends_the_run_with_its_summary() {
    let _turn = measuring();
    let server = Server::shared();
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let running = pgmark(server)
            .args("-c 4 -j 2 -T 60")
            .env("PGAPPNAME", "signalled")
            .script("SELECT pg_sleep(0.01);")
            .logged()
            .start();
        wait_until("the clients are at work", || {
            executing(server, "signalled", "pg_sleep") > 0
        });
        running.signal(signal);
        let finished = running.finish().expect_status(status);
        assert!(finished.stdout.contains("tps = "), "{finished}");
        assert!(said_interrupted(&finished), "{finished}");
        let log = finished.log();
        assert_eq!(log.with_status("ok").count() as u64, finished.processed());
        assert_none_left(server, "signalled");
    }
}

#[test]
fn a_signal_cancels_what_does_not_end_by_itself() {
    let _turn = measuring();
    let server = Server::shared();
    let running = pgmark(server)
        .args("-c 2 -T 60")
        .env("PGAPPNAME", "endless")
        .script("SELECT pg_sleep(600);")
        .logged()
        .start();
    wait_until("both clients are at work", || {
        executing(server, "endless", "pg_sleep") == 2
    });
    running.signal(Signal::INT);
    let finished = running.finish().expect_status(130);
    assert_eq!(finished.processed(), 0, "{finished}");
    let log = finished.log();
    assert_eq!(log.with_status("aborted").count(), 2);
    assert!(log.rows.iter().all(|row| row.error == "interrupted"));
    assert_none_left(server, "endless");
}

#[test]
fn a_thread_that_is_done_early_leaves_the_others_to_the_signals() {
    let _turn = measuring();
    let server = Server::shared();
    // Of two threads with one client each, the first is done at once.
    let running = pgmark(server)
        .args("-c 2 -j 2 -T 60")
        .env("PGAPPNAME", "lonely")
        .script("SELECT 1 / :client_id;\nSELECT pg_sleep(600);")
        .start();
    running.wait_for_stderr("client 0 script 0 aborted");
    wait_until("the other client is alone at work", || {
        executing(server, "lonely", "pg_sleep") == 1 && server.sessions("lonely") == 1
    });
    running.signal(Signal::INT);
    running.finish().expect_status(130);
    assert_none_left(server, "lonely");
}

#[test]
fn a_sleep_of_the_script_is_cut_by_a_signal() {
    let server = Server::shared();
    let running = pgmark(server)
        .args("-c 2 -T 60")
        .env("PGAPPNAME", "dozing")
        .script("SELECT 1 AS before_the_sleep;\n\\sleep 600 s\nSELECT 2;")
        .start();
    wait_until("both clients have come to their sleep", || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dozing' \
                   AND state = 'idle' AND query LIKE '%before_the_sleep%'";
        server.value::<i64>("postgres", sql) == 2
    });
    running.signal(Signal::INT);
    running.finish().expect_status(130);
    assert_none_left(server, "dozing");
}

#[test]
fn what_a_connection_begins_with_is_cancelled_when_the_run_ends() {
    let server = Server::shared();
    for (options, signal) in [("-T 60", true), ("-C -T 1 --finish-within 0.2", false)] {
        let running = pgmark(server)
            .args("-c 3 -j 2")
            .args(options)
            .arg("--on-connect")
            .arg("SELECT pg_sleep(600)")
            .env("PGAPPNAME", "slowly")
            .script("SELECT 1;")
            .start();
        wait_until("the clients are greeting", || {
            executing(server, "slowly", "pg_sleep") == 3
        });
        if signal {
            running.signal(Signal::INT);
        }
        running.finish();
        assert_none_left(server, "slowly");
    }
}

#[test]
fn a_file_that_may_not_grow_is_as_a_full_disk() {
    let finished = under(Server::shared(), "ulimit -f 8")
        .args("-n -c 2 -t 2000 --log-file big.csv")
        .script("SELECT 1;")
        .run()
        .expect_status(1)
        .expect_stderr(&["could not write \"big.csv\"", "the run goes on without it"]);
    // What is there is whole, to the last row.
    let log = support::Log::read(&finished.path("big.csv"));
    assert!((20..4_000).contains(&log.rows.len()), "{finished}");
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let server = Server::shared();
    // The statement ends when this lock is released.
    let mut holder = server.client("postgres");
    holder.execute("SELECT pg_advisory_lock(42)", &[]).unwrap();
    let running = pgmark(server)
        .args("-T 60")
        .env("PGAPPNAME", "doubled")
        .script("SELECT pg_advisory_lock_shared(42), pg_advisory_unlock_shared(42);")
        .start();
    wait_until("it is at work", || {
        executing(server, "doubled", "pg_advisory") == 1
    });
    // As timeout(1) does it. Each of the two may be taken in before the other is sent.
    running.signal(Signal::TERM);
    std::thread::yield_now();
    running.signal(Signal::TERM);
    running.signal(Signal::TERM);
    holder
        .execute("SELECT pg_advisory_unlock(42)", &[])
        .unwrap();
    let finished = running.finish().expect_status(143);
    // Others may follow it until the signal is taken in.
    assert!(finished.processed() >= 1, "{finished}");
}

#[test]
fn a_second_signal_cancels_what_it_does_not_wait_for_and_the_log_is_complete() {
    let server = Server::shared();
    let running = pgmark(server)
        .args("-c 3 -j 2 -T 60")
        .env("PGAPPNAME", "hasty")
        .script("SELECT pg_sleep(600);")
        .logged()
        .start();
    wait_until("the clients are at work", || {
        executing(server, "hasty", "pg_sleep") == 3
    });
    // Two different ones, since two of a kind at once may become one.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let finished = running.finish();
    assert!(matches!(finished.status, Some(130 | 143)), "{finished}");
    // To its last line, which reading it checks.
    assert_eq!(finished.log().with_status("aborted").count(), 3);
    assert_none_left(server, "hasty");
}

#[test]
fn a_signal_while_connecting_leaves_nothing_and_prints_no_tps() {
    let server = Server::shared();
    // The first connection asks the server for its version; the clients' own are held back.
    let proxy = DelayingProxy::after(1, server, Duration::from_secs(600));
    let running = pgmark(server)
        .args("-c 4 -j 2 -T 60 -h 127.0.0.1")
        .env("PGPORT", proxy.port().to_string())
        .env("PGAPPNAME", "waiting")
        .script("SELECT 1;")
        .start();
    wait_until("the clients are connecting", || proxy.accepted() > 1);
    running.signal(Signal::INT);
    running.finish().expect_status(130).expect_no_tps();
    assert_none_left(server, "waiting");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_after_a_signal() {
    // The kernel shakes hands for a listener whose owner does not accept anybody.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    for options in ["-n -T 60", "-i"] {
        let running = pgmark_alone()
            .args(options)
            .args("-h 127.0.0.1 -U nobody -d nothing")
            .env("PGPORT", &port)
            .start();
        let _waiting = silent.accept().unwrap();
        running.signal(Signal::INT);
        let finished = running.finish().expect_status(130).expect_no_tps();
        assert!(said_interrupted(&finished), "{finished}");
    }
}

#[test]
fn a_server_that_goes_silent_costs_a_notice_and_not_the_summary() {
    let server = Server::shared();
    // The first connection and the client's are let through, the question after the run is not.
    let proxy = DelayingProxy::after(2, server, Duration::from_secs(600));
    let running = pgmark(server)
        .args("-t 5 -h 127.0.0.1")
        .env("PGPORT", proxy.port().to_string())
        .env("PGSSLMODE", "disable")
        .script("SELECT 1;")
        .start();
    wait_until("the server is asked what it did", || proxy.accepted() > 2);
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.processed(), 5, "{finished}");
    let finished = finished.expect_status(0);
    finished.expect_stderr(&["cannot be asked what it did during the run: interrupted"]);
}

#[test]
fn a_log_that_nobody_reads_is_not_waited_for_after_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("log");
    let status = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(status.unwrap().success());
    let start = || {
        pgmark(Server::shared())
            .args("-t 20000 --random-seed=1")
            .arg("--log-file")
            .arg(&pipe)
            .env("PGAPPNAME", "unread")
            .script("\\set nothing 0")
            .start()
    };
    // Nobody opens the pipe.
    let running = start();
    running.wait_for_stderr("setting random seed");
    running.signal(Signal::INT);
    running.finish().expect_status(130).expect_no_tps();
    // Somebody opens it and does not read.
    let mut running = start();
    let _reader = std::fs::File::open(&pipe).unwrap();
    wait_until("it has left", || {
        running.signal(Signal::INT);
        running.has_ended()
    });
    running.finish().expect_status(130);
}

#[test]
fn a_full_disk_ends_with_an_error_after_the_summary() {
    let finished = pgmark(Server::shared())
        .args("-c 2 -t 50 --log-file /dev/full")
        .script("SELECT 1;")
        .run()
        .expect_status(1)
        .expect_stderr(&["/dev/full", "No space left on device"]);
    assert_eq!(finished.processed(), 100, "{finished}");
    assert!(finished.stdout.contains("tps = "), "{finished}");
}

#[test]
fn an_unwritable_log_is_noticed_before_the_run() {
    pgmark(Server::shared())
        .args("-c 2 -t 50 --log-file no/such/directory/log.csv")
        .script("SELECT 1;")
        .run()
        .expect_status(1)
        .expect_stderr(&["no/such/directory/log.csv", "No such file or directory"])
        .expect_no_tps();
}

/// Sessions of the program that execute a statement with this text.
fn executing(server: &Server, application_name: &str, text: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application_name}' \
         AND state = 'active' AND query LIKE '%{text}%'"
    );
    server.value("postgres", &sql)
}

/// A session that was told to end needs a moment for it, but not for ever.
fn assert_none_left(server: &Server, application_name: &str) {
    wait_until("no session is left", || {
        server.sessions(application_name) == 0
    });
}

fn said_interrupted(finished: &support::Finished) -> bool {
    finished.stdout.contains("interrupted") || finished.stderr.contains("interrupted")
}
