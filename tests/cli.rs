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
        ("report", "needs the result file of a run"),
        ("report --bogus", "pgmark report --help"),
        ("compare --bogus", "pgmark compare --help"),
        ("report no/such.json", "no/such.json"),
        ("--tag nothing", "--tag needs NAME=VALUE"),
        ("--fail-if p99", "\"p99\" compares nothing"),
        ("--fail-if achieved<1", "needs a rate"),
        ("--fail-if within_limit<1", "needs a latency limit"),
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
fn a_file_of_values_that_no_run_could_read_is_an_error_without_a_run_too() {
    pgmark_alone()
        .args("--dry-run")
        .script("\\values missing.csv\nSELECT :id;")
        .run()
        .expect_status(1)
        .expect_stderr(&["pgmark: error: ", "missing.csv", "cannot be read"]);
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

/// Lists of arguments with the exit status that they end with, and the essence of what is said: on
/// stdout for those that are good, which `--dry-run` shows without a server, else on stderr.
const ARGUMENTS: &[(&str, i32, &str)] = &[
    // Connection.
    ("--dry-run", 0, "number of clients: 1"),
    ("--dry-run mine", 0, "database \"mine\""),
    ("--dry-run -d mine", 0, "database \"mine\""),
    ("-dmine --dry-run", 0, "database \"mine\""),
    ("--dbname=mine --dry-run", 0, "database \"mine\""),
    ("mine --dry-run -U me", 0, "database \"mine\" as \"me\""),
    ("--user me --dry-run", 0, "database \"me\" as \"me\""),
    (
        "--dry-run postgresql://me@box:6000/mine",
        0,
        "database \"mine\" as \"me\"",
    ),
    (
        "postgresql://me@box/mine --dry-run -c 2",
        0,
        "number of clients: 2",
    ),
    ("--dry-run -- mine", 0, "database \"mine\""),
    ("--dry-run user=me", 0, "as \"me\""),
    ("-h box -p 6000 --dry-run mine", 0, "database \"mine\""),
    ("-hbox -p6000 --dry-run mine", 0, "database \"mine\""),
    (
        "one two",
        1,
        "too many command-line arguments (first is \"two\")",
    ),
    (
        "-d one two",
        1,
        "too many command-line arguments (first is \"two\")",
    ),
    ("-h", 1, "help is -?"),
    ("-p x --dry-run", 1, "invalid"),
    ("-d", 1, "since version 17"),
    ("-d -n", 1, "no longer means debugging"),
    ("-W", 1, "$PGPASSWORD"),
    ("bogus=1", 1, "bogus"),
    (
        "--dry-run --on-connect",
        1,
        "--on-connect requires an argument",
    ),
    (
        "--on-connect SET --dry-run",
        0,
        "each connection begins with: SET",
    ),
    // What to run.
    (
        "-S --dry-run",
        0,
        "<builtin: select only>, weight 1 (100.0%",
    ),
    ("-N --dry-run", 0, "<builtin: simple update>"),
    ("-b tpcb --dry-run", 0, "<builtin: TPC-B (sort of)>"),
    ("-bsel@3 -N --dry-run", 0, "weight 3 (75.0%"),
    ("--builtin=simple@2 --dry-run", 0, "weight 2"),
    ("-S -N -b tpcb --dry-run", 0, "script 3: <builtin: TPC-B"),
    ("-b select@0 -S --dry-run", 0, "weight 0 (0.0%"),
    ("-M extended --dry-run", 0, "query mode: extended"),
    ("-Mprepared --dry-run", 0, "query mode: prepared"),
    ("--protocol simple --dry-run", 0, "query mode: simple"),
    ("-n --dry-run", 0, "before the run: nothing"),
    ("-v --dry-run", 0, "pgbench_accounts"),
    ("-n -v --dry-run", 0, "before the run: nothing"),
    ("-Dx=1 -S --dry-run", 0, "select only"),
    ("--define x=1 -S --dry-run", 0, "select only"),
    ("--random-seed=42 --dry-run", 0, "random seed: 42"),
    (
        "--random-seed -1 --dry-run",
        0,
        "random seed: 18446744073709551615",
    ),
    ("--rand rand --dry-run", 0, "random seed: "),
    (
        "--before checkpoint,vacuum --dry-run",
        0,
        "and then: checkpoint, vacuum",
    ),
    (
        "--before prewarm,reset -n --dry-run",
        0,
        "and then: prewarm, reset",
    ),
    ("-b nothing", 1, "no builtin script is called \"nothing\""),
    ("-b s", 1, "several builtin scripts begin with \"s\""),
    ("-b select@x", 1, "invalid weight specification: \"@x\""),
    ("-b select@", 1, "invalid weight specification"),
    ("-b select@-1", 1, "weight specification out of range"),
    (
        "-b select@2147483648",
        1,
        "weight specification out of range",
    ),
    ("-b select@0", 1, "weight"),
    ("-f no/such/file", 1, "no/such/file"),
    ("-nrf no/such/file", 1, "no/such/file"),
    ("-D x", 1, "definition"),
    ("-D =1", 1, "definition"),
    ("-D 1x=1", 1, "variable name"),
    ("-M Simple", 1, "simple, extended, prepared"),
    ("-M", 1, "-M/--protocol requires an argument"),
    ("-v x=1", 1, "-D NAME=VALUE"),
    ("--random-seed=x", 1, "invalid random seed"),
    ("--random-seed 0x2a", 1, "invalid random seed"),
    (
        "--before freeze",
        1,
        "unknown preparation (--before): \"freeze\"",
    ),
    (
        "--before vacuum,",
        1,
        "unknown preparation (--before): \"\"",
    ),
    ("--show-script nothing", 1, "no builtin script is called"),
    // How hard.
    ("-c 8 -j 2 --dry-run", 0, "number of threads: 2"),
    ("-c8 -j16 --dry-run", 0, "number of threads: 8"),
    ("--client=3 --jobs 2 --dry-run", 0, "number of clients: 3"),
    ("-c 2 -c 4 --dry-run", 0, "number of clients: 4"),
    ("-nvCc7 --dry-run", 0, "number of clients: 7"),
    ("-C --dry-run", 0, "one for each transaction"),
    ("-R 100 --dry-run", 0, "rate: 100 a second"),
    ("-R0.2 --dry-run", 0, "rate: 0.2 a second"),
    ("--rate 6/min --dry-run", 0, "rate: 0.1 a second"),
    ("--rat=360/h --dry-run", 0, "rate: 0.1 a second"),
    ("-R 1/s --dry-run", 0, "rate: 1 a second"),
    ("-R 1e3 --dry-run", 0, "rate: 1000 a second"),
    ("-c 0", 1, "-c/--client must be in range 1..2147483647"),
    ("-c -3", 1, "-c/--client must be in range 1..2147483647"),
    ("-c 2147483648", 1, "-c/--client must be in range"),
    (
        "-c 10abc",
        1,
        "invalid value \"10abc\" for option -c/--client",
    ),
    ("-c 2.5", 1, "invalid value \"2.5\" for option -c/--client"),
    ("-c", 1, "-c/--client requires an argument"),
    ("-j 0", 1, "-j/--jobs must be in range"),
    ("-j x", 1, "invalid value \"x\" for option -j/--jobs"),
    ("-R 0", 1, "invalid rate limit (-R/--rate): \"0\""),
    ("-R -5", 1, "invalid rate limit"),
    ("-R 10abc", 1, "500, 0.2, 6/min, 100/h"),
    ("-R 6/day", 1, "invalid rate limit"),
    ("-R 1e", 1, "invalid rate limit"),
    // How long.
    ("-T 60 --dry-run", 0, "duration: 60 s"),
    ("-T1.5s --dry-run", 0, "duration: 1.5 s"),
    ("--time 5m --dry-run", 0, "duration: 300 s"),
    ("--tim=250ms --dry-run", 0, "duration: 0.25 s"),
    (
        "-t 100 --dry-run",
        0,
        "number of transactions per client: 100",
    ),
    (
        "-t 5 -t 6 --dry-run",
        0,
        "number of transactions per client: 6",
    ),
    ("--warmup 5 --dry-run", 0, "warm-up: 5 s"),
    ("--ramp-clients 2s -T 5 --dry-run", 0, "over: 2 s"),
    ("--finish-within 0 --dry-run", 0, "may take: 0 s"),
    ("--finish 3 -T 9 --dry-run", 0, "may take: 3 s"),
    ("-T 0", 1, "-T/--time must be in range"),
    ("-T 10abc", 1, "1.5s, 250ms, 5m"),
    ("-T -1", 1, "-T/--time must be in range"),
    ("-T", 1, "-T/--time requires an argument"),
    (
        "-t 0",
        1,
        "-t/--transactions must be in range 1..2147483647",
    ),
    ("-t x", 1, "invalid value \"x\""),
    ("-t 5 -T 5", 1, "not both"),
    ("--warmup x", 1, "invalid value \"x\" for option --warmup"),
    ("--warmup -1", 1, "--warmup must be in range"),
    // On errors.
    ("--max-tries 5 --dry-run", 0, "maximum number of tries: 5"),
    (
        "--max=0 -T 5 --dry-run",
        0,
        "maximum number of tries: no limit",
    ),
    (
        "--max-tries 0 -L 5 --dry-run",
        0,
        "maximum number of tries: no limit",
    ),
    ("--continue-on-error --dry-run", 0, "number of clients"),
    ("--exit-on-abort --dry-run", 0, "number of clients"),
    ("--verb --dry-run", 0, "number of clients"),
    (
        "--max-tries -1",
        1,
        "--max-tries must be in range 0..2147483647",
    ),
    (
        "--max-tries 3x",
        1,
        "invalid value \"3x\" for option --max-tries",
    ),
    (
        "--max-tries=0",
        1,
        "needs a latency limit (-L) or a duration (-T)",
    ),
    (
        "--max-tries=0 -t 5",
        1,
        "needs a latency limit (-L) or a duration (-T)",
    ),
    // What to show.
    ("-L 100 --dry-run", 0, "latency limit: 100 ms"),
    ("--lat 0.5 --dry-run", 0, "latency limit: 0.5 ms"),
    ("-L 2s --dry-run", 0, "latency limit: 2000 ms"),
    (
        "-P 5 --progress-timestamp --dry-run",
        0,
        "number of clients",
    ),
    ("--fail --dry-run", 0, "number of clients"),
    (
        "--latency-percentiles 50,99.9 --dry-run",
        0,
        "number of clients",
    ),
    ("--percentiles=25 --dry-run", 0, "number of clients"),
    ("--pgbench-f --dry-run", 0, "number of clients"),
    ("-L 0", 1, "-L/--latency-limit must be in range"),
    ("-L 0.0001", 1, "-L/--latency-limit must be in range"),
    ("-L 1e3", 1, "invalid value \"1e3\""),
    ("-P 0", 1, "-P/--progress must be in range"),
    ("-P x", 1, "invalid value \"x\" for option -P/--progress"),
    ("--progress-timestamp", 1, "allowed only under --progress"),
    (
        "--percentiles 50,0",
        1,
        "invalid percentile (--latency-percentiles): \"0\"",
    ),
    (
        "--latency-percentiles 100.1",
        1,
        "invalid percentile (--latency-percentiles): \"100.1\"",
    ),
    (
        "--percentiles 50,,99",
        1,
        "invalid percentile (--latency-percentiles): \"\"",
    ),
    ("--report-latencies", 1, "--report-per-command"),
    // What to keep.
    ("-l --dry-run", 0, "number of clients"),
    ("-l --log-prefix x --dry-run", 0, "number of clients"),
    (
        "--log-file x --sampling-rate 0.5 --dry-run",
        0,
        "number of clients",
    ),
    ("-l --aggr 5 -T 60 --dry-run", 0, "duration: 60 s"),
    ("--interval-csv x --dry-run", 0, "number of clients"),
    ("-l --log-format=pgbench --dry-run", 0, "number of clients"),
    ("--log-prefix x", 1, "only when logging transactions (-l)"),
    ("-l --log-prefix x --log-file y", 1, "not both"),
    (
        "--sampling-rate 0.5",
        1,
        "only when logging transactions (-l)",
    ),
    ("-l --sampling-rate 0", 1, "invalid sampling rate: \"0\""),
    (
        "-l --sampling-rate 1.1",
        1,
        "invalid sampling rate: \"1.1\"",
    ),
    (
        "-l --sampling-rate 0.5x",
        1,
        "invalid sampling rate: \"0.5x\"",
    ),
    (
        "-l --sampling-rate 1 --aggregate-interval 1",
        1,
        "cannot be used at the same time",
    ),
    ("--aggregate-interval 1", 1, "only when actually logging"),
    (
        "-l --aggregate-interval 0",
        1,
        "--aggregate-interval must be in range",
    ),
    (
        "-l --aggregate-interval 5 -T 2",
        1,
        "must not be higher than test duration",
    ),
    (
        "-l --aggregate-interval 2 -T 5",
        1,
        "must be a multiple of aggregation interval",
    ),
    ("-l --log-format json", 1, "Log formats are: csv, pgbench"),
    (
        "--log-f csv",
        1,
        "ambiguous; possibilities: '--log-file' '--log-format'",
    ),
    // Tables.
    ("-i --dry-run", 0, "100,000 rows"),
    ("-i -s 10 --dry-run", 0, "1,000,000 rows"),
    ("-is10 --dry-run mine", 0, "1,000,000 rows"),
    ("-i -I dtgvp --dry-run", 0, "pgbench_accounts"),
    ("-iIdt --dry-run", 0, "pgbench_accounts"),
    ("-i -n -q --foreign-keys --dry-run", 0, "pgbench_accounts"),
    (
        "-i --partitions=3 --partition-method=HASH --dry-run",
        0,
        "pgbench_accounts",
    ),
    ("-i -F 70 --unlogged-tables --dry-run", 0, "fillfactor"),
    (
        "-i -j 4 --init-mode=insert --init-batch=500 --dry-run",
        0,
        "pgbench_accounts",
    ),
    ("-i --schema s --dry-run", 0, "pgbench_accounts"),
    ("-s 7 -S --dry-run", 0, "select only"),
    ("-s 0", 1, "-s/--scale must be in range"),
    ("-i -s x", 1, "invalid value \"x\" for option -s/--scale"),
    ("-i -c 2", 1, "initialization mode (-i): -c/--client"),
    (
        "-i -S -T 5",
        1,
        "initialization mode (-i): -S/--select-only, -T/--time",
    ),
    ("-i -D x=1", 1, "initialization mode (-i): -D/--define"),
    (
        "-i --random-seed 1",
        1,
        "initialization mode (-i): --random-seed",
    ),
    ("-i --rate 5", 1, "initialization mode (-i): -R/--rate"),
    ("-i --warmup 5", 1, "initialization mode (-i): --warmup"),
    (
        "-i --temp-cluster",
        1,
        "initialization mode (-i): --temp-cluster",
    ),
    ("-i -I dx", 1, "unrecognized initialization step \"x\""),
    (
        "-i --partitions=-1",
        1,
        "--partitions must be in range 0..2147483647",
    ),
    (
        "-i --partition-method=hash",
        1,
        "requires greater than zero --partitions",
    ),
    (
        "-i --partitions 2 --partition-method=list",
        1,
        "expecting \"range\" or \"hash\"",
    ),
    ("-i -F 9", 1, "-F/--fillfactor must be in range 10..100"),
    ("-i -F 101", 1, "-F/--fillfactor must be in range 10..100"),
    ("-i --init-mode=binary", 1, "copy or insert"),
    ("-i --init-batch=0", 1, "--init-batch must be in range"),
    (
        "-I dt",
        1,
        "benchmarking mode, which is without -i: -I/--init-steps",
    ),
    (
        "--foreign-keys --partitions=2",
        1,
        "without -i: --foreign-keys, --partitions",
    ),
    ("-F 90", 1, "without -i: -F/--fillfactor"),
    ("-q", 1, "a run without --temp-cluster: -q/--quiet"),
    // Temporary cluster.
    (
        "--temp-cluster -s 3 -q --dry-run",
        0,
        "a temporary one, scale 3",
    ),
    (
        "--temp-cluster --temp-config a=1 --dry-run",
        0,
        "a temporary one",
    ),
    ("--temp-keep", 1, "without --temp-cluster: --temp-keep"),
    ("--temp-cluster -h box", 1, "server of its own: -h/--host"),
    ("--temp-cluster mine", 1, "server of its own: DBNAME"),
    (
        "--temp-cluster --temp-config fsync",
        1,
        "--temp-config needs NAME=VALUE",
    ),
    // Names.
    ("--bogus", 1, "unrecognized option '--bogus'"),
    (
        "--bogus=3",
        1,
        "Try \"pgmark --help\" for more information.",
    ),
    ("--clinet 4", 1, "Perhaps you meant --client."),
    ("-Z", 1, "invalid option -- 'Z'"),
    ("-nZ", 1, "invalid option -- 'Z'"),
    ("--p 5", 1, "option '--p' is ambiguous"),
    ("--d", 1, "'--dbname' '--debug' '--define'"),
    ("--quiet=3", 1, "-q/--quiet doesn't allow an argument"),
    ("-S@2", 1, "'@'"),
];

#[test]
fn lists_of_arguments_end_as_they_should() {
    let mut wrong = String::new();
    for (arguments, status, essence) in ARGUMENTS {
        let finished = pgmark_alone().args(arguments).run();
        let (said, silent) = match status {
            0 => (&finished.stdout, &finished.stderr),
            _ => (&finished.stderr, &finished.stdout),
        };
        let right = finished.status == Some(*status) && said.contains(essence) && silent.is_empty();
        if !right {
            wrong += &format!("{arguments}: not {status}, {essence:?}\n{finished}");
        }
    }
    assert_eq!(wrong, "");
}
