//! Which transactions are logged (`--sampling-rate`): drawn as pgbench draws them, from a stream of
//! each thread's own, so that the same seed keeps the same ones.

use crate::random::Generator;

/// A share of the transactions.
pub(super) struct Sampling {
    rate: f64,
    /// One a worker thread.
    streams: Vec<Generator>,
    left_out: u64,
}

impl Sampling {
    /// Keeps this share, above 0 and at most 1.
    pub(super) fn new(rate: f64, streams: &[Generator]) -> Self {
        Sampling {
            rate,
            streams: streams.to_vec(),
            left_out: 0,
        }
    }

    /// Whether the next transaction of this worker is kept. One draw.
    pub(super) fn keeps(&mut self, worker: u32) -> bool {
        let kept = self.streams[worker as usize].double() <= self.rate;
        self.left_out += u64::from(!kept);
        kept
    }

    /// How many were not.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeds;

    #[test]
    fn each_thread_keeps_what_pgbench_keeps() {
        let of = |seeds: Seeds| -> Vec<Generator> {
            let threads = seeds.threads.iter();
            threads.map(|seeds| Generator::new(seeds.sample)).collect()
        };
        let streams = of(Seeds::draw(42, 1, 1, false));
        let mut sampling = Sampling::new(0.3, &[streams[0].clone(), streams[0].clone()]);
        let kept = |sampling: &mut Sampling, worker| -> Vec<u32> {
            (1..=40).filter(|_| sampling.keeps(worker)).collect()
        };
        let expected = [1, 3, 12, 13, 16, 19, 24, 28, 32, 35];
        assert_eq!(kept(&mut sampling, 0), expected);
        // The other stream has not moved meanwhile.
        assert_eq!(kept(&mut sampling, 1), expected);
        assert_eq!(sampling.left_out(), 60);
    }
}
