//! A worker against a server that the test plays itself, step by step and on one thread.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use crossbeam_channel::unbounded;

use super::client::tests::{context, done, load, message, ready};
use super::*;
use crate::conninfo::{Host, HostName};
use crate::event::{Event, Level, ToCollector};
use crate::plan::Load;
use crate::transport::look_up;

/// A worker whose clients are connected, and the server's side of them.
struct Stage {
    worker: Worker,
    control: Arc<Control>,
    servers: Vec<UnixStream>,
    reports: Receiver<ToCollector>,
    notices: Receiver<Notice>,
    _directory: tempfile::TempDir,
}

impl Stage {
    /// With so many clients and, from now on, the time that the test gives.
    fn connected(clients: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let mut run = context("SELECT 1;", Load { clients, ..load() });
        run.target.hosts = vec![Host::new(
            HostName::SocketDirectory(directory.path().to_owned()),
            5432,
        )];
        run.addresses = look_up::addresses(&run.target);
        let run = Arc::new(run);
        let (sender, reports) = unbounded();
        let (_, emptied) = unbounded();
        let (to_main, notices) = unbounded();
        let recorder = Recorder::new(0, sender, emptied, run.clock.clone());
        let control = Arc::new(Control::default());
        let mut worker = Worker::new(0, run, Arc::clone(&control), to_main, recorder).unwrap();

        worker.connect_all();
        let welcome = [message(b'R', &[0; 4]), ready(b'I')].concat();
        let servers = (0..clients).map(|_| {
            let mut server = listener.accept().unwrap().0;
            let mut startup = [0; 1024];
            assert!(server.read(&mut startup).unwrap() > 0);
            say(&mut server, &welcome);
            server.set_nonblocking(true).unwrap();
            server
        });
        let servers = servers.collect();
        let mut events = Events::with_capacity(4);
        while worker.headcount.any_connecting() {
            worker.wait(&mut events).unwrap();
            worker.handle_ready();
        }
        Stage {
            worker,
            control,
            servers,
            reports,
            notices,
            _directory: directory,
        }
    }
}

#[test]
fn the_order_to_close_does_not_wait_for_the_server() {
    let mut stage = Stage::connected(1);
    stage.control.start(Timestamp::ZERO);
    stage.worker.obey();
    assert!(
        stage.worker.headcount.any_running(),
        "its command is not answered"
    );
    stage.control.close(Timestamp::ZERO);
    stage.worker.obey();
    assert!(!stage.worker.headcount.any_running());
}

#[test]
fn when_sending_fails_the_server_s_last_words_say_why() {
    let Stage {
        mut worker,
        mut servers,
        reports,
        ..
    } = Stage::connected(1);
    let mut server = servers.remove(0);
    let fatal = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
    say(&mut server, &message(b'E', fatal.as_bytes()));
    drop(server);
    // The worker has not looked at the socket since.
    worker.start(Timestamp::ZERO);
    assert!(!worker.headcount.any_running());
    worker.accounts.recorder.flush();
    let told: Vec<String> = reports
        .try_iter()
        .filter_map(|report| match report {
            ToCollector::Message(message) if message.level == Level::Error => Some(message.text),
            _ => None,
        })
        .collect();
    let [text] = &told[..] else {
        panic!("one error is told: {told:?}");
    };
    assert!(
        text.ends_with("connection lost: FATAL:  terminating connection"),
        "{text}"
    );
}

#[test]
fn a_client_that_waits_long_is_told_of_with_what_it_waits_for() {
    let mut stage = Stage::connected(1);
    let second = |seconds| Timestamp::ZERO + Duration::from_secs(seconds);
    stage.worker.start(second(1));
    // Those of connecting.
    stage.notices.try_iter().for_each(drop);
    let mut told = |now: Timestamp, answered: bool| {
        if answered {
            say(&mut stage.servers[0], &done("SELECT 1", b'I'));
            stage.worker.wait(&mut Events::with_capacity(4)).unwrap();
            stage.worker.handle_ready();
        }
        stage.worker.run.clock.set(now);
        stage.worker.look_for_waits(now);
        stage.control.take_census();
        stage.worker.obey();
        stage.notices.try_iter().collect::<Vec<_>>()
    };
    let nobody = |notices: &[Notice]| matches!(notices, [Notice::Waits(none)] if none.is_empty());
    assert!(nobody(&told(second(29), false)));
    let notices = told(second(61), false);
    let [Notice::Overdue, Notice::Waits(waits)] = &notices[..] else {
        panic!("it is overdue: {notices:?}");
    };
    let place = Place::Command {
        script: 0,
        command: 0,
    };
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].client, waits[0].place), (0, place));
    assert!(nobody(&told(second(62), true)), "it has its answer");
}

/// What is true of the server: it answers after this time.
const SERVICE: Duration = Duration::from_micros(50);
/// What the thread needs for one client.
const WORK: Duration = Duration::from_micros(4);

#[test]
fn a_saturated_thread_books_little_of_its_own_work_as_latency() {
    let mut stage = Stage::connected(256);
    let clock = stage.worker.run.clock.clone();
    let mut now = Timestamp::ZERO + Duration::from_secs(1);
    clock.set(now);
    stage.worker.start(now);
    let mut due: Vec<Option<Timestamp>> = vec![None; stage.servers.len()];
    let mut events = Events::with_capacity(1024);
    let mut request = [0; 64];
    for _ in 0..300 {
        let begun = now;
        for (server, due) in stage.servers.iter_mut().zip(&mut due) {
            if server.read(&mut request).is_ok() {
                *due = Some(begun + SERVICE);
                now = now + WORK;
            }
        }
        clock.set(now);
        for (server, due) in stage.servers.iter_mut().zip(&mut due) {
            if due.take_if(|due| *due <= now).is_some() {
                say(server, &done("SELECT 1", b'I'));
            }
        }
        stage.worker.wait(&mut events).unwrap();
        stage.worker.handle_ready();
    }
    stage.worker.accounts.recorder.flush();
    let latencies: Vec<u64> = stage
        .reports
        .try_iter()
        .filter_map(|report| match report {
            ToCollector::Batch(batch) => Some(batch.events),
            ToCollector::Message(_) => None,
        })
        .flatten()
        .filter_map(|event| match event {
            Event::Transaction(record) => Some(record.latency_ns()),
            _ => None,
        })
        // Those that were all sent at once in the beginning.
        .skip(stage.servers.len())
        .collect();
    assert!(latencies.len() > 3_000, "{} transactions", latencies.len());
    let mean_ns = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
    let times = mean_ns / SERVICE.as_nanos() as f64;
    assert!((1.0..=2.5).contains(&times), "{times} times what is true");
}

fn say(server: &mut UnixStream, bytes: &[u8]) {
    server.write_all(bytes).unwrap();
}
