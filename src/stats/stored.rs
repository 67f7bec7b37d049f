//! A histogram as it stands in a result file: its exact sums, and its buckets as other programs that
//! know HDR histograms read them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::Histogram;
use super::histogram::{Buckets, DIGITS, Sums};

/// The exchange format of [`Histogram`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredHistogram {
    count: u64,
    sum_ns: u128,
    /// In digits: as a number it would be too long for most readers of JSON.
    sum_of_squares_ns2: String,
    min_ns: u64,
    max_ns: u64,
    /// HDR V2, compressed, in base64; empty if there are no durations.
    hdr_v2_deflate: String,
}

impl From<Histogram> for StoredHistogram {
    fn from(histogram: Histogram) -> Self {
        let (buckets, sums) = histogram.into_parts();
        StoredHistogram {
            count: sums.count,
            sum_ns: sums.sum,
            sum_of_squares_ns2: sums.sum_of_squares.to_string(),
            min_ns: if sums.count == 0 { 0 } else { sums.min },
            max_ns: sums.max,
            hdr_v2_deflate: if sums.count == 0 {
                String::new()
            } else {
                encoded(&buckets)
            },
        }
    }
}

/// HDR V2, compressed, in base64.
pub(super) fn encoded(buckets: &Buckets) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(buckets, &mut bytes)
        .expect("counts of a run fit into the format, and memory takes all bytes");
    BASE64_STANDARD.encode(bytes)
}

/// The error says what is wrong.
impl TryFrom<StoredHistogram> for Histogram {
    type Error = String;

    fn try_from(stored: StoredHistogram) -> Result<Self, String> {
        if stored.count == 0 {
            return Ok(Histogram::new());
        }
        let sums = Sums {
            count: stored.count,
            sum: stored.sum_ns,
            sum_of_squares: stored
                .sum_of_squares_ns2
                .parse()
                .map_err(|_| "a histogram's sum of squares is no number".to_owned())?,
            min: stored.min_ns,
            max: stored.max_ns,
        };
        let buckets = decoded(&stored.hdr_v2_deflate)?;
        if !sums.are_possible() || buckets.len() != sums.count {
            return Err("a histogram's sums do not belong to its counts".to_owned());
        }
        Ok(Histogram::of_parts(buckets, sums))
    }
}

fn decoded(text: &str) -> Result<Buckets, String> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("a histogram is no base64: {error}"))?;
    let mut buckets: Buckets = Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| format!("a histogram cannot be read: {error}"))?;
    if buckets.sigfig() != DIGITS || buckets.low() != 1 {
        return Err("a histogram has another precision than those of runs".to_owned());
    }
    buckets.auto(true);
    Ok(buckets)
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
    fn what_is_written_is_read_back() {
        for values in [&[][..], &[0], &[7, 7, 1_000_000, 3_600_000_000_000]] {
            let text = serde_json::to_string(&of(values)).unwrap();
            let read: Histogram = serde_json::from_str(&text).unwrap();
            assert_eq!(read, of(values), "{text}");
            assert_eq!(read.percentile_ns(90.0), of(values).percentile_ns(90.0));
        }
    }

    #[test]
    fn a_histogram_that_lies_is_refused() {
        let good = serde_json::to_value(of(&[5, 6])).unwrap();
        for (field, value) in [
            ("count", 3.into()),
            ("sum_ns", 100.into()),
            ("sum_ns", 3.into()),
            ("sum_of_squares_ns2", "1000".into()),
            ("sum_of_squares_ns2", "-1".into()),
            ("min_ns", 7.into()),
            ("max_ns", u64::MAX.into()),
            ("hdr_v2_deflate", "".into()),
            ("hdr_v2_deflate", "AAAA".into()),
            ("hdr_v2_deflate", "?".into()),
        ] {
            let mut changed = good.clone();
            changed[field] = value;
            let read: Result<Histogram, _> = serde_json::from_value(changed.clone());
            assert!(read.is_err(), "{changed}");
        }
    }
}
