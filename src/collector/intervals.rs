//! The measured window cut into intervals of equal length, each closed when every worker has said
//! that nothing more will come for it. Knows neither how they are shown nor the clock.

use std::collections::VecDeque;

use crate::event::TransactionRecord;
use crate::stats::Stats;

/// A closed interval. Times count from the beginning of the window.
#[derive(Debug)]
pub(super) struct Interval {
    /// Its beginning, ns.
    pub(super) begins_ns: u64,
    /// Its length, ns; above 0.
    pub(super) length_ns: u64,
    /// The transactions that were completed in it.
    pub(super) stats: Stats,
}

impl Interval {
    /// Its end, ns.
    pub(super) fn ends_ns(&self) -> u64 {
        self.begins_ns + self.length_ns
    }

    /// Transactions processed per second.
    pub(super) fn tps(&self) -> f64 {
        self.stats.processed as f64 * 1e9 / self.length_ns as f64
    }
}

/// Intervals being filled.
pub(super) struct Intervals {
    length_ns: u64,
    /// Where the window is expected to end. An interval that reaches it is held open for half an
    /// interval more, so that a straggler of a few milliseconds gets no line of its own.
    expected_end_ns: u64,
    begins_ns: u64,
    open: VecDeque<Stats>,
}

impl Intervals {
    /// Intervals of `length_ns` (above 0); the window is expected to end at `expected_end_ns`.
    pub(super) fn new(length_ns: u64, expected_end_ns: Option<u64>) -> Self {
        Intervals {
            length_ns: length_ns.max(1),
            expected_end_ns: expected_end_ns.unwrap_or(u64::MAX),
            begins_ns: 0,
            open: VecDeque::new(),
        }
    }

    /// Adds a transaction that was completed `at_ns` after the window began. The end of an interval
    /// belongs to it: workers say that everything *up to* a moment has been sent.
    pub(super) fn record(
        &mut self,
        at_ns: u64,
        record: &TransactionRecord,
        latency_limit_ns: Option<u64>,
    ) {
        let since_begin_ns = at_ns.saturating_sub(self.begins_ns);
        let index = (since_begin_ns.saturating_sub(1) / self.length_ns) as usize;
        while self.open.len() <= index {
            self.open.push_back(Stats::default());
        }
        self.open[index].record(record, latency_limit_ns);
    }

    /// The next interval that is over when everything up to `through_ns` is known.
    pub(super) fn close_next(&mut self, through_ns: u64) -> Option<Interval> {
        let ends_ns = self.begins_ns + self.length_ns;
        let known_by_ns = match self.is_last(ends_ns) {
            true => ends_ns + self.length_ns / 2,
            false => ends_ns,
        };
        (through_ns >= known_by_ns).then(|| self.close(self.length_ns))
    }

    /// The next interval when all is known and the last transaction ended at `end_ns`: the last
    /// one may be shorter, or longer by what was held back for it.
    pub(super) fn close_rest(&mut self, end_ns: u64) -> Option<Interval> {
        let rest_ns = end_ns.saturating_sub(self.begins_ns);
        let held = self.is_last(self.begins_ns + self.length_ns);
        let longest_ns = match held {
            true => self.length_ns + self.length_ns / 2,
            false => self.length_ns,
        };
        match rest_ns {
            0 => None,
            rest if rest < longest_ns => Some(self.close(rest)),
            _ => Some(self.close(self.length_ns)),
        }
    }

    fn is_last(&self, ends_ns: u64) -> bool {
        ends_ns >= self.expected_end_ns
    }

    fn close(&mut self, length_ns: u64) -> Interval {
        let mut stats = self.open.pop_front().unwrap_or_default();
        if length_ns > self.length_ns
            && let Some(held_back) = self.open.pop_front()
        {
            stats.merge(&held_back);
        }
        let begins_ns = self.begins_ns;
        self.begins_ns += length_ns;
        Interval {
            begins_ns,
            length_ns,
            stats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::transaction;

    const MS: u64 = 1_000_000;

    /// (end in ms, length in ms, processed) of what is closed by watermarks, then by the end.
    fn closed(
        expected_end_ms: Option<u64>,
        completed_ms: &[u64],
        known_ms: u64,
        end_ms: u64,
    ) -> Vec<(u64, u64, u64)> {
        let mut intervals = Intervals::new(1_000 * MS, expected_end_ms.map(|ms| ms * MS));
        for ms in completed_ms {
            intervals.record(ms * MS, &transaction(0, 1), None);
        }
        let mut all = Vec::new();
        while let Some(interval) = intervals.close_next(known_ms * MS) {
            all.push(interval);
        }
        while let Some(interval) = intervals.close_rest(end_ms * MS) {
            all.push(interval);
        }
        all.iter()
            .map(|i| (i.ends_ns() / MS, i.length_ns / MS, i.stats.processed))
            .collect()
    }

    #[test]
    fn intervals_follow_each_other_without_gaps_and_lose_nothing() {
        for (case, expected) in [
            // Quiet intervals are intervals too; the end of one belongs to it.
            (
                closed(None, &[1_000, 2_500], 2_900, 2_900),
                vec![(1_000, 1_000, 1), (2_000, 1_000, 0), (2_900, 900, 1)],
            ),
            // A straggler of 5 ms is counted with the last interval…
            (
                closed(Some(2_000), &[500, 2_005], 2_005, 2_005),
                vec![(1_000, 1_000, 1), (2_005, 1_005, 1)],
            ),
            // … one of 700 ms has a line of its own.
            (
                closed(Some(2_000), &[500, 2_700], 2_700, 2_700),
                vec![(1_000, 1_000, 1), (2_000, 1_000, 0), (2_700, 700, 1)],
            ),
            // A run that is shorter than an interval.
            (
                closed(Some(300), &[100, 310], 310, 310),
                vec![(310, 310, 2)],
            ),
            (closed(Some(300), &[], 0, 0), vec![]),
        ] {
            assert_eq!(case, expected);
        }
    }
}
