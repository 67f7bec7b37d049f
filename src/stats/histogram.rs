//! A distribution of durations: exact count, sum, spread and extremes, and percentiles from an
//! auto-resizing HDR histogram. Nothing is clamped and nothing is sampled.

use serde::{Deserialize, Serialize};

use super::stored::{StoredHistogram, encoded};

/// Significant decimal digits that the histogram keeps: a value differs from the middle of its
/// bucket by less than 0.05 %.
pub(super) const DIGITS: u8 = 3;

/// How many durations there are of about each length.
pub(super) type Buckets = hdrhistogram::Histogram<u64>;

/// A distribution of durations in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "StoredHistogram", try_from = "StoredHistogram")]
pub struct Histogram {
    buckets: Buckets,
    sums: Sums,
}

/// What is known exactly of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) sum: u128,
    /// Σx², exact: 10¹² durations of three hours each still fit. With exact sums a merge of parts
    /// equals the record of all, and no digits cancel in the spread.
    pub(super) sum_of_squares: u128,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Sums {
    const NONE: Sums = Sums {
        count: 0,
        sum: 0,
        sum_of_squares: 0,
        min: u64::MAX,
        max: 0,
    };

    /// Whether there can be so many durations with these sums, and figures can be computed of them.
    pub(super) fn are_possible(&self) -> bool {
        let (count, min, max) = (
            u128::from(self.count),
            u128::from(self.min),
            u128::from(self.max),
        );
        let squares_max = (max * max).checked_mul(4 * count);
        min <= max
            && (count * min..=count * max).contains(&self.sum)
            && squares_max.is_some_and(|most| self.sum_of_squares <= most / 4)
    }
}

impl Histogram {
    /// An empty distribution.
    pub fn new() -> Self {
        Histogram {
            buckets: hdrhistogram::Histogram::new(DIGITS)
                .expect("3 digits are within the histogram's range of 0 to 5"),
            sums: Sums::NONE,
        }
    }

    /// From its buckets and its sums, which belong to each other.
    pub(super) fn of_parts(buckets: Buckets, sums: Sums) -> Self {
        Histogram { buckets, sums }
    }

    pub(super) fn into_parts(self) -> (Buckets, Sums) {
        (self.buckets, self.sums)
    }

    /// Adds one duration of `nanos` ns.
    pub fn record(&mut self, nanos: u64) {
        self.record_many(nanos, 1);
    }

    /// Adds `count` durations of `nanos` ns each.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.buckets
            .record_n(nanos, count)
            .expect("an auto-resizing histogram takes every value");
        let (nanos_128, count_128) = (u128::from(nanos), u128::from(count));
        self.sums.count += count;
        self.sums.sum += nanos_128 * count_128;
        self.sums.sum_of_squares = self
            .sums
            .sum_of_squares
            .saturating_add((nanos_128 * nanos_128).saturating_mul(count_128));
        self.sums.min = self.sums.min.min(nanos);
        self.sums.max = self.sums.max.max(nanos);
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets
            .add(&other.buckets)
            .expect("an auto-resizing histogram takes every value of another");
        self.sums.count += other.sums.count;
        self.sums.sum += other.sums.sum;
        self.sums.sum_of_squares = self
            .sums
            .sum_of_squares
            .saturating_add(other.sums.sum_of_squares);
        self.sums.min = self.sums.min.min(other.sums.min);
        self.sums.max = self.sums.max.max(other.sums.max);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.sums.count
    }

    /// Sum of the durations, ns.
    pub fn sum_ns(&self) -> u128 {
        self.sums.sum
    }

    /// The shortest, ns; 0 if there is none.
    pub fn min_ns(&self) -> u64 {
        if self.sums.count == 0 {
            0
        } else {
            self.sums.min
        }
    }

    /// The longest, ns; 0 if there is none.
    pub fn max_ns(&self) -> u64 {
        self.sums.max
    }

    /// Arithmetic mean, ns; 0 if there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.sums.count == 0 {
            return 0.0;
        }
        self.sums.sum as f64 / self.sums.count as f64
    }

    /// Population standard deviation, ns; 0 if there is none.
    ///
    /// With m = ⌊mean⌋: variance = Σ(x−m)²/n − (mean−m)², where Σ(x−m)² = Σx² − 2mΣx + nm² is
    /// exact in integers, so only small numbers are ever subtracted in floating point.
    pub fn stddev_ns(&self) -> f64 {
        if self.sums.count == 0 {
            return 0.0;
        }
        let n = u128::from(self.sums.count);
        let floor = self.sums.sum / n;
        let around_floor = (self.sums.sum_of_squares + n * floor * floor)
            .saturating_sub(2 * floor * self.sums.sum) as f64
            / n as f64;
        let fraction = (self.sums.sum % n) as f64 / n as f64;
        (around_floor - fraction * fraction).max(0.0).sqrt()
    }

    /// The value of nearest rank for `percent` (above 0 to 100), ns, to 0.05 %; 0 if there is none.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.percentiles_ns(std::iter::once(percent))[0]
    }

    /// As [`Histogram::percentile_ns`] for many, which must come in ascending order, in one pass.
    pub fn percentiles_ns(&self, percents: impl Iterator<Item = f64>) -> Vec<u64> {
        let mut steps = self.buckets.iter_recorded();
        let (mut seen, mut value) = (0, 0);
        percents
            .map(|percent| {
                let rank = self.rank(percent);
                while seen < rank {
                    let Some(step) = steps.next() else { break };
                    seen += step.count_at_value();
                    value = self.buckets.median_equivalent(step.value_iterated_to());
                }
                value.clamp(self.min_ns(), self.max_ns())
            })
            .collect()
    }

    /// How many durations rank above the percentile of nearest rank for `percent`.
    pub fn samples_beyond(&self, percent: f64) -> u64 {
        self.sums.count - self.rank(percent)
    }

    /// HDR V2, compressed, in base64.
    pub fn to_hdr_v2_deflate(&self) -> String {
        encoded(&self.buckets)
    }

    fn rank(&self, percent: f64) -> u64 {
        rank(percent, self.sums.count)
    }

    pub(super) fn buckets(&self) -> &Buckets {
        &self.buckets
    }
}

/// Nearest rank among `count`: ⌈percent/100 × count⌉, at least 1 if there are any. The hair that is
/// taken off keeps a product like 0.999 × 1000 from being rounded up past the whole number that it
/// is.
pub(super) fn rank(percent: f64, count: u64) -> u64 {
    let exact = percent * count as f64 / 100.0;
    ((exact * (1.0 - 1e-12)).ceil() as u64).clamp(1.min(count), count)
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.sums == other.sums && self.buckets == other.buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    #[test]
    fn an_empty_distribution_is_all_zeros() {
        let empty = Histogram::new();
        assert_eq!(
            (
                empty.count(),
                empty.min_ns(),
                empty.max_ns(),
                empty.percentile_ns(99.0)
            ),
            (0, 0, 0, 0)
        );
        assert_eq!((empty.mean_ns(), empty.stddev_ns()), (0.0, 0.0));
        assert_eq!(empty.samples_beyond(50.0), 0);
    }

    #[test]
    fn mean_and_population_spread_are_exact_where_sums_of_floats_cancel() {
        let far = 3_600_000_000_000;
        let histogram = of(&[far + 1, far + 2, far + 3, far + 4]);
        assert_eq!(histogram.mean_ns(), far as f64 + 2.5);
        assert!((histogram.stddev_ns() - 1.25_f64.sqrt()).abs() < 1e-9);
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (far + 1, far + 4));
    }

    #[test]
    fn many_percentiles_are_those_that_are_asked_for_alone() {
        let histogram = of(&(1..=1000).map(|it| it * it).collect::<Vec<_>>());
        let percents = [0.001, 1.0, 50.0, 50.0, 99.0, 100.0];
        let alone = percents.map(|percent| histogram.percentile_ns(percent));
        assert_eq!(histogram.percentiles_ns(percents.into_iter()), alone);
        assert_eq!(of(&[]).percentiles_ns(percents.into_iter()), [0; 6]);
    }

    #[test]
    fn percentiles_are_of_nearest_rank() {
        let histogram = of(&(1..=1000).collect::<Vec<_>>());
        for (percent, expected) in [
            (50.0, 500),
            (90.0, 900),
            (99.0, 990),
            (99.9, 999),
            (100.0, 1000),
        ] {
            assert_eq!(histogram.percentile_ns(percent), expected, "p{percent}");
        }
        assert_eq!(histogram.samples_beyond(99.0), 10);
        assert_eq!(histogram.samples_beyond(99.9), 1);
        assert_eq!(of(&[7]).percentile_ns(1.0), 7);
    }

    proptest! {
        #[test]
        fn a_merge_of_parts_equals_the_record_of_all(
            values in prop::collection::vec(0_u64..10_u64.pow(13), 1..200),
            cut in 0_usize..200,
        ) {
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = of(left);
            merged.merge(&of(right));
            prop_assert_eq!(merged, of(&values));
        }

        #[test]
        fn percentiles_agree_with_sorted_whole_microseconds_to_a_thousandth_and_one(
            values in prop::collection::vec(0_u64..10_u64.pow(12), 1..300),
            percent in 0.1_f64..100.0,
        ) {
            let histogram = of(&values);
            let mut micros: Vec<u64> = values.iter().map(|ns| (ns + 500) / 1000).collect();
            micros.sort_unstable();
            let rank = (percent * micros.len() as f64 / 100.0).ceil() as usize;
            let logged = micros[rank.max(1) - 1] as f64;
            let ours = histogram.percentile_ns(percent) as f64 / 1000.0;
            prop_assert!((ours - logged).abs() <= logged * 0.001 + 1.0, "{ours} against {logged}");
        }
    }
}
