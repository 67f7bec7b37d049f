//! Finds the outages: what happened, in the order in which it happened, as far as all workers have
//! told of it.
//!
//! An outage lasts from the last completion before to the first after a span in which at least one
//! client lost its connection and nothing completed. Where a client that did not lose its own
//! completes meanwhile, the server was there, and the outage has no length. Where connections are
//! lost again before all clients are back, it is one outage, as long as the longest such span.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use crate::event::{LossCause, LossRecord, LossStep, Outcome, TransactionRecord};
use crate::result::{Outage, Outages};
use crate::time::Timestamp;

/// Outages that are kept; more are counted.
const OUTAGES_KEPT: usize = 1_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Watches for outages.
pub(super) struct OutageWatch {
    clients: u32,
    /// What is not known to be complete yet, earliest first.
    ahead: BinaryHeap<Reverse<(Timestamp, Incident)>>,
    /// Completions of the last second.
    recent: VecDeque<Timestamp>,
    last_completion: Option<Timestamp>,
    current: Option<Current>,
    /// Ended, the last second after the latest of them is still being counted.
    ended: Vec<Ended>,
    outages: Outages,
    /// When the clients were released.
    released: Timestamp,
    /// The measured window, as far as its end is known.
    window: Range<Timestamp>,
}

/// An outage that has ended, and what was completed since.
struct Ended {
    outage: Outage,
    at: Timestamp,
    completions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Incident {
    Completed(u32),
    Lost(u32, LossCause),
    TryFailed(LossCause),
}

/// An outage that goes on.
struct Current {
    /// When the first connection was lost, if nothing was silent.
    first_loss: Silence,
    /// By client: whether it lost its connection, and whether it has completed since.
    lost: BTreeMap<u32, Lost>,
    /// Since when nothing completes, while somebody lost a connection in that time.
    silence: Option<Silence>,
    /// The longest silence that a client ended which had lost its connection, and when it ended.
    longest: Option<(Silence, Timestamp)>,
    /// All such silences together, as far as they lie in the measured window, ns.
    silent_ns: u64,
    causes: BTreeMap<LossCause, u64>,
    latest: LossCause,
}

/// A time without completions.
#[derive(Clone, Copy)]
struct Silence {
    begins: Timestamp,
    /// Completions a second in the second before.
    before: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Away,
    Back,
}

/// What the live line shows of an outage.
pub(super) struct OutageNow {
    /// Since the last completion, ns.
    pub(super) silent_ns: u64,
    /// Clients without a connection, or that have not completed anything since they have one.
    pub(super) away: u32,
    /// Of how many.
    pub(super) clients: u32,
    /// Losses and failed tries.
    pub(super) tries: u64,
    /// The last cause.
    pub(super) latest: LossCause,
}

impl OutageWatch {
    pub(super) fn new(clients: u32) -> Self {
        OutageWatch {
            clients,
            ahead: BinaryHeap::new(),
            recent: VecDeque::new(),
            last_completion: None,
            current: None,
            ended: Vec::new(),
            outages: Outages::default(),
            released: Timestamp::ZERO,
            window: Timestamp::ZERO..Timestamp::MAX,
        }
    }

    /// The clients were released; the measured window begins after that, and ends as is planned.
    pub(super) fn begin_window(&mut self, released: Timestamp, window: Range<Timestamp>) {
        self.released = released;
        self.window = window;
    }

    /// The window ends at this moment, if it did not before: a stop signal came.
    pub(super) fn end_window(&mut self, ends: Timestamp) {
        self.window.end = self.window.end.min(ends);
    }

    /// A transaction ended; what the server has answered is a completion.
    pub(super) fn transaction(&mut self, record: &TransactionRecord) {
        match record.outcome {
            Outcome::Processed | Outcome::Failed => {
                let incident = Incident::Completed(record.client);
                self.ahead.push(Reverse((record.finished_at, incident)));
            }
            Outcome::Skipped | Outcome::Aborted(_) => {}
        }
    }

    pub(super) fn loss(&mut self, record: &LossRecord) {
        let incident = match record.step {
            LossStep::Lost => Incident::Lost(record.client, record.cause),
            LossStep::TryFailed => Incident::TryFailed(record.cause),
        };
        self.ahead.push(Reverse((record.at, incident)));
    }

    /// Nothing from before this moment is missing.
    pub(super) fn complete_through(&mut self, known: Timestamp) {
        while let Some(Reverse((at, _))) = self.ahead.peek()
            && *at <= known
        {
            if let Some(Reverse((at, incident))) = self.ahead.pop() {
                self.happen(at, incident);
            }
        }
    }

    /// The state of an outage at this moment, if nothing completes.
    pub(super) fn now(&self, now: Timestamp) -> Option<OutageNow> {
        let current = self.current.as_ref()?;
        let silence = current.silence?;
        let away = current.lost.values().filter(|lost| **lost == Lost::Away);
        Some(OutageNow {
            silent_ns: now.nanos_since(silence.begins),
            away: away.count() as u32,
            clients: self.clients,
            tries: current.causes.values().sum(),
            latest: current.latest,
        })
    }

    /// All outages, when all is known and the window ended at `ends`.
    pub(super) fn finish(mut self, ends: Timestamp) -> Outages {
        self.end_window(ends);
        self.complete_through(Timestamp::MAX);
        if let Some(mut current) = self.current.take() {
            current.break_silence(ends, true, &self.window);
            self.end(current, None);
        }
        for ended in std::mem::take(&mut self.ended) {
            let span_ns = ends.nanos_since(ended.at).min(SECOND_NS);
            self.keep(ended.with_rate_over(span_ns));
        }
        self.outages
    }

    fn happen(&mut self, at: Timestamp, incident: Incident) {
        match incident {
            Incident::Completed(client) => self.complete(at, client),
            Incident::Lost(client, cause) => {
                let current = self.current_at(at, cause);
                current.lost.insert(client, Lost::Away);
                current.note(cause);
            }
            Incident::TryFailed(cause) => self.current_at(at, cause).note(cause),
        }
    }

    /// The outage that goes on, or a new one.
    fn current_at(&mut self, at: Timestamp, cause: LossCause) -> &mut Current {
        let begins = self.last_completion.unwrap_or(self.window.start).min(at);
        let before = |moment| Silence {
            begins: moment,
            before: per_second(&self.recent, moment, self.released),
        };
        let current = self.current.get_or_insert_with(|| Current {
            first_loss: before(at),
            lost: BTreeMap::new(),
            silence: None,
            longest: None,
            silent_ns: 0,
            causes: BTreeMap::new(),
            latest: cause,
        });
        current.silence.get_or_insert_with(|| before(begins));
        current
    }

    fn complete(&mut self, at: Timestamp, client: u32) {
        self.last_completion = Some(at);
        self.recent.push_back(at);
        while self
            .recent
            .front()
            .is_some_and(|first| at.nanos_since(*first) > SECOND_NS)
        {
            self.recent.pop_front();
        }
        for ended in &mut self.ended {
            ended.completions += u64::from(at.nanos_since(ended.at) <= SECOND_NS);
        }
        self.settle_ended(at);
        let Some(current) = &mut self.current else {
            return;
        };
        let was_lost = current.lost.contains_key(&client);
        current.break_silence(at, was_lost, &self.window);
        if was_lost {
            current.lost.insert(client, Lost::Back);
        }
        if current.lost.values().all(|lost| *lost == Lost::Back)
            && let Some(current) = self.current.take()
        {
            self.end(current, Some(at));
        }
    }

    /// Outages of which the second after is over.
    fn settle_ended(&mut self, now: Timestamp) {
        let over = |ended: &mut Ended| now.nanos_since(ended.at) > SECOND_NS;
        for ended in self.ended.extract_if(.., over).collect::<Vec<_>>() {
            self.keep(ended.with_rate_over(SECOND_NS));
        }
    }

    fn end(&mut self, current: Current, recovered_at: Option<Timestamp>) {
        let (Silence { begins, before }, ends) = current
            .longest
            .unwrap_or((current.first_loss, current.first_loss.begins));
        self.outages.unavailable_ns += current.silent_ns;
        let completions = self.recent.iter().filter(|moment| **moment >= ends).count() as u64;
        self.ended.push(Ended {
            outage: Outage {
                begins_ns: begins.signed_nanos_since(self.window.start),
                length_ns: ends.nanos_since(begins),
                recovered_ns: recovered_at.map(|at| at.nanos_since(begins)),
                clients: current.lost.len() as u32,
                causes: current.causes,
                before_per_s: before,
                after_per_s: 0.0,
            },
            at: ends,
            completions,
        });
    }

    fn keep(&mut self, outage: Outage) {
        match self.outages.list.len() < OUTAGES_KEPT {
            true => self.outages.list.push(outage),
            false => self.outages.further += 1,
        }
    }
}

impl Ended {
    /// The outage, of which what came after it was completed in so long, ns.
    fn with_rate_over(self, span_ns: u64) -> Outage {
        Outage {
            after_per_s: rate(self.completions, span_ns),
            ..self.outage
        }
    }
}

/// Completions a second in the second before `moment`, as far as clients were at work by then.
fn per_second(recent: &VecDeque<Timestamp>, moment: Timestamp, released: Timestamp) -> f64 {
    let span_ns = moment.nanos_since(released).min(SECOND_NS);
    let since = Timestamp::from_nanos(moment.nanos() - span_ns);
    let count = recent.iter().filter(|at| (since..=moment).contains(at));
    rate(count.count() as u64, span_ns)
}

fn rate(count: u64, span_ns: u64) -> f64 {
    match span_ns {
        0 => 0.0,
        _ => count as f64 * 1e9 / span_ns as f64,
    }
}

impl Current {
    /// Something completes. If a client that had not lost its connection did that, the server was
    /// there, and the silence was none.
    fn break_silence(&mut self, at: Timestamp, by_lost: bool, window: &Range<Timestamp>) {
        let Some(silence) = self
            .silence
            .take()
            .filter(|silence| by_lost && at > silence.begins)
        else {
            return;
        };
        let length = |(silence, ends): (Silence, Timestamp)| ends.nanos_since(silence.begins);
        let this = (silence, at);
        let in_window = silence.begins.max(window.start);
        self.silent_ns += at.min(window.end).nanos_since(in_window);
        if self
            .longest
            .is_none_or(|longest| length(longest) < length(this))
        {
            self.longest = Some(this);
        }
    }

    fn note(&mut self, cause: LossCause) {
        *self.causes.entry(cause).or_default() += 1;
        self.latest = cause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{at, transaction};
    use crate::event::SqlState;

    fn lost(client: u32, ms: i64, step: LossStep, cause: LossCause) -> LossRecord {
        LossRecord {
            client,
            at: at(ms),
            step,
            cause,
        }
    }

    fn completes(watch: &mut OutageWatch, client: u32, moments_ms: impl Iterator<Item = i64>) {
        for ms in moments_ms {
            watch.transaction(&TransactionRecord {
                client,
                ..transaction(ms - 1, ms)
            });
        }
    }

    const SHUTDOWN: LossCause = LossCause::SqlState(SqlState(*b"57P01"));

    fn watch() -> OutageWatch {
        let mut watch = OutageWatch::new(2);
        watch.begin_window(at(0), at(0)..at(10_000));
        watch
    }

    /// Client 0 loses its connection while client 1 completes once more.
    #[test]
    fn it_lasts_from_the_last_completion_to_the_first_and_until_all_are_back() {
        let mut watch = watch();
        completes(&mut watch, 0, (10..=5_000).step_by(10));
        completes(&mut watch, 1, (10..=5_010).step_by(10));
        watch.loss(&lost(0, 5_005, LossStep::Lost, SHUTDOWN));
        watch.loss(&lost(1, 5_020, LossStep::Lost, LossCause::Reset));
        watch.loss(&lost(0, 5_040, LossStep::TryFailed, LossCause::Refused));
        watch.loss(&lost(1, 5_050, LossStep::TryFailed, LossCause::Refused));
        watch.complete_through(at(6_000));
        let now = watch.now(at(6_010)).expect("an outage");
        assert_eq!((now.silent_ns, now.away, now.tries), (1_000_000_000, 2, 4));
        completes(&mut watch, 0, (7_010..=10_000).step_by(20));
        completes(&mut watch, 1, (7_100..=10_000).step_by(20));
        watch.complete_through(at(7_050));
        assert!(watch.now(at(7_050)).is_none());
        let outages = watch.finish(at(10_000));
        let causes = BTreeMap::from([
            (SHUTDOWN, 1),
            (LossCause::Reset, 1),
            (LossCause::Refused, 2),
        ]);
        assert_eq!(
            outages.list,
            [Outage {
                begins_ns: 5_010_000_000,
                length_ns: 2_000_000_000,
                recovered_ns: Some(2_090_000_000),
                clients: 2,
                causes,
                before_per_s: 201.0,
                after_per_s: 97.0,
            }]
        );
        assert_eq!(outages.unavailable_ns, 2_000_000_000);
    }

    #[test]
    fn where_others_complete_meanwhile_it_has_no_length() {
        let mut watch = watch();
        completes(&mut watch, 0, (10..=1_000).step_by(10));
        watch.loss(&lost(0, 1_005, LossStep::Lost, LossCause::Closed));
        completes(&mut watch, 1, (10..=3_000).step_by(10));
        completes(&mut watch, 0, (2_005..=3_000).step_by(10));
        let outages = watch.finish(at(3_000));
        let [outage] = &outages.list[..] else {
            panic!("{outages:?}");
        };
        assert_eq!((outage.begins_ns, outage.length_ns), (1_005_000_000, 0));
        assert_eq!(outage.recovered_ns, Some(1_000_000_000));
        assert!((195.0..=205.0).contains(&outage.before_per_s), "{outage:?}");
        assert_eq!(outages.unavailable_ns, 0);
    }

    #[test]
    fn what_of_it_lies_behind_the_window_is_not_missing_in_it() {
        let mut watch = watch();
        completes(&mut watch, 0, (10..=8_000).step_by(10));
        watch.loss(&lost(0, 8_005, LossStep::Lost, LossCause::Closed));
        // Its transaction begins within the window, and ends after it.
        completes(&mut watch, 0, std::iter::once(14_000));
        let outages = watch.finish(at(10_000));
        assert_eq!(outages.list[0].length_ns, 6_000_000_000);
        assert_eq!(outages.unavailable_ns, 2_000_000_000);
    }

    #[test]
    fn one_that_is_not_over_lasts_until_the_end() {
        let mut watch = watch();
        completes(&mut watch, 0, (10..=1_000).step_by(10));
        watch.loss(&lost(0, 1_005, LossStep::Lost, LossCause::Closed));
        let outages = watch.finish(at(3_000));
        assert_eq!(outages.list[0].length_ns, 2_000_000_000);
        assert_eq!(outages.list[0].recovered_ns, None);
    }

    #[test]
    fn losses_upon_losses_are_one_outage_as_long_as_its_longest_silence() {
        let mut watch = watch();
        completes(&mut watch, 0, [10].into_iter());
        for (lost_at, back_at) in [(100, 150), (200, 900), (950, 1_000)] {
            watch.loss(&lost(0, lost_at, LossStep::Lost, SHUTDOWN));
            watch.loss(&lost(1, lost_at, LossStep::Lost, SHUTDOWN));
            completes(&mut watch, 0, [back_at].into_iter());
        }
        let outages = watch.finish(at(1_200));
        let [outage] = &outages.list[..] else {
            panic!("{outages:?}");
        };
        assert_eq!(
            (outage.begins_ns, outage.length_ns),
            (150_000_000, 750_000_000)
        );
        assert_eq!(outage.recovered_ns, None, "client 1 never came back");
        // 10 to 150, 150 to 900, 900 to 1000.
        assert_eq!(outages.unavailable_ns, 990_000_000);
    }

    #[test]
    fn what_lies_before_the_window_takes_nothing_from_it() {
        let mut watch = watch();
        completes(&mut watch, 0, [-900].into_iter());
        for (lost_at, back_at) in [(-800, -500), (-100, 200)] {
            watch.loss(&lost(0, lost_at, LossStep::Lost, SHUTDOWN));
            completes(&mut watch, 0, [back_at].into_iter());
        }
        let outages = watch.finish(at(1_000));
        assert_eq!(outages.list.len(), 2);
        assert_eq!(outages.unavailable_ns, 200_000_000);
    }

    #[test]
    fn two_restarts_are_two_outages() {
        let mut watch = watch();
        for (begins, ends) in [(1_000, 2_000), (3_000, 3_500)] {
            completes(&mut watch, 0, (begins - 500..=begins).step_by(10));
            watch.loss(&lost(0, begins + 1, LossStep::Lost, SHUTDOWN));
            completes(&mut watch, 0, [ends].into_iter());
        }
        let outages = watch.finish(at(4_000));
        let lengths: Vec<u64> = outages.list.iter().map(|outage| outage.length_ns).collect();
        assert_eq!(lengths, [1_000_000_000, 500_000_000]);
    }
}
