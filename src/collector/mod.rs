//! The collector: the one thread that hears all workers. It keeps the figures, writes the logs, and
//! is the only writer of standard error during a run. It never looks at a socket or a script, and
//! never sends anything to a worker but its emptied batches.
//!
//! [`Collector::take`], [`Collector::hear`] and [`Collector::finish`] are the whole of it;
//! [`Collector::run`] only feeds them from channels.

mod by_interval;
mod console;
mod course;
mod intervals;
mod keepers;
mod listener;
mod log;
mod outages;
mod progress;
#[cfg(test)]
pub(crate) mod testing;
mod timeline;

pub use course::CourseKeeper;
pub use keepers::Keepers;
pub use listener::{Known, Listener};
pub use log::{Log, LogContext, is_further_file, open_hdr, open_intervals, open_log, open_tries};
pub use progress::Progress;

use std::io::Write;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use self::console::Console;
use self::intervals::{Interval, Intervals};
use self::outages::OutageWatch;
use self::progress::SoFar;
use self::timeline::Timeline;
use crate::event::{
    Announcement, Batch, CommandRecord, ConnectionRecord, Event, Level, Message, SpanKind,
    ToCollector, TransactionRecord, WorkerRecord,
};
use crate::plan::{LeadIn, StopRule};
use crate::result::{Connections, Course, LogResult, Measured, Window};
use crate::stats::{CommandStats, Series, Stats};
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
    /// Number of commands of each script, where commands are reported; else empty.
    pub commands: Vec<usize>,
    /// When the run is to end.
    pub stop: StopRule,
    /// Transactions a second that are due, if they are due by a schedule.
    pub rate: Option<f64>,
    /// What comes before the window, from the release of the clients.
    pub lead_in: LeadIn,
    /// Processed transactions slower than this are late.
    pub latency_limit: Option<Duration>,
    /// Whether a transaction may be tried again, so that retries are worth showing.
    pub with_retries: bool,
    /// Clients that lose their connections go on, and outages are reported.
    pub watches_outages: bool,
    /// What is shown while the run goes on.
    pub progress: Progress,
}

/// Hears all reports of a run and keeps what is to be known of it.
pub struct Collector {
    plan: CollectorPlan,
    clock: Clock,
    console: Console,
    keepers: Keepers,
    logs_flushed_at: Timestamp,
    /// Every client has begun its part of the window, or is done.
    lead_in_over: bool,
    begins: Option<Timestamp>,
    told_end: Option<Timestamp>,
    first_connect_at: Option<Timestamp>,
    complete_through: Vec<Timestamp>,
    clients: Vec<Timeline>,
    scripts: Vec<Stats>,
    commands: Vec<Vec<CommandStats>>,
    before_window: u64,
    connections: Connections,
    workers: Vec<WorkerRecord>,
    series: Series,
    intervals: Option<Intervals>,
    /// Intervals of the time before the window, from the release of the clients.
    lead_in_intervals: Option<Intervals>,
    so_far: SoFar,
    outages: Option<OutageWatch>,
}

/// How long to wait for a report before the live line is redrawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How long a row of a log may stay in memory.
const LOG_FLUSH: Duration = Duration::from_secs(1);

impl Collector {
    /// A collector that lets `keepers` keep what they are for and says what it has to say on `stderr`.
    pub fn new(
        plan: CollectorPlan,
        clock: Clock,
        keepers: Keepers,
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
            keepers,
            logs_flushed_at: Timestamp::ZERO,
            lead_in_over: plan.lead_in.total().is_zero(),
            begins: None,
            told_end: None,
            first_connect_at: None,
            complete_through: vec![Timestamp::ZERO; plan.workers as usize],
            clients: (0..plan.clients)
                .map(|_| Timeline::new(plan.scripts))
                .collect(),
            scripts: vec![Stats::default(); plan.scripts],
            commands: plan
                .commands
                .iter()
                .map(|&count| vec![CommandStats::default(); count])
                .collect(),
            before_window: 0,
            connections: Connections::default(),
            workers: Vec::new(),
            series: Series::new(),
            intervals: interval.map(|length| Intervals::new(nanos(length), expected_end_ns)),
            lead_in_intervals: match (live, interval) {
                (true, Some(length)) => Some(Intervals::new(nanos(length), None)),
                (true | false, _) => None,
            },
            so_far: SoFar::default(),
            outages: plan.watches_outages.then(|| OutageWatch::new(plan.clients)),
            plan,
        }
    }

    /// Takes reports until all their senders are gone. What the main thread said before a report
    /// was sent is heard before it. Emptied batches go back through `returns`, by number of the
    /// worker.
    pub fn run(
        mut self,
        reports: &Receiver<ToCollector>,
        announcements: &Receiver<Announcement>,
        returns: &[Sender<Vec<Event>>],
    ) -> Measured {
        loop {
            let received = reports.recv_timeout(REDRAW);
            announcements.try_iter().for_each(|it| self.hear(it));
            match received {
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
    pub fn take(&mut self, report: ToCollector) -> Option<(u32, Vec<Event>)> {
        match report {
            ToCollector::Batch(batch) => return Some(self.take_batch(batch)),
            ToCollector::Message(message) => self.console.message(&message),
        }
        None
    }

    /// Hears what the main thread says.
    pub fn hear(&mut self, announcement: Announcement) {
        match announcement {
            Announcement::WindowBegins(begins) => {
                self.begins = Some(begins);
                let lead_in_ns = nanos(self.plan.lead_in.total());
                let released = Timestamp::from_nanos(begins.nanos().saturating_sub(lead_in_ns));
                if let Some(outages) = &mut self.outages {
                    let ends = match self.plan.stop {
                        StopRule::Time(time) => begins + time,
                        StopRule::Transactions(_) => Timestamp::MAX,
                    };
                    outages.begin_window(released, begins..ends);
                }
                self.keepers.hear(|keeper| keeper.begin_window(begins));
            }
            Announcement::WindowEnds(ends) => {
                self.told_end = Some(self.told_end.map_or(ends, |earlier| earlier.min(ends)));
                if let Some(outages) = &mut self.outages {
                    outages.end_window(ends);
                }
                self.keepers.hear(|keeper| keeper.end_window(ends));
            }
            Announcement::Checkpoints { at, begun } => {
                self.keepers.hear(|keeper| keeper.checkpoints(at, begun));
            }
            Announcement::CheckpointsUnknown => {
                self.keepers.hear(|keeper| keeper.checkpoints_unknown());
            }
            Announcement::Message(message) => self.console.message(&message),
        }
    }

    /// What was measured, once every report has been taken.
    pub fn finish(mut self) -> Measured {
        let window = self.window();
        self.show_rest(window);
        self.console.clear();
        let (logs, course) = self.finish_keepers(window);
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
            commands: self.commands,
            before_window: self.before_window,
            connections: self.connections,
            workers: self.workers,
            series: self.series,
            course,
            outages: self.outages.map(|outages| outages.finish(ends)),
            logs,
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
                Event::Transaction(record) => self.transaction(worker, &record),
                Event::Try(record) => self.keepers.hear(|keeper| keeper.tried(&record)),
                Event::Connection(span) => self.connection(span),
                Event::Command(record) => self.command(&record),
                Event::Loss(record) => {
                    if let Some(outages) = &mut self.outages {
                        outages.loss(&record);
                    }
                }
                Event::ClientDone(record) => self.clients[record.client as usize].done(record),
                Event::WorkerDone(record) => self.worker_done(record),
            }
        }
        let known = &mut self.complete_through[worker as usize];
        *known = (*known).max(complete_through);
        self.close_intervals();
        self.tend_logs(complete_through);
        (worker, events)
    }

    fn worker_done(&mut self, record: WorkerRecord) {
        self.complete_through[record.worker as usize] = Timestamp::MAX;
        self.workers.push(record);
    }

    fn transaction(&mut self, worker: u32, record: &TransactionRecord) {
        self.keepers
            .hear(|keeper| keeper.transaction(worker, record));
        self.clients[record.client as usize].transaction(record);
        if let Some(outages) = &mut self.outages {
            outages.transaction(record);
        }
        match record.phase.is_measured() {
            true => self.transaction_in_window(record),
            false => self.transaction_before_window(record),
        }
    }

    fn transaction_before_window(&mut self, record: &TransactionRecord) {
        self.before_window += 1;
        let since_release_ns = self.since_release_ns(record.finished_at);
        if let Some(intervals) = &mut self.lead_in_intervals {
            intervals.at(since_release_ns).record(record, None);
        }
    }

    /// Time since the clients were released, ns.
    fn since_release_ns(&self, moment: Timestamp) -> u64 {
        let begins = self.begins.unwrap_or_default();
        (moment + self.plan.lead_in.total()).nanos_since(begins)
    }

    fn transaction_in_window(&mut self, record: &TransactionRecord) {
        let limit_ns = self.plan.latency_limit.map(nanos);
        let at_ns = record
            .finished_at
            .nanos_since(self.begins.unwrap_or_default());
        self.scripts[usize::from(record.script)].record(record, limit_ns);
        self.series.record(at_ns, record);
        if let Some(intervals) = &mut self.intervals {
            intervals.at(at_ns).record(record, limit_ns);
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        let commands = self.commands.get_mut(usize::from(record.script));
        let stats = commands.and_then(|commands| commands.get_mut(record.command as usize));
        if let (true, Some(stats)) = (record.phase.is_measured(), stats) {
            stats.record(record.end, record.duration_ns);
        }
    }

    fn connection(&mut self, span: ConnectionRecord) {
        self.keepers.hear(|keeper| keeper.connection(&span));
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
        let lead_in_ns = nanos(self.plan.lead_in.total());
        Some(Window {
            released_at: Timestamp::from_nanos(begins.nanos().saturating_sub(lead_in_ns)),
            begins,
            ends: timeline::end_of_window(self.plan.stop, begins, self.told_end, &self.clients),
        })
    }

    /// Shows and logs the intervals of which no worker has anything left to say. A worker that is
    /// done has said its last word, but the end of the window is known only when all are.
    fn close_intervals(&mut self) {
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
        if let Some(outages) = &mut self.outages {
            outages.complete_through(known);
        }
        self.show_lead_in(known);
        let known_ns = known.nanos_since(begins);
        while let Some(closed) = self.intervals.as_mut().and_then(|i| i.close_next(known_ns)) {
            self.show(&closed);
        }
        if self.keepers.are_none() {
            return;
        }
        self.lead_in_over =
            self.lead_in_over || self.clients.iter().all(Timeline::has_left_lead_in);
        let due_through = self.clients.iter().map(Timeline::due_through).min();
        let known = Known {
            through: known,
            due_through: due_through.unwrap_or_default(),
            lead_in_over: self.lead_in_over,
        };
        self.keepers.hear(|keeper| keeper.complete_through(known));
    }

    /// Shows what is left, up to the end of the window or of its last transaction.
    fn show_rest(&mut self, window: Option<Window>) {
        let Some(window) = window else { return };
        let end_ns = self.last_moment(window).nanos_since(window.begins);
        while let Some(closed) = self.intervals.as_mut().and_then(|i| i.close_rest(end_ns)) {
            self.show(&closed);
        }
    }

    /// The end of the window or of its last transaction, whichever is later.
    fn last_moment(&self, window: Window) -> Timestamp {
        let last = timeline::last_transaction_ends(&self.clients).unwrap_or_default();
        window.ends.max(last)
    }

    fn show(&mut self, interval: &Interval) {
        self.so_far.add(interval);
        match self.plan.progress {
            Progress::Silent => {}
            Progress::Lines(lines) => {
                let at = self.begins.unwrap_or_default() + Duration::from_nanos(interval.ends_ns());
                let unix_ns = lines.unix_time.then(|| self.clock.unix_ns(at));
                let mut line = progress::line(interval, unix_ns, &self.plan);
                if lines.percentile {
                    line += &progress::percentile(interval);
                }
                self.console.line(&line);
            }
            Progress::Live => {
                let ends =
                    self.begins.unwrap_or_default() + Duration::from_nanos(interval.ends_ns());
                let outage = self.outages.as_ref().and_then(|outages| outages.now(ends));
                let line = match outage {
                    Some(outage) => progress::outage_line(interval, &outage, &self.plan),
                    None => progress::live_line(interval, &self.so_far, &self.plan),
                };
                self.console.show(line);
            }
        }
    }

    fn show_lead_in(&mut self, known: Timestamp) {
        let known_ns = self
            .since_release_ns(known)
            .min(nanos(self.plan.lead_in.total()));
        let intervals = &mut self.lead_in_intervals;
        while let Some(closed) = intervals.as_mut().and_then(|i| i.close_next(known_ns)) {
            let line = progress::lead_in_line(&closed, self.plan.lead_in);
            self.console.show(line);
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

    /// Gives rows to the files once a second, so that a reader can follow and little is lost by
    /// accident.
    fn tend_logs(&mut self, now: Timestamp) {
        if now != Timestamp::MAX && now - self.logs_flushed_at >= LOG_FLUSH {
            self.logs_flushed_at = now;
            self.keepers.flush();
        }
        self.tell_new_failures();
    }

    /// A log that fails is told at once; what is measured goes on without it.
    fn tell_new_failures(&mut self) {
        while let Some(failure) = self.keepers.new_failure() {
            self.console.message(&Message {
                level: Level::Error,
                text: format!("{failure}; the run goes on without it"),
            });
        }
    }

    /// Without a run there is nothing to keep, and the files stay as they were.
    fn finish_keepers(&mut self, window: Option<Window>) -> (Vec<LogResult>, Option<Course>) {
        let Some(window) = window else {
            return (Vec::new(), None);
        };
        let kept = self.keepers.finish(self.last_moment(window));
        self.tell_new_failures();
        kept
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::testing::{Memory, Story, at, transaction};
    use super::*;
    use crate::event::ClientEnd;
    use crate::event::{Abort, ClientRecord, CommandEnd, Outcome, Phase};
    use crate::plan::ProgressPlan;

    fn assert_near(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-6 * expected.abs(),
            "{found}, not {expected}"
        );
    }

    fn lines_each(seconds: u64) -> Progress {
        Progress::Lines(ProgressPlan {
            interval: Duration::from_secs(seconds),
            unix_time: false,
            percentile: true,
        })
    }

    #[test]
    fn stragglers_count_and_weigh_on_their_own_client_only() {
        // Two clients of 0.9 s, T 2: 3 / 2.7 + 3 / 2.7.
        let mut story = Story::of_seconds(2, 2);
        story.works(0, 900, 0, 2_000);
        story.works(1, 900, 0, 2_000);
        let measured = story.tell();
        assert_near(measured.tps(), 6.0 / 2.7);
        assert_near(measured.average_concurrency(), 2.0);

        // One works in 10 ms, the other hangs from 4.99 to 7.99 s, T 5: 100 + 500 / 7.99.
        let mut story = Story::of_seconds(2, 5);
        story.works(0, 10, 0, 5_000);
        story.works(1, 10, 0, 4_990);
        story.record(TransactionRecord {
            client: 1,
            ..transaction(4_990, 7_990)
        });
        let measured = story.tell();
        assert_near(measured.tps(), 100.0 + 500.0 / 7.99);
        assert_eq!(measured.window.map(|window| window.ends), Some(at(5_000)));
        assert_near(measured.average_concurrency(), 2.0);
    }

    #[test]
    fn a_dead_client_adds_what_it_did_over_the_whole_window() {
        // 20 transactions of 50 ms in the first of five seconds, beside a healthy client.
        let mut story = Story::of_seconds(2, 5);
        story.works(0, 50, 0, 5_000);
        story.works(1, 50, 0, 1_000);
        story.done(1, ClientEnd::Aborted, 1_000);
        let measured = story.tell();
        assert_near(measured.tps(), 4.0 + 20.0);
        assert_near(measured.average_concurrency(), 1.2);
        assert_eq!(measured.clients[1].end, ClientEnd::Aborted);
    }

    #[test]
    fn the_window_ends_when_the_last_client_is_dead_or_has_nothing_left_to_do() {
        let mut story = Story::of_seconds(2, 5);
        for (client, how, end) in [
            (0, ClientEnd::Aborted, 1_000),
            (1, ClientEnd::RanOut, 2_000),
        ] {
            story.works(client, 100, 0, end);
            story.done(client, how, end);
        }
        let measured = story.tell();
        assert_eq!(measured.window.map(|window| window.ends), Some(at(2_000)));
        assert_near(measured.tps(), 30.0 / 2.0);
    }

    #[test]
    fn a_stop_signal_ends_the_window() {
        let mut story = Story::of_seconds(1, 60);
        story.works(0, 10, 0, 5_000);
        story.told_end(5_000);
        assert_near(story.tell().tps(), 500.0 / 5.0);

        // With a number of transactions too, and what was under way then still counts.
        let mut story = Story::new(2, StopRule::Transactions(1_000));
        story.works(0, 10, 0, 5_000);
        story.record(TransactionRecord {
            client: 1,
            ..transaction(0, 6_000)
        });
        story.told_end(5_000);
        let measured = story.tell();
        assert_eq!(measured.window.map(|window| window.ends), Some(at(5_000)));
        assert_near(measured.tps(), 500.0 / 5.0 + 1.0 / 6.0);
    }

    #[test]
    fn with_a_number_of_transactions_the_slowest_client_is_the_measure() {
        // 100 each of 1 ms and 10 ms: 200 in one second, not 1000 + 100.
        let mut story = Story::new(2, StopRule::Transactions(100));
        for (client, each, end) in [(0, 1, 100), (1, 10, 1_000)] {
            story.works(client, each, 0, end);
            story.done(client, ClientEnd::Finished, end);
        }
        let measured = story.tell();
        assert_near(measured.tps(), 200.0);
        assert_eq!(measured.window.map(|window| window.ends), Some(at(1_000)));
    }

    #[test]
    fn a_signal_after_the_last_transaction_changes_nothing() {
        let mut story = Story::new(1, StopRule::Transactions(100));
        let end = story.works(0, 10, 0, 1_000);
        story.done(0, ClientEnd::Finished, end);
        story.told_end(1_500);
        assert_near(story.tell().tps(), 100.0);
    }

    #[test]
    fn reconnecting_is_taken_out_whole_also_where_the_end_cuts_it_off() {
        // 100 ms to connect and 10 ms to work, T 5: 45 transactions, 0.45 s of work.
        let mut story = Story::of_seconds(1, 5);
        story.reconnects(0, 100, 10, 5_000);
        let measured = story.tell();
        assert_near(measured.tps(), 45.0 / 5.0);
        assert_near(measured.tps_excluding_reconnection(), 100.0);
        assert_near(measured.average_concurrency(), 1.0);
        assert_near(measured.connections.in_window.mean_ns(), 1e8);
        assert_eq!(
            (
                measured.connections.in_window.count(),
                measured.connections.failed
            ),
            (45, 0)
        );
        assert_eq!(measured.first_connect_at, None);
        let time = measured.time_of_a_client().expect("time was spent");
        assert_near(time.connecting, 0.91);
        assert_near(time.in_transactions, 0.09);
    }

    /// With a connection each, the last transaction of the warm-up connects and ends after W1.
    #[test]
    fn connecting_for_the_warm_up_is_no_part_of_a_clients_time() {
        let mut story = Story::of_seconds(1, 1);
        story.span(0, SpanKind::Connect, -50, 300);
        story.record(TransactionRecord {
            phase: Phase::Warmup,
            ..transaction(300, 400)
        });
        story.span(0, SpanKind::Connect, 400, 500);
        story.record(transaction(500, 1_000));
        let measured = story.tell();
        let time = measured.time_of_a_client().expect("time was spent");
        assert_near(time.connecting, 100.0 / 600.0);
        assert_near(time.in_transactions, 500.0 / 600.0);
        assert_near(measured.average_concurrency(), 1.0);
    }

    /// The run of the report that began it all: a second in each connect, four clients.
    #[test]
    fn connecting_is_in_no_latency_and_in_no_throughput() {
        let run = |connects: [(i64, i64); 4]| {
            let mut story = Story::of_seconds(4, 5);
            for (client, (from, to)) in (0..).zip(connects) {
                story.span(client, SpanKind::Connect, from, to);
                story.works(client, 10, 0, 5_000);
            }
            story.tell()
        };
        let serial = run([
            (-4_000, -3_000),
            (-3_000, -2_000),
            (-2_000, -1_000),
            (-1_000, 0),
        ]);
        let at_once = run([(-1_000, 0); 4]);
        for measured in [&serial, &at_once] {
            assert_near(measured.tps(), 400.0);
            assert_near(measured.total.latency.mean_ns(), 1e7);
            // Little's law.
            assert_near(measured.tps() * measured.total.latency.mean_ns() / 1e9, 4.0);
            assert_near(measured.average_concurrency(), 4.0);
            assert_eq!(measured.connections.initial.count(), 4);
        }
        assert_eq!(
            serial.initial_connection_time(),
            Some(Duration::from_secs(4))
        );
        assert_eq!(
            at_once.initial_connection_time(),
            Some(Duration::from_secs(1))
        );
    }

    #[test]
    fn a_warm_up_transaction_delays_its_clients_part_of_the_window_and_does_not_count() {
        let mut story = Story::of_seconds(2, 5);
        story.works(0, 10, -500, 5_000);
        story.record(TransactionRecord {
            client: 1,
            ..transaction(-500, 1_000)
        });
        story.works(1, 10, 1_000, 5_000);
        let measured = story.tell();
        assert_eq!(measured.before_window, 51);
        assert_eq!(measured.clients[1].starts, at(1_000));
        assert_near(measured.tps(), 100.0 + 100.0);
    }

    #[test]
    fn many_spans_of_a_client_are_settled_as_they_come() {
        let mut story = Story::of_seconds(1, 5);
        for begin in (-100..5_100).step_by(100) {
            let kind = SpanKind::ConnectFailed;
            story.span(0, kind, begin, begin + 50);
        }
        story.record(transaction(4_050, 4_060));
        let measured = story.tell();
        // 50 ms in each of the 50 tenths of the window; none before it, none after.
        assert_eq!(measured.clients[0].connecting_ns, 2_500_000_000);
        assert_eq!(measured.connections.failed, 51);
    }

    #[test]
    fn progress_lines_come_each_interval_and_their_sum_is_the_total() {
        let mut story = Story::of_seconds(1, 3);
        story.plan.progress = lines_each(2);
        let stderr = story.stderr.clone();
        story.works(0, 10, 0, 2_990);
        story.record(transaction(2_990, 3_005));
        story.tell();
        assert_eq!(
            stderr.text(),
            "progress: 2.0 s, 100.0 tps, lat 10.000 ms stddev 0.000, 0 failed, p99 10.000 ms\n\
             progress: 3.0 s, 99.5 tps, lat 10.050 ms stddev 0.497, 0 failed, p99 10.000 ms\n"
        );
    }

    #[test]
    fn an_interval_waits_for_every_worker() {
        let mut story = Story::of_seconds(2, 10);
        story.plan.workers = 2;
        story.plan.progress = lines_each(1);
        let stderr = Memory::default();
        let mut collector = Collector::new(
            story.plan,
            Clock::manual(0),
            Keepers::default(),
            Box::new(stderr.clone()),
        );
        let batch = |worker, from_ms, to_ms, through_ms| {
            let record = TransactionRecord {
                client: worker,
                ..transaction(from_ms, to_ms)
            };
            ToCollector::Batch(Batch {
                worker,
                events: vec![Event::Transaction(record)],
                complete_through: at(through_ms),
            })
        };
        collector.hear(Announcement::WindowBegins(at(0)));
        collector.take(batch(0, 100, 200, 2_500));
        assert_eq!(stderr.text(), "");
        collector.take(batch(1, 500, 900, 1_100));
        assert_eq!(
            stderr.text(),
            "progress: 1.0 s, 2.0 tps, lat 250.000 ms stddev 150.000, 0 failed, p99 399.901 ms\n"
        );
        collector.take(batch(1, 900, 1_900, 2_000));
        assert_eq!(stderr.text().lines().count(), 2);
    }

    #[test]
    fn retries_are_shown_where_there_can_be_any() {
        let mut story = Story::new(1, StopRule::Transactions(2));
        story.plan.with_retries = true;
        story.plan.progress = lines_each(5);
        let stderr = story.stderr.clone();
        story.record(TransactionRecord {
            tries: 3,
            ..transaction(0, 500)
        });
        story.record(TransactionRecord {
            outcome: Outcome::Failed,
            ..transaction(500, 1_000)
        });
        story.tell();
        assert_eq!(
            stderr.text(),
            "progress: 1.0 s, 1.0 tps, lat 500.000 ms stddev 0.000, 1 failed, 1 retried, 2 retries, p99 500.000 ms\n"
        );
    }

    #[test]
    fn lag_is_shown_under_a_rate_and_what_was_skipped_with_a_limit() {
        for (limit, expected) in [
            (
                None,
                "progress: 1.0 s, 1.0 tps, lat 600.000 ms stddev 0.000, 0 failed, lag 100.000 ms, p99 600.000 ms\n",
            ),
            (
                Some(Duration::from_secs(5)),
                "progress: 1.0 s, 1.0 tps, lat 600.000 ms stddev 0.000, 0 failed, lag 100.000 ms, 1 skipped, p99 600.000 ms\n",
            ),
        ] {
            let mut story = Story::new(1, StopRule::Transactions(2));
            story.plan.rate = Some(2.0);
            story.plan.latency_limit = limit;
            story.plan.progress = lines_each(5);
            let stderr = story.stderr.clone();
            story.record(TransactionRecord {
                scheduled_at: at(0),
                ..transaction(100, 600)
            });
            story.record(TransactionRecord {
                outcome: Outcome::Skipped,
                ..transaction(600, 1_000)
            });
            story.tell();
            assert_eq!(stderr.text(), expected);
        }
    }

    #[test]
    fn commands_of_the_window_are_counted_where_they_are_reported() {
        let record = |script, command, end, duration_ns| CommandRecord {
            client: 0,
            script,
            command,
            phase: Phase::Run,
            end,
            duration_ns,
        };
        let story = |commands: &[usize]| {
            let mut story = Story::new(1, StopRule::Transactions(2));
            story.plan.commands = commands.to_vec();
            story.command(10, record(1, 0, CommandEnd::Done, 3_000));
            story.command(20, record(1, 0, CommandEnd::Done, 5_000));
            story.command(30, record(1, 1, CommandEnd::Retried, 0));
            story.command(40, record(0, 0, CommandEnd::Failed, 0));
            let before = CommandRecord {
                phase: Phase::Warmup,
                ..record(0, 0, CommandEnd::Done, 1_000)
            };
            story.command(50, before);
            story.tell().commands
        };
        let found = story(&[1, 2]);
        let counts = |stats: &CommandStats| {
            let durations = &stats.durations;
            (
                durations.count(),
                durations.sum_ns(),
                stats.failures,
                stats.retries,
            )
        };
        let counts: Vec<_> = found.iter().flatten().map(counts).collect();
        assert_eq!(counts, [(0, 0, 1, 0), (2, 8_000, 0, 0), (0, 0, 0, 1)]);
        assert_eq!(story(&[]), Vec::<Vec<CommandStats>>::new());
    }

    #[test]
    fn messages_are_prefixed_by_their_level() {
        let stderr = Memory::default();
        let plan = Story::of_seconds(1, 1).plan;
        let mut collector = Collector::new(
            plan,
            Clock::manual(0),
            Keepers::default(),
            Box::new(stderr.clone()),
        );
        for (level, text) in [
            (Level::Error, "a"),
            (Level::Detail, "b"),
            (Level::Plain, "d\ne"),
        ] {
            collector.take(ToCollector::Message(Message {
                level,
                text: text.to_owned(),
            }));
        }
        let expected = "pgmark: error: a\npgmark: detail: b\nd\ne\n";
        assert_eq!(stderr.text(), expected);
    }

    #[test]
    fn an_emptied_batch_goes_back_to_its_worker_and_the_end_of_all_ends_the_run() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let (back, returned) = crossbeam_channel::bounded(4);
        let story = Story::of_seconds(1, 5);
        let collector = Collector::new(
            story.plan,
            Clock::manual(0),
            Keepers::default(),
            Box::new(story.stderr),
        );
        let events = vec![
            Event::Transaction(transaction(0, 1_000)),
            Event::ClientDone(ClientRecord {
                client: 0,
                ended_at: at(1_000),
                end: ClientEnd::Finished,
                think_ns: 7,
                slot_wait_ns: 11,
            }),
            Event::WorkerDone(WorkerRecord::default()),
        ];
        let capacity = events.capacity();
        let batch = ToCollector::Batch(Batch {
            worker: 0,
            events,
            complete_through: at(1_000),
        });
        let (teller, announcements) = crossbeam_channel::unbounded();
        teller
            .send(Announcement::WindowBegins(at(0)))
            .expect("the receiver lives");
        sender.send(batch).expect("the receiver lives");
        drop(sender);
        let measured = collector.run(&receiver, &announcements, &[back]);
        let emptied = returned.recv().expect("the batch came back");
        assert!(emptied.is_empty() && emptied.capacity() == capacity);
        assert_eq!((measured.total.processed, measured.workers.len()), (1, 1));
        assert_eq!(measured.think_time(), Duration::from_nanos(7));
    }

    #[test]
    fn a_run_stopped_before_its_window_has_none() {
        let story = Story::of_seconds(1, 5);
        let collector = Collector::new(
            story.plan,
            Clock::manual(0),
            Keepers::default(),
            Box::new(story.stderr),
        );
        let measured = collector.finish();
        assert_eq!(measured.window, None);
        assert_eq!((measured.tps(), measured.average_concurrency()), (0.0, 0.0));
        assert_eq!(measured.noise(), None);
    }

    #[test]
    fn aborted_transactions_are_time_spent_but_no_throughput() {
        let mut story = Story::of_seconds(1, 5);
        let outcome = Outcome::Aborted(Abort::Interrupted);
        story.record(TransactionRecord {
            outcome,
            ..transaction(0, 5_000)
        });
        let measured = story.tell();
        assert_eq!(measured.tps(), 0.0);
        assert_near(measured.average_concurrency(), 1.0);
        assert_eq!(measured.clients[0].aborted, 1);
    }
}
