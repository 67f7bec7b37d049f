//! How a run went over time: sums for each 100 ms of the measured window, by completion. A run
//! longer than an hour halves its resolution, as often as needed, so that memory stays bounded.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::{Outcome, TransactionRecord};

/// Width of a point before any halving.
const FINEST_NS: u64 = 100_000_000;
/// One hour at the finest resolution; 36,000 points of 48 bytes are 1.7 MB.
const MAX_POINTS: usize = 36_000;

/// What was completed in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Transactions processed.
    pub processed: u64,
    /// Transactions failed.
    pub failed: u64,
    /// Transactions skipped.
    pub skipped: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// Sum of the latencies of the processed, ns.
    pub latency_sum_ns: u64,
    /// The longest of them, ns.
    pub latency_max_ns: u64,
}

impl Point {
    fn add(&mut self, other: &Point) {
        self.processed += other.processed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.aborted += other.aborted;
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}

/// Points of equal width from the beginning of the measured window on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    width_ns: u64,
    points: Vec<Point>,
}

impl Series {
    /// A series without points.
    pub fn new() -> Self {
        Series {
            width_ns: FINEST_NS,
            points: Vec::new(),
        }
    }

    /// Adds a transaction that ended `since_begin_ns` after the window began.
    pub fn record(&mut self, since_begin_ns: u64, record: &TransactionRecord) {
        let point = self.point_at(since_begin_ns);
        match record.outcome {
            Outcome::Processed => {
                let latency_ns = record.latency_ns();
                point.processed += 1;
                point.latency_sum_ns += latency_ns;
                point.latency_max_ns = point.latency_max_ns.max(latency_ns);
            }
            Outcome::Failed => point.failed += 1,
            Outcome::Skipped => point.skipped += 1,
            Outcome::Aborted(_) => point.aborted += 1,
        }
    }

    /// The time that one point covers.
    pub fn width(&self) -> Duration {
        Duration::from_nanos(self.width_ns)
    }

    /// The points, the first one beginning with the window.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether its points have a width that points of a run can have.
    pub fn is_possible(&self) -> bool {
        self.width_ns >= FINEST_NS && self.width_ns.is_multiple_of(FINEST_NS)
    }

    /// The sum of all points.
    pub fn total(&self) -> Point {
        let mut total = Point::default();
        self.points.iter().for_each(|point| total.add(point));
        total
    }

    /// Processed transactions completed in the first `nanos` of a window of `window_ns`. Inside a
    /// point they are taken as evenly spread, over its part inside the window.
    pub(super) fn processed_until(&self, nanos: u64, window_ns: u64) -> f64 {
        let whole = (nanos / self.width_ns) as usize;
        let before: u64 = self.points.iter().take(whole).map(|p| p.processed).sum();
        let (begun_ns, in_window_ns) = (nanos % self.width_ns, window_ns - nanos);
        let spread_ns = self.width_ns.min(begun_ns + in_window_ns).max(1);
        let share = begun_ns as f64 / spread_ns as f64;
        let within = self.points.get(whole).map_or(0, |p| p.processed) as f64 * share;
        before as f64 + within
    }

    /// The points that lie wholly in the first `nanos` of the window; those after the last
    /// completion are zeros. Where these would be too many, points are summed in groups.
    pub(super) fn whole_points(&self, nanos: u64) -> Vec<Point> {
        let count = (nanos / self.width_ns) as usize;
        let each = count.div_ceil(MAX_POINTS).max(1);
        let mut points = merged(&self.points, each);
        points.resize(count / each, Point::default());
        points
    }

    fn point_at(&mut self, since_begin_ns: u64) -> &mut Point {
        while since_begin_ns / self.width_ns >= MAX_POINTS as u64 {
            self.halve();
        }
        let index = (since_begin_ns / self.width_ns) as usize;
        if index >= self.points.len() {
            self.points.resize(index + 1, Point::default());
        }
        &mut self.points[index]
    }

    fn halve(&mut self) {
        self.width_ns *= 2;
        self.points = merged(&self.points, 2);
    }
}

impl Default for Series {
    fn default() -> Self {
        Series::new()
    }
}

/// The points summed in groups of `size`; the last group may be smaller.
pub(super) fn merged(points: &[Point], size: usize) -> Vec<Point> {
    points
        .chunks(size)
        .map(|group| {
            let mut sum = Point::default();
            group.iter().for_each(|point| sum.add(point));
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::testing;
    use crate::time::Timestamp;

    fn processed(latency_ns: u64) -> TransactionRecord {
        testing::processed(Timestamp::ZERO, Timestamp::from_nanos(latency_ns))
    }

    #[test]
    fn a_transaction_counts_where_it_was_completed() {
        let mut series = Series::new();
        for millis in [0, 99, 100, 250] {
            series.record(millis * 1_000_000, &processed(5));
        }
        let counts: Vec<_> = series.points().iter().map(|p| p.processed).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert_eq!(series.total().latency_sum_ns, 20);
    }

    #[test]
    fn completions_before_a_moment_are_interpolated_inside_a_point() {
        let mut series = Series::new();
        for millis in [10, 110, 120, 130, 140] {
            series.record(millis * 1_000_000, &processed(5));
        }
        for (millis, window_millis, expected) in [
            (100, 1_000, 1.0),
            (150, 1_000, 3.0),
            (9_000, 9_000, 5.0),
            // Points that the window ends in: all of theirs lies inside it.
            (120, 140, 3.0),
            (140, 140, 5.0),
            (10, 20, 0.5),
        ] {
            let until = series.processed_until(millis * 1_000_000, window_millis * 1_000_000);
            assert_eq!(until, expected, "{millis} of {window_millis} ms");
        }
    }

    /// A server that hangs for months leaves no points.
    #[test]
    fn a_window_that_nothing_was_completed_in_has_few_points() {
        let mut series = Series::new();
        series.record(0, &processed(5));
        let points = series.whole_points(u64::MAX / 2);
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&points.len()));
        assert_eq!((points[0].processed, points[1].processed), (1, 0));
    }

    #[test]
    fn a_long_run_halves_its_resolution_and_loses_nothing() {
        let mut series = Series::new();
        for second in 0..7_300 {
            series.record(second * 1_000_000_000, &processed(second));
        }
        assert_eq!(series.width(), Duration::from_millis(400));
        assert!(series.points().len() <= MAX_POINTS);
        assert_eq!(series.total().processed, 7_300);
        assert_eq!(series.total().latency_max_ns, 7_299);
    }
}
