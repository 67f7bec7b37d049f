//! What is known about the executions of one command of a script.

use serde::{Deserialize, Serialize};

use super::Histogram;
use crate::event::CommandEnd;

/// Executions of one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandStats {
    /// How long it took where it was executed.
    pub durations: Histogram,
    /// Transactions that were given up because of its errors.
    pub failures: u64,
    /// Transactions that began again because of its errors.
    pub retries: u64,
}

impl CommandStats {
    /// Adds one execution, which took `duration_ns` if it was successful.
    pub fn record(&mut self, end: CommandEnd, duration_ns: u64) {
        match end {
            CommandEnd::Done => self.durations.record(duration_ns),
            CommandEnd::Failed => self.failures += 1,
            CommandEnd::Retried => self.retries += 1,
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &CommandStats) {
        self.durations.merge(&other.durations);
        self.failures += other.failures;
        self.retries += other.retries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_of_parts_equals_the_record_of_all() {
        let ends = [
            (CommandEnd::Done, 7_000),
            (CommandEnd::Failed, 0),
            (CommandEnd::Retried, 0),
            (CommandEnd::Retried, 0),
            (CommandEnd::Done, 90_000_000),
        ];
        let of = |part: &[(CommandEnd, u64)]| {
            let mut stats = CommandStats::default();
            part.iter()
                .for_each(|&(end, duration_ns)| stats.record(end, duration_ns));
            stats
        };
        let all = of(&ends);
        assert_eq!(
            (all.durations.count(), all.failures, all.retries),
            (2, 1, 2)
        );
        for cut in 0..=ends.len() {
            let mut merged = of(&ends[..cut]);
            merged.merge(&of(&ends[cut..]));
            assert_eq!(merged, all, "cut at {cut}");
        }
    }
}
