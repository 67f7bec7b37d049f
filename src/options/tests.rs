//! The option table: lists of arguments, good and bad.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::expand::{Expanded, expand, takes_value};
use super::modes::{is_pgbenchs, pgbench_names};
use super::{command, help, parse};
use crate::conninfo::{Environment, Host, HostName};
use crate::error::{Error, Report};
use crate::plan::{
    ClusterPlan, CsvStyle, InitPlan, InitStep, IntervalPlan, Layout, LoadMode, Loading, LogFormat,
    LogRows, LogTime, Pacing, PartitionMethod, Partitioning, PgbenchFields, Plan, Preparation,
    ProgressPlan, RunPlan, ServerChoice, StopRule, SummaryPlan, Tables, Text, Vacuum,
};
use crate::program::Program;

/// A user named `tester` with these variables.
struct Surroundings(&'static [(&'static str, &'static str)]);

impl Environment for Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        let (_, value) = self.0.iter().find(|(variable, _)| *variable == name)?;
        Some(value.into())
    }

    fn user_name(&self) -> Result<String, String> {
        Ok("tester".to_owned())
    }

    fn has_directory(&self, _path: &Path) -> bool {
        true
    }
}

const NO_VARIABLES: Surroundings = Surroundings(&[]);

fn parse_words(arguments: &str, environment: &Surroundings) -> Result<Plan, Error> {
    let words = std::iter::once("pgmark").chain(arguments.split_whitespace());
    parse(words.map(OsString::from), environment)
}

/// The plan of a run, without any environment.
#[track_caller]
pub(crate) fn run_plan(arguments: &str) -> RunPlan {
    match parse_words(arguments, &NO_VARIABLES) {
        Ok(Plan::Run(plan)) => *plan,
        other => panic!("{arguments}: no run ({:?})", other.err()),
    }
}

#[track_caller]
fn init_plan(arguments: &str) -> InitPlan {
    match parse_words(arguments, &NO_VARIABLES) {
        Ok(Plan::Init(plan)) => *plan,
        other => panic!("{arguments}: no initialization ({:?})", other.err()),
    }
}

/// Message and hint of a usage error.
#[track_caller]
fn complaint(arguments: &str) -> Report {
    match parse_words(arguments, &NO_VARIABLES) {
        Err(Error::Usage(report) | Error::Script(report)) => report,
        other => panic!(
            "{arguments}: not refused as wrong usage ({:?})",
            other.err()
        ),
    }
}

fn target(plan: &RunPlan) -> (Vec<Host>, String, String) {
    match &plan.server {
        ServerChoice::Given(target) => (
            target.hosts.clone(),
            target.user.clone(),
            target.database.clone(),
        ),
        ServerChoice::Temporary { cluster, .. } => panic!("no target but {cluster:?}"),
    }
}

#[test]
fn without_options_everything_has_its_default() {
    let plan = run_plan("");
    assert_eq!(plan.load.clients, 1);
    assert_eq!(plan.load.threads, 1);
    assert_eq!(plan.load.stop, StopRule::Transactions(10));
    assert!(!plan.load.reconnect);
    assert_eq!(plan.load.latency_limit, None);
    assert_eq!(plan.load.max_tries, Some(1));
    assert_eq!(plan.vacuum, Vacuum::Default);
    assert_eq!(plan.scale, None);
    assert!(!plan.seed.explicit);
    assert_eq!((&plan.log, &plan.intervals), (&None, &None));
    assert_eq!(plan.progress, None);
    assert_eq!(script_names(&plan), ["<builtin: TPC-B (sort of)>"]);
    let (_, user, database) = target(&plan);
    assert_eq!((user.as_str(), database.as_str()), ("tester", "tester"));
}

#[test]
fn clients_threads_and_the_end() {
    use StopRule::{Time, Transactions};
    for (arguments, clients, threads, stop) in [
        ("-c 8 -j 2 -T 60", 8, 2, Time(Duration::from_secs(60))),
        ("-c8 -j16", 8, 8, Transactions(10)),
        ("--client=3 --jobs 2 -t100", 3, 2, Transactions(100)),
        ("-T 1.5s", 1, 1, Time(Duration::from_millis(1500))),
        ("-T5m", 1, 1, Time(Duration::from_secs(300))),
        ("-c 2 -c 4 -t 5 -t 6", 4, 1, Transactions(6)),
        ("--cl 5 --tim=2", 5, 1, Time(Duration::from_secs(2))),
        ("-nvCc7", 7, 1, Transactions(10)),
        ("name -c 2", 2, 1, Transactions(10)),
    ] {
        let load = run_plan(arguments).load;
        assert_eq!(
            (load.clients, load.threads, load.stop),
            (clients, threads, stop),
            "{arguments}"
        );
    }
}

#[test]
fn limits_tries_and_what_is_vacuumed() {
    assert_eq!(
        run_plan("-L 100").load.latency_limit,
        Some(Duration::from_millis(100))
    );
    assert_eq!(
        run_plan("-L0.5").load.latency_limit,
        Some(Duration::from_micros(500))
    );
    assert_eq!(run_plan("--max-tries 5").load.max_tries, Some(5));
    assert_eq!(run_plan("--max-tries=0 -T 5").load.max_tries, None);
    assert_eq!(run_plan("--max 0 -L 5").load.max_tries, None);
    assert_eq!(run_plan("-n").vacuum, Vacuum::None);
    assert_eq!(run_plan("-v").vacuum, Vacuum::All);
    assert_eq!(run_plan("-v -n").vacuum, Vacuum::None);
    assert!(run_plan("-C").load.reconnect);
    assert_eq!(
        run_plan("-P 5").progress,
        Some(ProgressPlan {
            interval: Duration::from_secs(5),
            unix_time: false,
            percentile: true,
        })
    );
    assert_eq!(run_plan("-s 7").scale, Some(7));
}

#[test]
fn the_server_is_named_by_options_strings_or_variables() {
    let socket = |directory: &str, port| {
        Host::new(HostName::SocketDirectory(PathBuf::from(directory)), port)
    };
    let network = |name: &str, port| Host::new(HostName::Network(name.to_owned()), port);
    for (arguments, host, user, database) in [
        (
            "-h box -p 6000 -U me mine",
            network("box", 6000),
            "me",
            "mine",
        ),
        ("mine -hbox -p6000", network("box", 6000), "tester", "mine"),
        (
            "-h /run/pg -d mine",
            socket("/run/pg", 5432),
            "tester",
            "mine",
        ),
        ("--host=box --user me", network("box", 5432), "me", "me"),
        (
            "postgresql://me@box:6000/mine -c 2",
            network("box", 6000),
            "me",
            "mine",
        ),
        (
            "-h other host=box",
            network("box", 5432),
            "tester",
            "tester",
        ),
        ("-h box -- mine", network("box", 5432), "tester", "mine"),
    ] {
        let plan = run_plan(arguments);
        let expected = (vec![host], user.to_owned(), database.to_owned());
        assert_eq!(target(&plan), expected, "{arguments}");
    }
    let variables = Surroundings(&[("PGHOST", "box"), ("PGDATABASE", "mine"), ("PGUSER", "me")]);
    match parse_words("-c 2", &variables) {
        Ok(Plan::Run(plan)) => assert_eq!(
            target(&plan),
            (
                vec![network("box", 5432)],
                "me".to_owned(),
                "mine".to_owned()
            )
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scripts_stand_in_the_order_given_with_their_weights() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("own@home.sql");
    std::fs::write(&file, "SELECT :x;\n").expect("the directory is ours");
    let own = file.display().to_string();
    let (tpcb, simple, select) = (
        "<builtin: TPC-B (sort of)>",
        "<builtin: simple update>",
        "<builtin: select only>",
    );
    for (arguments, expected) in [
        (
            "-S -N -b tpcb".to_owned(),
            vec![(select, 1), (simple, 1), (tpcb, 1)],
        ),
        (
            "-b tpcb@3 -S -b simple@0 -S".to_owned(),
            vec![(tpcb, 3), (select, 1), (simple, 0), (select, 1)],
        ),
        (
            format!("-N -f {own}@2 -Dx=1 -S"),
            vec![(simple, 1), (&own, 2), (select, 1)],
        ),
        (format!("-nf{own}@1"), vec![(&own, 1)]),
    ] {
        let plan = run_plan(&arguments);
        let scripts = &plan.scripts.scripts;
        let actual: Vec<_> = scripts
            .iter()
            .map(|script| (script.script.name.as_str(), script.weight))
            .collect();
        assert_eq!(actual, expected, "{arguments}");
    }
}

fn script_names(plan: &RunPlan) -> Vec<&str> {
    let scripts = plan.scripts.scripts.iter();
    scripts.map(|script| script.script.name.as_str()).collect()
}

#[test]
fn the_log_is_named_by_process_prefix_or_exactly() {
    let pid = std::process::id();
    for (arguments, expected) in [
        ("-l", format!("pgmark_log.{pid}.csv")),
        ("-l --log-prefix=dir/run", format!("dir/run.{pid}.csv")),
        ("--log-file exact.csv", "exact.csv".to_owned()),
        ("-l --log-file exact.csv.gz", "exact.csv.gz".to_owned()),
        ("-l --log-format=pgbench", format!("pgmark_log.{pid}")),
        (
            "-l --log-pre pgbench_log --log-format pgbench",
            format!("pgbench_log.{pid}"),
        ),
        (
            "--log-file exact --log-format pgbench --log-format csv",
            "exact".to_owned(),
        ),
    ] {
        let log = run_plan(arguments).log.expect("a log is asked for");
        assert_eq!(log.path, PathBuf::from(expected), "{arguments}");
    }
}

#[test]
fn logs_have_rows_and_a_form() {
    let all = LogRows::Transactions {
        sampling_rate: None,
    };
    let csv = |time, rows_each_file| {
        LogFormat::Csv(CsvStyle {
            time,
            rows_each_file,
        })
    };
    let pgbench = |retries| {
        LogFormat::Pgbench(PgbenchFields {
            lag: false,
            retries,
            failures_detailed: false,
            other_failures: false,
        })
    };
    let tries = run_plan("--log-tries t.gz --log-time epoch").tries;
    let tries = tries.expect("--log-tries is given");
    assert_eq!((tries.path, tries.time), ("t.gz".into(), LogTime::Epoch));
    for (arguments, format, rows) in [
        ("-l", csv(LogTime::Utc, None), all),
        ("-l --log-time local", csv(LogTime::Local, None), all),
        (
            "-l --log-time=none --log-split-rows=1000000",
            csv(LogTime::None, Some(1_000_000)),
            all,
        ),
        (
            "--log-file x --log-time epoch --sampling-rate 0.01",
            csv(LogTime::Epoch, None),
            LogRows::Transactions {
                sampling_rate: Some(0.01),
            },
        ),
        (
            "-l --aggregate-interval=5 -T 60",
            csv(LogTime::Utc, None),
            LogRows::Intervals(Duration::from_secs(5)),
        ),
        (
            "-l --aggr 250ms -T 1.5",
            csv(LogTime::Utc, None),
            LogRows::Intervals(Duration::from_millis(250)),
        ),
        ("-l --log-format=pgbench", pgbench(false), all),
        ("-l --log-f pgbench --max-tries=3", pgbench(true), all),
        (
            "-l --log-format=pgbench --aggregate-interval=2 --max-tries=1",
            pgbench(false),
            LogRows::Intervals(Duration::from_secs(2)),
        ),
    ] {
        // Two of our own names begin with --log-f.
        let arguments = arguments.replace("--log-f ", "--log-format ");
        let log = run_plan(&arguments).log.expect("a log is asked for");
        assert_eq!((log.format, log.rows), (format, rows), "{arguments}");
    }
}

#[test]
fn intervals_have_a_file_of_their_own_and_a_length() {
    for (arguments, expected) in [
        ("--interval-csv i.csv", Some(1_000)),
        ("--int i.csv -P 5", Some(1_000)),
        ("--interval-csv i.csv --aggregate-interval 10", Some(10_000)),
        ("-l --aggregate-interval 10", None),
    ] {
        let intervals = run_plan(arguments).intervals;
        let expected = expected.map(|ms| IntervalPlan {
            path: PathBuf::from("i.csv"),
            length: Duration::from_millis(ms),
        });
        assert_eq!(intervals, expected, "{arguments}");
    }
    assert_eq!(
        run_plan("-P 500ms --progress-t").progress,
        Some(ProgressPlan {
            interval: Duration::from_millis(500),
            unix_time: true,
            percentile: true,
        })
    );
}

#[test]
fn the_seed_comes_from_the_option_then_the_environment() {
    let seed =
        |arguments: &str, environment: &Surroundings| match parse_words(arguments, environment) {
            Ok(Plan::Run(plan)) => (plan.seed.value, plan.seed.explicit),
            other => panic!("{arguments}: {other:?}"),
        };
    let five = Surroundings(&[("PGBENCH_RANDOM_SEED", "5")]);
    assert_eq!(seed("--random-seed=42", &NO_VARIABLES), (42, true));
    assert_eq!(seed("--random-seed=42", &five), (42, true));
    assert_eq!(seed("", &five), (5, true));
    assert!(seed("--random-seed rand", &NO_VARIABLES).1);
    assert!(!seed("", &NO_VARIABLES).1);

    let overridden = |arguments: &str| match parse_words(arguments, &five) {
        Ok(Plan::Run(plan)) => plan.seed.overridden,
        other => panic!("{arguments}: {other:?}"),
    };
    assert_eq!(
        (overridden("--random-seed=42"), overridden("")),
        (Some(5), None)
    );

    let bad = Surroundings(&[("PGBENCH_RANDOM_SEED", "five")]);
    let error = parse_words("--random-seed=42", &bad).expect_err("a bad variable is told");
    assert!(error.to_string().contains("PGBENCH_RANDOM_SEED"), "{error}");
}

#[test]
fn tables_are_made_in_steps() {
    use InitStep::{CreateTables, DropTables, GenerateClientSide, PrimaryKeys};
    let all = [
        DropTables,
        CreateTables,
        GenerateClientSide,
        InitStep::Vacuum,
        PrimaryKeys,
    ];
    let plan = init_plan("-i -s 10 -q -h box mine");
    assert_eq!(plan.tables.steps, all);
    assert_eq!((plan.tables.scale, plan.tables.quiet), (10, true));
    assert_eq!(plan.target.database, "mine");
    let mut with_keys = all.to_vec();
    with_keys.push(InitStep::ForeignKeys);
    for (arguments, steps) in [
        ("-i --foreign-keys", &with_keys[..]),
        ("-i --foreign-keys -I f", &with_keys[5..]),
        ("-i -I dt", &all[..2]),
        ("-iIdt", &all[..2]),
        ("--initialize --init-steps dt", &all[..2]),
        ("-i -I p -I dt", &all[..2]),
        ("-i -n -I dtgv", &all[..3]),
    ] {
        assert_eq!(init_plan(arguments).tables.steps, steps, "{arguments}");
    }
}

#[test]
fn tables_have_a_layout_and_a_way_to_be_loaded() {
    let plain = Tables::plain(InitStep::ALL.to_vec(), 1);
    assert_eq!(init_plan("-i -I dtgGvpf").tables, plain);
    let plan = init_plan(
        "-i -j 4 -F 70 --tablespace=a --index-tablespace b --unlogged-tables --schema=s \
         --partitions=3 --partition-method HASH --init-mode insert --init-batch=500 --dry-run",
    );
    assert!(plan.dry_run);
    assert_eq!(
        plan.tables.layout,
        Layout {
            schema: Some("s".to_owned()),
            fillfactor: 70,
            tablespace: Some("a".to_owned()),
            index_tablespace: Some("b".to_owned()),
            unlogged: true,
            partitioning: Some(Partitioning {
                method: PartitionMethod::Hash,
                partitions: 3
            }),
        }
    );
    assert_eq!(
        plan.tables.loading,
        Loading {
            mode: LoadMode::Insert,
            batch_rows: Some(500),
            connections: 4
        }
    );
    let by_range = init_plan("-i --partitions=3").tables.layout.partitioning;
    assert_eq!(
        by_range.map(|partitioning| partitioning.method),
        Some(PartitionMethod::Range)
    );
    assert_eq!(
        init_plan("-i --partitions=0").tables.layout.partitioning,
        None
    );
}

#[test]
fn a_schema_is_where_every_connection_looks() {
    for (schema, options) in [
        ("bench", "-c search_path=\"bench\""),
        ("My\\\"x", "-c search_path=\"My\\\\\"\"x\""),
    ] {
        let arguments = format!("-i --schema {schema}");
        let target = init_plan(&arguments).target;
        assert_eq!(target.options.as_deref(), Some(options));
    }
    let variables = Surroundings(&[("PGOPTIONS", "-c work_mem=1MB")]);
    let words = ["pgmark", "--schema", "a b"].map(OsString::from);
    match parse(words.into_iter(), &variables) {
        Ok(Plan::Run(plan)) => match plan.server {
            ServerChoice::Given(target) => assert_eq!(
                target.options.as_deref(),
                Some("-c work_mem=1MB -c search_path=\"a\\ b\"")
            ),
            ServerChoice::Temporary { cluster, .. } => panic!("no target but {cluster:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_temporary_cluster_has_its_own_settings() {
    let plan = run_plan(
        "--temp-cluster -s 3 -q --bindir /opt/pg/bin --temp-config a=1 --temp-config b=2 --temp-keep",
    );
    match plan.server {
        ServerChoice::Temporary { cluster, .. } => assert_eq!(
            cluster,
            ClusterPlan {
                bindir: Some(PathBuf::from("/opt/pg/bin")),
                config: vec![
                    ("a".to_owned(), "1".to_owned()),
                    ("b".to_owned(), "2".to_owned())
                ],
                keep: true,
                scale: 3,
                quiet: true,
            }
        ),
        ServerChoice::Given(target) => panic!("no cluster but {target:?}"),
    }
    assert_eq!(plan.scale, None, "builtin scripts count the branches");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, essence) in [
        // Names.
        ("--bogus", "unrecognized option '--bogus'"),
        ("--bogus=3", "unrecognized option '--bogus'"),
        ("-Z", "invalid option -- 'Z'"),
        ("-nZ", "invalid option -- 'Z'"),
        ("--p", "option '--p' is ambiguous"),
        ("--d", "'--dbname' '--debug' '--define'"),
        (
            "--log-p x",
            "log file prefix (--log-prefix) is allowed only when",
        ),
        ("-W", "no option -W"),
        ("--quiet=3", "-q/--quiet doesn't allow an argument"),
        ("-h", "-h/--host requires an argument"),
        ("-n -c", "-c/--client requires an argument"),
        ("--time", "-T/--time requires an argument"),
        ("-d -n", "-d/--dbname needs the name of a database"),
        (
            "one two",
            "too many command-line arguments (first is \"two\")",
        ),
        (
            "-d one two",
            "too many command-line arguments (first is \"two\")",
        ),
        ("-v x=1", "x"),
        // Numbers.
        ("-c 0", "-c/--client must be in range 1..2147483647"),
        ("-c -3", "-c/--client must be in range 1..2147483647"),
        (
            "-c 2147483648",
            "-c/--client must be in range 1..2147483647",
        ),
        ("-c x", "invalid value \"x\" for option -c/--client"),
        ("-c 2.5", "invalid value \"2.5\" for option -c/--client"),
        ("-j 0", "-j/--jobs must be in range"),
        ("-t 0", "-t/--transactions must be in range"),
        ("-s 0", "-s/--scale must be in range"),
        ("-T 0", "-T/--time must be in range"),
        ("-T 10abc", "invalid value \"10abc\" for option -T/--time"),
        ("-P 0", "-P/--progress must be in range"),
        ("-P 999us", "-P/--progress must be in range 0.001.."),
        (
            "-l --aggregate-interval 0.9ms",
            "--aggregate-interval must be in range 0.001..",
        ),
        ("-L 0", "-L/--latency-limit must be in range"),
        ("-L x", "invalid value \"x\" for option -L/--latency-limit"),
        (
            "--max-tries -1",
            "--max-tries must be in range 0..2147483647",
        ),
        (
            "--max-tries abc",
            "invalid value \"abc\" for option --max-tries",
        ),
        ("--random-seed x", "invalid random seed: \"x\""),
        ("-M Simple", "invalid query mode"),
        // Scripts.
        ("-b nothing", "no builtin script is called \"nothing\""),
        ("-b s", "several builtin scripts begin with \"s\""),
        ("-S@2", "-- '@'"),
        ("-b select@x", "invalid weight specification: \"@x\""),
        ("-b select@", "invalid weight specification: \"@\""),
        ("-b select@-1", "weight specification out of range"),
        ("-b select@0", "weight"),
        ("-D novalue", "definition"),
        ("-D =3", "definition"),
        ("-D 3x=3", "variable name"),
        (
            "--show-script nothing",
            "no builtin script is called \"nothing\"",
        ),
        // Modes.
        ("-i -c 2", "initialization mode (-i): -c/--client"),
        (
            "-i -S -T 5",
            "initialization mode (-i): -S/--select-only, -T/--time",
        ),
        ("-i -D x=1", "initialization mode (-i): -D/--define"),
        (
            "-i --temp-cluster",
            "initialization mode (-i): --temp-cluster",
        ),
        ("-i -I dx", "unrecognized initialization step \"x\""),
        (
            "-i --partitions=-1",
            "--partitions must be in range 0..2147483647",
        ),
        (
            "-i --partition-method=hash",
            "--partition-method requires greater than zero --partitions",
        ),
        (
            "-i --partitions=0 --partition-method=range",
            "--partition-method requires greater than zero --partitions",
        ),
        (
            "-i --partitions 2 --partition-method=list",
            "expecting \"range\" or \"hash\", got: \"list\"",
        ),
        ("-i -F 9", "-F/--fillfactor must be in range 10..100"),
        ("-i -F 101", "-F/--fillfactor must be in range 10..100"),
        ("-i -F x", "invalid value \"x\" for option -F/--fillfactor"),
        ("-i --init-mode=binary", "--init-mode"),
        ("-i --init-batch=0", "--init-batch must be in range"),
        (
            "--foreign-keys --partitions=2",
            "which is without -i: --foreign-keys, --partitions",
        ),
        (
            "-F 90 --unlogged-tables --tablespace a --index-tablespace b",
            "without -i: -F/--fillfactor, --tablespace, --index-tablespace, --unlogged-tables",
        ),
        ("--partition-method=hash", "which is without -i"),
        (
            "--init-mode copy --init-batch 5",
            "without -i: --init-mode, --init-batch",
        ),
        ("--temp-cluster --schema x", "server of its own: --schema"),
        (
            "-I dt",
            "benchmarking mode, which is without -i: -I/--init-steps",
        ),
        ("-q", "a run without --temp-cluster: -q/--quiet"),
        // Combinations.
        ("-t 5 -T 5", "not both"),
        ("--log-prefix x", "only when logging transactions (-l)"),
        (
            "--log-f csv",
            "option '--log-f' is ambiguous; possibilities: '--log-file' '--log-format'",
        ),
        (
            "--sampling-rate 0.5",
            "allowed only when logging transactions (-l)",
        ),
        (
            "-l --sampling-rate 0.5 --aggregate-interval 1",
            "cannot be used at the same time",
        ),
        (
            "--sampling-rate 0.5 --aggregate-interval 1 --interval-csv x",
            "log sampling (--sampling-rate) is allowed only when",
        ),
        ("-l --sampling-rate 0", "invalid sampling rate: \"0\""),
        ("-l --sampling-rate 1.1", "invalid sampling rate: \"1.1\""),
        (
            "--aggregate-interval 1",
            "is allowed only when actually logging transactions",
        ),
        (
            "-l --aggregate-interval 0",
            "--aggregate-interval must be in range",
        ),
        (
            "-l --aggregate-interval 5 -T 2",
            "log aggregation interval (5 seconds) must not be higher than test duration (2 seconds)",
        ),
        (
            "-l --aggregate-interval 2 -T 5",
            "duration (5 seconds) must be a multiple of aggregation interval (2 seconds)",
        ),
        (
            "-l --aggregate-interval 1.5 --log-format pgbench",
            "must be whole seconds",
        ),
        (
            "-l --aggregate-interval 1 --log-time none",
            "--log-time cannot be used with --aggregate-interval",
        ),
        (
            "-l --aggregate-interval 1 --log-format pgbench --log-time utc",
            "--log-time cannot be used with --log-format=pgbench",
        ),
        (
            "--interval-csv x --log-time utc",
            "--log-time is allowed only when logging transactions (-l)",
        ),
        ("-l --log-format json", "invalid log format"),
        ("-l --log-time 5", "invalid way to tell the time"),
        ("-l --log-split-rows 0", "--log-split-rows must be in range"),
        ("--log-format csv", "--log-format is allowed only when"),
        (
            "-l --log-format pgbench --log-split-rows 5",
            "--log-split-rows cannot be used with --log-format=pgbench",
        ),
        (
            "-l --log-format pgbench --log-time utc",
            "--log-time cannot be used with --log-format=pgbench",
        ),
        (
            "--progress-timestamp",
            "--progress-timestamp is allowed only under --progress",
        ),
        ("-l --log-prefix x --log-file y", "not both"),
        (
            "--max-tries=0",
            "needs a latency limit (-L) or a duration (-T)",
        ),
        (
            "--max-tries=0 -t 5",
            "needs a latency limit (-L) or a duration (-T)",
        ),
        ("--temp-keep", "without --temp-cluster: --temp-keep"),
        (
            "--bindir /x --temp-config a=b",
            "without --temp-cluster: --bindir, --temp-config",
        ),
        (
            "--temp-cluster -h box",
            "--temp-cluster, which brings a server of its own: -h/--host",
        ),
        ("--temp-cluster mine", "brings a server of its own: DBNAME"),
        (
            "--temp-cluster --temp-config fsync",
            "--temp-config needs NAME=VALUE",
        ),
    ] {
        let message = complaint(arguments).message;
        assert!(message.contains(essence), "{arguments}: {message}");
    }
}

#[test]
fn a_complaint_points_to_the_remedy() {
    for (arguments, remedy) in [
        ("--bogus", "Try \"pgmark --help\" for more information."),
        ("-c", "Try \"pgmark --help\" for more information."),
        ("--clinet 4", "Perhaps you meant --client."),
        ("-h", "help is -?"),
        ("-d -n", "no longer means debugging"),
        ("-d", "since version 17"),
        ("-W", "is asked for if the server wants one"),
        ("-T 10abc", "1.5s, 250ms, 5m"),
        ("-L 1e3", "1.5s, 250ms, 5m"),
        ("-R 10abc", "6/min, 100/h"),
        ("--report-latencies", "--report-per-command"),
        ("-v x=1", "-D NAME=VALUE"),
        ("-b s", "tpcb-like, simple-update, select-only"),
        ("-b select@x", "add @1"),
        ("-M Prepared", "simple, extended, prepared"),
        ("-i -I x", "dtgvp"),
    ] {
        let hint = complaint(arguments).hint.unwrap_or_default();
        assert!(hint.contains(remedy), "{arguments}: {hint:?}");
    }
}

#[test]
fn no_complaint_repeats_a_password_that_is_where_it_does_not_belong() {
    let command = command(Program::Pgmark);
    let options = command.get_arguments().filter(|arg| takes_value(arg));
    let names = options.filter_map(|arg| arg.get_long());
    // A script's file and variables may have any name.
    let options: Vec<String> = names
        .filter(|name| !["define", "file"].contains(name))
        .map(|name| format!("--{name}"))
        .collect();
    for string in ["postgres://u:hush@h/d", "password=hush"] {
        let misplaced = ["d ", "-d d ", "--", "--bogus=", "--quiet=", "-S -q "].into_iter();
        let arguments = misplaced.map(|before| format!("{before}{string}"));
        let values = options.iter().flat_map(|option| {
            [
                format!("{option} {string}"),
                format!("-i {option}={string}"),
                format!("{option} {string} -c 0"),
            ]
        });
        for arguments in arguments.chain(values) {
            if let Err(error) = parse_words(&arguments, &NO_VARIABLES) {
                let told = format!("{error} {error:?}");
                assert!(!told.contains("hush"), "{arguments}: {told}");
            }
        }
    }
}

#[test]
fn too_many_parameters_are_refused_where_they_are_sent_as_such() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("many.sql");
    std::fs::write(&path, "select :x\n".repeat(256)).expect("a writable directory");
    let with = |mode: &str| {
        let arguments = format!("-D x=1 -M {mode} -f {}", path.display());
        parse_words(&arguments, &NO_VARIABLES)
    };
    assert!(with("simple").is_ok());
    for mode in ["extended", "prepared"] {
        let error = with(mode).expect_err("at most 255").to_string();
        assert!(
            error.contains("many.sql:1") && error.contains("255"),
            "{error}"
        );
    }
}

/// As in pgbench, whatever is wrong first in the order of the arguments is told.
#[test]
fn the_first_thing_wrong_is_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("bad.sql");
    std::fs::write(&path, "\\bogus\n").expect("a writable directory");
    let bad = path.display();
    let script = "bad.sql:1";
    for (arguments, essence) in [
        (format!("-f {bad} -c 0"), script),
        (format!("-c 0 -f {bad}"), "-c/--client must be in range"),
        (format!("-f {bad} --bogus"), script),
        (format!("--bogus -f {bad}"), "unrecognized option '--bogus'"),
        (format!("-f {bad} --d"), script),
        (format!("--d -f {bad}"), "option '--d' is ambiguous"),
        (format!("-f {bad} -nZ"), script),
        (format!("-f {bad} -T"), script),
        (format!("-nf{bad} --quiet=3"), script),
        (format!("-f {bad} one two"), script),
        (format!("-f {bad} -b nothing"), script),
        (format!("-b nothing -f {bad}"), "is called \"nothing\""),
        (format!("-f {bad} -b list"), script),
        (format!("-f {bad} --show-script tpcb"), script),
        (format!("-f {bad} -f no/such"), script),
        (format!("-f no/such -f {bad}"), "no/such"),
        (format!("-f {bad} -t 5 -T 5"), script),
        ("-T x --bogus".to_owned(), "invalid value \"x\""),
        ("-D x= -T 0".to_owned(), "\"x=\""),
        ("-D novalue -T 0".to_owned(), "\"novalue\""),
        ("-D =3 -T 0".to_owned(), "\"=3\""),
        ("-T 0 -D x=".to_owned(), "-T/--time"),
    ] {
        let error = parse_words(&arguments, &NO_VARIABLES).expect_err(&arguments);
        let message = error.to_string();
        assert!(message.contains(essence), "{arguments}: {message}");
    }
    match parse_words("-b list -c 0 --bogus", &NO_VARIABLES) {
        Ok(Plan::Show(_)) => {}
        other => panic!("what is shown is shown at once: {other:?}"),
    }
    let bad_seed = Surroundings(&[("PGBENCH_RANDOM_SEED", "five")]);
    let error = parse_words("--bogus", &bad_seed).expect_err("two things are wrong");
    assert!(error.to_string().contains("PGBENCH_RANDOM_SEED"), "{error}");
}

#[test]
fn unreadable_scripts_are_named() {
    let error = parse_words("-f no/such/script.sql", &NO_VARIABLES).expect_err("no such file");
    assert!(error.to_string().contains("no/such/script.sql"), "{error}");
}

#[test]
fn texts_are_shown_wherever_they_are_asked_for() {
    for (arguments, part) in [
        ("--help", "First steps:"),
        ("-n -c 4 -?", "First steps:"),
        ("-n?", "First steps:"),
        ("--he", "First steps:"),
        ("--version", "pgmark "),
        ("-c 4 -V", "pgmark "),
    ] {
        match parse_words(arguments, &NO_VARIABLES) {
            Ok(Plan::Show(Text::Stdout(text))) => assert!(text.contains(part), "{arguments}"),
            other => panic!("{arguments}: {other:?}"),
        }
    }
    for (arguments, part) in [
        ("-b list", "  select-only: <builtin: select only>\n"),
        (
            "--show-script=sel",
            "-- select-only: <builtin: select only>\n\\set aid",
        ),
    ] {
        match parse_words(arguments, &NO_VARIABLES) {
            Ok(Plan::Show(Text::Stderr(text))) => assert!(text.contains(part), "{text}"),
            other => panic!("{arguments}: {other:?}"),
        }
    }
    // A value is no option.
    assert_eq!(target(&run_plan("-U --help")).1, "--help");
}

/// Whatever pgbench's getopt takes for one of its options means that option, under both names.
#[test]
fn every_beginning_that_pgbench_takes_is_taken() {
    let names: Vec<&str> = pgbench_names().collect();
    for program in [Program::Pgmark, Program::Pgbench] {
        let command = command(program);
        let expanded = |typed: &str| {
            let argv = [program.name(), typed].map(OsString::from);
            expand(program, &command, argv.into_iter())
        };
        for name in &names {
            for length in 1..=name.len() {
                let prefix = &name[..length];
                if prefix != *name && names.contains(&prefix) {
                    continue;
                }
                let begins = names.iter().filter(|name| name.starts_with(prefix));
                let unambiguous = begins.count() == 1 || prefix == *name;
                let found = expanded(&format!("--{prefix}"));
                match (unambiguous, found) {
                    (true, Expanded::Help) => assert_eq!(*name, "help"),
                    (true, Expanded::Version) => assert_eq!(*name, "version"),
                    (true, Expanded::Arguments(argv)) => {
                        assert_eq!(argv[1], OsString::from(format!("--{name}")), "{prefix}");
                    }
                    (false, Expanded::UpTo(_, error)) => {
                        assert!(error.to_string().contains("is ambiguous"), "{error}");
                    }
                    (_, found) => panic!("--{prefix}: {found:?}"),
                }
            }
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(*name));
            assert!(arg.is_some(), "there is no --{name}");
        }
    }
}

#[test]
fn under_the_name_pgbench_there_are_no_options_but_its_own() {
    let as_pgbench = |arguments: &str| {
        let words = std::iter::once("/usr/bin/pgbench").chain(arguments.split_whitespace());
        parse(words.map(OsString::from), &NO_VARIABLES)
    };
    let ours = command(Program::Pgmark);
    let ours = ours.get_arguments().filter_map(clap::Arg::get_long);
    for name in ours.filter(|name| !is_pgbenchs(name)) {
        let error = as_pgbench(&format!("--{name}")).expect_err(name);
        assert!(error.to_string().contains("unrecognized option"), "{error}");
        let hint = error.report().and_then(|report| report.hint.as_deref());
        assert!(
            hint.is_some_and(|hint| hint.contains("pgbench --help")),
            "{hint:?}"
        );
    }
    for (arguments, essence) in [
        ("--percentiles 5", "unrecognized option '--percentiles'"),
        ("--warm 5", "unrecognized option '--warm'"),
        ("-i -j 2", "initialization mode (-i): -j/--jobs"),
        ("-q", "benchmarking mode, which is without -i: -q/--quiet"),
        ("-T 1.5", "invalid value \"1.5\" for option -T/--time"),
        ("-T 5s", "invalid value \"5s\" for option -T/--time"),
        ("-T 0", "-T/--time must be in range 1..2147483647"),
        (
            "-P 500ms",
            "invalid value \"500ms\" for option -P/--progress",
        ),
        (
            "-l --aggregate-interval 1.5",
            "invalid value \"1.5\" for option --aggregate-interval",
        ),
        ("-R 6/min", "invalid rate limit: \"6/min\""),
        ("-L 2s", "invalid latency limit: \"2s\""),
        ("report", ""),
    ] {
        match as_pgbench(arguments) {
            Err(error) => assert!(error.to_string().contains(essence), "{error}"),
            Ok(Plan::Run(plan)) => assert_eq!((target(&plan).2.as_str(), essence), ("report", "")),
            Ok(other) => panic!("{arguments}: {other:?}"),
        }
    }
    match as_pgbench("-l -P 5 -R 10 --failures-detailed") {
        Ok(Plan::Run(plan)) => {
            assert_eq!(plan.program, Program::Pgbench);
            let log = plan.log.expect("-l is given");
            let pid = std::process::id();
            assert_eq!(log.path, PathBuf::from(format!("pgbench_log.{pid}")));
            let fields = PgbenchFields {
                lag: true,
                retries: false,
                failures_detailed: true,
                other_failures: false,
            };
            assert_eq!(log.format, LogFormat::Pgbench(fields));
            assert_eq!(plan.progress.map(|lines| lines.percentile), Some(false));
            assert!(!plan.load.on_error.tell_first);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_name_pgbench_has_pgbenchs_default_database() {
    let database = |arguments: &str, variables| {
        let words = std::iter::once("pgbench").chain(arguments.split_whitespace());
        match parse(words.map(OsString::from), &Surroundings(variables)) {
            Ok(Plan::Run(plan)) => (target(&plan).1, target(&plan).2),
            other => panic!("{arguments}: {other:?}"),
        }
    };
    let pair = |user: &str, database: &str| (user.to_owned(), database.to_owned());
    assert_eq!(database("-U me", &[]), pair("me", "tester"));
    assert_eq!(database("-U me", &[("PGUSER", "you")]), pair("me", "you"));
    let both = &[("PGUSER", "you"), ("PGDATABASE", "theirs")];
    assert_eq!(database("", both), pair("you", "theirs"));
    assert_eq!(database("-d mine", both), pair("you", "mine"));
    assert_eq!(database("mine", both), pair("you", "mine"));
}

#[test]
fn the_version_and_the_help_are_those_of_the_name() {
    let shown = |argument: &str| {
        let words = ["pgbench", argument].map(OsString::from);
        match parse(words.into_iter(), &NO_VARIABLES) {
            Ok(Plan::Show(Text::Stdout(text))) => text,
            other => panic!("{other:?}"),
        }
    };
    let version = shown("--version");
    assert!(
        version.starts_with("pgbench (PostgreSQL) 18.0 (pgmark "),
        "{version}"
    );
    let help = shown("-?");
    for (part, there) in [
        ("--report-per-command", true),
        ("--continue-on-error", true),
        ("--temp-cluster", false),
        ("--warmup", false),
        ("Temporary cluster", false),
    ] {
        assert_eq!(help.contains(part), there, "{part}");
    }
}

#[test]
fn rates_lead_ins_and_errors_reach_the_plan() {
    let load = run_plan("-R 6/min --warmup 2 --ramp-clients 500ms --finish-within 0 -T 5").load;
    assert_eq!(load.pacing, Pacing::Rate(0.1));
    assert_eq!(load.lead_in.warmup, Duration::from_secs(2));
    assert_eq!(load.lead_in.ramp, Duration::from_millis(500));
    assert_eq!(load.finish_within, Some(Duration::ZERO));
    let on_error = run_plan("--continue-on-error --exit-on-abort --verbose-errors")
        .load
        .on_error;
    assert_eq!(
        (on_error.go_on, on_error.exit, on_error.verbose),
        (true, true, true)
    );
    let plan = run_plan("-r --failures-detailed --percentiles 99,1 --pgbench-figures --debug");
    assert_eq!(
        plan.summary,
        SummaryPlan {
            failures_detailed: true,
            percentiles: vec![1.0, 99.0],
            pgbench_figures: true
        }
    );
    assert!(plan.debug && plan.per_command);
    assert_eq!(plan.long_wait, Some(Duration::from_secs(60)));
    let before = run_plan("--before checkpoint,reset").before;
    assert_eq!(before, [Preparation::Checkpoint, Preparation::Reset]);
}

/// Every option has a group, a full sentence of help, and a line in the README's table.
#[test]
fn every_option_is_explained() {
    let readme = include_str!("../../README.md");
    let shown = help::help(Program::Pgmark, &command(Program::Pgmark));
    for arg in command(Program::Pgmark).get_arguments() {
        let name = super::complaint::spelled(arg);
        let heading = arg.get_help_heading();
        assert!(
            heading.is_some_and(|h| shown.contains(&format!("{h}:\n"))),
            "{name}"
        );
        let sentence = arg.get_help().map(ToString::to_string).unwrap_or_default();
        assert!(
            sentence.starts_with(char::is_uppercase),
            "{name}: {sentence}"
        );
        // What is given only when something is there to be named has no default.
        let has_value = takes_value(arg)
            && !["define", "show-script"]
                .contains(&&name[name.find("--").map_or(0, |at| at + 2)..]);
        let says_default = ["default", "without it", "if not given"]
            .iter()
            .any(|words| sentence.contains(words));
        assert!(!has_value || says_default, "{name}: {sentence}");
        let in_table = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("| `-{short}`, `--{long}"),
            (_, Some(long)) => format!("| `--{long}"),
            _ => format!("| `{name}`"),
        };
        assert!(
            readme.contains(&in_table),
            "{in_table} is not in the README"
        );
    }
}

/// The help fits a terminal and says every exit status.
#[test]
fn the_help_reads_well() {
    let shown = help::help(Program::Pgmark, &command(Program::Pgmark));
    for line in shown.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for status in ["  0 ", "  1 ", "  2 ", "  130 "] {
        assert!(shown.contains(status), "{status:?}");
    }
}
