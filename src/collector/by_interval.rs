//! What happened in each interval of the run, phase by phase. Every transaction is in exactly one: the
//! one in which it ended, or the last of its phase, if it outlasted that. Under a rate it was due in
//! the one that its slot is in, for which intervals stay open until every client has told of its
//! later slots, but not for ever; with a time to run, the schedule itself says what was due in all
//! scripts together, taken or not. Knows nothing of files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::intervals::{Interval, Intervals, Kept};
use super::listener::{Known, Listener};
use super::log::LogContext;
use super::nanos;
use crate::event::{ConnectionRecord, Phase, SpanKind, TransactionRecord};
use crate::plan::StopRule;
use crate::schedule::{Schedule, Slots};
use crate::stats::Stats;
use crate::time::Timestamp;

/// Intervals by which what is closed stays behind, at most, for transactions that were due in them
/// and are still under way. What takes longer counts as due in the first interval that is open.
const HELD_INTERVALS: u64 = 10;

/// An interval of which all is known.
pub struct ClosedInterval {
    pub(super) phase: Phase,
    /// Its beginning, counted from that of the window, ns.
    pub(super) start_ns: i64,
    /// Its length, ns; above 0.
    pub(super) length_ns: u64,
    /// All scripts together.
    pub(super) total: InScript,
    /// By script, as far as there was something.
    pub(super) scripts: Vec<InScript>,
    /// Clients that were connected at its end.
    pub(super) connected: i64,
    /// Connections made in it.
    pub(super) connects: u64,
    /// Checkpoints that the server was seen to begin in it, if it was looked at.
    pub(super) checkpoints: Option<u64>,
}

impl ClosedInterval {
    /// So many things as a number a second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.length_ns as f64
    }
}

/// What takes closed intervals, in the order of time.
pub trait IntervalSink: Send {
    /// The measured window begins at this moment.
    fn begin(&mut self, _window_begins: Timestamp) {}

    /// Takes the next one.
    fn take(&mut self, closed: &ClosedInterval);
}

/// Hears a run and gives it to a sink by interval.
pub struct ByInterval<S> {
    pub(super) sink: S,
    book: Book,
}

/// Intervals being filled.
struct Book {
    interval_ns: u64,
    /// When transactions are due; without it, when they end.
    schedule: Option<Arc<Schedule>>,
    /// The slots of the window that lie after the intervals that were closed.
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
}

/// The server's checkpoints, as far as they are in no closed interval yet.
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
    scripts: Vec<InScript>,
    connects: u64,
    /// Clients that connected less those that disconnected.
    connected: i64,
}

/// What is kept of a script in an interval.
#[derive(Default)]
pub struct InScript {
    /// Transactions that were due in it.
    pub(super) due: u64,
    /// Those that ended in it.
    pub(super) stats: Stats,
}

impl InScript {
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
    fn script(&mut self, index: usize) -> &mut InScript {
        if self.scripts.len() <= index {
            self.scripts.resize_with(index + 1, InScript::default);
        }
        &mut self.scripts[index]
    }

    fn total(&self) -> InScript {
        let mut total = InScript::default();
        self.scripts.iter().for_each(|script| total.merge(script));
        total
    }
}

impl<S: IntervalSink> ByInterval<S> {
    /// Intervals of `length` into `sink`.
    pub(super) fn of(length: Duration, context: &LogContext, sink: S) -> Self {
        ByInterval {
            sink,
            book: Book::new(length, context),
        }
    }

    /// Gives the intervals of a phase that `close` finds closed to the sink.
    fn give_closed(
        &mut self,
        part: usize,
        close: impl Fn(&mut Intervals<InInterval>) -> Option<Interval<InInterval>>,
    ) {
        while let Some(closed) = close(&mut self.book.parts[part].intervals) {
            self.sink.take(&self.book.closed(part, closed));
        }
    }
}

impl Book {
    fn new(length: Duration, context: &LogContext) -> Self {
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
        Book {
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
        }
    }

    /// How far all is known that belongs to a phase, counted from its beginning.
    fn known_ns(&self, part: &Part, known: Known, window_begins: Timestamp) -> u64 {
        let through_ns = part.since_begin_ns(known.through, window_begins);
        if self.schedule.is_none() {
            return through_ns;
        }
        let longest_ns = self.interval_ns.saturating_mul(HELD_INTERVALS);
        let due_ns = part.since_begin_ns(known.due_through, window_begins);
        through_ns.min(due_ns.max(through_ns.saturating_sub(longest_ns)))
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

    /// What is to be said of an interval of a phase that was just closed.
    fn closed(&mut self, part: usize, interval: Interval<InInterval>) -> ClosedInterval {
        let due = self.due_by_schedule(self.parts[part].phase, interval.ends_ns());
        let part = &self.parts[part];
        let ends = part.moment(interval.ends_ns(), self.window_begins);
        self.connected += interval.kept.connected;
        let mut total = interval.kept.total();
        total.due = due.unwrap_or(total.due);
        ClosedInterval {
            phase: part.phase,
            start_ns: interval.begins_ns as i64 - part.before_window_ns as i64,
            length_ns: interval.length_ns,
            total,
            scripts: interval.kept.scripts,
            connected: self.connected,
            connects: interval.kept.connects,
            checkpoints: self.checkpoints.take_until(ends),
        }
    }
}

impl<S: IntervalSink> Listener for ByInterval<S> {
    fn begin_window(&mut self, begins: Timestamp) {
        self.sink.begin(begins);
        self.book.window_begins = Some(begins);
        if let Some(length) = self.book.window_length {
            self.end_window(begins + length);
        }
    }

    fn end_window(&mut self, ends: Timestamp) {
        self.book.window_ends = self.book.window_ends.min(ends);
    }

    fn transaction(&mut self, _worker: u32, record: &TransactionRecord) {
        let Some(begins) = self.book.window_begins else {
            return;
        };
        let part = match record.phase {
            Phase::Ramp => &mut self.book.parts[0],
            Phase::Warmup => &mut self.book.parts[1],
            Phase::Run => &mut self.book.parts[2],
        };
        let due_at = match self.book.schedule {
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
            SpanKind::Disconnect if span.finished_at > self.book.window_ends => return,
            SpanKind::Disconnect => (0, -1),
            SpanKind::ConnectFailed | SpanKind::ConnectCut | SpanKind::OnConnect => return,
        };
        let since_begin_ns = |begins| span.finished_at.signed_nanos_since(begins);
        let part = self.book.window_begins.and_then(|begins| {
            let from_window_ns = since_begin_ns(begins);
            let parts = self.book.parts.iter_mut().rev();
            let mut begun = parts
                .filter(|part| i128::from(from_window_ns) >= -i128::from(part.before_window_ns));
            begun.next().map(|part| (part, begins))
        });
        match part {
            // Before the release of the clients there is no interval.
            None => self.book.connected += connected,
            Some((part, begins)) => {
                let kept = part.at(span.finished_at, begins);
                kept.connects += connects;
                kept.connected += connected;
            }
        }
    }

    fn checkpoints(&mut self, at: Timestamp, begun: u64) {
        self.book.checkpoints.known = true;
        if begun > 0 {
            self.book.checkpoints.seen.push_back((at, begun));
        }
    }

    fn checkpoints_unknown(&mut self) {
        self.book.checkpoints.known = false;
    }

    fn complete_through(&mut self, known: Known) {
        let Some(begins) = self.book.window_begins else {
            return;
        };
        for index in 0..self.book.parts.len() {
            let part = &self.book.parts[index];
            let known_ns = self.book.known_ns(part, known, begins);
            match part.length_ns {
                Some(length_ns) if known.lead_in_over => {
                    self.give_closed(index, |intervals| intervals.close_rest(length_ns));
                }
                Some(length_ns @ 1..) => {
                    let known_ns = known_ns.min(length_ns);
                    self.give_closed(index, |intervals| intervals.close_next(known_ns));
                    // Its last interval waits for all that began in it, later ones for their turn.
                    return;
                }
                Some(0) => {}
                None => self.give_closed(index, |intervals| intervals.close_next(known_ns)),
            }
        }
    }

    fn end(&mut self, ends: Timestamp) {
        let Some(begins) = self.book.window_begins else {
            return;
        };
        for index in 0..self.book.parts.len() {
            let part = &self.book.parts[index];
            let end_ns = part.since_begin_ns(ends, begins).max(part.latest_ns);
            let end_ns = end_ns.min(part.length_ns.unwrap_or(u64::MAX));
            self.give_closed(index, |intervals| intervals.close_rest(end_ns));
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
