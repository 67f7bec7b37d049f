//! A worker against a server that the test plays itself, step by step and on one thread.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use crossbeam_channel::unbounded;

use super::client::tests::{context, done, load, message, ready};
use super::*;
use crate::conninfo::{Host, HostName};
use crate::event::{Level, ToCollector};
use crate::transport::look_up;

/// A worker whose only client is connected, and the client's server.
struct Stage {
    worker: Worker,
    control: Arc<Control>,
    server: UnixStream,
    reports: Receiver<ToCollector>,
    notices: Receiver<Notice>,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn connected() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let mut run = context("SELECT 1;", load());
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
        let mut server = listener.accept().unwrap().0;
        let mut startup = [0; 1024];
        assert!(server.read(&mut startup).unwrap() > 0);
        say(&mut server, &[message(b'R', &[0; 4]), ready(b'I')].concat());
        let mut events = Events::with_capacity(4);
        while worker.headcount.any_connecting() {
            worker.wait(&mut events).unwrap();
            worker.handle_ready();
        }
        Stage {
            worker,
            control,
            server,
            reports,
            notices,
            _directory: directory,
        }
    }
}

#[test]
fn the_order_to_close_does_not_wait_for_the_server() {
    let mut stage = Stage::connected();
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
        mut server,
        reports,
        ..
    } = Stage::connected();
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
    let mut stage = Stage::connected();
    let second = |seconds| Timestamp::ZERO + Duration::from_secs(seconds);
    stage.worker.start(second(1));
    // Those of connecting.
    stage.notices.try_iter().for_each(drop);
    let mut told = |now: Timestamp, answered: bool| {
        if answered {
            say(&mut stage.server, &done("SELECT 1", b'I'));
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

fn say(server: &mut UnixStream, bytes: &[u8]) {
    server.write_all(bytes).unwrap();
}
