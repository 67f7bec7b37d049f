//! What the server says that its processes wait for, and what a run says of clients that wait long.

mod support;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pgmark::conninfo::ProcessEnvironment;
use pgmark::console::Console;
use pgmark::options;
use pgmark::plan::{Plan, RunPlan, ServerChoice};
use pgmark::run::{Signals, Surroundings, measure};
use pgmark::server::waits;
use pgmark::time::Clock;
use support::{Server, wait_until};

#[test]
fn a_lock_and_whoever_holds_it_are_named() {
    let server = Server::shared();
    let mut holder = server.client("postgres");
    holder
        .batch_execute("SET application_name = 'hoarder'; BEGIN; SELECT pg_advisory_xact_lock(77)")
        .expect("the lock is free");
    let mut waiter = server.client("postgres");
    let process: i32 = waiter
        .query_one("SELECT pg_backend_pid()", &[])
        .expect("a server that answers")
        .get(0);
    let waiting = thread::spawn(move || waiter.batch_execute("SELECT pg_advisory_xact_lock(77)"));

    let mut control = server.client("postgres");
    let mut seen = Default::default();
    wait_until("it waits for the lock", || {
        seen = waits(&mut control, &[process, i32::MAX]).expect("the server can be asked");
        seen.events == [("Lock advisory".to_owned(), 1)]
    });
    let [blocker] = &seen.blockers[..] else {
        panic!("one process blocks it: {seen:?}");
    };
    assert!(
        blocker.ends_with(" (hoarder, idle in transaction)"),
        "{blocker}"
    );

    holder.batch_execute("COMMIT").expect("nothing was done");
    waiting.join().unwrap().expect("the lock is free again");
    let none = waits(&mut control, &[]).expect("nothing to ask");
    assert_eq!(none, Default::default());
}

/// Standard error of a run in this process.
#[derive(Clone, Default)]
struct Stderr(Arc<Mutex<Vec<u8>>>);

impl Stderr {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("no one panics with it");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no one panics with it").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_run_says_who_waits_long_for_what() {
    let server = Server::shared();
    let mut holder = server.client("postgres");
    holder
        .batch_execute("SET application_name = 'hoarder'; BEGIN; SELECT pg_advisory_xact_lock(78)")
        .expect("the lock is free");

    let stderr = Stderr::default();
    let console = Console::to(Box::new(stderr.clone()));
    let plan = RunPlan {
        long_wait: Some(Duration::from_millis(300)),
        ..plan(server, "SELECT pg_advisory_xact_lock(78);")
    };
    let run = thread::spawn(move || go_through(plan, console));
    let told = [
        "3 of 3 clients have waited for the server for more than ",
        "3 in waiting.sql, line 1: SELECT pg_advisory_xact_lock(78)",
        "the server waits for (pg_stat_activity): Lock advisory 3; blocked by process ",
        " (hoarder, idle in transaction)",
    ];
    wait_until("it says who waits", || {
        told.iter().all(|part| stderr.text().contains(part))
    });
    holder.batch_execute("COMMIT").expect("nothing was done");
    run.join().expect("the run has its locks, one by one");
}

/// Three clients of two threads run the script once.
fn plan(server: &Server, script: &str) -> RunPlan {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("waiting.sql");
    std::fs::write(&path, script).expect("the directory is ours");
    let (host, port) = (server.socket_directory().display(), server.port());
    let argv = [
        "pgmark".to_owned(),
        "-n".to_owned(),
        format!("-f{}", path.display()),
        format!("host={host} port={port} user=postgres dbname=postgres"),
        "-c3".to_owned(),
        "-j2".to_owned(),
        "-t1".to_owned(),
    ];
    match options::parse(argv.into_iter().map(OsString::from), &ProcessEnvironment) {
        Ok(Plan::Run(plan)) => *plan,
        other => panic!("these are good options for a run: {other:?}"),
    }
}

fn go_through(plan: RunPlan, console: Console) {
    let ServerChoice::Given(target) = &plan.server else {
        panic!("a server was given");
    };
    let target = (**target).clone();
    let mut around = Surroundings {
        stdout: &mut Vec::new(),
        console,
        clock: Clock::start(),
    };
    measure(plan, target, &Signals::none(), &mut around).expect("the server is up");
}
