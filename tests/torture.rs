//! Connections that go wrong in every way, each in the middle of a run: whatever happens, the run
//! ends, its status says how, the books balance, the log has its rows, and the server is left alone.
//! A sample by default; `make torture` takes every place of a reply.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use support::{Finished, HostileProxy, Mischief, Server};

const CLIENTS: usize = 3;

/// Bytes of a login and of several replies, at which something happens.
const PLACES: [usize; 9] = [0, 1, 7, 40, 180, 330, 420, 700, 1_500];

/// A transaction of several messages, some of them longer than others.
const SCRIPT: &str = "\\set n random(1, 100)\n\
    BEGIN;\n\
    SELECT :n AS m, repeat('x', 200) AS text \\gset\n\
    INSERT INTO torture VALUES (:n);\n\
    END;\n";

/// A server whose table takes what the clients write.
fn server() -> Server {
    let server = Server::with("local all all trust\nhost all all 127.0.0.1/32 trust\n", "");
    server
        .client("postgres")
        .batch_execute("CREATE TABLE torture (n int)")
        .expect("a new server has no such table");
    server
}

/// A run through a proxy that spares the control connection.
fn run(server: &Server, mischief: Mischief, options: &str) -> Finished {
    let proxy = HostileProxy::to(server, 1, mischief);
    let finished = support::pgmark(server)
        .args(&format!("-n -c {CLIENTS} -j 2 -h 127.0.0.1"))
        .args(options)
        .env("PGPORT", proxy.port().to_string())
        .env("PGAPPNAME", "tortured")
        .env("PGSSLMODE", "disable")
        .env("PGCONNECT_TIMEOUT", "2")
        .script(SCRIPT)
        .logged()
        .run();
    let context = || format!("{mischief:?} with {options}: {finished}");
    for sign in ["internal error", "panicked", "overflow"] {
        assert!(!finished.stderr.contains(sign), "{}", context());
    }
    if finished
        .stdout
        .contains("number of transactions actually processed")
    {
        check_log(&finished, &context);
    }
    finished
}

/// What the summary counts is in the log.
fn check_log(finished: &Finished, context: &dyn Fn() -> String) {
    let log = finished.log();
    let ok = log.with_status("ok").count() as u64;
    assert_eq!(ok, finished.processed(), "{}", context());
}

/// Nobody is left on the server, whose clients may have vanished from its sight.
fn assert_left_alone(server: &Server) {
    support::wait_until("no session is left", || server.sessions("tortured") == 0);
}

#[test]
fn slow_and_chopped_bytes_change_nothing_but_the_time() {
    let server = server();
    for mischief in [
        Mischief::Delay(Duration::from_millis(2)),
        Mischief::Split,
        Mischief::Throttle(100, Duration::from_micros(300)),
    ] {
        for options in [
            "-t 5",
            "-t 5 -M prepared",
            "-t 2 -C -M extended",
            "-T 1 -R 50",
        ] {
            let finished = run(&server, mischief, options);
            assert_eq!(
                finished.status,
                Some(0),
                "{mischief:?} with {options}: {finished}"
            );
        }
    }
    assert_left_alone(&server);
}

/// Whether a client died of it while connecting or later, or nobody noticed: then everything was done.
fn check_status(finished: &Finished, transactions: Option<u64>, what: &str) {
    let holds = match finished.status {
        Some(0) => transactions.is_none_or(|count| finished.processed() == count),
        Some(1) => finished.stderr.contains("connection to server"),
        Some(2) => {
            let died = finished.stderr.contains("aborted");
            died && finished.stderr.contains("Run was aborted")
        }
        Some(_) | None => false,
    };
    assert!(holds, "{what}: {finished}");
}

fn break_at(server: &Server, places: impl Iterator<Item = usize>) {
    for place in places {
        let all = Some(20 * CLIENTS as u64);
        for (mischief, length, transactions) in [
            (Mischief::ResetAfter(place), "-t 20", all),
            (Mischief::HalfCloseAfter(place), "-t 20", all),
            // A message that says that it is longer than it is is waited for.
            (
                Mischief::CorruptAfter(place),
                "-T 0.2 --finish-within 0.2",
                None,
            ),
        ] {
            // A connection that breaks while logging in ends the start, later its client.
            for options in ["", " -M prepared -C"] {
                let finished = run(server, mischief, &format!("{length}{options}"));
                check_status(&finished, transactions, &format!("{mischief:?}"));
            }
        }
    }
    assert_left_alone(server);
}

#[test]
fn connections_that_break_or_lie_end_their_clients_and_nothing_else() {
    break_at(&server(), PLACES.into_iter());
}

#[test]
#[ignore = "takes minutes; make torture"]
fn connections_that_break_or_lie_anywhere_end_their_clients_and_nothing_else() {
    break_at(&server(), (0..900).step_by(7));
}

#[test]
fn who_goes_on_after_a_loss_does_so_however_often_it_is_broken() {
    let server = server();
    for place in [700, 1_500, 4_000] {
        for make in [Mischief::ResetAfter, Mischief::HalfCloseAfter] {
            let mischief = make(place);
            let finished = run(&server, mischief, "-T 1 --reconnect-on-loss");
            assert_eq!(finished.status, Some(0), "{mischief:?}: {finished}");
            // Where every connection breaks in its first transaction, none is processed.
            assert_eq!(
                finished.processed() > 0,
                place > 700,
                "{mischief:?}: {finished}"
            );
            let lost = finished.figure("number of transactions lost with their connection: ");
            let aborted = finished.log().with_status("aborted").count() as f64;
            assert!(aborted >= lost, "{mischief:?}: {finished}");
        }
    }
    assert_left_alone(&server);
}

#[test]
fn what_makes_no_sense_costs_whoever_goes_on_a_connection_and_no_more() {
    let server = server();
    for options in ["", " -C"] {
        for place in [700, 1_500] {
            let length = "-T 0.5 --finish-within 0.2 --reconnect-on-loss";
            let finished = run(
                &server,
                Mischief::CorruptAfter(place),
                &format!("{length}{options}"),
            );
            assert_eq!(finished.status, Some(0), "{place}{options}: {finished}");
        }
    }
    assert_left_alone(&server);
}

#[test]
fn a_control_connection_that_makes_no_sense_ends_the_program_with_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("the control connection");
        let mut said = [0; 1024];
        let welcome = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        for answer in [&welcome[..], b"\xff\0\0\0\x05x"] {
            assert!(client.read(&mut said).expect("a request") > 0);
            client.write_all(answer).expect("it reads");
        }
        // Kept open until the program has gone.
        while client.read(&mut said).is_ok_and(|length| length > 0) {}
    });
    support::pgmark_alone()
        .args("-n -S -t 1 -h 127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGSSLMODE", "disable")
        .run()
        .expect_status(1)
        .expect_no_tps();
    serving.join().expect("the program came and went");
}

#[test]
fn a_server_that_never_stops_talking_is_left_when_the_time_to_finish_is_over() {
    let server = server();
    let mischief = Mischief::FloodAfter(900);
    let finished = run(&server, mischief, "-T 1 --finish-within 0.5");
    assert_eq!(finished.status, Some(0), "{finished}");
    assert!(
        finished.stdout.contains("errors = interrupted x"),
        "{finished}"
    );
    assert_left_alone(&server);
}

#[test]
fn a_server_that_falls_silent_is_left_when_the_time_to_finish_is_over() {
    let server = server();
    for place in [40, 420, 1_500] {
        let mischief = Mischief::BlackHoleAfter(place);
        let finished = run(&server, mischief, "-T 1 --finish-within 1");
        let what = format!("{mischief:?}");
        check_status(&finished, None, &what);
        assert_ne!(finished.status, Some(2), "{what}: {finished}");
        if finished.status == Some(1) {
            assert!(
                finished.stderr.contains("timeout expired"),
                "{what}: {finished}"
            );
        }
    }
    assert_left_alone(&server);
}
