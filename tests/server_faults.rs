//! Servers that stop, crash, are full or say so, locks that cross, signals at any moment and logs
//! that are not read, each in the middle of a run: whatever happens, the exit status says how the
//! run ended, the books balance, the log has its rows, what was committed is on the server, and
//! nothing is left behind, neither a session nor a file.

mod support;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

use pgmark::random::Generator;
use support::{Finished, Log, Program, Running, Server, Signal, Tripwire, pgmark, wait_until};

const RULES: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";

/// A server for one kind of fault, with a table `written` of what the clients have committed.
struct Scene {
    server: Server,
}

/// What the server calls the sessions of the program.
const NAME: &str = "struck";

/// A transaction that adds a row.
const WRITE: &str = "BEGIN;\nINSERT INTO written VALUES (:client_id);\nEND;\n";

impl Scene {
    /// With more settings of the server, and more statements to prepare it.
    fn with(settings: &str, statements: &str) -> Scene {
        let server = Server::with(RULES, settings);
        server
            .client("postgres")
            .batch_execute(&format!("CREATE TABLE written (n int); {statements}"))
            .expect("a new server has no such things");
        Scene { server }
    }

    fn program(&self, options: &str, script: &str) -> Program {
        pgmark(&self.server)
            .args(options)
            .env("PGAPPNAME", NAME)
            .env("PGSSLMODE", "disable")
            .script(script)
    }

    /// A count, if the server is there and has room.
    fn count(&self, sql: &str) -> Option<i64> {
        let mut client = self.server.connect("postgres").ok()?;
        client.query_one(sql, &[]).ok().map(|row| row.get(0))
    }

    fn written(&self) -> Option<i64> {
        self.count("SELECT count(*) FROM written")
    }

    /// Waits until the clients write, at first or again.
    fn wait_for_writes(&self) {
        let mut before = None;
        wait_until("the clients write", || {
            let written = self.written();
            before = before.or(written);
            written > before.map(|before| before + 30)
        });
    }

    /// What holds after every run; the status is one of these. The log is that of a program that was
    /// `logged`, empty if there was no run.
    fn check(&self, finished: &Finished, statuses: &[i32]) -> Log {
        let path = finished.path(LOG_NAME);
        let log = match path.exists() {
            true => Log::read(&path),
            false => Log { rows: Vec::new() },
        };
        self.check_with_log(finished, statuses, &log);
        log
    }

    fn check_with_log(&self, finished: &Finished, statuses: &[i32], log: &Log) {
        let status = finished.status.unwrap_or(-1);
        assert!(statuses.contains(&status), "{statuses:?}: {finished}");
        for sign in ["internal error", "panicked", "overflow"] {
            assert!(!finished.stderr.contains(sign), "{finished}");
        }
        match finished.stdout.contains(PROCESSED) {
            true => check_log(finished, log),
            false => assert_eq!(log.rows.len(), 0, "{finished}"),
        }
        check_files(finished);
        wait_until("no session is left", || {
            let sql =
                format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}'");
            self.count(&sql) == Some(0)
        });
    }

    /// All that was acknowledged is there, and nothing that was not at least attempted. The table
    /// is empty afterwards.
    fn check_written(&self, finished: &Finished, log: &Log) {
        let of = |status| log.with_status(status).count() as i64;
        let (least, most) = (of("ok"), of("ok") + of("aborted"));
        let written = self.written().expect("the server is up");
        assert!(
            (least..=most).contains(&written),
            "{written} of {least} to {most}: {finished}"
        );
        let mut client = self.server.client("postgres");
        client
            .batch_execute("TRUNCATE written")
            .expect("it is ours");
    }
}

const LOG_NAME: &str = "transactions.csv";
const PROCESSED: &str = "number of transactions actually processed: ";

/// What the summary counts is in the log, and as often.
fn check_log(finished: &Finished, log: &Log) {
    let of = |status: &str| log.with_status(status).count() as f64;
    assert_eq!(of("ok"), finished.figure(PROCESSED), "{finished}");
    // Where nothing was attempted, the lines from this one on are left out.
    let failed = match finished.stdout.contains(FAILED) {
        true => finished.figure(FAILED),
        false => 0.0,
    };
    assert_eq!(of("failed"), failed, "{finished}");
    assert_eq!(of("failed") + of("aborted"), errors(finished), "{finished}");
    if finished.stdout.contains(RETRIES) {
        let retries: u32 = log.rows.iter().map(|row| row.retries).sum();
        assert_eq!(f64::from(retries), finished.figure(RETRIES), "{finished}");
    }
    // No transaction of a client is missing, and none is there twice.
    let named: BTreeSet<_> = log
        .rows
        .iter()
        .map(|row| (row.client_id, row.transaction))
        .collect();
    assert_eq!(named.len(), log.rows.len(), "{finished}");
}

const FAILED: &str = "number of failed transactions: ";
const RETRIES: &str = "total number of retries: ";

/// The sum of the line of errors.
fn errors(finished: &Finished) -> f64 {
    let line = finished.stdout.lines();
    let Some(kinds) = line
        .filter_map(|line| line.strip_prefix("errors = "))
        .next()
    else {
        return 0.0;
    };
    let counts = kinds.split(", ").map(|kind| {
        let count = kind.rsplit(" x").next().expect("a count");
        count.parse::<f64>().expect("a number")
    });
    counts.sum()
}

/// Nothing lies beside the script and the log.
fn check_files(finished: &Finished) {
    let entries = std::fs::read_dir(finished.path("")).expect("the run left its directory");
    for entry in entries {
        let name = entry.expect("readable").file_name();
        let expected = name == "script1.sql" || name == LOG_NAME;
        assert!(expected, "{name:?} was left: {finished}");
    }
}

/// What befalls the server, from outside of the run.
#[derive(Clone, Copy, Debug)]
enum Blow {
    StopFast,
    StopImmediately,
    /// All sessions of the program are ended.
    TerminateAll,
    /// The process of one session is killed, at which the server ends all others and recovers.
    KillOne,
}

impl Scene {
    fn strike(&self, blow: Blow) {
        match blow {
            Blow::StopFast => {
                self.server.stop_fast();
                self.server.start_again();
            }
            Blow::StopImmediately => {
                self.server.stop_immediately();
                self.server.start_again();
            }
            Blow::TerminateAll => {
                let sql = format!(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE application_name = '{NAME}'"
                );
                self.server.value::<i64>("postgres", &sql);
            }
            Blow::KillOne => {
                let before = self.kills();
                // A session that is about to end may do so before it is killed.
                wait_until("the server has noticed a kill", || {
                    let noticed = self.kills() > before;
                    if !noticed {
                        self.kill_a_session();
                    }
                    noticed
                });
            }
        }
    }

    /// Processes whose killing the server has noticed.
    fn kills(&self) -> usize {
        self.server
            .log()
            .matches("was terminated by signal 9")
            .count()
    }

    /// If there is one.
    fn kill_a_session(&self) {
        let sql = format!(
            "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity \
             WHERE application_name = '{NAME}'"
        );
        let pid = self.count(&sql).and_then(|pid| i32::try_from(pid).ok());
        if let Some(process) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }

    /// A run of four clients that is struck while they write.
    fn struck(&self, blow: Blow, options: &str) -> Running {
        let running = self
            .program("-c 4 -j 2 -T 60", WRITE)
            .args(options)
            .logged()
            .start();
        self.wait_for_writes();
        self.strike(blow);
        running
    }
}

fn strike_runs(blow: Blow) {
    let scene = Scene::with("", "");
    for options in ["", "-M prepared", "--exit-on-abort"] {
        let finished = scene.struck(blow, options).finish();
        let log = scene.check(&finished, &[2]);
        scene.check_written(&finished, &log);
        let said = "Run was aborted; the above results are incomplete.";
        assert!(finished.stderr.contains(said), "{finished}");
    }
    for options in ["", "-M prepared -R 400", "-C"] {
        let options = format!("--reconnect-on-loss {options}");
        let running = scene.struck(blow, &options);
        scene.wait_for_writes();
        running.signal(Signal::INT);
        let finished = running.finish();
        let log = scene.check(&finished, &[130]);
        scene.check_written(&finished, &log);
        let lost = finished.figure("number of transactions lost with their connection: ");
        assert_eq!(lost, errors(&finished), "{finished}");
        assert!(lost <= 4.0, "{finished}");
    }
}

#[test]
fn a_server_that_is_stopped_fast_ends_the_clients_or_is_waited_for() {
    strike_runs(Blow::StopFast);
}

#[test]
fn a_server_that_is_stopped_immediately_ends_the_clients_or_is_waited_for() {
    strike_runs(Blow::StopImmediately);
}

#[test]
fn sessions_that_are_ended_end_their_clients_or_are_made_again() {
    strike_runs(Blow::TerminateAll);
}

#[test]
fn a_killed_server_process_ends_all_clients_or_they_outlive_the_recovery() {
    strike_runs(Blow::KillOne);
}

/// Transactions that update two rows, half of the clients in one order and half in the other.
const CROSSING: &str = "\\set first 1 + :client_id % 2\n\
    \\set second 3 - :first\n\
    BEGIN;\n\
    UPDATE storm SET n = n + 1 WHERE id = :first;\n\
    UPDATE storm SET n = n + 1 WHERE id = :second;\n\
    INSERT INTO written VALUES (:client_id);\n\
    END;\n";

#[test]
fn locks_that_cross_are_counted_and_tried_again_as_was_asked() {
    let scene = Scene::with(
        "deadlock_timeout = 10ms\n",
        "CREATE TABLE storm (id int, n int); INSERT INTO storm VALUES (1, 0), (2, 0)",
    );
    for (options, all_at_once) in [
        ("--max-tries=0 -T 1", false),
        ("--max-tries=0 -T 1 -M prepared -C", false),
        ("--max-tries=1 -t 12", true),
        ("--max-tries=1 -t 12 -M extended", true),
    ] {
        let finished = scene
            .program("-c 8 -j 2 --failures-detailed", CROSSING)
            .args(options)
            .logged()
            .run();
        let log = scene.check(&finished, &[0]);
        assert_eq!(log.with_status("aborted").count(), 0, "{finished}");
        let deadlocks = finished.figure("number of deadlock failures: ");
        assert_eq!(deadlocks, errors(&finished), "{finished}");
        assert!(
            log.with_status("failed")
                .all(|row| row.error == "SQLSTATE 40P01")
        );
        if all_at_once {
            assert!(deadlocks > 0.0, "{finished}");
            assert_eq!(finished.figure(PROCESSED) + deadlocks, 96.0, "{finished}");
        } else {
            assert!(finished.figure(RETRIES) > 0.0, "{finished}");
            // Only who is out of time gives up.
            assert!(deadlocks <= 8.0, "{finished}");
        }
        let updates = scene.count("SELECT sum(n) FROM storm");
        assert_eq!(updates, Some(2 * finished.processed() as i64), "{finished}");
        let mut client = scene.server.client("postgres");
        client
            .batch_execute("UPDATE storm SET n = 0")
            .expect("it is ours");
        scene.check_written(&finished, &log);
    }
}

#[test]
fn more_clients_than_connections_end_the_start_or_their_own_work() {
    let scene = Scene::with(
        "max_connections = 8\nsuperuser_reserved_connections = 0\nmax_wal_senders = 0\n",
        "",
    );
    let crowd = |options: &str| {
        let script = format!("{WRITE}SELECT pg_sleep(0.005);\n");
        let crowd = scene.program("-c 12 -j 2 -t 20", &script);
        crowd.args(options).logged().run()
    };
    let refused = "sorry, too many clients already";
    let finished = crowd("").expect_stderr(&[refused, "SQLSTATE 53300; max_connections is 8"]);
    let log = scene.check(&finished.expect_no_tps(), &[1]);
    assert_eq!(log.rows.len(), 0);

    let finished = crowd("-C").expect_stderr(&[refused]);
    let log = scene.check(&finished, &[2]);
    scene.check_written(&finished, &log);

    let finished = crowd("-C --reconnect-on-loss");
    let log = scene.check(&finished, &[0]);
    assert_eq!(finished.processed(), 240, "{finished}");
    assert!(finished.stdout.contains("53300"), "{finished}");
    scene.check_written(&finished, &log);
}

/// A server that runs out of memory in one call of a hundred, and out of disk in another.
const RUNS_OUT: &str = "CREATE FUNCTION run_out(chance int) RETURNS int LANGUAGE plpgsql AS $$
    BEGIN
        CASE chance
            WHEN 1 THEN RAISE 'out of memory' USING ERRCODE = '53200';
            WHEN 2 THEN RAISE 'could not extend file: No space left' USING ERRCODE = '53100';
            ELSE RETURN chance;
        END CASE;
    END $$";

#[test]
fn a_server_without_memory_or_disk_ends_clients_or_fails_transactions() {
    let scene = Scene::with("", RUNS_OUT);
    let script = "\\set chance random(1, 100)\n\
        BEGIN;\n\
        INSERT INTO written VALUES (:client_id);\n\
        SELECT run_out(:chance);\n\
        END;\n";
    for (options, status) in [
        ("", 2),
        ("-M prepared --max-tries 5", 2),
        ("-C --exit-on-abort", 2),
        ("-M extended --reconnect-on-loss", 2),
        ("--continue-on-error", 0),
        ("--continue-on-error --max-tries 5 -C", 0),
    ] {
        let finished = scene
            .program("-c 6 -j 2 -t 100 --random-seed 11", script)
            .args(options)
            .logged()
            .run();
        let log = scene.check(&finished, &[status]);
        let (said, kind) = match status {
            2 => (
                "Run was aborted; the above results are incomplete.",
                "aborted",
            ),
            _ => ("", "failed"),
        };
        let finished = finished.expect_stderr(&[said]);
        for row in log.with_status(kind) {
            let interrupted = options.contains("exit-on-abort") && row.error == "interrupted";
            let ran_out = ["SQLSTATE 53200", "SQLSTATE 53100"].contains(&row.error.as_str());
            assert!(ran_out || interrupted, "{row:?}: {finished}");
            assert_eq!(row.retries, 0, "{row:?}: {finished}");
        }
        assert!(errors(&finished) > 0.0, "{finished}");
        if status == 0 {
            assert_eq!(log.rows.len(), 600, "{finished}");
            for sqlstate in ["53200", "53100"] {
                let rows = log.rows.iter().filter(|row| row.error.ends_with(sqlstate));
                let counted = finished.figure(&format!("{sqlstate} x"));
                assert_eq!(rows.count() as f64, counted, "{finished}");
            }
        }
        scene.check_written(&finished, &log);
    }
}

/// A run through a proxy that sends it these signals once the server has said so many bytes, and
/// how many it had said in the end.
fn signalled(scene: &Scene, options: &str, moment: u64, signals: &[Signal]) -> (Finished, u64) {
    let tripwire = Tripwire::to(&scene.server, moment);
    let running = scene
        .program("-c 3 -j 2 -h 127.0.0.1 --random-seed 1", WRITE)
        .args(options)
        .env("PGPORT", tripwire.port().to_string())
        .logged()
        .start();
    if !signals.is_empty() {
        tripwire.wait();
        for signal in signals {
            running.signal(*signal);
        }
    }
    (running.finish(), tripwire.bytes())
}

/// What the server says in a run that a signal ends, at the most.
const BYTES_OF_ENDLESS: u64 = 60_000;

/// So many moments for each way of running, from the first byte of the first connection on.
fn signal_at_moments(seed: u64, moments: usize) {
    let scene = Scene::with("", "");
    let mut chance = Generator::new(seed);
    for options in ["-t 60", "-t 20 -C", "-t 60 -M prepared --reconnect-on-loss"] {
        let (finished, bytes) = signalled(&scene, options, u64::MAX, &[]);
        let log = scene.check(&finished, &[0]);
        scene.check_written(&finished, &log);
        // Not the very last of them: it may be less the next time, by the digits of a figure.
        let bytes = bytes - 100;
        for _ in 0..moments {
            signal_at_moment(&scene, options, bytes, &mut chance);
        }
    }
    for options in ["-T 60", "-T 60 -C", "-T 60 -R 1000 -M extended"] {
        for _ in 0..moments {
            signal_at_moment(&scene, options, BYTES_OF_ENDLESS, &mut chance);
        }
    }
}

fn signal_at_moment(scene: &Scene, options: &str, bytes: u64, chance: &mut Generator) {
    let moment = chance.range(0, bytes);
    let signals = match chance.index_below(3) {
        0 => [Signal::INT, Signal::TERM].as_slice(),
        _ => &[Signal::INT],
    };
    let (finished, _) = signalled(scene, options, moment, signals);
    let context = format!("{options}, {signals:?} at byte {moment}: {finished}");
    let status = finished.status.unwrap_or(-1);
    match status {
        // It had done all before it took the signal in.
        0 => {
            assert!(options.starts_with("-t"), "{context}");
            assert!(!finished.stdout.contains("interrupted = "), "{context}");
        }
        status => assert!([130, 143][..signals.len()].contains(&status), "{context}"),
    }
    let log = scene.check(&finished, &[status]);
    scene.check_written(&finished, &log);
}

#[test]
fn signals_at_random_moments_end_a_run_with_all_that_it_did() {
    signal_at_moments(1, 1);
}

#[test]
#[ignore = "takes a minute; make torture"]
fn signals_at_many_random_moments_end_a_run_with_all_that_it_did() {
    signal_at_moments(2, 20);
}

/// A log that is a pipe, which the test reads when it likes.
struct Pipe {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Pipe {
    fn new() -> Pipe {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("pipe");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo can be started").success());
        Pipe { directory, path }
    }

    fn program(&self, scene: &Scene, options: &str, script: &str) -> Program {
        let program = scene.program(options, script);
        program.arg("--log-file").arg(&self.path)
    }

    /// All that comes, after what has come already, as a log.
    fn log(&self, mut begun: Vec<u8>, mut reader: File) -> Log {
        reader.read_to_end(&mut begun).expect("it can be read");
        let path = self.directory.path().join("read");
        let mut file = File::create(&path).expect("the directory is ours");
        file.write_all(&begun).expect("it has room");
        Log::read(&path)
    }
}

/// How often the clients write in a run whose log is more than a pipe and a buffer hold.
const WRITES: i64 = 10_000;

#[test]
fn a_log_that_is_not_read_for_a_while_holds_up_no_client() {
    let (scene, pipe) = (Scene::with("", ""), Pipe::new());
    let script = "INSERT INTO written VALUES (:client_id);\n";
    let start = || {
        let mut running = pipe.program(&scene, "-c 4 -j 2 -t 2500", script).start();
        let reader = File::open(&pipe.path).expect("it can be opened");
        wait_until("all is written", || scene.written() == Some(WRITES));
        assert!(!running.has_ended());
        (running, reader)
    };
    let (running, reader) = start();
    let log = pipe.log(Vec::new(), reader);
    let finished = running.finish();
    scene.check_with_log(&finished, &[0], &log);
    scene.check_written(&finished, &log);
    assert!(!finished.stderr.contains("threads waited"), "{finished}");

    // Who does not want to wait for the reader says so.
    let (mut running, _reader) = start();
    wait_until("it has left", || {
        running.signal(Signal::INT);
        running.has_ended()
    });
    scene.check_with_log(&running.finish(), &[130], &Log { rows: Vec::new() });
}

/// A run that measures more than may wait for the log, and whose threads wait for it; the first
/// byte of the log, and where the others come from.
fn held_up(scene: &Scene, pipe: &Pipe) -> (Running, Vec<u8>, File) {
    let script = "\\set nothing 0\n".repeat(200);
    let running = pipe.program(scene, "-c 2 -j 2 -t 8000 -r", &script).start();
    let mut reader = File::open(&pipe.path).expect("it can be opened");
    let mut first = [0];
    reader.read_exact(&mut first).expect("the log has begun");
    let mut looks = 0;
    wait_until("its threads wait", || {
        looks = if running.is_asleep() { looks + 1 } else { 0 };
        looks == 10
    });
    (running, first.to_vec(), reader)
}

#[test]
fn a_log_that_is_read_too_late_holds_up_the_clients_and_lacks_nothing() {
    let (scene, pipe) = (Scene::with("", ""), Pipe::new());
    let (running, begun, reader) = held_up(&scene, &pipe);
    let log = pipe.log(begun, reader);
    let finished = running.finish();
    scene.check_with_log(&finished, &[0], &log);
    assert_eq!(log.rows.len(), 16_000, "{finished}");
    finished.expect_stderr(&["threads waited ", " for measurements to be taken from them"]);
}

#[test]
fn a_run_that_is_held_up_by_its_log_for_ever_is_left_at_the_third_signal() {
    let (scene, pipe) = (Scene::with("", ""), Pipe::new());
    let (running, _, _reader) = held_up(&scene, &pipe);
    // Different ones, since some of a kind at once may become one.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        running.signal(signal);
    }
    let finished = running.finish();
    scene.check_with_log(&finished, &[130, 143, 129], &Log { rows: Vec::new() });
}

#[test]
fn a_full_log_weighs_more_than_clients_that_were_aborted() {
    let scene = Scene::with("", "");
    let running = scene
        .program("-c 3 -T 60 --log-file /dev/full", WRITE)
        .start();
    scene.wait_for_writes();
    scene.strike(Blow::TerminateAll);
    let finished = running.finish();
    let said = [
        "the log \"/dev/full\" lacks ",
        "3 of 3 clients were aborted",
    ];
    finished.expect_status(1).expect_stderr(&said);
}
