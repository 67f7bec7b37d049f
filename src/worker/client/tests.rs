//! Clients driven by bytes and moments: no socket, no server, no waiting.

use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};

use super::*;
use crate::conninfo::{Host, HostName, Target};
use crate::event::{
    Abort, CommandEnd, Level, LossCause, LossStep, Outcome, Phase, SpanKind, SqlState, ToCollector,
    TransactionRecord, TryEnd,
};
use crate::plan::{
    KeepPlan, LeadIn, Load, LogTime, OnError, Pacing, QueryMode, RunPlan, Seed, ServerChoice,
    StopRule, SummaryPlan, TriesPlan, Vacuum,
};
use crate::program::Program;
use crate::script::{Dialect, ScriptSetBuilder};
use crate::time::Clock;
use crate::told::KINDS_TOLD_MAX;
use crate::transport::{Security, look_up};
use crate::values::ValueSources;

/// A client on a stage: the test plays its server, its worker and the clock.
struct Stage {
    run: RunContext,
    window: Window,
    stamp: Timestamp,
    choose: Generator,
    recorder: Recorder,
    delays: Delays,
    told: Vec<SqlState>,
    notices: Sender<Notice>,
    notified: Receiver<Notice>,
    reports: Receiver<ToCollector>,
    client: Client,
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

pub(in crate::worker) fn load() -> Load {
    Load::of_one_client(StopRule::Time(Duration::from_secs(5)))
}

fn target() -> Target {
    Target {
        application_name: "pgmark".to_owned(),
        connect_timeout: Some(Duration::from_secs(2)),
        ..Target::plain(
            vec![Host::new(
                HostName::SocketDirectory("/nowhere".into()),
                5432,
            )],
            "someone",
            "bench",
        )
    }
}

pub(in crate::worker) fn context(script: &str, load: Load) -> RunContext {
    let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
    scripts.add_file("test.sql", script.as_bytes(), 1);
    let addresses = look_up::addresses(&target());
    let plan = RunPlan {
        program: Program::Pgmark,
        server: ServerChoice::Given(Box::new(target())),
        scripts: scripts.finish().unwrap(),
        query_mode: QueryMode::Simple,
        on_connect: None,
        scale: None,
        vacuum: Vacuum::None,
        before: Vec::new(),
        seed: Seed {
            value: 42,
            explicit: true,
            overridden: None,
        },
        log: None,
        intervals: None,
        tries: None,
        progress: None,
        fail_if: Vec::new(),
        keep: KeepPlan::default(),
        summary: SummaryPlan::default(),
        per_command: false,
        debug: false,
        long_wait: Some(Duration::from_secs(60)),
        dry_run: false,
        load,
    };
    let values = ValueSources::default();
    RunContext::new(plan, target(), addresses, values, 1, Clock::manual(0))
}

impl Stage {
    fn new(script: &str, load: Load) -> Self {
        Stage::of(context(script, load))
    }

    fn of(run: RunContext) -> Self {
        let (sender, reports) = unbounded();
        let (_, emptied) = unbounded();
        let (notices, notified) = unbounded();
        Stage {
            client: Client::new(0, 0, &run),
            window: Window::default(),
            stamp: Timestamp::ZERO,
            choose: run.choose_generator(0),
            recorder: Recorder::new(0, sender, emptied, run.clock.clone()),
            delays: Delays::default(),
            told: Vec::new(),
            notices,
            notified,
            reports,
            run,
        }
    }

    /// A stage whose client is connected at 0 ms and released at 100 ms.
    fn released(script: &str, load: Load) -> Self {
        Stage::new(script, load).at_work()
    }

    fn in_mode(mode: QueryMode, script: &str) -> Self {
        let mut run = context(script, load());
        run.plan.query_mode = mode;
        Stage::of(run).at_work()
    }

    fn at_work(mut self) -> Self {
        let stage = &mut self;
        if !stage.run.plan.load.reconnect {
            stage.input(0, Client::connect);
            stage.log_in(0);
        }
        stage.release(100);
        self
    }

    /// Types of the messages sent, with the texts in them that matter.
    fn sent_messages(&mut self) -> String {
        let bytes = self.client.output().to_vec();
        self.client.consume_output(bytes.len());
        let mut rest = &bytes[..];
        let mut told = Vec::new();
        while let [tag, a, b, c, d, ..] = *rest {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let body = String::from_utf8_lossy(&rest[5..=length]);
            let texts: Vec<&str> = body
                .split(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER)
                .filter(|text| !text.is_empty())
                .collect();
            told.push(format!("{}{texts:?}", char::from(tag)));
            rest = &rest[1 + length..];
        }
        told.join(" ")
    }

    fn release(&mut self, ms: u64) {
        let lead_in = self.run.plan.load.lead_in.total();
        if let Some(schedule) = &self.run.schedule {
            schedule.start(at(ms), at(ms) + lead_in);
        }
        self.window = Window::starting_at(at(ms), &self.run.plan.load);
        self.input(ms, Client::handle_start);
    }

    /// Lets the client act at `ms`, by the clock and by the stamp of the wake-up.
    fn input(&mut self, ms: u64, act: impl FnOnce(&mut Client, &mut Environment<'_>)) {
        self.run.clock.set(at(ms));
        self.stamp = at(ms);
        act(
            &mut self.client,
            &mut Environment {
                run: &self.run,
                window: &self.window,
                stamp: self.stamp,
                choose: &mut self.choose,
                recorder: &mut self.recorder,
                delays: &mut self.delays,
                told: &mut self.told,
                notices: &self.notices,
            },
        );
    }

    /// The socket opens and the server lets the client in.
    fn log_in(&mut self, ms: u64) {
        assert_eq!(self.client.take_action(), Some(Action::Open));
        self.input(ms, |client, env| {
            client.handle_transport_ready(Security::Plain, env)
        });
        assert!(!self.sent().is_empty());
        self.answer(ms, &[message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat());
    }

    fn answer(&mut self, ms: u64, bytes: &[u8]) {
        self.input(ms, |client, env| client.handle_input(bytes, env));
    }

    /// Closes the socket, as the client wants.
    fn close(&mut self, ms: u64) {
        assert_eq!(self.client.take_action(), Some(Action::Close));
        self.sent();
        self.input(ms, Client::handle_closed);
    }

    /// The text of the simple query that the client has sent, or what else it has sent.
    fn sent(&mut self) -> String {
        let bytes = self.client.output().to_vec();
        self.client.consume_output(bytes.len());
        match bytes.first() {
            Some(b'Q') => String::from_utf8(bytes[5..bytes.len() - 1].to_vec()).unwrap(),
            Some(b'X') => "<terminate>".to_owned(),
            Some(_) => "<startup>".to_owned(),
            None => String::new(),
        }
    }

    fn events(&mut self) -> (Vec<Event>, Vec<String>) {
        self.recorder.flush();
        let (mut events, mut texts) = (Vec::new(), Vec::new());
        for report in self.reports.try_iter() {
            match report {
                ToCollector::Batch(batch) => events.extend(batch.events),
                ToCollector::Message(message) if message.level == Level::Error => {
                    texts.push(message.text);
                }
                _ => {}
            }
        }
        (events, texts)
    }

    /// What is told besides errors.
    fn infos(&mut self) -> Vec<String> {
        self.recorder.flush();
        let reports = self.reports.try_iter();
        reports
            .filter_map(|report| match report {
                ToCollector::Message(message) if message.level == Level::Info => Some(message.text),
                _ => None,
            })
            .collect()
    }

    /// What is told of errors, with its details.
    fn told(&mut self) -> String {
        self.recorder.flush();
        let texts = self.reports.try_iter().filter_map(|report| match report {
            ToCollector::Message(message) => Some(message.text + "\n"),
            _ => None,
        });
        texts.collect()
    }

    fn transactions(&mut self) -> Vec<TransactionRecord> {
        transactions(&self.events().0)
    }
}

fn transactions(events: &[Event]) -> Vec<TransactionRecord> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Transaction(record) => Some(*record),
            _ => None,
        })
        .collect()
}

fn spans(events: &[Event]) -> Vec<(SpanKind, Timestamp, Timestamp)> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Connection(span) => Some((span.kind, span.started_at, span.finished_at)),
            _ => None,
        })
        .collect()
}

pub(in crate::worker) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as i32 + 4;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

pub(in crate::worker) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// A command has ended well, and the server is ready in this state.
pub(in crate::worker) fn done(tag: &str, status: u8) -> Vec<u8> {
    let tag = [tag.as_bytes(), &[0]].concat();
    [message(b'C', &tag), ready(status)].concat()
}

pub(super) fn error(sqlstate: &str, text: &str) -> Vec<u8> {
    let body = format!("SERROR\0VERROR\0C{sqlstate}\0M{text}\0\0");
    message(b'E', body.as_bytes())
}

/// An error that points at a character of the statement, counted from 1.
fn error_at(position: usize, text: &str) -> Vec<u8> {
    let body = format!("SERROR\0VERROR\0C42601\0M{text}\0P{position}\0\0");
    message(b'E', body.as_bytes())
}

#[test]
fn latency_runs_from_before_the_first_command_to_the_stamp_of_the_last_reply() {
    let mut stage = Stage::released("\\set x 1\nSELECT :x;\nSELECT 2;", load());
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(104, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "SELECT 2;");
    // The thread gets round to the second reply 3 ms after it was stamped.
    stage.run.clock.set(at(113));
    stage.stamp = at(110);
    let reply = done("SELECT 1", b'I');
    stage.client.handle_input(
        &reply,
        &mut Environment {
            run: &stage.run,
            window: &stage.window,
            stamp: stage.stamp,
            choose: &mut stage.choose,
            recorder: &mut stage.recorder,
            delays: &mut stage.delays,
            told: &mut stage.told,
            notices: &stage.notices,
        },
    );
    assert_eq!(
        stage.sent(),
        "SELECT 1;",
        "the next transaction begins at once"
    );

    let [record] = stage.transactions()[..] else {
        panic!("one transaction has ended");
    };
    assert_eq!(record.outcome, Outcome::Processed);
    assert_eq!((record.started_at, record.finished_at), (at(100), at(110)));
    assert_eq!(
        (record.number, record.tries, record.phase),
        (1, 1, Phase::Run)
    );
    assert_eq!(stage.delays.max_ns() / 100_000, 30, "3 ms of client delay");
}

#[test]
fn connecting_for_each_transaction_is_a_span_of_its_own_and_never_latency() {
    let reconnect = Load {
        reconnect: true,
        ..load()
    };
    let mut stage = Stage::released("SELECT 1;", reconnect);
    stage.log_in(200);
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(210, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "<terminate>");
    stage.close(211);
    assert_eq!(stage.client.take_action(), Some(Action::Open));

    let (events, _) = stage.events();
    let [record] = transactions(&events)[..] else {
        panic!("one transaction has ended");
    };
    assert_eq!(record.latency_ns(), 10_000_000);
    assert_eq!(record.connecting_ns, 100_000_000);
    assert_eq!(
        spans(&events),
        [
            (SpanKind::Connect, at(100), at(200)),
            (SpanKind::Disconnect, at(210), at(211)),
        ]
    );
}

#[test]
fn at_the_end_of_the_window_a_transaction_finishes_and_none_begins() {
    let mut stage = Stage::released("SELECT 1;", load());
    stage.sent();
    stage.input(5100, Client::handle_window_end);
    assert_eq!(stage.client.progress(), Progress::Active);
    stage.answer(5200, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "<terminate>");
    stage.close(5200);
    assert_eq!(stage.client.progress(), Progress::Done);
    let [record] = stage.transactions()[..] else {
        panic!("the straggler counts");
    };
    assert_eq!(
        (record.outcome, record.phase),
        (Outcome::Processed, Phase::Run)
    );
}

#[test]
fn a_connect_that_is_under_way_at_the_end_is_cut_off() {
    let reconnect = Load {
        reconnect: true,
        ..load()
    };
    let mut stage = Stage::released("SELECT 1;", reconnect);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(5100, Client::handle_window_end);
    stage.close(5100);
    assert_eq!(stage.client.progress(), Progress::Done);
    let (events, texts) = stage.events();
    assert_eq!(spans(&events), [(SpanKind::ConnectCut, at(100), at(5100))]);
    assert!(transactions(&events).is_empty() && texts.is_empty());
}

#[test]
fn a_number_of_transactions_ends_the_client_whatever_their_outcome() {
    let two = Load {
        stop: StopRule::Transactions(2),
        ..load()
    };
    let mut stage = Stage::released("SELECT 1;", two);
    stage.answer(101, &[error("40001", "no"), ready(b'I')].concat());
    stage.answer(102, &done("SELECT 1", b'I'));
    stage.close(103);
    assert_eq!(stage.client.progress(), Progress::Done);
    let outcomes: Vec<Outcome> = stage.transactions().iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Processed]);
}

#[test]
fn an_error_of_the_server_ends_the_client_and_is_told_in_full() {
    let mut stage = Stage::released("SELECT 1/0;", load());
    stage.answer(
        105,
        &[error("22012", "division by zero"), ready(b'I')].concat(),
    );
    stage.close(106);
    let (events, texts) = stage.events();
    assert_eq!(
        texts,
        ["client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero"]
    );
    let [record] = transactions(&events)[..] else {
        panic!("the aborted transaction has a record");
    };
    assert_eq!(record.outcome, Outcome::Aborted(Abort::Server));
    assert_eq!(record.sqlstate, SqlState(*b"22012"));
    assert_eq!(record.finished_at, at(105));
    assert!(
        matches!(events.last(), Some(Event::ClientDone(done)) if done.end == ClientEnd::Aborted)
    );
}

#[test]
fn a_syntax_error_at_a_variable_without_a_value_names_it() {
    for (script, sqlstate, named) in [
        ("SELECT :foo, :bar, :foo;", "42601", Some("foo, bar")),
        ("\\set foo 1\nSELECT :foo from;", "42601", None),
        ("SELECT :foo;", "22012", None),
    ] {
        let mut stage = Stage::released(script, load());
        let answer = [error(sqlstate, "no good"), ready(b'I')].concat();
        stage.answer(105, &answer);
        stage.close(106);
        let (_, texts) = stage.events();
        let hint = texts[0].split_once("\nHINT:  ").map(|(_, hint)| hint);
        let expected = named.map(|names| {
            format!("No value is set for the variable {names}, so that its name was sent.")
        });
        assert_eq!(hint, expected.as_deref(), "{texts:?}");
    }
}

#[test]
fn an_error_without_fields_is_still_told_as_one() {
    let mut stage = Stage::released("SELECT 1;", load());
    stage.answer(105, &[message(b'E', b"\0"), ready(b'I')].concat());
    stage.close(106);
    let (_, texts) = stage.events();
    assert!(
        texts[0].ends_with("ERROR:  the server gave no message"),
        "{texts:?}"
    );
}

#[test]
fn a_serialization_failure_rolls_back_an_open_block_and_is_tried_again() {
    let retrying = Load {
        max_tries: Some(2),
        ..load()
    };
    let mut stage = Stage::released(
        "\\set r random(1, 1000000)\nBEGIN;\nSELECT :r;\nEND;",
        retrying,
    );
    assert_eq!(stage.sent(), "BEGIN;");
    stage.answer(101, &done("BEGIN", b'T'));
    let first = stage.sent();
    stage.answer(
        102,
        &[error("40001", "could not serialize"), ready(b'E')].concat(),
    );
    assert_eq!(stage.sent(), "ROLLBACK");
    stage.answer(103, &done("ROLLBACK", b'I'));
    assert_eq!(stage.sent(), "BEGIN;");
    stage.answer(104, &done("BEGIN", b'T'));
    assert_eq!(stage.sent(), first, "the same random numbers again");
    stage.answer(105, &done("SELECT 1", b'T'));
    assert_eq!(stage.sent(), "END;");
    stage.answer(106, &done("COMMIT", b'I'));
    let [record] = stage.transactions()[..] else {
        panic!("both tries are one transaction");
    };
    assert_eq!((record.outcome, record.retries()), (Outcome::Processed, 1));
    assert_eq!(record.latency_ns(), 6_000_000, "it spans both tries");
}

#[test]
fn tries_are_told_one_by_one_where_they_are_logged_before_their_transaction() {
    let retrying = Load {
        max_tries: Some(2),
        ..load()
    };
    let mut run = context("SELECT 1;", retrying);
    run.plan.tries = Some(TriesPlan {
        path: "tries.csv".into(),
        time: LogTime::None,
    });
    let mut stage = Stage::of(run).at_work();
    let refusal = [error("40001", "could not serialize"), ready(b'I')].concat();
    stage.answer(102, &refusal);
    stage.answer(105, &refusal);
    let (events, _) = stage.events();
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Try(it) => Some((it.number, it.end, it.started_at, it.finished_at)),
            Event::Transaction(it) => Some((
                it.tries,
                TryEnd::Last(it.outcome),
                it.started_at,
                it.finished_at,
            )),
            _ => None,
        })
        .collect();
    let failed = TryEnd::Last(Outcome::Failed);
    assert_eq!(
        told,
        [
            (1, TryEnd::Retried, at(100), at(102)),
            (2, failed, at(102), at(105)),
            (2, failed, at(100), at(105)),
        ]
    );
}

#[test]
fn without_tries_left_the_transaction_fails_at_the_reply_to_its_rollback() {
    let mut stage = Stage::released("BEGIN;\nSELECT 1;\nEND;", load());
    stage.sent();
    stage.answer(101, &done("BEGIN", b'T'));
    stage.answer(102, &[error("40P01", "deadlock"), ready(b'E')].concat());
    stage.answer(109, &done("ROLLBACK", b'I'));
    let [record] = stage.transactions()[..] else {
        panic!("the failed transaction has a record");
    };
    assert_eq!(
        (record.outcome, record.finished_at),
        (Outcome::Failed, at(109))
    );
    assert_eq!(record.sqlstate, SqlState(*b"40P01"));
    assert_eq!(stage.client.progress(), Progress::Active);
}

#[test]
fn a_script_that_ends_inside_a_block_is_processed_and_then_the_client_is_aborted() {
    let mut stage = Stage::released("BEGIN;", load());
    stage.answer(101, &done("BEGIN", b'T'));
    stage.close(102);
    let (events, texts) = stage.events();
    assert_eq!(transactions(&events)[0].outcome, Outcome::Processed);
    assert!(texts[0].contains("end of script reached without completing"));
    assert!(
        matches!(events.last(), Some(Event::ClientDone(done)) if done.end == ClientEnd::Aborted)
    );
}

#[test]
fn sleeping_is_thinking_and_a_stop_ends_it_at_once() {
    let mut stage = Stage::released("\\sleep 20 ms\nSELECT 1;\n\\sleep 3000 s", load());
    assert_eq!(stage.client.poll_timeout(), Some(at(120)));
    stage.input(120, Client::handle_timeout);
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(130, &done("SELECT 1", b'I'));
    assert_eq!(stage.client.poll_timeout(), Some(at(3_000_130)));
    stage.window.stop(at(150));
    stage.input(150, Client::handle_stop);
    stage.close(150);
    let (events, texts) = stage.events();
    assert!(
        texts.is_empty(),
        "being told to stop is no error of a client"
    );
    assert_eq!(
        transactions(&events)[0].outcome,
        Outcome::Aborted(Abort::Interrupted)
    );
    assert!(matches!(events.last(),
        Some(Event::ClientDone(done)) if done.end == ClientEnd::Finished && done.think_ns == 20_000_000));
}

#[test]
fn a_stop_lets_a_command_finish_and_the_time_to_finish_cuts_it_off() {
    let mut stage = Stage::released("SELECT pg_sleep(100);", load());
    stage.sent();
    stage.window.stop(at(200));
    stage.input(200, Client::handle_stop);
    assert_eq!(stage.client.take_action(), None);
    stage.window.cancelling = true;
    stage.answer(
        3210,
        &[error("57014", "canceling statement"), ready(b'I')].concat(),
    );
    stage.close(3210);
    let (events, texts) = stage.events();
    assert!(texts.is_empty());
    let record = transactions(&events)[0];
    assert_eq!(record.outcome, Outcome::Aborted(Abort::Interrupted));
    assert!(
        matches!(events.last(), Some(Event::ClientDone(done)) if done.end == ClientEnd::Finished)
    );
}

#[test]
fn a_connection_lost_in_commit_is_told_apart() {
    for (replies, expected) in [
        (1, Abort::ConnectionLost),
        (2, Abort::ConnectionLostInCommit),
    ] {
        let mut stage = Stage::released("BEGIN;\nSELECT 1;\n END ;", load());
        for _ in 0..replies {
            stage.answer(101, &done("OK", b'T'));
        }
        let fatal = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
        stage.answer(102, &message(b'E', fatal.as_bytes()));
        stage.input(102, |client, env| client.handle_lost("closed", env));
        let (events, texts) = stage.events();
        assert_eq!(transactions(&events)[0].outcome, Outcome::Aborted(expected));
        assert!(texts[0].contains("terminating connection"), "{}", texts[0]);
        assert_eq!(stage.client.progress(), Progress::Done);
    }
}

fn losses(events: &[Event]) -> Vec<(LossStep, LossCause, Timestamp)> {
    let losses = events.iter().filter_map(|event| match event {
        Event::Loss(loss) => Some((loss.step, loss.cause, loss.at)),
        _ => None,
    });
    losses.collect()
}

fn reconnecting() -> Load {
    Load {
        reconnect_on_loss: true,
        ..load()
    }
}

#[test]
fn a_client_that_goes_on_after_a_loss_tries_again_and_prepares_anew() {
    let mut run = context("SELECT :client_id;", reconnecting());
    run.plan.query_mode = QueryMode::Prepared;
    let mut stage = Stage::of(run).at_work();
    stage.sent();
    let fatal = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
    stage.answer(102, &message(b'E', fatal.as_bytes()));
    stage.input(102, |client, env| client.handle_lost("closed", env));
    let pause = |stage: &Stage, now_ms| stage.client.poll_timeout().unwrap() - at(now_ms);
    let around = |pause: Duration, ms: f64| {
        let pause_ms = pause.as_secs_f64() * 1e3;
        assert!((0.74 * ms..=1.26 * ms).contains(&pause_ms), "{pause:?}");
    };
    around(pause(&stage, 102), 10.0);
    assert_eq!(stage.client.take_action(), None);

    // Nobody listens, and then the server is not ready yet.
    stage.input(120, Client::handle_timeout);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(120, |client, env| {
        client.handle_lost("Connection refused", env)
    });
    around(pause(&stage, 120), 20.0);
    stage.input(150, Client::handle_timeout);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(150, |client, env| {
        client.handle_transport_ready(Security::Plain, env)
    });
    let starting = "SFATAL\0VFATAL\0C57P03\0Mstarting up\0\0";
    stage.answer(151, &message(b'E', starting.as_bytes()));
    stage.input(151, |client, env| client.handle_lost("closed", env));
    around(pause(&stage, 151), 40.0);

    stage.input(200, Client::handle_timeout);
    stage.sent();
    stage.log_in(210);
    assert!(!stage.sent().is_empty(), "it is at work again");
    let (events, texts) = stage.events();
    assert_eq!(texts, Vec::<String>::new());
    let state = |code: &[u8; 5]| LossCause::SqlState(SqlState(*code));
    assert_eq!(
        losses(&events),
        [
            (LossStep::Lost, state(b"57P01"), at(102)),
            (LossStep::TryFailed, LossCause::Refused, at(120)),
            (LossStep::TryFailed, state(b"57P03"), at(151)),
        ]
    );
    let outcomes: Vec<_> = transactions(&events).iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Aborted(Abort::ConnectionLost)]);
    let disconnects = spans(&events)
        .iter()
        .filter(|(kind, ..)| *kind == SpanKind::Disconnect)
        .count();
    assert_eq!(disconnects, 1, "a lost connection is none any more");
}

#[test]
fn who_has_no_connection_when_the_window_ends_is_done_and_nothing_is_wrong() {
    let mut stage = Stage::released("SELECT 1;", reconnecting());
    stage.input(102, |client, env| client.handle_lost("Broken pipe", env));
    stage.input(5_100, Client::handle_window_end);
    stage.close(5_100);
    let (events, texts) = stage.events();
    assert_eq!(stage.client.progress(), Progress::Done);
    assert!(
        matches!(events.last(), Some(Event::ClientDone(done)) if done.end == ClientEnd::Finished)
    );
    assert_eq!(texts, Vec::<String>::new());
}

#[test]
fn a_transaction_lost_after_the_window_is_aborted_and_its_client_done() {
    let mut stage = Stage::released("SELECT 1;", reconnecting());
    stage.input(5_200, |client, env| {
        client.handle_lost("Connection reset", env)
    });
    let (events, texts) = stage.events();
    assert_eq!(texts, Vec::<String>::new());
    let outcomes: Vec<_> = transactions(&events).iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Aborted(Abort::ConnectionLost)]);
    assert!(
        matches!(events.last(), Some(Event::ClientDone(done)) if done.end == ClientEnd::Finished)
    );
}

#[test]
fn a_number_of_transactions_bounds_how_long_a_client_tries() {
    let counted = Load {
        stop: StopRule::Transactions(5),
        ..reconnecting()
    };
    let mut stage = Stage::released("SELECT 1;", counted);
    stage.input(102, |client, env| {
        client.handle_lost("Connection reset", env)
    });
    for ms in [1_000, 299_000, 301_000] {
        stage.input(ms, Client::handle_timeout);
        assert_eq!(stage.client.take_action(), Some(Action::Open), "{ms}");
        stage.input(ms, |client, env| {
            client.handle_lost("Connection refused", env)
        });
    }
    let (_, texts) = stage.events();
    assert_eq!(stage.client.progress(), Progress::Done);
    assert!(
        texts[0].contains("no connection could be made for 5 minutes"),
        "{texts:?}"
    );
}

#[test]
fn a_connection_that_is_lost_in_what_it_begins_with_is_tried_again() {
    let mut run = context("SELECT 1;", reconnecting());
    run.plan.on_connect = Some(b"SET work_mem = '8MB'".to_vec());
    let mut stage = Stage::of(run);
    stage.input(0, Client::connect);
    stage.log_in(1);
    stage.answer(2, &done("SET", b'I'));
    stage.release(100);
    stage.sent();
    stage.input(102, |client, env| {
        client.handle_lost("Connection reset", env);
    });
    stage.input(130, Client::handle_timeout);
    stage.log_in(131);
    assert_eq!(stage.sent(), "SET work_mem = '8MB'");
    stage.input(132, |client, env| {
        client.handle_lost("Connection reset", env);
    });
    assert_eq!(stage.client.progress(), Progress::Active);
    stage.input(200, Client::handle_timeout);
    stage.log_in(201);
    stage.sent();
    stage.answer(202, &done("SET", b'I'));
    assert_eq!(stage.sent(), "SELECT 1;");
    let (events, texts) = stage.events();
    assert_eq!(texts, Vec::<String>::new());
    assert_eq!(losses(&events).len(), 2);
}

#[test]
fn a_connection_of_one_transaction_that_makes_no_sense_is_closed_before_the_next_one() {
    let load = Load {
        reconnect: true,
        ..reconnecting()
    };
    let mut stage = Stage::of(context("SELECT 1;", load));
    stage.input(100, Client::handle_start);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(100, |client, env| {
        client.handle_transport_ready(Security::Plain, env)
    });
    stage.answer(101, &[message(b'R', &[0; 4]), ready(b'I')].concat());
    stage.answer(102, b"nonsense");
    assert_eq!(stage.client.take_action(), Some(Action::Close));
    stage.input(102, Client::handle_closed);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
}

#[test]
fn a_turn_in_the_ramp_is_kept_over_a_loss() {
    let ramp = Load {
        clients: 2,
        lead_in: LeadIn {
            ramp: Duration::from_secs(4),
            warmup: Duration::ZERO,
        },
        ..reconnecting()
    };
    let run = context("SELECT 1;", ramp);
    let mut stage = Stage::of(run);
    stage.client = Client::new(1, 0, &stage.run);
    stage = stage.at_work();
    let turn = at(2_100);
    assert_eq!(stage.client.poll_timeout(), Some(turn));
    stage.input(500, |client, env| {
        client.handle_lost("Connection reset", env);
    });
    stage.input(520, Client::handle_timeout);
    stage.log_in(521);
    assert_eq!(stage.sent(), "", "its turn has not come");
    assert_eq!(stage.client.poll_timeout(), Some(turn));
}

#[test]
fn a_slot_that_was_waited_for_is_kept_over_a_loss() {
    let paced = Load {
        pacing: Pacing::Rate(10.0),
        ..reconnecting()
    };
    let mut stage = Stage::released("SELECT 1;", paced);
    let slot = stage.client.poll_timeout().expect("it waits for its slot");
    let ms = |moment: Timestamp| moment.nanos() / 1_000_000;
    stage.input(101, |client, env| {
        client.handle_lost("closed the connection", env)
    });
    stage.input(ms(slot) + 500, Client::handle_timeout);
    stage.log_in(ms(slot) + 510);
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(ms(slot) + 520, &done("SELECT 1", b'I'));
    let record = stage.transactions()[0];
    assert_eq!(record.scheduled_at, slot);
    assert_eq!(record.connecting_ns, 10_000_000);
    // The time without a server is lag, that of connecting is not.
    assert!(record.lag_ns() > 490_000_000, "{}", record.lag_ns());
}

#[test]
fn a_refused_initial_connection_names_the_attempt_and_the_servers_words() {
    let mut stage = Stage::new("SELECT 1;", load());
    stage.input(0, Client::connect);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(1, |client, env| {
        client.handle_transport_ready(Security::Plain, env)
    });
    let fatal = "SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0";
    stage.answer(2, &message(b'E', fatal.as_bytes()));
    stage.input(3, |client, env| client.handle_lost("closed", env));
    let Ok(Notice::ConnectFailed { client: 0, report }) = stage.notified.try_recv() else {
        panic!("the main thread must hear of it");
    };
    assert!(
        report.message.contains("/nowhere/.s.PGSQL.5432"),
        "{report}"
    );
    assert!(report.message.contains("too many clients"), "{report}");
    assert_eq!(stage.client.progress(), Progress::Done);
}

#[test]
fn a_password_that_is_wanted_and_not_known_is_told_with_what_to_do() {
    let mut stage = Stage::new("SELECT 1;", load());
    stage.input(0, Client::connect);
    assert_eq!(stage.client.take_action(), Some(Action::Open));
    stage.input(1, |client, env| {
        client.handle_transport_ready(Security::Plain, env)
    });
    stage.answer(2, &message(b'R', &[0, 0, 0, 3]));
    stage.input(3, |client, env| client.handle_lost("closed", env));
    let Ok(Notice::ConnectFailed { client: 0, report }) = stage.notified.try_recv() else {
        panic!("the main thread must hear of it");
    };
    assert!(report.message.ends_with("none was supplied"), "{report}");
    let hint = report.hint.expect("something can be done");
    assert!(hint.contains("PGPASSWORD"), "{hint}");
}

#[test]
fn an_attempt_to_connect_times_out() {
    let mut stage = Stage::new("SELECT 1;", load());
    stage.input(0, Client::connect);
    stage.client.take_action();
    assert_eq!(stage.client.poll_timeout(), Some(at(2000)));
    stage.input(2000, Client::handle_timeout);
    stage.close(2000);
    assert!(matches!(
        stage.notified.try_recv(),
        Ok(Notice::ConnectFailed { report, .. }) if report.message.contains("timeout expired")
    ));
}

#[test]
fn a_script_that_waits_for_nothing_yields_after_each_transaction() {
    let mut stage = Stage::released("\\set x 1", load());
    for _ in 0..3 {
        assert_eq!(stage.client.take_action(), Some(Action::Yield));
        stage.input(101, Client::handle_timeout);
    }
    assert_eq!(stage.transactions().len(), 4);
}

#[test]
fn copy_is_refused_and_ends_the_client() {
    let mut stage = Stage::released("COPY (SELECT 1) TO STDOUT;", load());
    let mut reply = message(b'H', &[0, 0, 1, 0, 0]);
    reply.extend(message(b'd', b"1\n"));
    reply.extend(message(b'c', b""));
    reply.extend(done("COPY 1", b'I'));
    stage.answer(101, &reply);
    let (events, texts) = stage.events();
    assert!(texts[0].contains("COPY"), "{}", texts[0]);
    assert_eq!(
        transactions(&events)[0].outcome,
        Outcome::Aborted(Abort::Client)
    );
}

#[test]
fn copy_from_the_client_in_a_pipeline_is_never_sent_and_the_goodbye_is() {
    let script = "\\startpipeline\nSELECT 1;\nCOPY t FROM STDIN;\n\\endpipeline";
    let mut stage = Stage::in_mode(QueryMode::Extended, script);
    assert_eq!(
        stage.sent_messages(),
        "P[\"SELECT 1;\"] B[] D[\"P\"] E[] X[]"
    );
    let told = stage.told();
    assert!(
        told.contains("COPY FROM STDIN is not allowed in a pipeline"),
        "{told}"
    );
    assert!(told.contains("line 3: COPY t FROM STDIN;"), "{told}");
}

#[test]
fn copy_in_a_pipeline_is_told_with_its_place() {
    let script = "\\startpipeline\nSELECT 1;\nCOPY t TO STDOUT;\nSELECT 2;\n\\endpipeline";
    let mut stage = Stage::in_mode(QueryMode::Extended, script);
    let part = [message(b'1', b""), executed()].concat();
    let begun = [message(b'1', b""), message(b'2', b""), message(b'n', b"")].concat();
    let copy = [
        message(b'H', &[0, 0, 0]),
        message(b'd', b"1\n"),
        message(b'c', b""),
    ]
    .concat();
    let answer = [
        part.clone(),
        begun,
        copy,
        complete("COPY 1"),
        part,
        ready(b'I'),
    ]
    .concat();
    stage.answer(101, &answer);
    let told = stage.told();
    assert!(told.contains(reply::Copied::PROBLEM), "{told}");
    assert!(told.contains("line 3: COPY t TO STDOUT;"), "{told}");
}

#[test]
fn a_server_that_ends_the_connection_after_a_copy_is_not_blamed() {
    let script = "\\startpipeline\n/**/ COPY t FROM STDIN;\nSELECT 1;\n\\endpipeline";
    let mut stage = Stage::in_mode(QueryMode::Extended, script);
    let begun = [message(b'1', b""), message(b'2', b""), message(b'n', b"")].concat();
    let answer = [
        begun,
        message(b'G', &[0, 0, 0]),
        error(
            "08P01",
            "unexpected message type 0x50 during COPY from stdin",
        ),
    ];
    stage.answer(101, &answer.concat());
    stage.input(102, |client, env| client.handle_lost("closed", env));
    let (_, texts) = stage.events();
    let expected = "connection lost: COPY to or from the client is not supported in a script: \
                    ERROR:  unexpected message type 0x50";
    assert!(texts[0].contains(expected), "{}", texts[0]);
}

#[test]
fn what_came_with_the_last_answer_does_not_answer_the_next_command() {
    let mut stage = Stage::released("SELECT 1;\nSELECT 2;", load());
    stage.answer(101, &[done("SELECT 1", b'I'), ready(b'I')].concat());
    let (events, texts) = stage.events();
    assert!(
        texts[0].contains("unexpected ReadyForQuery message"),
        "{}",
        texts[0]
    );
    let [record] = transactions(&events)[..] else {
        panic!("the transaction has ended with its connection");
    };
    assert_eq!(record.outcome, Outcome::Aborted(Abort::ConnectionLost));
}

#[test]
fn replies_cut_anywhere_give_the_same_records() {
    let reply = done("SELECT 1", b'I');
    for cut in 0..=reply.len() {
        let mut stage = Stage::released("SELECT 1;", load());
        stage.answer(105, &reply[..cut]);
        stage.answer(110, &reply[cut..]);
        let records = stage.transactions();
        assert_eq!(records.len(), 1, "cut at {cut}");
        let expected = if cut == reply.len() { 105 } else { 110 };
        assert_eq!(records[0].finished_at, at(expected));
    }
}

/// A row set: column names, and one row for each list of values.
fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Vec<u8> {
    let mut description = (columns.len() as u16).to_be_bytes().to_vec();
    for column in columns {
        description.extend_from_slice(column.as_bytes());
        description.extend_from_slice(&[0; 19]);
    }
    let mut bytes = message(b'T', &description);
    for values in rows {
        let mut row = (values.len() as u16).to_be_bytes().to_vec();
        for value in *values {
            match value {
                Some(text) => {
                    row.extend_from_slice(&(text.len() as i32).to_be_bytes());
                    row.extend_from_slice(text.as_bytes());
                }
                None => row.extend_from_slice(&(-1i32).to_be_bytes()),
            }
        }
        bytes.extend(message(b'D', &row));
    }
    bytes
}

#[test]
fn a_value_too_long_for_a_variable_is_told_and_no_harm_where_nobody_wants_it() {
    const VALUE_BYTES: u32 = 80 << 20;
    for (script, aborted) in [
        ("SELECT a, b \\gset\nSELECT :a;", false),
        ("SELECT a, b \\gset\nSELECT :a, :b;", true),
    ] {
        let mut stage = Stage::released(script, load());
        stage.sent();
        stage.answer(101, &rows(&["a", "b"], &[]));
        let row_bytes = 4 + 2 + 4 + 1 + 4 + VALUE_BYTES;
        let head = [b"D", &row_bytes.to_be_bytes()[..], b"\0\x02\0\0\0\x017"].concat();
        stage.answer(102, &[head, VALUE_BYTES.to_be_bytes().to_vec()].concat());
        for _ in 0..VALUE_BYTES >> 16 {
            stage.answer(103, &[b'x'; 1 << 16]);
        }
        stage.answer(104, &done("SELECT 1", b'I'));
        let (_, texts) = stage.events();
        if aborted {
            assert!(
                texts[0].ends_with(
                    "column \"b\" has a value of 83886080 bytes, which is too long for a \
                     variable: at most 64 MiB of a row can be kept"
                ),
                "{texts:?}"
            );
        } else {
            assert_eq!(stage.sent(), "SELECT 7;");
        }
    }
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), &[0]].concat())
}

/// The answer to Bind, Describe and Execute of a command without rows.
fn executed() -> Vec<u8> {
    [message(b'2', b""), message(b'n', b""), complete("DO")].concat()
}

#[test]
fn extended_mode_parses_binds_and_executes_in_one_go() {
    let mut stage = Stage::in_mode(
        QueryMode::Extended,
        "\\set n null\nSELECT :client_id, :undefined, :n;",
    );
    assert_eq!(
        stage.sent_messages(),
        "P[\"SELECT $1, $2, $3;\"] B[\"0\"] D[\"P\"] E[] S[]",
        "undefined and null variables are bound as NULL"
    );
    let reply = [message(b'1', b""), executed(), ready(b'I')].concat();
    stage.answer(101, &reply);
    assert_eq!(stage.transactions().len(), 1);
}

#[test]
fn prepared_mode_parses_once_a_connection_with_a_round_trip_of_its_own() {
    let mut stage = Stage::in_mode(QueryMode::Prepared, "SELECT :client_id;\nSELECT 2;");
    assert_eq!(stage.sent_messages(), "P[\"P_0\", \"SELECT $1;\"] S[]");
    let parsed = [message(b'1', b""), ready(b'I')].concat();
    stage.answer(101, &parsed);
    assert_eq!(stage.sent_messages(), "B[\"P_0\", \"0\"] D[\"P\"] E[] S[]");
    let done = [executed(), ready(b'I')].concat();
    stage.answer(102, &done);
    assert_eq!(stage.sent_messages(), "P[\"P_1\", \"SELECT 2;\"] S[]");
    stage.answer(103, &parsed);
    stage.sent_messages();
    stage.answer(104, &done);
    assert_eq!(
        stage.sent_messages(),
        "B[\"P_0\", \"0\"] D[\"P\"] E[] S[]",
        "the second transaction finds the statement prepared"
    );
    assert_eq!(stage.transactions()[0].latency_ns(), 4_000_000);
}

#[test]
fn a_statement_that_cannot_be_prepared_ends_the_client_with_the_servers_words() {
    let mut stage = Stage::in_mode(QueryMode::Prepared, "SELECT nonsense;");
    stage.sent_messages();
    stage.answer(
        101,
        &[error("42703", "no such column"), ready(b'I')].concat(),
    );
    let (_, texts) = stage.events();
    assert!(texts[0].contains("no such column"), "{}", texts[0]);
}

#[test]
fn a_pipeline_is_sent_at_its_end_and_awaited_with_all_its_syncs() {
    let mut stage = Stage::in_mode(
        QueryMode::Extended,
        "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\nSELECT 3;",
    );
    assert_eq!(
        stage.sent_messages(),
        "P[\"SELECT 1;\"] B[] D[\"P\"] E[] S[] P[\"SELECT 2;\"] B[] D[\"P\"] E[] S[]"
    );
    let part = [message(b'1', b""), executed(), ready(b'I')].concat();
    stage.answer(105, &part);
    assert_eq!(
        stage.sent_messages(),
        "",
        "the second Sync is still to be answered"
    );
    stage.answer(110, &part);
    assert!(stage.sent_messages().starts_with("P[\"SELECT 3;\"]"));
}

#[test]
fn an_error_in_a_pipeline_never_leaves_the_client_out_of_step() {
    let mut stage = Stage::in_mode(
        QueryMode::Prepared,
        "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\syncpipeline\nSELECT 3;\n\\endpipeline",
    );
    let parsed = [message(b'1', b""), ready(b'I')].concat();
    assert_eq!(stage.sent_messages().matches("P[").count(), 3);
    stage.answer(101, &parsed.repeat(3));
    stage.sent_messages();
    let failed = [executed(), error("40001", "no"), ready(b'I')].concat();
    stage.answer(102, &[failed, executed(), ready(b'I')].concat());
    let [record] = stage.transactions()[..] else {
        panic!("the transaction has failed");
    };
    assert_eq!(record.outcome, Outcome::Failed);
    assert_eq!(
        stage.sent_messages().matches("B[").count(),
        3,
        "the next one begins"
    );
}

#[test]
fn of_an_error_in_a_pipeline_the_statement_is_told() {
    let script = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\nSELECT x;\n\\endpipeline";
    let mut stage = Stage::in_mode(QueryMode::Extended, script);
    let parsed = message(b'1', b"");
    let first = [&parsed[..], &executed(), &ready(b'I')].concat();
    let refused = [error_at(8, "no x"), ready(b'I')].concat();
    let second = [&parsed[..], &executed(), &refused].concat();
    stage.answer(101, &[first, second].concat());
    assert_eq!(
        stage.told(),
        "client 0 script 0 aborted in command 5 query 2: ERROR:  no x\nLINE 1: SELECT x;\n\
         \u{20}              ^\ntest.sql, line 5: SELECT x;\n"
    );
}

#[test]
fn what_cannot_be_prepared_for_a_pipeline_is_told_with_its_place() {
    let script = "\\startpipeline\nSELECT 1;\n\\if 0\nSELECT x;\n\\endif\n\\endpipeline";
    let mut stage = Stage::in_mode(QueryMode::Prepared, script);
    let parsed = [message(b'1', b""), ready(b'I')].concat();
    let refused = [error_at(8, "no x"), ready(b'I')].concat();
    stage.answer(101, &[parsed, refused].concat());
    assert_eq!(
        stage.told(),
        "client 0 script 0 could not prepare command 3: ERROR:  no x\nLINE 1: SELECT x;\n\
         \u{20}              ^\ntest.sql, line 4: SELECT x;\n"
    );
}

#[test]
fn a_pipeline_left_open_ends_the_client_and_names_its_line() {
    let mut stage = Stage::in_mode(QueryMode::Extended, "SELECT 1;\n\\startpipeline\nSELECT 2;");
    stage.sent_messages();
    let part = [message(b'1', b""), executed(), ready(b'I')].concat();
    stage.answer(101, &part);
    let (events, texts) = stage.events();
    assert!(texts[0].contains("line 2"), "{}", texts[0]);
    assert_eq!(
        transactions(&events)[0].outcome,
        Outcome::Aborted(Abort::Client)
    );
}

#[test]
fn pipelines_have_their_rules() {
    for (mode, script, problem) in [
        (QueryMode::Simple, "\\startpipeline", "extended"),
        (
            QueryMode::Extended,
            "\\startpipeline\n\\startpipeline",
            "already",
        ),
        (QueryMode::Extended, "\\endpipeline", "not in a pipeline"),
        (QueryMode::Extended, "\\syncpipeline", "not in a pipeline"),
        (
            QueryMode::Extended,
            "\\startpipeline\nSELECT 1 AS a \\gset",
            "gset is not allowed",
        ),
    ] {
        let mut stage = Stage::in_mode(mode, script);
        let (_, texts) = stage.events();
        assert!(texts[0].contains(problem), "{script}: {texts:?}");
    }
}

#[test]
fn gset_takes_the_only_row_of_the_last_result() {
    let mut stage = Stage::released("SELECT 1 AS a \\gset p_\nSELECT ':p_a', ':p_b';", load());
    stage.sent();
    let first = [rows(&["a"], &[&[Some("7")]]), complete("SELECT 1")].concat();
    let last = rows(&["a", "b"], &[&[Some("8"), None]]);
    stage.answer(101, &[first, last, done("SELECT 1", b'I')].concat());
    assert_eq!(stage.sent(), "SELECT '8', '';");
}

#[test]
fn gset_wants_exactly_one_row_and_columns_that_can_be_variables() {
    for (reply, problem) in [
        (rows(&["a"], &[]), "expected one row, got 0"),
        (
            rows(&["a"], &[&[Some("1")], &[Some("2")]]),
            "expected one row, got 2",
        ),
        (Vec::new(), "expected one row, got 0"),
        (rows(&["?column?"], &[&[Some("1")]]), "?column?"),
    ] {
        let mut stage = Stage::released("SELECT 1 \\gset", load());
        stage.answer(101, &[reply, done("SELECT 1", b'I')].concat());
        let (_, texts) = stage.events();
        assert!(texts[0].contains(problem), "{texts:?}");
    }
}

#[test]
fn aset_takes_the_last_row_of_each_result_that_has_rows() {
    let script = "\\set a 9\nSELECT 1 \\; SELECT 2 \\aset\nSELECT :a, :b;";
    let mut stage = Stage::released(script, load());
    stage.sent();
    let first = [rows(&["a"], &[]), complete("SELECT 0")].concat();
    let second = rows(&["b"], &[&[Some("1")], &[Some("2")]]);
    stage.answer(101, &[first, second, done("SELECT 2", b'I')].concat());
    assert_eq!(stage.sent(), "SELECT 9, 2;");
}

#[test]
fn a_shell_command_runs_beside_and_its_end_is_awaited() {
    let script = "\\setshell x echo :client_id\nSELECT :x;\n\\shell false";
    let mut stage = Stage::released(script, load());
    let Some(Action::Spawn(order)) = stage.client.take_action() else {
        panic!("the worker is to run it");
    };
    assert_eq!(order.line, b"echo 0");
    let output = Ok(b"42\n".to_vec());
    stage.input(150, |client, env| client.handle_shell(&output, env));
    assert_eq!(stage.sent(), "SELECT 42;");
    stage.answer(160, &done("SELECT 1", b'I'));
    assert!(matches!(stage.client.take_action(), Some(Action::Spawn(_))));
    let failed = Err("the shell command failed".to_owned());
    stage.input(170, |client, env| client.handle_shell(&failed, env));
    let (events, texts) = stage.events();
    assert!(texts[0].contains("command 2 (shell)"), "{texts:?}");
    let record = transactions(&events)[0];
    assert_eq!(record.outcome, Outcome::Aborted(Abort::Client));
    assert_eq!(record.finished_at, at(170));
}

#[test]
fn each_connection_begins_with_its_own_commands_outside_of_latency() {
    let reconnect = Load {
        reconnect: true,
        ..load()
    };
    let mut run = context("SELECT 1;", reconnect);
    run.plan.on_connect = Some(b"SET a = 1".to_vec());
    let mut stage = Stage::of(run).at_work();
    stage.log_in(110);
    assert_eq!(stage.sent(), "SET a = 1");
    stage.answer(130, &done("SET", b'I'));
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(140, &done("SELECT 1", b'I'));
    let (events, _) = stage.events();
    assert_eq!(
        spans(&events),
        [
            (SpanKind::Connect, at(100), at(110)),
            (SpanKind::OnConnect, at(110), at(130)),
        ]
    );
    let record = transactions(&events)[0];
    assert_eq!(record.latency_ns(), 10_000_000);
    assert_eq!(record.connecting_ns, 30_000_000);
}

#[test]
fn a_connection_that_cannot_begin_as_it_should_is_no_connection() {
    for (answer, told) in [
        (
            [error_at(5, "no such setting"), ready(b'I')].concat(),
            "no such setting\nLINE 1: SET nonsense = 1\n            ^",
        ),
        // No transaction fails here, so that it is told.
        (
            [error("40001", "try again"), ready(b'I')].concat(),
            "try again",
        ),
        (done("BEGIN", b'T'), "leave a transaction open"),
    ] {
        let mut run = context("SELECT 1;", load());
        run.plan.on_connect = Some(b"SET nonsense = 1".to_vec());
        let mut stage = Stage::of(run);
        stage.input(0, Client::connect);
        stage.log_in(0);
        stage.answer(5, &answer);
        stage.close(6);
        let failed = stage.notified.try_iter().find_map(|notice| match notice {
            Notice::ConnectFailed { report, .. } => Some(report.message),
            _ => None,
        });
        let text = failed.expect("the main thread is told");
        assert!(text.contains(told), "{text}");
        assert_eq!(stage.client.progress(), Progress::Done);
    }
}

#[test]
fn a_connection_lost_in_what_it_begins_with_is_told_with_the_servers_words() {
    let mut run = context("SELECT 1;", load());
    run.plan.on_connect = Some(b"SET a = 1".to_vec());
    let mut stage = Stage::of(run);
    stage.input(0, Client::connect);
    stage.log_in(0);
    stage.answer(5, &error("57P01", "going down"));
    stage.input(6, |client, env| client.handle_lost("closed", env));
    assert!(stage.notified.try_iter().any(|notice| matches!(
        notice,
        Notice::ConnectFailed { report, .. } if report.message.contains("going down")
    )));
}

#[test]
fn what_is_awaited_in_an_untimed_block_is_in_no_latency() {
    let script = "SELECT 1;\n\\untimed\nSELECT 2;\n\\enduntimed\nSELECT 3;";
    let mut stage = Stage::released(script, load());
    stage.answer(110, &done("SELECT 1", b'I'));
    stage.answer(150, &done("SELECT 1", b'I'));
    stage.answer(157, &done("SELECT 1", b'I'));
    let record = stage.transactions()[0];
    assert_eq!(record.untimed_ns, 40_000_000);
    assert_eq!(record.latency_ns(), 17_000_000);
    assert_eq!(record.service_ns(), 17_000_000);
}

#[test]
fn a_sleep_in_an_untimed_block_is_no_thinking() {
    let script = "SELECT 1;\n\\untimed\n\\sleep 20 ms\n\\enduntimed\n\\sleep 7 ms";
    let mut stage = Stage::released(script, load());
    stage.answer(110, &done("SELECT 1", b'I'));
    stage.input(130, Client::handle_timeout);
    stage.input(137, Client::handle_timeout);
    stage.input(138, Client::handle_close_due);
    stage.close(138);
    let (events, _) = stage.events();
    assert_eq!(transactions(&events)[0].untimed_ns, 20_000_000);
    let thought = events.iter().find_map(|event| match event {
        Event::ClientDone(done) => Some(done.think_ns),
        _ => None,
    });
    assert_eq!(thought, Some(7_000_000));
}

#[test]
fn a_script_whose_values_have_run_out_ends_its_client_without_a_transaction() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("keys.csv"), "id\n7\n8\n").unwrap();
    let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
    let name = directory.path().join("test.sql");
    let text = b"\\values keys.csv end=stop\nSELECT :id;";
    scripts.add_file(name.to_string_lossy(), text, 1);
    let retrying = Load {
        max_tries: Some(2),
        ..load()
    };
    let mut run = context("SELECT 1;", retrying);
    run.plan.scripts = scripts.finish().unwrap();
    run.values = ValueSources::read(&run.plan.scripts).unwrap();
    let mut stage = Stage::of(run).at_work();
    assert_eq!(stage.sent(), "SELECT 7;");
    stage.answer(105, &[error("40001", "again"), ready(b'I')].concat());
    assert_eq!(stage.sent(), "SELECT 7;", "a retry takes no other row");
    stage.answer(110, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "SELECT 8;");
    stage.answer(120, &done("SELECT 1", b'I'));
    stage.close(121);
    let (events, texts) = stage.events();
    assert_eq!(transactions(&events).len(), 2);
    assert!(texts.is_empty());
    assert!(matches!(events.last(),
        Some(Event::ClientDone(done)) if done.end == ClientEnd::RanOut));
}

#[test]
fn a_retry_has_the_row_of_values_that_its_transaction_has() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("keys.csv"), "id\n7\n").unwrap();
    let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
    let name = directory.path().join("test.sql");
    let text = b"\\values keys.csv end=stop\nSELECT :id;";
    scripts.add_file(name.to_string_lossy(), text, 1);
    let retrying = Load {
        max_tries: None,
        ..load()
    };
    let mut run = context("SELECT 1;", retrying);
    run.plan.scripts = scripts.finish().unwrap();
    run.values = ValueSources::read(&run.plan.scripts).unwrap();
    let mut stage = Stage::of(run).at_work();
    assert_eq!(stage.sent(), "SELECT 7;");
    stage.answer(110, &[error("40001", "no"), ready(b'I')].concat());
    assert_eq!(stage.sent(), "SELECT 7;");
    stage.answer(120, &done("SELECT 1", b'I'));
    stage.close(121);
    let [record] = stage.transactions()[..] else {
        panic!("both tries are one transaction");
    };
    assert_eq!(record.outcome, Outcome::Processed);
    assert_eq!((record.number, record.tries), (1, 2));
}

#[test]
fn a_connection_lost_before_the_start_is_told_with_its_place_and_the_servers_words() {
    let mut stage = Stage::new("SELECT 1;", load());
    stage.input(0, Client::connect);
    stage.log_in(0);
    stage.answer(5, &error("57P01", "going down"));
    stage.input(6, |client, env| client.handle_lost("closed", env));
    let failed = stage.notified.try_iter().find_map(|notice| match notice {
        Notice::ConnectFailed { report, .. } => Some(report.message),
        _ => None,
    });
    let text = failed.expect("the main thread is told");
    assert!(text.contains("/nowhere/.s.PGSQL.5432"), "{text}");
    assert!(text.contains("going down"), "{text}");
}

#[test]
fn scripts_can_ask_for_their_thread_and_the_number_of_the_transaction() {
    let mut stage = Stage::released("SELECT :thread_id, :transaction;", load());
    assert_eq!(stage.sent(), "SELECT 0, 1;");
    stage.answer(101, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "SELECT 0, 2;");
}

fn at_rate(rate: f64) -> Load {
    Load {
        pacing: Pacing::Rate(rate),
        ..load()
    }
}

#[test]
fn under_a_rate_latency_counts_from_the_slot_and_lag_is_told_apart() {
    // Slots of seed 42 at 50/s: 30.006, 61.342, 122.313 ms after the start.
    let mut stage = Stage::released("SELECT 1;", at_rate(50.0));
    let slot = Timestamp::from_nanos(130_006_000);
    assert_eq!(stage.sent(), "", "it is not due yet");
    assert_eq!(stage.client.poll_timeout(), Some(slot));
    stage.input(131, Client::handle_timeout);
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(171, &done("SELECT 1", b'I'));
    // The second slot was at 161.342 ms: it begins at once, late.
    assert_eq!(stage.sent(), "SELECT 1;");
    stage.answer(181, &done("SELECT 1", b'I'));
    let records = stage.transactions();
    assert_eq!(records[0].scheduled_at, slot);
    assert_eq!(records[0].lag_ns(), 994_000);
    assert_eq!(records[0].latency_ns(), 40_994_000);
    assert_eq!(records[0].service_ns(), 40_000_000);
    assert_eq!(records[1].lag_ns(), 9_658_000);
}

#[test]
fn a_slot_older_than_the_limit_is_skipped_by_the_client_that_takes_it() {
    let limited = Load {
        latency_limit: Some(Duration::from_millis(50)),
        ..at_rate(50.0)
    };
    let mut stage = Stage::released("SELECT 1;", limited);
    stage.input(131, Client::handle_timeout);
    stage.sent();
    // Slots at 161.342, 222.313, 234.966 ms are too old by then, 245.874 ms is not.
    stage.answer(290, &done("SELECT 1", b'I'));
    assert_eq!(stage.sent(), "SELECT 1;");
    let records = stage.transactions();
    let outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Processed,
            Outcome::Skipped,
            Outcome::Skipped,
            Outcome::Skipped
        ]
    );
    assert_eq!(records[1].lag_ns(), 128_658_000, "how late it was");
    assert_eq!((records[1].tries, records[1].number), (0, 2));
}

#[test]
fn a_slot_after_the_end_ends_the_client_and_was_not_due() {
    let mut stage = Stage::released("SELECT 1;", at_rate(50.0));
    stage.window.stop(at(120));
    stage.input(120, Client::handle_stop);
    stage.close(120);
    assert_eq!(stage.client.progress(), Progress::Done);
    let schedule = stage.run.schedule.as_ref().unwrap();
    assert_eq!(schedule.taken().slots, 0);
}

#[test]
fn with_reconnecting_under_a_rate_only_the_response_time_has_the_connecting() {
    let reconnect = Load {
        reconnect: true,
        ..at_rate(50.0)
    };
    let mut stage = Stage::released("SELECT 1;", reconnect);
    assert_eq!(
        stage.client.take_action(),
        None,
        "it connects when it is due"
    );
    stage.input(131, Client::handle_timeout);
    stage.log_in(181);
    stage.answer(191, &done("SELECT 1", b'I'));
    let record = stage.transactions()[0];
    assert_eq!(record.connecting_ns, 50_000_000);
    assert_eq!(record.latency_ns(), 10_994_000);
    assert_eq!(record.response_ns(), 60_994_000);
}

#[test]
fn warm_up_transactions_are_recorded_as_such_and_do_not_count() {
    let warmed = Load {
        stop: StopRule::Transactions(1),
        lead_in: LeadIn {
            ramp: Duration::ZERO,
            warmup: Duration::from_millis(50),
        },
        ..load()
    };
    let mut stage = Stage::released("SELECT 1;", warmed);
    for ms in [120, 149, 160, 170] {
        stage.answer(ms, &done("SELECT 1", b'I'));
    }
    stage.close(171);
    let phases: Vec<Phase> = stage.transactions().iter().map(|r| r.phase).collect();
    assert_eq!(
        phases,
        [Phase::Warmup, Phase::Warmup, Phase::Warmup, Phase::Run],
        "the third began before the window"
    );
}

#[test]
fn clients_enter_one_after_the_other_over_the_ramp() {
    let ramped = Load {
        clients: 4,
        lead_in: LeadIn {
            ramp: Duration::from_millis(40),
            warmup: Duration::ZERO,
        },
        ..load()
    };
    let mut stage = Stage::new("SELECT 1;", ramped);
    stage.client = Client::new(2, 0, &stage.run);
    let mut stage = stage.at_work();
    assert_eq!(stage.client.poll_timeout(), Some(at(120)));
    stage.input(120, Client::handle_timeout);
    assert_eq!(stage.sent(), "SELECT 1;");
}

fn on_error(on_error: OnError) -> Load {
    Load {
        on_error,
        max_tries: Some(2),
        ..load()
    }
}

#[test]
fn other_errors_fail_the_transaction_where_the_client_is_to_go_on_and_are_never_retried() {
    let load = on_error(OnError {
        go_on: true,
        ..OnError::default()
    });
    let mut stage = Stage::released("BEGIN;\nINSERT;\nEND;", load);
    stage.answer(101, &done("BEGIN", b'T'));
    stage.answer(102, &[error("23505", "duplicate"), ready(b'E')].concat());
    stage.answer(103, &done("ROLLBACK", b'I'));
    let (events, texts) = stage.events();
    let record = transactions(&events)[0];
    assert_eq!((record.outcome, record.tries), (Outcome::Failed, 1));
    assert_eq!(record.sqlstate, SqlState(*b"23505"));
    assert!(texts.is_empty());
    assert_eq!(stage.client.progress(), Progress::Active);
}

#[test]
fn verbose_errors_tell_each_try_with_the_time_used() {
    let mut load = on_error(OnError {
        verbose: true,
        ..OnError::default()
    });
    load.latency_limit = Some(Duration::from_millis(100));
    let mut stage = Stage::released("SELECT 1;", load);
    let failure = [error("40001", "could not serialize"), ready(b'I')].concat();
    stage.answer(110, &failure);
    stage.answer(120, &failure);
    let told: Vec<String> = stage.infos();
    assert_eq!(
        told,
        [
            "client 0 got an error in command 0 (SQL) of script 0; ERROR:  could not serialize",
            "client 0 repeats the transaction after the error (try 1/2, 10.000% of the maximum \
             time of tries was used)",
            "client 0 got an error in command 0 (SQL) of script 0; ERROR:  could not serialize",
            "client 0 ends the failed transaction (try 2/2, 20.000% of the maximum time of tries \
             was used)",
        ]
    );
}

#[test]
fn of_failures_the_first_of_each_kind_is_told() {
    let load = on_error(OnError {
        tell_first: true,
        ..OnError::default()
    });
    let mut stage = Stage::released("SELECT 1;", load);
    for (ms, sqlstate) in [
        (110, "40001"),
        (120, "40001"),
        (130, "40P01"),
        (140, "40P01"),
    ] {
        stage.answer(ms, &[error(sqlstate, "no"), ready(b'I')].concat());
    }
    let told = stage.infos();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("command 0 of script 0") && told[0].ends_with("ERROR:  no"));
}

#[test]
fn of_an_endless_stream_of_kinds_a_few_are_told() {
    let load = on_error(OnError {
        tell_first: true,
        go_on: true,
        ..OnError::default()
    });
    let mut stage = Stage::released("SELECT 1;", load);
    for number in 0..100 {
        let sqlstate = format!("ZZ{number:03}");
        let failure = [error(&sqlstate, "no"), ready(b'I')].concat();
        stage.answer(110 + number, &failure);
    }
    let told = stage.infos();
    let kinds = told.iter().filter(|text| text.contains("SQLSTATE ZZ"));
    assert_eq!(kinds.count(), KINDS_TOLD_MAX);
    let last = told.last().map(String::as_str);
    assert_eq!(last, Some("errors of further kinds are only counted"));
    assert_eq!(stage.told.len(), KINDS_TOLD_MAX);
}

#[test]
fn the_main_thread_hears_of_an_aborted_client_where_that_ends_the_run() {
    let load = on_error(OnError {
        exit: true,
        ..OnError::default()
    });
    let mut stage = Stage::released("SELECT 1/0;", load);
    stage.answer(105, &[error("22012", "no"), ready(b'I')].concat());
    stage.close(106);
    assert!(
        stage
            .notified
            .try_iter()
            .any(|notice| notice == Notice::ClientAborted)
    );
}

#[test]
fn of_notices_the_first_of_each_kind_is_told_and_all_are_counted() {
    let mut stage = Stage::released("SELECT 1;", load());
    let notice = |text: &str| {
        let body = format!("SNOTICE\0VNOTICE\0C00000\0M{text}\0\0");
        message(b'N', body.as_bytes())
    };
    for ms in 101..104 {
        let (number, ready) = (notice(&format!("row {ms}")), done("SELECT 1", b'I'));
        stage.answer(ms, &[number, notice("on the way"), ready].concat());
    }
    assert_eq!(stage.told(), "NOTICE:  row 101\nNOTICE:  on the way\n");
    assert_eq!(stage.run.notices.repeated().len(), 2);
    assert_eq!(stage.run.notices.repeated()[0].1, 3);
}

/// A stage in prepared mode whose client has had its first statement parsed and executes it.
fn executing(script: &str) -> Stage {
    let mut stage = Stage::in_mode(QueryMode::Prepared, script);
    stage.sent_messages();
    stage.answer(101, &[message(b'1', b""), ready(b'I')].concat());
    stage.sent_messages();
    stage
}

const SENT_ALONG: &str = "C[\"SP_0\"] P[\"P_0\", \"SELECT 1;\"] B[\"P_0\"] D[\"P\"] E[] S[]";

#[test]
fn a_statement_that_the_server_has_lost_is_prepared_again_together_with_its_execution() {
    let mut stage = executing("SELECT 1;");
    let lost = [error("26000", "no such statement"), ready(b'I')].concat();
    stage.answer(110, &lost);
    assert_eq!(stage.sent_messages(), SENT_ALONG);
    let parsed = [message(b'3', b""), message(b'1', b"")].concat();
    let answer = [parsed, executed(), ready(b'I')].concat();
    stage.answer(120, &answer);
    assert_eq!(stage.sent_messages(), "B[\"P_0\"] D[\"P\"] E[] S[]");
    stage.answer(130, &lost);
    assert_eq!(stage.sent_messages(), SENT_ALONG, "it may happen each time");
    stage.answer(140, &answer);
    assert_eq!(stage.run.pooling.prepared_again(), 2);
    let infos = stage.infos();
    assert_eq!(infos.len(), 1, "it is explained once: {infos:?}");
    assert!(infos[0].contains("transaction pooling") && infos[0].contains("-M simple"));
}

#[test]
fn a_statement_that_the_server_has_already_is_replaced() {
    let mut stage = Stage::in_mode(QueryMode::Prepared, "SELECT 1;");
    stage.sent_messages();
    stage.answer(101, &[error("42P05", "exists"), ready(b'I')].concat());
    assert_eq!(stage.sent_messages(), SENT_ALONG);
    let parsed = [message(b'3', b""), message(b'1', b"")].concat();
    stage.answer(103, &[parsed, executed(), ready(b'I')].concat());
    let [record] = stage.transactions()[..] else {
        panic!("it has succeeded");
    };
    assert_eq!((record.outcome, record.tries), (Outcome::Processed, 1));
    assert_eq!(record.latency_ns(), 3_000_000);
}

#[test]
fn each_statement_is_replaced_that_the_server_has_already() {
    let mut stage = Stage::in_mode(QueryMode::Prepared, "SELECT 1;\nSELECT 2;");
    let parsed = [message(b'3', b""), message(b'1', b"")].concat();
    for ms in [110, 120] {
        stage.answer(ms, &[error("42P05", "exists"), ready(b'I')].concat());
        stage.answer(ms + 1, &[parsed.clone(), executed(), ready(b'I')].concat());
    }
    assert_eq!(stage.transactions()[0].outcome, Outcome::Processed);
    assert_eq!(stage.run.pooling.prepared_again(), 2);
}

#[test]
fn where_preparing_again_is_not_safe_or_of_no_use_the_client_ends_with_advice() {
    let lost = || error("26000", "no such statement");
    let lost_once_more = |stage: &mut Stage| {
        stage.answer(110, &[lost(), ready(b'I')].concat());
        let parsed = [message(b'3', b""), message(b'1', b"")].concat();
        stage.answer(111, &[parsed, lost(), ready(b'I')].concat());
    };
    let in_block = |stage: &mut Stage| stage.answer(110, &[lost(), ready(b'E')].concat());
    let in_pipeline = |stage: &mut Stage| {
        stage.answer(110, &[executed(), lost(), ready(b'I')].concat());
    };
    let by_the_script = |stage: &mut Stage| {
        let bound = [message(b'2', b""), message(b'n', b"")].concat();
        stage.answer(110, &[bound, lost(), ready(b'I')].concat());
    };
    let pipeline = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline";
    type Case<'c> = (&'c str, &'c dyn Fn(&mut Stage), bool);
    let cases: [Case<'_>; 4] = [
        ("SELECT 1;", &lost_once_more, true),
        ("SELECT 1;", &in_block, true),
        (pipeline, &in_pipeline, true),
        ("EXECUTE unknown;", &by_the_script, false),
    ];
    for (script, answer, advised) in cases {
        let mut stage = Stage::in_mode(QueryMode::Prepared, script);
        let statements = stage.sent_messages().matches("P[").count();
        let parsed = [message(b'1', b""), ready(b'I')].concat();
        stage.answer(101, &parsed.repeat(statements));
        stage.sent_messages();
        answer(&mut stage);
        let told = stage.told();
        assert_eq!(told.contains("transaction pooling"), advised, "{told}");
        assert!(told.contains("aborted in command"), "{told}");
    }
}

/// The stage of a script whose commands are reported.
fn reported(mode: QueryMode, script: &str) -> Stage {
    let mut run = context(script, load());
    run.plan.query_mode = mode;
    run.plan.per_command = true;
    Stage::of(run).at_work()
}

/// Command, end and duration in ms of what was reported of commands.
fn commands(events: &[Event]) -> Vec<(u32, CommandEnd, u64)> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Command(record) => {
                Some((record.command, record.end, record.duration_ns / 1_000_000))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn each_command_is_timed_from_its_begin_to_what_it_waits_for() {
    let script = "\\set x 1\nSELECT :x;\n\\sleep 20 ms\nSELECT 2;";
    let mut stage = reported(QueryMode::Simple, script);
    stage.answer(107, &done("SELECT 1", b'I'));
    stage.input(127, Client::handle_timeout);
    stage.answer(130, &[error("40001", "no"), ready(b'I')].concat());
    let (events, _) = stage.events();
    assert_eq!(
        commands(&events)[..4],
        [
            (0, CommandEnd::Done, 0),
            (1, CommandEnd::Done, 7),
            (2, CommandEnd::Done, 20),
            (3, CommandEnd::Failed, 0),
        ]
    );
}

#[test]
fn in_a_pipeline_each_statement_has_its_own_completion() {
    let script = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline";
    let mut stage = reported(QueryMode::Extended, script);
    let part = [message(b'1', b""), executed()].concat();
    stage.answer(110, &part);
    stage.answer(140, &[part, ready(b'I')].concat());
    let (events, _) = stage.events();
    assert_eq!(
        commands(&events)[..4],
        [
            (0, CommandEnd::Done, 0),
            (1, CommandEnd::Done, 10),
            (2, CommandEnd::Done, 40),
            (3, CommandEnd::Done, 40),
        ]
    );
}

#[test]
fn without_a_report_of_commands_nothing_is_told_of_them() {
    let mut stage = Stage::released("\\set x 1\nSELECT :x;", load());
    stage.answer(107, &done("SELECT 1", b'I'));
    let (events, _) = stage.events();
    assert!(commands(&events).is_empty());
}

#[test]
fn debugging_tells_what_a_client_does_as_it_does_it() {
    let mut run = context("\\set x 1\nSELECT :x;", load());
    run.plan.debug = true;
    let mut stage = Stage::of(run).at_work();
    stage.infos();
    stage.answer(105, &done("SELECT 1", b'I'));
    assert_eq!(
        stage.infos()[..4],
        [
            "client 0 receiving",
            "client 0 executing script \"test.sql\"",
            "client 0 executing \\set x 1",
            "client 0 sending SELECT 1;",
        ]
    );
}

#[test]
fn a_new_connection_prepares_its_statements_anew() {
    let reconnect = Load {
        reconnect: true,
        ..load()
    };
    let mut run = context("SELECT 1;", reconnect);
    run.plan.query_mode = QueryMode::Prepared;
    let mut stage = Stage::of(run).at_work();
    let parsed = [message(b'1', b""), ready(b'I')].concat();
    let done = [executed(), ready(b'I')].concat();
    for ms in [110, 120] {
        stage.log_in(ms);
        assert_eq!(stage.sent_messages(), "P[\"P_0\", \"SELECT 1;\"] S[]");
        stage.answer(ms + 1, &parsed);
        assert_eq!(stage.sent_messages(), "B[\"P_0\"] D[\"P\"] E[] S[]");
        stage.answer(ms + 2, &done);
        stage.close(ms + 3);
    }
    assert_eq!(stage.transactions().len(), 2);
}
