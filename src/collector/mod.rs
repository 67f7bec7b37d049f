//! The collector: the one thread that hears all workers. It keeps the figures, writes the log, and
//! is the only writer of standard error during a run. It never looks at a socket or a script, and
//! never sends anything to a worker but its emptied batches.
//!
//! [`Collector::take`] and [`Collector::finish`] are the whole of it; [`Collector::run`] only feeds
//! them from a channel.

mod console;
mod intervals;
mod log;
mod progress;
mod timeline;

pub use log::Log;
pub use progress::Progress;

use std::io::Write;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use self::console::Console;
use self::intervals::{Interval, Intervals};
use self::progress::SoFar;
use self::timeline::Timeline;
use crate::event::{
    Batch, ConnectionRecord, Event, Level, Message, Phase, Report, SpanKind, TransactionRecord,
    WorkerRecord,
};
use crate::plan::StopRule;
use crate::result::{Connections, Measured, Window};
use crate::stats::{Series, Stats};
use crate::time::{Clock, Timestamp};

/// What the collector must know of a run.
#[derive(Clone, Debug)]
pub struct CollectorPlan {
    /// The name that messages begin with.
    pub program: &'static str,
    /// Number of clients.
    pub clients: u32,
    /// Number of worker threads.
    pub workers: u32,
    /// Number of scripts.
    pub scripts: usize,
    /// When the run is to end.
    pub stop: StopRule,
    /// From the release of the clients to the beginning of the window: ramp and warm-up.
    pub lead_in: Duration,
    /// Processed transactions slower than this are late.
    pub latency_limit: Option<Duration>,
    /// Whether a transaction may be tried again, so that retries are worth showing.
    pub with_retries: bool,
    /// What is shown while the run goes on.
    pub progress: Progress,
}

/// Hears all reports of a run and keeps what is to be known of it.
pub struct Collector {
    plan: CollectorPlan,
    clock: Clock,
    console: Console,
    log: Option<Log>,
    log_flushed_at: Timestamp,
    begins: Option<Timestamp>,
    told_end: Option<Timestamp>,
    first_connect_at: Option<Timestamp>,
    complete_through: Vec<Timestamp>,
    clients: Vec<Timeline>,
    scripts: Vec<Stats>,
    before_window: u64,
    connections: Connections,
    workers: Vec<WorkerRecord>,
    series: Series,
    intervals: Option<Intervals>,
    so_far: SoFar,
}

/// How long to wait for a report before the live line is redrawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How long a row of the log may stay in memory.
const LOG_FLUSH: Duration = Duration::from_secs(1);

impl Collector {
    /// A collector that writes `log`, if there is one, and says what it has to say on `stderr`.
    pub fn new(
        plan: CollectorPlan,
        clock: Clock,
        log: Option<Log>,
        stderr: Box<dyn Write + Send>,
    ) -> Self {
        let expected_end_ns = match plan.stop {
            StopRule::Time(whole) => Some(nanos(whole)),
            StopRule::Transactions(_) => None,
        };
        let live = plan.progress == Progress::Live;
        let interval = plan.progress.interval();
        Collector {
            clock,
            console: Console::new(plan.program, stderr, live),
            log,
            log_flushed_at: Timestamp::ZERO,
            begins: None,
            told_end: None,
            first_connect_at: None,
            complete_through: vec![Timestamp::ZERO; plan.workers as usize],
            clients: (0..plan.clients)
                .map(|_| Timeline::new(plan.scripts))
                .collect(),
            scripts: vec![Stats::default(); plan.scripts],
            before_window: 0,
            connections: Connections::default(),
            workers: Vec::new(),
            series: Series::new(),
            intervals: interval.map(|length| Intervals::new(nanos(length), expected_end_ns)),
            so_far: SoFar::default(),
            plan,
        }
    }

    /// Takes reports until all senders are gone. Emptied batches go back through `returns`, by
    /// number of the worker.
    pub fn run(mut self, reports: &Receiver<Report>, returns: &[Sender<Vec<Event>>]) -> Measured {
        loop {
            match reports.recv_timeout(REDRAW) {
                Ok(report) => {
                    if let Some((worker, emptied)) = self.take(report)
                        && let Some(back) = returns.get(worker as usize)
                    {
                        // A worker that is gone, or has buffers enough, needs none.
                        let _ = back.try_send(emptied);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
            self.show_connecting();
        }
    }

    /// Takes one report. An emptied batch comes back, with the number of its worker.
    pub fn take(&mut self, report: Report) -> Option<(u32, Vec<Event>)> {
        match report {
            Report::Batch(batch) => return Some(self.take_batch(batch)),
            Report::Message(message) => self.console.message(&message),
            Report::WindowBegins(begins) => self.begin_window(begins),
            Report::WindowEnds(ends) => {
                self.told_end = Some(self.told_end.map_or(ends, |earlier| earlier.min(ends)));
            }
        }
        None
    }

    /// What was measured, once every report has been taken.
    pub fn finish(mut self) -> Measured {
        let window = self.window();
        self.show_rest(window);
        self.console.clear();
        let log = self.log.take().map(|mut log| {
            log.flush();
            tell_new_failure(&mut log, &mut self.console);
            log.finish()
        });
        let ends = window.map_or(Timestamp::MAX, |window| window.ends);
        self.connections.failed = self.clients.iter().map(|c| c.failed_connects(ends)).sum();
        let rows_for = window.unwrap_or(Window::EMPTY);
        let mut total = Stats::default();
        self.scripts.iter().for_each(|script| total.merge(script));
        Measured {
            window,
            first_connect_at: self
                .first_connect_at
                .filter(|&first| window.is_none_or(|window| first < window.released_at)),
            clients: self
                .clients
                .into_iter()
                .map(|c| c.finish(&rows_for))
                .collect(),
            scripts: self.scripts,
            total,
            before_window: self.before_window,
            connections: self.connections,
            workers: self.workers,
            series: self.series,
            log,
        }
    }

    fn begin_window(&mut self, begins: Timestamp) {
        self.begins = Some(begins);
        if let Some(log) = &mut self.log {
            log.begin_window(begins);
        }
    }

    fn take_batch(&mut self, batch: Batch) -> (u32, Vec<Event>) {
        let Batch {
            worker,
            mut events,
            complete_through,
        } = batch;
        for event in events.drain(..) {
            match event {
                Event::Transaction(record) => self.transaction(&record),
                Event::Connection(span) => self.connection(span),
                Event::ClientDone(record) => self.clients[record.client as usize].done(record),
                Event::WorkerDone(record) => self.worker_done(record),
            }
        }
        let known = &mut self.complete_through[worker as usize];
        *known = (*known).max(complete_through);
        self.show_closed_intervals();
        self.tend_log(complete_through);
        (worker, events)
    }

    fn worker_done(&mut self, record: WorkerRecord) {
        self.complete_through[record.worker as usize] = Timestamp::MAX;
        self.workers.push(record);
    }

    fn transaction(&mut self, record: &TransactionRecord) {
        if let Some(log) = &mut self.log {
            log.write(record);
        }
        self.clients[record.client as usize].transaction(record);
        match record.phase {
            Phase::Ramp | Phase::Warmup => self.before_window += 1,
            Phase::Run => self.transaction_in_window(record),
        }
    }

    fn transaction_in_window(&mut self, record: &TransactionRecord) {
        let limit_ns = self.plan.latency_limit.map(nanos);
        let at_ns = record
            .finished_at
            .nanos_since(self.begins.unwrap_or_default());
        self.scripts[usize::from(record.script)].record(record, limit_ns);
        self.series.record(at_ns, record);
        if let Some(intervals) = &mut self.intervals {
            intervals.record(at_ns, record, limit_ns);
        }
    }

    fn connection(&mut self, span: ConnectionRecord) {
        match span.kind {
            SpanKind::Connect => {
                let time_ns = span.finished_at.nanos_since(span.started_at);
                match self.begins.is_some_and(|begins| span.started_at >= begins) {
                    true => self.connections.in_window.record(time_ns),
                    false => self.connections.initial.record(time_ns),
                }
                self.note_connect(span.started_at);
            }
            SpanKind::ConnectFailed | SpanKind::ConnectCut => self.note_connect(span.started_at),
            SpanKind::OnConnect | SpanKind::Disconnect => {}
        }
        self.clients[span.client as usize].connection(span, self.begins);
    }

    fn note_connect(&mut self, started_at: Timestamp) {
        let first = self.first_connect_at.get_or_insert(started_at);
        *first = (*first).min(started_at);
    }

    fn window(&self) -> Option<Window> {
        let begins = self.begins?;
        let lead_in_ns = nanos(self.plan.lead_in);
        Some(Window {
            released_at: Timestamp::from_nanos(begins.nanos().saturating_sub(lead_in_ns)),
            begins,
            ends: timeline::end_of_window(self.plan.stop, begins, self.told_end, &self.clients),
        })
    }

    /// Shows the intervals of which no worker has anything left to say. A worker that is done has
    /// said its last word, but the end of the window is known only when all are.
    fn show_closed_intervals(&mut self) {
        let Some(begins) = self.begins else { return };
        let known = self
            .complete_through
            .iter()
            .min()
            .copied()
            .unwrap_or_default();
        if known == Timestamp::MAX {
            return;
        }
        let known_ns = known.nanos_since(begins);
        while let Some(closed) = self.intervals.as_mut().and_then(|i| i.close_next(known_ns)) {
            self.show(&closed);
        }
    }

    /// Shows what is left, up to the end of the window or of its last transaction.
    fn show_rest(&mut self, window: Option<Window>) {
        let Some(window) = window else { return };
        let last = timeline::last_transaction_ends(&self.clients).unwrap_or_default();
        let end_ns = window.ends.max(last).nanos_since(window.begins);
        while let Some(closed) = self.intervals.as_mut().and_then(|i| i.close_rest(end_ns)) {
            self.show(&closed);
        }
    }

    fn show(&mut self, interval: &Interval) {
        self.so_far.add(interval);
        match self.plan.progress {
            Progress::Silent => {}
            Progress::Lines(_) => {
                self.console
                    .line(&progress::line(interval, self.plan.with_retries));
            }
            Progress::Live => {
                let line = progress::live_line(interval, &self.so_far, self.plan.stop);
                self.console.show(line);
            }
        }
    }

    fn show_connecting(&mut self) {
        let connected = self.connections.initial.count();
        if let (Progress::Live, None, Some(first)) =
            (self.plan.progress, self.begins, self.first_connect_at)
        {
            let elapsed = self.clock.now() - first;
            let line = progress::connecting_line(connected, self.clients.len(), elapsed);
            self.console.show(line);
        }
    }

    /// Gives rows to the file once a second, so that a reader can follow and little is lost by
    /// accident.
    fn tend_log(&mut self, now: Timestamp) {
        let Some(log) = &mut self.log else { return };
        if now != Timestamp::MAX && now - self.log_flushed_at >= LOG_FLUSH {
            self.log_flushed_at = now;
            log.flush();
        }
        tell_new_failure(log, &mut self.console);
    }
}

/// A log that fails is told at once; what is measured goes on without it.
fn tell_new_failure(log: &mut Log, console: &mut Console) {
    if let Some(failure) = log.new_failure() {
        console.message(&Message {
            level: Level::Error,
            text: format!("{failure}; the run goes on without a log"),
        });
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
