//! The file of intervals: a CSV row for each, all scripts together, then, where there are several, a
//! row for each script. Every transaction is in exactly one interval: the one in which it ended, or
//! the last of its phase, if it outlasted that. Under a rate it was due in the one that its slot is
//! in, for which rows wait until every client has told of its later slots, but not for ever; with a
//! time to run, the schedule itself says what was due in all scripts together, taken or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::row::phase;
use super::row_file::RowFile;
use super::text::{Cells, script_cells, signed_micros};
use super::{Known, Log, LogContext};
use crate::collector::intervals::{Interval, Intervals, Kept};
use crate::collector::nanos;
use crate::event::{ConnectionRecord, Phase, SpanKind, TransactionRecord};
use crate::plan::StopRule;
use crate::result::LoggedRows;
use crate::schedule::{Schedule, Slots};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A column: its name in the header, and what a row has in it.
type Column = (&'static str, fn(&mut Cells, &Row<'_>));

/// The columns in their order. Header and rows both come from here.
const COLUMNS: [Column; 21] = [
    ("interval_start_us", |cells, row| {
        cells.integer(row.start_us)
    }),
    ("interval_us", |cells, row| {
        cells.micros(row.interval.length_ns)
    }),
    ("phase", |cells, row| {
        cells.text(phase(row.phase).as_bytes())
    }),
    ("script", |cells, row| cells.text(row.script)),
    ("clients_connected", |cells, row| {
        cells.integer(row.connected)
    }),
    ("due", |cells, row| cells.count(row.due)),
    ("processed", |cells, row| cells.count(row.stats.processed)),
    ("failed", |cells, row| cells.count(row.stats.failed.total())),
    ("skipped", |cells, row| cells.count(row.stats.skipped)),
    ("aborted", |cells, row| {
        cells.count(row.stats.aborted.total())
    }),
    ("lost", |cells, row| {
        cells.count(row.stats.aborted.connection_lost)
    }),
    ("retries", |cells, row| cells.count(row.stats.retries)),
    ("tps", |cells, row| {
        cells.six_decimals(row.interval.per_second(row.stats.processed));
    }),
    ("latency_avg_us", |cells, row| {
        cells.six_decimals(row.stats.latency.mean_ns() / 1e3);
    }),
    ("p50_us", |cells, row| {
        cells.micros(row.stats.latency.percentile_ns(50.0))
    }),
    ("p90_us", |cells, row| {
        cells.micros(row.stats.latency.percentile_ns(90.0))
    }),
    ("p99_us", |cells, row| {
        cells.micros(row.stats.latency.percentile_ns(99.0))
    }),
    ("max_us", |cells, row| {
        cells.micros(row.stats.latency.max_ns())
    }),
    ("lag_avg_us", |cells, row| {
        cells.six_decimals(row.stats.lag_mean_ns() / 1e3);
    }),
    ("connects", |cells, row| cells.count(row.connects)),
    ("checkpoint", |cells, row| match row.checkpoints {
        Some(begun) => cells.count(begun),
        None => cells.text(b""),
    }),
];

/// Intervals by which rows stay behind, at most, for transactions that were due in them and are
/// still under way. What takes longer counts as due in the first interval that is not written yet.
const HELD_INTERVALS: u64 = 10;

/// The name of the row of all scripts.
const ALL: &[u8] = b"all";

/// What a row is made from.
struct Row<'a> {
    interval: &'a Interval<InInterval>,
    /// Its beginning, counted from that of the window.
    start_us: i64,
    phase: Phase,
    script: &'a [u8],
    /// Transactions that were due in the interval.
    due: u64,
    /// Those that ended in it.
    stats: &'a Stats,
    /// Clients that were connected at the end of the interval.
    connected: i64,
    /// Connections made in it. They belong to no script.
    connects: u64,
    /// Checkpoints that the server was seen to begin in it, if it was looked at. They belong to no
    /// script.
    checkpoints: Option<u64>,
}

/// The file of intervals being written.
pub struct IntervalLog {
    file: [RowFile; 1],
    cells: Cells,
    scripts: Vec<Vec<u8>>,
    interval_ns: u64,
    /// When transactions are due; without it, when they end.
    schedule: Option<Arc<Schedule>>,
    /// The slots of the window that lie after the rows that were written.
    slots: Option<Slots>,
    /// The phases in their order, whatever their length.
    parts: [Part; 3],
    window_begins: Option<Timestamp>,
    /// How long the window is to be, and when it ends as far as that is known: who disconnects
    /// after that does so because the run is over.
    window_length: Option<Duration>,
    window_ends: Timestamp,
    connected: i64,
    checkpoints: Checkpoints,
    /// Transactions in all rows so far.
    transactions: u64,
}

/// The server's checkpoints, as far as they are in no row yet.
#[derive(Default)]
struct Checkpoints {
    /// The server tells how many there were.
    known: bool,
    /// When some were seen to have begun, and how many.
    seen: VecDeque<(Timestamp, u64)>,
}

impl Checkpoints {
    /// Those that were seen up to the end of an interval and not taken before.
    fn take_until(&mut self, ends: Timestamp) -> Option<u64> {
        let mut begun = 0;
        while self.seen.front().is_some_and(|(at, _)| *at <= ends) {
            begun += self.seen.pop_front().map_or(0, |(_, some)| some);
        }
        (self.known || begun > 0).then_some(begun)
    }
}

/// A phase of the run.
struct Part {
    phase: Phase,
    /// From its beginning to that of the window, ns.
    before_window_ns: u64,
    /// Its length, ns; known beforehand but for the window itself.
    length_ns: Option<u64>,
    intervals: Intervals<InInterval>,
    /// The latest moment at which something was kept, counted from the beginning of the phase, ns.
    latest_ns: u64,
}

/// What is kept of an interval.
#[derive(Default)]
struct InInterval {
    /// By script, as far as there was something.
    scripts: Vec<OfScript>,
    connects: u64,
    /// Clients that connected less those that disconnected.
    connected: i64,
}

/// What is kept of a script in an interval.
#[derive(Default)]
struct OfScript {
    due: u64,
    stats: Stats,
}

impl OfScript {
    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.stats.merge(&other.stats);
    }
}

impl Kept for InInterval {
    fn merge(&mut self, other: &Self) {
        for (index, theirs) in other.scripts.iter().enumerate() {
            self.script(index).merge(theirs);
        }
        self.connects += other.connects;
        self.connected += other.connected;
    }
}

impl InInterval {
    fn script(&mut self, index: usize) -> &mut OfScript {
        if self.scripts.len() <= index {
            self.scripts.resize_with(index + 1, OfScript::default);
        }
        &mut self.scripts[index]
    }

    fn total(&self) -> OfScript {
        let mut total = OfScript::default();
        self.scripts.iter().for_each(|script| total.merge(script));
        total
    }
}

impl IntervalLog {
    /// The names of the columns.
    pub(super) fn columns() -> Vec<&'static str> {
        COLUMNS.iter().map(|(name, _)| *name).collect()
    }

    /// Rows of intervals of `length` into `file`, which has its header already.
    pub(super) fn new(file: RowFile, length: Duration, context: &LogContext) -> Self {
        let window_length = match context.stop {
            StopRule::Time(whole) => Some(whole),
            StopRule::Transactions(_) => None,
        };
        let window_ns = window_length.map(nanos);
        let interval_ns = nanos(length).max(1);
        let (ramp_ns, warmup_ns) = (nanos(context.ramp), nanos(context.warmup));
        let part = |phase, before_window_ns, length_ns, expected_ns| Part {
            phase,
            before_window_ns,
            length_ns,
            intervals: Intervals::new(interval_ns, expected_ns),
            latest_ns: 0,
        };
        IntervalLog {
            file: [file],
            cells: Cells::default(),
            scripts: script_cells(&context.script_names),
            interval_ns,
            schedule: context.schedule.clone(),
            slots: None,
            parts: [
                part(
                    Phase::Ramp,
                    ramp_ns + warmup_ns,
                    Some(ramp_ns),
                    Some(ramp_ns),
                ),
                part(Phase::Warmup, warmup_ns, Some(warmup_ns), Some(warmup_ns)),
                part(Phase::Run, 0, None, window_ns),
            ],
            window_begins: None,
            window_length,
            window_ends: Timestamp::MAX,
            connected: 0,
            checkpoints: Checkpoints::default(),
            transactions: 0,
        }
    }

    /// How far all is known that belongs into the rows of a phase, counted from its beginning.
    fn known_ns(&self, part: &Part, known: Known, window_begins: Timestamp) -> u64 {
        let through_ns = part.since_begin_ns(known.through, window_begins);
        if self.schedule.is_none() {
            return through_ns;
        }
        let longest_ns = self.interval_ns.saturating_mul(HELD_INTERVALS);
        let due_ns = part.since_begin_ns(known.due_through, window_begins);
        through_ns.min(due_ns.max(through_ns.saturating_sub(longest_ns)))
    }

    /// Writes the intervals of a phase that `close` finds closed.
    fn write_closed(
        &mut self,
        part: usize,
        close: impl Fn(&mut Intervals<InInterval>) -> Option<Interval<InInterval>>,
    ) {
        while let Some(closed) = close(&mut self.parts[part].intervals) {
            self.write(part, &closed);
        }
    }

    /// What the schedule says was due in all scripts together, in the window and with a time to run:
    /// a number of transactions leaves no slot that nobody takes.
    fn due_by_schedule(&mut self, phase: Phase, ends_ns: u64) -> Option<u64> {
        let schedule = self.schedule.as_ref()?;
        if phase != Phase::Run || self.window_length.is_none() {
            return None;
        }
        let ends = self.window_begins? + Duration::from_nanos(ends_ns);
        let slots = self.slots.get_or_insert_with(|| schedule.of_window());
        Some(slots.count_until(ends.min(self.window_ends)).slots)
    }

    fn write(&mut self, part: usize, interval: &Interval<InInterval>) {
        let due = self.due_by_schedule(self.parts[part].phase, interval.ends_ns());
        let part = &self.parts[part];
        let ends = part.moment(interval.ends_ns(), self.window_begins);
        let checkpoints = self.checkpoints.take_until(ends);
        self.connected += interval.kept.connected;
        let start_ns = interval.begins_ns as i64 - part.before_window_ns as i64;
        let total = interval.kept.total();
        self.transactions += total.stats.recorded();
        let mut row = Row {
            interval,
            start_us: signed_micros(start_ns),
            phase: part.phase,
            script: ALL,
            due: due.unwrap_or(total.due),
            stats: &total.stats,
            connected: self.connected,
            connects: interval.kept.connects,
            checkpoints,
        };
        push(&mut self.cells, &mut self.file[0], &row);
        if self.scripts.len() < 2 {
            return;
        }
        let none = OfScript::default();
        row.connects = 0;
        row.checkpoints = checkpoints.map(|_| 0);
        for (index, name) in self.scripts.iter().enumerate() {
            row.script = name;
            let of_script = interval.kept.scripts.get(index).unwrap_or(&none);
            row.due = of_script.due;
            row.stats = &of_script.stats;
            push(&mut self.cells, &mut self.file[0], &row);
        }
    }
}

fn push(cells: &mut Cells, file: &mut RowFile, row: &Row<'_>) {
    for (_, column) in COLUMNS {
        column(cells, row);
    }
    file.push(cells);
}

impl Log for IntervalLog {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.file
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::Intervals {
            transactions: self.transactions,
        }
    }

    fn begin_window(&mut self, begins: Timestamp) {
        self.window_begins = Some(begins);
        if let Some(length) = self.window_length {
            self.end_window(begins + length);
        }
    }

    fn end_window(&mut self, ends: Timestamp) {
        self.window_ends = self.window_ends.min(ends);
    }

    fn transaction(&mut self, _worker: u32, record: &TransactionRecord) {
        let Some(begins) = self.window_begins else {
            return;
        };
        let part = match record.phase {
            Phase::Ramp => &mut self.parts[0],
            Phase::Warmup => &mut self.parts[1],
            Phase::Run => &mut self.parts[2],
        };
        let due_at = match self.schedule {
            Some(_) => record.scheduled_at,
            None => record.finished_at,
        };
        let script = usize::from(record.script);
        part.at(due_at, begins).script(script).due += 1;
        let ended_in = part.at(record.finished_at, begins);
        ended_in.script(script).stats.record(record, None);
    }

    fn connection(&mut self, span: &ConnectionRecord) {
        let (connects, connected) = match span.kind {
            SpanKind::Connect => (1, 1),
            SpanKind::Disconnect if span.finished_at > self.window_ends => return,
            SpanKind::Disconnect => (0, -1),
            SpanKind::ConnectFailed | SpanKind::ConnectCut | SpanKind::OnConnect => return,
        };
        let since_begin_ns = |begins| span.finished_at.signed_nanos_since(begins);
        let part = self.window_begins.and_then(|begins| {
            let from_window_ns = since_begin_ns(begins);
            let parts = self.parts.iter_mut().rev();
            let mut begun = parts
                .filter(|part| i128::from(from_window_ns) >= -i128::from(part.before_window_ns));
            begun.next().map(|part| (part, begins))
        });
        match part {
            // Before the release of the clients there is no interval.
            None => self.connected += connected,
            Some((part, begins)) => {
                let kept = part.at(span.finished_at, begins);
                kept.connects += connects;
                kept.connected += connected;
            }
        }
    }

    fn checkpoints(&mut self, at: Timestamp, begun: u64) {
        self.checkpoints.known = true;
        if begun > 0 {
            self.checkpoints.seen.push_back((at, begun));
        }
    }

    fn checkpoints_unknown(&mut self) {
        self.checkpoints.known = false;
    }

    fn complete_through(&mut self, known: Known) {
        let Some(begins) = self.window_begins else {
            return;
        };
        for index in 0..self.parts.len() {
            let part = &self.parts[index];
            let known_ns = self.known_ns(part, known, begins);
            match part.length_ns {
                Some(length_ns) if known.lead_in_over => {
                    self.write_closed(index, |intervals| intervals.close_rest(length_ns));
                }
                Some(length_ns @ 1..) => {
                    let known_ns = known_ns.min(length_ns);
                    self.write_closed(index, |intervals| intervals.close_next(known_ns));
                    // Its last interval waits for all that began in it, later ones for their turn.
                    return;
                }
                Some(0) => {}
                None => self.write_closed(index, |intervals| intervals.close_next(known_ns)),
            }
        }
    }

    fn end(&mut self, ends: Timestamp) {
        let Some(begins) = self.window_begins else {
            return;
        };
        for index in 0..self.parts.len() {
            let part = &self.parts[index];
            let end_ns = part.since_begin_ns(ends, begins).max(part.latest_ns);
            let end_ns = end_ns.min(part.length_ns.unwrap_or(u64::MAX));
            self.write_closed(index, |intervals| intervals.close_rest(end_ns));
        }
    }
}

impl Part {
    /// What is kept of the interval that a moment falls into, at the latest the last of the phase.
    fn at(&mut self, moment: Timestamp, window_begins: Timestamp) -> &mut InInterval {
        let at_ns = self.since_begin_ns(moment, window_begins);
        let at_ns = at_ns.min(self.length_ns.unwrap_or(u64::MAX));
        self.latest_ns = self.latest_ns.max(at_ns);
        self.intervals.at(at_ns)
    }

    /// The moment `since_begin_ns` after its beginning.
    fn moment(&self, since_begin_ns: u64, window_begins: Option<Timestamp>) -> Timestamp {
        let since_zero_ns = window_begins.unwrap_or_default().nanos() + since_begin_ns;
        Timestamp::from_nanos(since_zero_ns.saturating_sub(self.before_window_ns))
    }

    fn since_begin_ns(&self, moment: Timestamp, window_begins: Timestamp) -> u64 {
        let since_window_ns = i128::from(moment.nanos()) - i128::from(window_begins.nanos());
        let since_ns = since_window_ns + i128::from(self.before_window_ns);
        u64::try_from(since_ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_file::Form;
    use super::*;
    use crate::collector::testing::{Memory, Story, at, log_context, transaction};
    use crate::event::{Abort, Outcome, SqlState};
    use crate::random::Generator;
    use std::path::Path;

    /// A story of `seconds` whose intervals of `length_ms` can be read afterwards.
    fn story(clients: u32, seconds: u64, length_ms: u64, scripts: &[&str]) -> (Story, Memory) {
        let mut story = Story::of_seconds(clients, seconds);
        story.plan.scripts = scripts.len();
        let memory = Memory::default();
        let log = log_into(&memory, length_ms, scripts, story.plan.stop, Duration::ZERO);
        story.logs = vec![log];
        (story, memory)
    }

    fn log_into(
        memory: &Memory,
        length_ms: u64,
        scripts: &[&str],
        stop: StopRule,
        lead_in: Duration,
    ) -> Box<dyn Log> {
        let context = LogContext {
            stop,
            ramp: lead_in / 4,
            warmup: lead_in / 4 * 3,
            ..log_context(scripts)
        };
        log_of(memory, length_ms, &context)
    }

    fn log_of(memory: &Memory, length_ms: u64, context: &LogContext) -> Box<dyn Log> {
        let file = RowFile::new(
            Box::new(memory.clone()),
            Path::new("intervals.csv"),
            Form::Csv(IntervalLog::columns()),
        );
        let length = Duration::from_millis(length_ms);
        Box::new(IntervalLog::new(file, length, context))
    }

    /// Ten transactions a second are due from the beginning of the window.
    fn of_ten_a_second() -> Arc<Schedule> {
        let schedule = Schedule::new(10.0, Generator::new(42));
        schedule.start(at(0), at(0));
        Arc::new(schedule)
    }

    fn cells(memory: &Memory) -> Vec<Vec<String>> {
        let text = memory.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows = reader.records().map(|row| row.expect("well-formed"));
        rows.map(|row| row.iter().map(str::to_owned).collect())
            .collect()
    }

    /// The cells of these columns of all rows.
    fn columns(memory: &Memory, names: &[&str]) -> Vec<String> {
        let places: Vec<usize> = names
            .iter()
            .map(|name| {
                let mut columns = COLUMNS.iter();
                columns.position(|(column, _)| column == name)
            })
            .map(|place| place.expect("there is such a column"))
            .collect();
        let rows = cells(memory).into_iter().map(|row| {
            let cells: Vec<&str> = places.iter().map(|&place| row[place].as_str()).collect();
            cells.join(" ")
        });
        rows.collect()
    }

    #[test]
    fn rows_are_these_bytes() {
        let (mut story, memory) = story(2, 2, 1_000, &["a", "a,b"]);
        story.span(0, SpanKind::Connect, -20, -10);
        story.span(1, SpanKind::Connect, -20, -10);
        let of_second = |from, to| TransactionRecord {
            client: 1,
            script: 1,
            ..transaction(from, to)
        };
        story.record(TransactionRecord {
            scheduled_at: at(90),
            tries: 3,
            ..transaction(100, 110)
        });
        story.record(TransactionRecord {
            outcome: Outcome::Failed,
            sqlstate: SqlState(*b"40001"),
            ..of_second(200, 300)
        });
        story.record(TransactionRecord {
            outcome: Outcome::Skipped,
            tries: 0,
            ..of_second(300, 300)
        });
        story.record(of_second(400, 1_400));
        story.record(TransactionRecord {
            outcome: Outcome::Aborted(Abort::ConnectionLost),
            ..of_second(1_400, 1_500)
        });
        story.span(1, SpanKind::Disconnect, 1_500, 1_501);
        story.record(transaction(1_900, 2_004));
        let measured = story.tell();
        let expected = "\
interval_start_us,interval_us,phase,script,clients_connected,due,processed,failed,skipped,aborted,\
lost,retries,tps,latency_avg_us,p50_us,p90_us,p99_us,max_us,lag_avg_us,connects,checkpoint
0,1000000,run,all,2,3,1,1,1,0,0,2,1.000000,20000.000000,20000,20000,20000,20000,10000.000000,0,
0,1000000,run,a,2,1,1,0,0,0,0,2,1.000000,20000.000000,20000,20000,20000,20000,10000.000000,0,
0,1000000,run,\"a,b\",2,2,0,1,1,0,0,0,0.000000,0.000000,0,0,0,0,0.000000,0,
1000000,1004000,run,all,1,3,2,0,0,1,1,0,1.992032,552000.000000,104000,1000000,1000000,1000000,0.000000,0,
1000000,1004000,run,a,1,1,1,0,0,0,0,0,0.996016,104000.000000,104000,104000,104000,104000,0.000000,0,
1000000,1004000,run,\"a,b\",1,2,1,0,0,1,1,0,0.996016,1000000.000000,1000000,1000000,1000000,1000000,0.000000,0,
";
        assert_eq!(memory.text(), expected);
        assert_eq!(
            measured.logs[0].rows,
            LoggedRows::Intervals { transactions: 6 }
        );
        assert_eq!(measured.logs[0].rows_written, 6);
    }

    #[test]
    fn a_run_shorter_than_an_interval_has_one_row_and_quiet_intervals_have_theirs() {
        let (mut short, memory) = story(1, 5, 5_000, &["s"]);
        short.works(0, 10, 0, 300);
        short.told_end(300);
        short.tell();
        assert_eq!(columns(&memory, &["interval_us", "due"]), ["300000 30"]);

        let (mut quiet, memory) = story(1, 3, 1_000, &["s"]);
        quiet.record(transaction(2_500, 2_600));
        quiet.tell();
        let names = ["interval_start_us", "due", "max_us"];
        assert_eq!(
            columns(&memory, &names),
            ["0 0 0", "1000000 0 0", "2000000 1 100000"]
        );
    }

    #[test]
    fn who_disconnects_because_the_run_is_over_was_connected_to_the_end() {
        let span = |kind, from, to| ConnectionRecord {
            client: 0,
            kind,
            started_at: at(from),
            finished_at: at(to),
        };
        for (stop, told) in [
            (StopRule::Time(Duration::from_secs(2)), None),
            (StopRule::Time(Duration::from_secs(60)), Some(at(2_000))),
            (StopRule::Transactions(5), Some(at(2_000))),
        ] {
            let memory = Memory::default();
            let mut log = log_into(&memory, 1_000, &["s"], stop, Duration::ZERO);
            log.connection(&span(SpanKind::Connect, -20, -10));
            log.begin_window(at(0));
            told.into_iter().for_each(|ends| log.end_window(ends));
            log.connection(&span(SpanKind::Disconnect, 2_010, 2_020));
            log.end(at(2_040));
            log.finish();
            let connected = columns(&memory, &["clients_connected"]);
            assert!(connected.iter().all(|clients| clients == "1"), "{stop:?}");
            assert!(connected.len() >= 2, "{stop:?}");
        }
    }

    #[test]
    fn connections_are_counted_where_they_were_made() {
        let (mut story, memory) = story(1, 2, 1_000, &["s"]);
        for begin in [0, 900, 1_500] {
            story.span(0, SpanKind::Connect, begin, begin + 50);
            story.record(transaction(begin + 50, begin + 80));
            story.span(0, SpanKind::Disconnect, begin + 80, begin + 120);
        }
        story.tell();
        let names = ["clients_connected", "connects", "due"];
        assert_eq!(columns(&memory, &names), ["1 2 2", "0 1 1"]);
    }

    /// A client is stuck from 0.5 s to 3.2 s; what was due meanwhile comes late, but for one it
    /// has to skip. The other has nothing to do.
    #[test]
    fn under_a_rate_transactions_are_due_when_they_were_scheduled() {
        let memory = Memory::default();
        let stop = StopRule::Transactions(4);
        let context = LogContext {
            stop,
            schedule: Some(of_ten_a_second()),
            ..log_context(&["s"])
        };
        let mut story = Story::new(1, stop);
        story.logs = vec![log_of(&memory, 1_000, &context)];
        let slot_and_span = [
            (400, 500, 3_200),
            (1_500, 3_200, 3_300),
            (2_500, 3_300, 3_400),
        ];
        for (slot, from, to) in slot_and_span {
            story.record(TransactionRecord {
                scheduled_at: at(slot),
                ..transaction(from, to)
            });
        }
        story.record(TransactionRecord {
            outcome: Outcome::Skipped,
            scheduled_at: at(2_700),
            ..transaction(3_400, 3_400)
        });
        story.tell();
        let names = ["due", "processed", "skipped", "lag_avg_us"];
        assert_eq!(
            columns(&memory, &names),
            [
                "1 0 0 0.000000",
                "1 0 0 0.000000",
                "2 0 0 0.000000",
                "0 3 1 866666.666667"
            ]
        );
    }

    /// Two of some forty slots are taken. What all scripts owe is told by the second; it is the sum
    /// that the summary tells.
    #[test]
    fn slots_that_nobody_took_were_due_all_the_same() {
        let memory = Memory::default();
        let stop = StopRule::Time(Duration::from_secs(4));
        let schedule = of_ten_a_second();
        let context = LogContext {
            stop,
            schedule: Some(Arc::clone(&schedule)),
            ..log_context(&["a", "b"])
        };
        let mut story = Story::new(1, stop);
        story.plan.scripts = 2;
        story.logs = vec![log_of(&memory, 1_000, &context)];
        for (from, to) in [(0, 1_500), (1_500, 4_300)] {
            story.record(TransactionRecord {
                scheduled_at: schedule.draw(at(from)),
                ..transaction(from, to)
            });
        }
        story.tell();
        let rows = columns(&memory, &["script", "due"]);
        let due_of = |script: &str| -> Vec<u64> {
            let rows = rows
                .iter()
                .filter_map(|row| row.strip_prefix(script)?.strip_prefix(' '));
            rows.map(|due| due.parse().expect("a number")).collect()
        };
        let all = due_of("all");
        assert!(all.iter().all(|&due| (3..=20).contains(&due)), "{all:?}");
        assert_eq!(all.iter().sum::<u64>(), schedule.due_until(at(4_000)).slots);
        assert_eq!(due_of("a").iter().sum::<u64>(), 2);
    }

    #[test]
    fn checkpoints_stand_where_they_were_seen_and_nowhere_if_nobody_looked() {
        let memory = Memory::default();
        let stop = StopRule::Time(Duration::from_secs(5));
        let mut log = log_into(&memory, 1_000, &["s"], stop, Duration::ZERO);
        log.begin_window(at(0));
        let goes_on = |log: &mut dyn Log, ms| {
            log.complete_through(Known {
                through: at(ms),
                due_through: at(ms),
                lead_in_over: true,
            });
        };
        goes_on(&mut *log, 1_100);
        log.checkpoints(at(1_150), 0);
        log.checkpoints(at(2_150), 1);
        goes_on(&mut *log, 2_200);
        // Its row is written already.
        log.checkpoints(at(1_990), 2);
        log.checkpoints(at(3_150), 1);
        goes_on(&mut *log, 3_200);
        log.checkpoints_unknown();
        log.end(at(5_000));
        log.finish();
        assert_eq!(columns(&memory, &["checkpoint"]), ["", "0", "3", "1", ""]);
    }

    #[test]
    fn rows_wait_for_what_was_due_in_them_but_not_for_ever() {
        let memory = Memory::default();
        let context = LogContext {
            schedule: Some(of_ten_a_second()),
            ..log_context(&["s"])
        };
        let mut log = log_of(&memory, 1_000, &context);
        log.begin_window(at(0));
        let mut rows_when = |through_ms, due_through_ms| {
            log.complete_through(Known {
                through: at(through_ms),
                due_through: at(due_through_ms),
                lead_in_over: true,
            });
            log.flush();
            memory.text().lines().count() - 1
        };
        assert_eq!(rows_when(3_000, 500), 0);
        assert_eq!(rows_when(3_000, 2_100), 2);
        assert_eq!(rows_when(11_900, 2_100), 2);
        assert_eq!(rows_when(13_900, 2_100), 3);
        log.transaction(
            0,
            &TransactionRecord {
                scheduled_at: at(2_200),
                ..transaction(2_300, 13_000)
            },
        );
        log.end(at(14_000));
        log.finish();
        let due = columns(&memory, &["due"]);
        assert_eq!(
            (due.len(), due[2].as_str(), due[3].as_str()),
            (14, "0", "1")
        );
    }

    /// Two clients in a warm-up of three seconds after a ramp of one; a transaction of the warm-up
    /// outlasts it by more than a second.
    #[test]
    fn the_lead_in_has_rows_of_its_own_with_all_that_began_in_it() {
        let lead_in = Duration::from_secs(4);
        let mut story = Story::of_seconds(2, 3);
        story.plan.lead_in.warmup = lead_in;
        let memory = Memory::default();
        story.logs = vec![log_into(&memory, 2_000, &["s"], story.plan.stop, lead_in)];
        story.record(TransactionRecord {
            phase: Phase::Ramp,
            ..transaction(-3_500, -2_500)
        });
        story.works(0, 100, -2_500, 3_000);
        story.record(TransactionRecord {
            client: 1,
            ..transaction(-1_000, 1_200)
        });
        story.record(TransactionRecord {
            client: 1,
            ..transaction(1_200, 1_300)
        });
        let measured = story.tell();
        let names = ["interval_start_us", "interval_us", "phase", "due"];
        assert_eq!(
            columns(&memory, &names),
            [
                "-4000000 1000000 ramp 1",
                "-3000000 2000000 warmup 15",
                "-1000000 1000000 warmup 11",
                "0 2000000 run 21",
                "2000000 1000000 run 10",
            ]
        );
        assert_eq!(measured.before_window, 27);
        assert_eq!(
            measured.logs[0].rows,
            LoggedRows::Intervals { transactions: 58 }
        );
    }
}
