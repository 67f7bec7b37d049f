//! A distribution in little room, for many of which one run has hundreds: latencies of each second.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::Deserializer;
use serde::{Deserialize, Serialize};

use super::Histogram;
use super::histogram::Buckets;
use super::stored::encoded;

/// Significant decimal digits that are kept: a duration differs from the middle of its bucket by
/// less than half a percent.
const DIGITS: u8 = 2;

/// How many durations there were of about each length: an HDR histogram in format V2, compressed, in
/// base64; empty if there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackedHistogram(String);

impl PackedHistogram {
    /// Packs a distribution.
    pub fn of(histogram: &Histogram) -> Self {
        Self::pack(counts(histogram.buckets()))
    }

    /// The distribution of both.
    pub fn merged(&self, other: &PackedHistogram) -> Self {
        Self::pack(self.counts().into_iter().chain(other.counts()))
    }

    /// Middle of each bucket that is not empty, ns, and how many durations lie in it; the shortest
    /// first.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let buckets = unpack(&self.0).expect("it was packed here, or looked at when it was read");
        buckets.map_or(Vec::new(), |buckets| counts(&buckets).collect())
    }

    /// The value of nearest rank for `percent` (above 0 to 100), ns, to 1 %; 0 if there is none.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let counts = self.counts();
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        let rank = super::histogram::rank(percent, total);
        let mut seen = 0;
        let reached = counts.into_iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |(nanos, _)| nanos)
    }

    fn pack(counts: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut buckets = Buckets::new(DIGITS).expect("two digits are within the range of 0 to 5");
        for (nanos, count) in counts {
            buckets
                .record_n(nanos, count)
                .expect("an auto-resizing histogram takes every value");
        }
        if buckets.is_empty() {
            return PackedHistogram::default();
        }
        PackedHistogram(encoded(&buckets))
    }
}

/// Middle of each bucket that is not empty, and how many values lie in it.
pub(super) fn counts(buckets: &Buckets) -> impl Iterator<Item = (u64, u64)> {
    buckets.iter_recorded().map(|step| {
        let middle = buckets.median_equivalent(step.value_iterated_to());
        (middle, step.count_at_value())
    })
}

fn unpack(text: &str) -> Result<Option<Buckets>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("a histogram is no base64: {error}"))?;
    let buckets = Deserializer::new().deserialize(&mut &bytes[..]);
    buckets
        .map(Some)
        .map_err(|error| format!("a histogram cannot be read: {error}"))
}

/// The error says what is wrong.
impl TryFrom<String> for PackedHistogram {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let total = unpack(&text)?.map_or(0, |buckets| buckets.len());
        match total <= u64::from(u32::MAX) {
            true => Ok(PackedHistogram(text)),
            false => {
                Err("a histogram has more durations than a slice of a run can have".to_owned())
            }
        }
    }
}

impl From<PackedHistogram> for String {
    fn from(packed: PackedHistogram) -> Self {
        packed.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    #[test]
    fn durations_are_found_again_to_half_a_percent() {
        let values = [1, 99, 1_234, 1_000_000, 3_600_000_000_000];
        let counts = PackedHistogram::of(&of(&values)).counts();
        assert_eq!(counts.len(), values.len());
        for ((found, count), value) in counts.into_iter().zip(values) {
            assert!(
                found.abs_diff(value) as f64 <= value as f64 * 0.01,
                "{found}, not {value}"
            );
            assert_eq!(count, 1);
        }
        assert_eq!(PackedHistogram::of(&of(&[])).counts(), []);
    }

    #[test]
    fn what_is_merged_is_what_was_packed_together() {
        let merged = PackedHistogram::of(&of(&[5, 70_000])).merged(&PackedHistogram::of(&of(&[5])));
        assert_eq!(merged, PackedHistogram::of(&of(&[5, 5, 70_000])));
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        for text in ["?", "AAAA", "HISTogram="] {
            assert!(
                PackedHistogram::try_from(text.to_owned()).is_err(),
                "{text}"
            );
        }
        let packed = PackedHistogram::of(&of(&[5, 6]));
        assert_eq!(PackedHistogram::try_from(packed.0.clone()), Ok(packed));
    }
}
