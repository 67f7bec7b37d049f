//! A part of the run cut into intervals of equal length, each closed when every worker has said
//! that nothing more will come for it. Knows neither what is kept of them, nor how they are shown,
//! nor the clock.

use std::collections::VecDeque;

use crate::stats::Stats;

/// What is kept of an interval.
pub(super) trait Kept: Default {
    /// Adds everything that `other` holds.
    fn merge(&mut self, other: &Self);
}

impl Kept for Stats {
    fn merge(&mut self, other: &Self) {
        Stats::merge(self, other);
    }
}

/// A closed interval. Times count from the beginning of the part.
#[derive(Debug)]
pub(super) struct Interval<K = Stats> {
    /// Its beginning, ns.
    pub(super) begins_ns: u64,
    /// Its length, ns; above 0.
    pub(super) length_ns: u64,
    /// What was completed in it.
    pub(super) kept: K,
}

impl<K> Interval<K> {
    /// Its end, ns.
    pub(super) fn ends_ns(&self) -> u64 {
        self.begins_ns + self.length_ns
    }

    /// So many things as a number a second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.length_ns as f64
    }
}

/// Intervals being filled.
pub(super) struct Intervals<K = Stats> {
    length_ns: u64,
    /// Where the part is expected to end. An interval that reaches it is held open for half an
    /// interval more, so that a straggler of a few milliseconds gets no line of its own.
    expected_end_ns: u64,
    begins_ns: u64,
    open: VecDeque<K>,
}

impl<K: Kept> Intervals<K> {
    /// Intervals of `length_ns` (above 0); the part is expected to end at `expected_end_ns`.
    pub(super) fn new(length_ns: u64, expected_end_ns: Option<u64>) -> Self {
        Intervals {
            length_ns: length_ns.max(1),
            expected_end_ns: expected_end_ns.unwrap_or(u64::MAX),
            begins_ns: 0,
            open: VecDeque::new(),
        }
    }

    /// What is kept of the interval in which something was completed, `at_ns` after the part began.
    /// The end of an interval belongs to it: workers say that everything *up to* a moment has been
    /// sent.
    pub(super) fn at(&mut self, at_ns: u64) -> &mut K {
        let since_begin_ns = at_ns.saturating_sub(self.begins_ns);
        let index = (since_begin_ns.saturating_sub(1) / self.length_ns) as usize;
        while self.open.len() <= index {
            self.open.push_back(K::default());
        }
        &mut self.open[index]
    }

    /// The next interval that is over when everything up to `through_ns` is known.
    pub(super) fn close_next(&mut self, through_ns: u64) -> Option<Interval<K>> {
        let ends_ns = self.begins_ns + self.length_ns;
        let known_by_ns = match self.is_last(ends_ns) {
            true => ends_ns + self.length_ns / 2,
            false => ends_ns,
        };
        (through_ns >= known_by_ns).then(|| self.close(self.length_ns))
    }

    /// The next interval when all is known and the last transaction ended at `end_ns`: the last
    /// one may be shorter, or longer by what was held back for it.
    pub(super) fn close_rest(&mut self, end_ns: u64) -> Option<Interval<K>> {
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

    fn close(&mut self, length_ns: u64) -> Interval<K> {
        let mut kept = self.open.pop_front().unwrap_or_default();
        if length_ns > self.length_ns
            && let Some(held_back) = self.open.pop_front()
        {
            kept.merge(&held_back);
        }
        let begins_ns = self.begins_ns;
        self.begins_ns += length_ns;
        Interval {
            begins_ns,
            length_ns,
            kept,
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
        let mut intervals = Intervals::<Stats>::new(1_000 * MS, expected_end_ms.map(|ms| ms * MS));
        for ms in completed_ms {
            intervals.at(ms * MS).record(&transaction(0, 1), None);
        }
        let mut all = Vec::new();
        while let Some(interval) = intervals.close_next(known_ms * MS) {
            all.push(interval);
        }
        while let Some(interval) = intervals.close_rest(end_ms * MS) {
            all.push(interval);
        }
        all.iter()
            .map(|i| (i.ends_ns() / MS, i.length_ns / MS, i.kept.processed))
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
