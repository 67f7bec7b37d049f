//! How long ready clients waited for their thread: the client delay.

use hdrhistogram::Histogram;

/// Client delays of one thread: from the stamp of a wake-up until the thread acted on it.
#[derive(Debug)]
pub struct Delays {
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    histogram: Histogram<u64>,
}

impl Default for Delays {
    fn default() -> Self {
        // A minute is far above any delay of a thread that runs at all; longer ones count as that
        // in the percentile, and in full in sum and maximum.
        let histogram = Histogram::new_with_max(60_000_000_000, 2)
            .expect("a minute and two digits are in range");
        Delays {
            count: 0,
            sum_ns: 0,
            max_ns: 0,
            histogram,
        }
    }
}

impl Delays {
    /// Adds one delay, ns.
    pub fn record(&mut self, delay_ns: u64) {
        self.count += 1;
        self.sum_ns += delay_ns;
        self.max_ns = self.max_ns.max(delay_ns);
        self.histogram.saturating_record(delay_ns);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Their 99th percentile, ns, to two digits; at most a minute.
    pub fn p99_ns(&self) -> u64 {
        self.histogram.value_at_quantile(0.99)
    }

    /// The longest, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_and_maximum_are_exact_and_the_tail_is_seen() {
        let mut delays = Delays::default();
        for _ in 0..98 {
            delays.record(1_000);
        }
        delays.record(500_000);
        delays.record(120_000_000_000);
        assert_eq!(delays.count(), 100);
        assert_eq!(delays.sum_ns(), 98_000 + 500_000 + 120_000_000_000);
        assert!((495_000..=505_000).contains(&delays.p99_ns()));
        assert_eq!(delays.max_ns(), 120_000_000_000);
    }
}
