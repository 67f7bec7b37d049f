//! Whole runs in virtual time: clients against a server that is a few numbers, their records
//! through the collector, and the figures that come out of it. Nothing waits, so that a run of a
//! minute takes a moment and its figures are exact.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};

use super::tests::{context, done, error, load, message, ready};
use super::*;
use crate::collector::{Collector, CollectorPlan, Keepers, Progress as Shown};
use crate::event::{Announcement, ToCollector};
use crate::plan::{Load, StopRule};
use crate::result::Measured;
use crate::transport::Security;

/// How the server treats one client: how long a connect takes it, and each of its commands.
pub(crate) struct Treatment {
    pub(crate) connect_ms: u64,
    pub(crate) answer: Box<dyn FnMut(u64) -> Answer>,
}

/// What the server does with a command, given the time at which it comes (ms).
pub(crate) enum Answer {
    /// Answers after so many ms.
    Done(u64),
    /// Answers after so many ns.
    DoneAfterNs(u64),
    /// Refuses after so many ms.
    Error(u64),
}

fn steady(connect_ms: u64, service_ms: u64) -> Treatment {
    Treatment {
        connect_ms,
        answer: Box::new(move |_| Answer::Done(service_ms)),
    }
}

/// Something that happens to a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Reply(Vec<u8>),
    Timeout,
    Turn,
    Start,
    WindowEnd,
    Stop,
}

struct Simulation {
    run: RunContext,
    window: Window,
    clients: Vec<(Client, Treatment)>,
    /// By time (ns), then in the order in which they were planned.
    agenda: BinaryHeap<Reverse<(u64, u64, usize, Happening)>>,
    planned: u64,
    choose: Generator,
    recorder: Recorder,
    delays: Delays,
    told: Vec<SqlState>,
    notices: Sender<Notice>,
    reports: Receiver<ToCollector>,
    moments: Vec<Announcement>,
}

/// Runs `SELECT 1;` with one client for each treatment. The clients are released at 1 s, or when
/// the last has connected. `stop_ms` is when a stop signal comes, counted from there.
pub(crate) fn simulate(load: Load, treatments: Vec<Treatment>, stop_ms: Option<u64>) -> Measured {
    let load = Load {
        clients: treatments.len() as u32,
        ..load
    };
    let run = context("SELECT 1;", load);
    let (sender, reports) = unbounded();
    let (_, emptied) = unbounded();
    let (notices, _) = unbounded();
    let clients = (0..).zip(treatments);
    let mut simulation = Simulation {
        clients: clients
            .map(|(id, treatment)| (Client::new(id, 0, &run), treatment))
            .collect(),
        window: Window::default(),
        agenda: BinaryHeap::new(),
        planned: 0,
        choose: run.choose_generator(0),
        recorder: Recorder::new(0, sender, emptied, run.clock.clone()),
        delays: Delays::default(),
        told: Vec::new(),
        notices,
        reports,
        moments: Vec::new(),
        run,
    };
    simulation.connect();
    simulation.start(stop_ms);
    simulation.play();
    simulation.collect()
}

impl Simulation {
    fn connect(&mut self) {
        if self.run.plan.load.reconnect {
            return;
        }
        for client in 0..self.clients.len() {
            self.input(0, client, Client::connect);
        }
        self.play();
    }

    fn start(&mut self, stop_ms: Option<u64>) {
        let start = self.run.clock.now().nanos().max(1_000_000_000);
        let lead_in = self.run.plan.load.lead_in.total();
        if let Some(schedule) = &self.run.schedule {
            let start = Timestamp::from_nanos(start);
            schedule.start(start, start + lead_in);
        }
        let begins = Timestamp::from_nanos(start) + lead_in;
        self.moments.push(Announcement::WindowBegins(begins));
        self.window = Window::starting_at(Timestamp::from_nanos(start), &self.run.plan.load);
        for client in 0..self.clients.len() {
            self.plan(start, client, Happening::Start);
            if let Some(end) = self.window.end() {
                self.plan(end.nanos(), client, Happening::WindowEnd);
            }
            if let Some(stop_ms) = stop_ms {
                self.plan(start + stop_ms * 1_000_000, client, Happening::Stop);
            }
        }
    }

    fn plan(&mut self, at_ns: u64, client: usize, happening: Happening) {
        self.planned += 1;
        self.agenda
            .push(Reverse((at_ns, self.planned, client, happening)));
    }

    fn play(&mut self) {
        while let Some(Reverse((now, _, client, happening))) = self.agenda.pop() {
            match happening {
                Happening::Reply(bytes) => {
                    self.input(now, client, |c, env| c.handle_input(&bytes, env));
                }
                Happening::Timeout => {
                    let deadline = self.clients[client].0.poll_timeout();
                    if deadline == Some(Timestamp::from_nanos(now)) {
                        self.input(now, client, Client::handle_timeout);
                    }
                }
                Happening::Turn => self.input(now, client, Client::handle_timeout),
                Happening::Start => self.input(now, client, Client::handle_start),
                Happening::WindowEnd => self.input(now, client, Client::handle_window_end),
                Happening::Stop => {
                    if !self.window.stopping {
                        let moment = Timestamp::from_nanos(now);
                        self.window.stop(moment);
                        self.moments.push(Announcement::WindowEnds(moment));
                    }
                    self.input(now, client, Client::handle_stop);
                }
            }
        }
    }

    /// Lets a client act, then plays its socket and its server.
    fn input(
        &mut self,
        now: u64,
        client: usize,
        act: impl FnOnce(&mut Client, &mut Environment<'_>),
    ) {
        self.act(now, client, act);
        loop {
            self.serve(now, client);
            match self.clients[client].0.take_action() {
                Some(Action::Open) => self.act(now, client, |client, env| {
                    client.handle_transport_ready(Security::Plain, env);
                }),
                Some(Action::Close) => self.act(now, client, Client::handle_closed),
                Some(Action::Spawn(_)) => unreachable!("the script has no shell command"),
                Some(Action::Yield) => self.plan(now, client, Happening::Turn),
                None => break,
            }
        }
        if let Some(deadline) = self.clients[client].0.poll_timeout() {
            self.plan(deadline.nanos(), client, Happening::Timeout);
        }
    }

    fn act(
        &mut self,
        now: u64,
        client: usize,
        act: impl FnOnce(&mut Client, &mut Environment<'_>),
    ) {
        let stamp = Timestamp::from_nanos(now);
        self.run.clock.set(stamp);
        act(
            &mut self.clients[client].0,
            &mut Environment {
                run: &self.run,
                window: &self.window,
                stamp,
                choose: &mut self.choose,
                recorder: &mut self.recorder,
                delays: &mut self.delays,
                told: &mut self.told,
                notices: &self.notices,
            },
        );
    }

    fn serve(&mut self, now: u64, client: usize) {
        let (speaker, treatment) = &mut self.clients[client];
        let sent = speaker.output().to_vec();
        speaker.consume_output(sent.len());
        const MS: u64 = 1_000_000;
        let (after_ns, reply) = match sent.first() {
            None | Some(b'X') => return,
            Some(b'Q') => match (treatment.answer)(now / MS) {
                Answer::Done(ms) => (ms * MS, done("SELECT 1", b'I')),
                Answer::DoneAfterNs(ns) => (ns, done("SELECT 1", b'I')),
                Answer::Error(ms) => (ms * MS, [error("22012", "no"), ready(b'I')].concat()),
            },
            Some(_) => {
                let welcome = [message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat();
                (treatment.connect_ms * MS, welcome)
            }
        };
        self.plan(now + after_ns, client, Happening::Reply(reply));
    }

    fn collect(mut self) -> Measured {
        self.recorder.flush();
        let load = &self.run.plan.load;
        let plan = CollectorPlan {
            program: "pgmark",
            clients: load.clients,
            workers: 1,
            scripts: 1,
            commands: Vec::new(),
            stop: load.stop,
            rate: None,
            lead_in: load.lead_in,
            latency_limit: None,
            with_retries: false,
            watches_outages: false,
            progress: Shown::Silent,
        };
        let mut collector = Collector::new(
            plan,
            self.run.clock.clone(),
            Keepers::default(),
            Box::new(std::io::sink()),
        );
        self.moments
            .into_iter()
            .for_each(|moment| collector.hear(moment));
        for report in self.reports.try_iter() {
            collector.take(report);
        }
        collector.finish()
    }
}

/// A load that ends after so much time.
pub(crate) fn time(seconds: u64) -> Load {
    Load {
        stop: StopRule::Time(Duration::from_secs(seconds)),
        ..load()
    }
}

fn close_to(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= expected * 0.005,
        "{found} instead of {expected}"
    );
}

#[test]
fn a_slow_connect_changes_neither_latency_nor_throughput_nor_the_window() {
    for connect_ms in [0, 1_000, 1_900] {
        let measured = simulate(time(5), vec![steady(connect_ms, 5), steady(0, 5)], None);
        close_to(measured.tps(), 400.0);
        close_to(measured.total.latency.mean_ns(), 5e6);
        close_to(measured.average_concurrency(), 2.0);
        assert_eq!(measured.window.unwrap().nanos(), 5_000_000_000);
        let initial = measured.initial_connection_time().unwrap();
        assert_eq!(initial, Duration::from_millis(connect_ms.max(1_000)));
    }
}

#[test]
fn connecting_for_each_transaction_is_excluded_exactly() {
    let reconnect = Load {
        reconnect: true,
        ..time(5)
    };
    let measured = simulate(reconnect, vec![steady(100, 10), steady(100, 10)], None);
    close_to(measured.total.latency.mean_ns(), 10e6);
    close_to(measured.tps(), 2.0 * 45.0 / 5.0);
    close_to(measured.tps_excluding_reconnection(), 200.0);
    close_to(measured.average_concurrency(), 2.0);
}

#[test]
fn stragglers_weigh_on_their_own_client_only() {
    let measured = simulate(time(2), vec![steady(0, 900), steady(0, 900)], None);
    close_to(measured.tps(), 2.0 * 3.0 / 2.7);
    let hangs = Treatment {
        connect_ms: 0,
        answer: Box::new(|now_ms| Answer::Done(if now_ms == 5_990 { 3_000 } else { 10 })),
    };
    let measured = simulate(time(5), vec![steady(0, 10), hangs], None);
    close_to(measured.tps(), 100.0 + 500.0 / 7.99);
}

#[test]
fn an_aborted_client_lowers_throughput_and_concurrency() {
    let dies = Treatment {
        connect_ms: 0,
        answer: Box::new(|now_ms| match now_ms {
            2_000.. => Answer::Error(0),
            _ => Answer::Done(50),
        }),
    };
    let measured = simulate(time(5), vec![steady(0, 50), dies], None);
    close_to(measured.tps(), 20.0 + 4.0);
    close_to(measured.average_concurrency(), 1.2);
    assert_eq!(measured.clients[1].end, ClientEnd::Aborted);
    assert_eq!(measured.clients[0].end, ClientEnd::Finished);
}

#[test]
fn when_the_last_client_dies_the_window_ends() {
    let dies = Treatment {
        connect_ms: 0,
        answer: Box::new(|now_ms| match now_ms {
            2_000.. => Answer::Error(0),
            _ => Answer::Done(50),
        }),
    };
    let measured = simulate(time(5), vec![dies], None);
    close_to(measured.tps(), 20.0);
    assert_eq!(measured.window.unwrap().nanos(), 1_000_000_000);
}

#[test]
fn a_stop_signal_ends_the_window() {
    let measured = simulate(time(60), vec![steady(0, 20)], Some(5_000));
    close_to(measured.tps(), 50.0);
    close_to(measured.window.unwrap().nanos() as f64, 5e9);
}

#[test]
fn with_a_number_of_transactions_all_are_divided_by_the_time_of_all() {
    let hundred = Load {
        stop: StopRule::Transactions(100),
        ..load()
    };
    let measured = simulate(hundred, vec![steady(0, 1), steady(0, 10)], None);
    close_to(measured.tps(), 200.0);
    close_to(measured.average_concurrency(), 1.1);
}
