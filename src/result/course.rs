//! How the measured window went: a slice for each second, or for more of them in a long run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stats::{Histogram, PackedHistogram};

/// Width of a slice before any halving of the resolution.
const FINEST_NS: u64 = 1_000_000_000;
/// An hour of seconds.
const MAX_SLICES: usize = 3_600;

/// The window in slices of equal width, but for the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    width_ns: u64,
    slices: Vec<Slice>,
}

/// What happened in one stretch of the window: what was completed in it, but for `due`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Its length, ns; that of the last one may differ.
    pub length_ns: u64,
    /// Clients that were connected at its end.
    pub clients_connected: i64,
    /// Transactions that were due in it; without a rate, those that ended in it.
    pub due: u64,
    /// Transactions processed.
    pub processed: u64,
    /// Transactions failed.
    pub failed: u64,
    /// Transactions skipped.
    pub skipped: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// Those of the aborted whose connection was lost.
    pub lost: u64,
    /// Tries after the first.
    pub retries: u64,
    /// Connections made.
    pub connects: u64,
    /// Checkpoints that the server was seen to begin, if it was looked at.
    pub checkpoints: Option<u64>,
    /// Latencies of the processed: figures to three digits, and how they were distributed.
    pub latency: SliceLatency,
    /// Mean lag behind the schedule, ns; 0 without one.
    pub lag_mean_ns: f64,
    /// The longest lag, ns.
    pub lag_max_ns: u64,
}

/// Latencies of a slice, ns; all 0 if there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceLatency {
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median, of nearest rank as all percentiles.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them, to 1 %.
    pub histogram: PackedHistogram,
}

impl Course {
    /// A course without slices.
    pub fn new() -> Self {
        Course {
            width_ns: FINEST_NS,
            slices: Vec::new(),
        }
    }

    /// Adds the slice of a second, the next one in time.
    pub fn push(&mut self, slice: Slice) {
        match self.slices.last_mut() {
            Some(last) if last.length_ns + slice.length_ns <= self.width_ns => last.merge(&slice),
            Some(_) | None => self.slices.push(slice),
        }
        if self.slices.len() > MAX_SLICES {
            self.halve();
        }
    }

    /// The time that a slice covers.
    pub fn width(&self) -> Duration {
        Duration::from_nanos(self.width_ns)
    }

    /// The slices, the first one beginning with the window.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Beginning of each slice, counted from that of the window, and the slice.
    pub fn with_beginnings(&self) -> impl Iterator<Item = (Duration, &Slice)> {
        let mut begins_ns = 0_u64;
        self.slices.iter().map(move |slice| {
            let begins = Duration::from_nanos(begins_ns);
            begins_ns = begins_ns.saturating_add(slice.length_ns);
            (begins, slice)
        })
    }

    fn halve(&mut self) {
        self.width_ns *= 2;
        let pairs = self.slices.chunks(2).map(|pair| {
            let mut slice = pair[0].clone();
            pair[1..].iter().for_each(|second| slice.merge(second));
            slice
        });
        self.slices = pairs.collect();
    }
}

impl Slice {
    /// Adds what happened right after it.
    fn merge(&mut self, next: &Slice) {
        let ended = |slice: &Slice| (slice.processed + slice.failed + slice.skipped) as f64;
        self.lag_mean_ns = weighted(
            (self.lag_mean_ns, ended(self)),
            (next.lag_mean_ns, ended(next)),
        );
        self.lag_max_ns = self.lag_max_ns.max(next.lag_max_ns);
        self.latency
            .merge(self.processed, &next.latency, next.processed);
        self.length_ns += next.length_ns;
        self.clients_connected = next.clients_connected;
        self.due += next.due;
        self.processed += next.processed;
        self.failed += next.failed;
        self.skipped += next.skipped;
        self.aborted += next.aborted;
        self.lost += next.lost;
        self.retries += next.retries;
        self.connects += next.connects;
        self.checkpoints = match (self.checkpoints, next.checkpoints) {
            (Some(some), Some(more)) => Some(some + more),
            (known, None) | (None, known) => known,
        };
    }
}

impl SliceLatency {
    /// Of these latencies.
    pub fn of(histogram: &Histogram) -> Self {
        SliceLatency {
            mean_ns: histogram.mean_ns(),
            p50_ns: histogram.percentile_ns(50.0),
            p90_ns: histogram.percentile_ns(90.0),
            p99_ns: histogram.percentile_ns(99.0),
            max_ns: histogram.max_ns(),
            histogram: PackedHistogram::of(histogram),
        }
    }

    /// Adds `more` latencies to the `count` that there are. The percentiles are to 1 % then.
    fn merge(&mut self, count: u64, next: &SliceLatency, more: u64) {
        self.mean_ns = weighted((self.mean_ns, count as f64), (next.mean_ns, more as f64));
        self.max_ns = self.max_ns.max(next.max_ns);
        self.histogram = self.histogram.merged(&next.histogram);
        let percentile = |percent| self.histogram.percentile_ns(percent).min(self.max_ns);
        (self.p50_ns, self.p90_ns, self.p99_ns) =
            (percentile(50.0), percentile(90.0), percentile(99.0));
    }
}

/// The mean of two means, each with its weight; 0 if they have none.
fn weighted(one: (f64, f64), other: (f64, f64)) -> f64 {
    let weight = one.1 + other.1;
    match weight > 0.0 {
        true => (one.0 * one.1 + other.0 * other.1) / weight,
        false => 0.0,
    }
}

impl Default for Course {
    fn default() -> Self {
        Course::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second with `processed` transactions of `millis` ms.
    fn second(processed: u64, millis: u64) -> Slice {
        let mut histogram = Histogram::new();
        histogram.record_many(millis * 1_000_000, processed);
        Slice {
            length_ns: FINEST_NS,
            due: processed,
            processed,
            latency: SliceLatency::of(&histogram),
            checkpoints: Some(1),
            ..Slice::default()
        }
    }

    #[test]
    fn a_long_run_halves_its_resolution_and_loses_nothing() {
        let mut course = Course::new();
        for index in 0..7_300 {
            course.push(second(1 + index % 2, 1 + index % 2));
        }
        assert_eq!(course.width(), Duration::from_secs(4));
        assert_eq!(course.slices().len(), 7_300 / 4);
        let whole = |slice: &Slice| {
            (
                slice.processed,
                slice.due,
                slice.checkpoints,
                slice.length_ns,
            )
        };
        assert!(
            course
                .slices()
                .iter()
                .all(|slice| whole(slice) == (6, 6, Some(4), 4 * FINEST_NS))
        );
        let latency = &course.slices()[7].latency;
        assert!((latency.mean_ns / 1e6 - 10.0 / 6.0).abs() < 1e-9);
        assert!(
            (latency.p50_ns as f64 / 2e6 - 1.0).abs() < 0.01,
            "{}",
            latency.p50_ns
        );
        assert_eq!(latency.max_ns, 2_000_000);
        let last = course.with_beginnings().last().map(|(begins, _)| begins);
        assert_eq!(last, Some(Duration::from_secs(7_296)));
    }
}
