//! The command line from outside: what is printed where, and the exit status.

mod support;

use support::pgmark_alone;

#[test]
fn help_and_version_work_wherever_they_stand() {
    for arguments in ["--help", "-?", "-n --help", "--hel", "--bogus --help"] {
        let finished = pgmark_alone().args(arguments).run().expect_status(0);
        for part in [
            "First steps:",
            "Connection:",
            "--temp-cluster",
            "Exit status:",
        ] {
            assert!(finished.stdout.contains(part), "{part:?}\n{finished}");
        }
        assert_eq!(finished.stderr, "", "{arguments}");
    }
    for arguments in ["--version", "-V", "-c 2 --versio"] {
        let finished = pgmark_alone().args(arguments).run().expect_status(0);
        let version = format!("pgmark {} ", env!("CARGO_PKG_VERSION"));
        assert!(finished.stdout.starts_with(&version), "{finished}");
        assert_eq!(finished.stdout.lines().count(), 1, "{finished}");
    }
}

#[test]
fn wrong_usage_is_said_on_stderr_with_status_1() {
    for (arguments, essence) in [
        ("--bogus", "unrecognized option '--bogus'"),
        ("-Z", "invalid option -- 'Z'"),
        ("-c 0", "-c/--client must be in range 1..2147483647"),
        ("-T 10abc", "invalid value \"10abc\" for option -T/--time"),
        ("-t 5 -T 5", "not both"),
        ("-f no/such/file", "no/such/file"),
        ("-h", "-h/--host requires an argument"),
        ("one two", "too many command-line arguments"),
    ] {
        let finished = pgmark_alone()
            .args(arguments)
            .run()
            .expect_status(1)
            .expect_stderr(&["pgmark: error: ", essence]);
        assert_eq!(finished.stdout, "", "{arguments}");
    }
}

#[test]
fn what_a_run_would_do_is_told_without_a_server() {
    let finished = pgmark_alone()
        .env("PGHOST", "/nowhere")
        .args("-U me -d mine -M prepared --dry-run")
        .script("\\set x random(1, 10)\nSELECT :x, :client_id \\gset\n")
        .run()
        .expect_status(0)
        .expect_no_tps();
    for part in [
        "server: database \"mine\" as \"me\"",
        "query mode: prepared",
        "     1  \\set x random(1, 10)\n",
        "     2  SELECT $1, $2\n        -- $1 = :x, $2 = :client_id\n        \\gset\n",
    ] {
        assert!(finished.stdout.contains(part), "{part:?}\n{finished}");
    }
    pgmark_alone()
        .args("--dry-run")
        .script("\\set x random(1, 10\n")
        .run()
        .expect_status(1)
        .expect_stderr(&["script1.sql:1: syntax error"]);
}

#[test]
fn the_builtin_scripts_are_shown_on_stderr() {
    let list = pgmark_alone().args("-b list").run().expect_status(0);
    for name in ["tpcb-like", "simple-update", "select-only"] {
        assert!(list.stderr.contains(name), "{list}");
    }
    pgmark_alone()
        .args("--show-script=select")
        .run()
        .expect_status(0)
        .expect_stderr(&["-- select-only: ", "SELECT abalance FROM pgbench_accounts"]);
}
