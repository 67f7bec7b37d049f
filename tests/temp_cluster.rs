//! `--temp-cluster` brings a server of its own and takes all of it away again.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Pid;
use tempfile::TempDir;

use support::{Program, Signal, pgmark_alone, wait_until};

#[test]
fn a_run_on_a_throwaway_server_leaves_nothing_behind() {
    let place = place();
    let finished = temp_cluster(&place)
        .args("-s 1 -c 4 -j 2 -t 20")
        .logged()
        .run()
        .expect_status(0);
    for line in [
        "transaction type: <builtin: TPC-B (sort of)>",
        "scaling factor: 1",
        "number of transactions actually processed: 80/80",
        "tps = ",
    ] {
        assert!(finished.stdout.contains(line), "{line:?}\n{finished}");
    }
    assert_eq!(finished.log().rows.len(), 80);
    assert_nothing_left(place.path());
}

#[test]
fn nothing_is_left_after_a_signal_or_an_error() {
    let place = place();
    // While it drives load.
    let running = temp_cluster(&place).args("-T 60 -P 0.2").start();
    running.wait_for_stderr("progress: ");
    running.signal(Signal::INT);
    running.finish().expect_status(130);
    assert_nothing_left(place.path());

    // While it starts.
    let running = temp_cluster(&place).args("-T 60 -s 20").start();
    wait_until("its directory is there", || !is_empty(place.path()));
    running.signal(Signal::TERM);
    running.finish().expect_status(143).expect_no_tps();
    assert_nothing_left(place.path());

    // After a failing script.
    temp_cluster(&place)
        .args("-t 1")
        .script("SELECT no_such_column;")
        .run()
        .expect_status(2);
    assert_nothing_left(place.path());

    // After a server that does not start.
    temp_cluster(&place)
        .args("-t 1 --temp-config no_such_parameter=1")
        .run()
        .expect_status(1)
        .expect_stderr(&[
            "error: the temporary server ended (exit status: 1): FATAL:  ",
            "no_such_parameter",
        ])
        .expect_stderr_lines(1);
    assert_nothing_left(place.path());
}

#[test]
fn settings_reach_the_server_and_durability_stays_unless_set() {
    let place = place();
    let check = "SELECT 1 / (current_setting('fsync') = 'on' \
                 AND current_setting('work_mem') = '7MB')::int;";
    temp_cluster(&place)
        .args("-t 1 --temp-config work_mem=3MB --temp-config work_mem=7MB")
        .script(check)
        .run()
        .expect_status(0);
    let unsafe_check = "SELECT 1 / (current_setting('fsync') = 'off')::int;";
    temp_cluster(&place)
        .args("-t 1 --temp-config fsync=off")
        .script(unsafe_check)
        .run()
        .expect_status(0);
}

#[test]
fn a_kept_server_runs_on_and_is_reached_as_told() {
    let place = place();
    let finished = temp_cluster(&place)
        .args("-t 1 --temp-keep")
        .run()
        .expect_status(0);
    let kept = Kept(find_server(place.path()).expect("a server was kept"));
    let words: Vec<&str> = finished.stderr.split_whitespace().collect();
    let told = words.windows(6).find_map(|words| match words {
        ["psql", "-h", directory, "-U", user, database] => Some((*directory, *user, *database)),
        _ => None,
    });
    let (directory, user, database) = told.unwrap_or_else(|| panic!("no psql line\n{finished}"));
    let mut client = postgres::Config::new()
        .host_path(directory)
        .user(user)
        .dbname(database)
        .connect(postgres::NoTls)
        .expect("the kept server accepts connections");
    let row = client.query_one("SELECT count(*) FROM pgbench_accounts", &[]);
    let accounts: i64 = row.expect("the tables are there").get(0);
    assert_eq!(accounts, 100_000);
    drop(client);

    kept.stop();
    wait_until("the kept server has ended", || {
        processes_of(place.path()).is_empty()
    });
}

#[test]
fn more_clients_than_the_server_takes_end_the_run_with_its_limit() {
    let place = place();
    let finished = temp_cluster(&place)
        .args("-c 30 -j 2 -T 60 --temp-config max_connections=20")
        .run()
        .expect_status(1)
        .expect_stderr(&[
            "too many clients already",
            "could not create connection for client ",
            "max_connections is 20",
        ])
        .expect_no_tps();
    let errors = finished.stderr.matches("error: ").count();
    assert_eq!(errors, 1, "{finished}");
    assert_nothing_left(place.path());
}

#[test]
fn missing_server_programs_are_named_with_the_remedy() {
    let place = place();
    temp_cluster(&place)
        .args("-t 1 --bindir /no/such/directory")
        .run()
        .expect_status(1)
        .expect_stderr(&["/no/such/directory", "initdb"])
        .expect_no_tps();
    assert_nothing_left(place.path());
}

/// An empty directory that the server's user may enter.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("it is ours");
    place
}

fn temp_cluster(place: &TempDir) -> Program {
    pgmark_alone()
        .args("--temp-cluster")
        .env("TMPDIR", place.path())
}

/// Neither files nor processes that belong to a server in `place`.
#[track_caller]
fn assert_nothing_left(place: &Path) {
    assert!(is_empty(place), "files are left in {}", place.display());
    wait_until("no process of the server is left", || {
        processes_of(place).is_empty()
    });
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory)
        .expect("it is there")
        .next()
        .is_none()
}

/// Command lines that name `place`.
fn processes_of(place: &Path) -> Vec<String> {
    let place = place.to_string_lossy().into_owned();
    fs::read_dir("/proc")
        .expect("Linux has it")
        .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&place))
        .collect()
}

/// The process of the server whose data lies somewhere in `directory`.
fn find_server(directory: &Path) -> Option<Pid> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        if path.ends_with("postmaster.pid") {
            let text = fs::read_to_string(path).ok()?;
            return Pid::from_raw(text.lines().next()?.trim().parse().ok()?);
        }
        if path.is_dir()
            && let Some(found) = find_server(&path)
        {
            return Some(found);
        }
    }
    None
}

/// A server that was left running; a failing test must not leave it for good.
struct Kept(Pid);

impl Kept {
    fn stop(&self) {
        // It may have ended already.
        let _ = rustix::process::kill_process(self.0, Signal::INT);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.stop();
    }
}
