//! What the server says that its processes wait for.

mod support;

use pgmark::server::waits;
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
    let waiting =
        std::thread::spawn(move || waiter.batch_execute("SELECT pg_advisory_xact_lock(77)"));

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
