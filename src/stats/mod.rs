//! What is known about a set of transactions: counts and distributions. Figures are accumulated by
//! [`Stats::record`] and [`Stats::merge`] and by nothing else. Knows neither threads nor output.

mod commands;
mod errors;
mod histogram;
mod noise;
mod packed;
mod series;
mod stored;
mod student;

pub use commands::CommandStats;
pub use errors::{ErrorKind, Errors};
pub use histogram::Histogram;
pub use noise::{Noise, Untold};
pub use packed::PackedHistogram;
pub use series::{Point, Series};
pub use student::student_t;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::{Abort, Failure, Outcome, TransactionRecord};

/// Counts and distributions of a set of transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Transactions whose script ran to its end.
    pub processed: u64,
    /// Transactions that never began, because their slot was older than the latency limit.
    pub skipped: u64,
    /// Transactions given up after an error that leaves their client alive.
    pub failed: Failures,
    /// Transactions that ended with their client, their connection or the run.
    pub aborted: Aborts,
    /// Failed and aborted transactions by what ended them.
    pub errors: Errors,
    /// Processed transactions whose response time exceeds the limit.
    pub late: u64,
    /// Processed and failed transactions that were tried more than once.
    pub retried: u64,
    /// Their retries in all.
    pub retries: u64,
    /// Time inside `\untimed` of all but skipped transactions, ns.
    pub untimed_ns: u64,
    /// Latency of the processed.
    pub latency: Histogram,
    /// What else there is to know once one of them has begun later than it was due.
    paced: Option<Box<Paced>>,
    /// Latency of the failed.
    pub failed_latency: Histogram,
}

/// Distributions of processed transactions that may begin later than they are due. As long as all
/// begin when they are due, each of them is that of latency, and the lag is 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Paced {
    service: Histogram,
    response: Histogram,
    lag: Histogram,
}

impl Paced {
    /// Of transactions with these latencies, none of which began late.
    fn of_punctual(latency: &Histogram) -> Self {
        let mut lag = Histogram::new();
        lag.record_many(0, latency.count());
        Paced {
            service: latency.clone(),
            response: latency.clone(),
            lag,
        }
    }

    fn record(&mut self, record: &TransactionRecord) {
        self.service.record(record.service_ns());
        self.response.record(record.response_ns());
        self.lag.record(record.lag_ns());
    }

    fn merge(&mut self, other: &Paced) {
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
    }
}

impl Stats {
    /// Adds one transaction. Processed ones whose response time exceeds `latency_limit_ns` are
    /// late: without a connect between slot and begin that is their latency.
    pub fn record(&mut self, record: &TransactionRecord, latency_limit_ns: Option<u64>) {
        self.untimed_ns += record.untimed_ns;
        if let Some(kind) = ErrorKind::of(record) {
            self.errors.add(kind, 1);
        }
        match record.outcome {
            Outcome::Processed => {
                self.processed += 1;
                let is_late = |limit| record.response_ns() > limit;
                self.late += u64::from(latency_limit_ns.is_some_and(is_late));
                if record.scheduled_at < record.started_at && self.paced.is_none() {
                    self.paced = Some(Box::new(Paced::of_punctual(&self.latency)));
                }
                if let Some(paced) = &mut self.paced {
                    paced.record(record);
                }
                self.latency.record(record.latency_ns());
                self.record_retries(record);
            }
            Outcome::Failed => {
                self.failed.add(Failure::of(record.sqlstate));
                self.failed_latency.record(record.latency_ns());
                self.record_retries(record);
            }
            Outcome::Skipped => self.skipped += 1,
            Outcome::Aborted(why) => self.aborted.add(why),
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Stats) {
        self.processed += other.processed;
        self.skipped += other.skipped;
        self.failed.merge(&other.failed);
        self.aborted.merge(&other.aborted);
        self.errors.merge(&other.errors);
        self.late += other.late;
        self.retried += other.retried;
        self.retries += other.retries;
        self.untimed_ns += other.untimed_ns;
        self.merge_paced(other);
        self.latency.merge(&other.latency);
        self.failed_latency.merge(&other.failed_latency);
    }

    fn merge_paced(&mut self, other: &Stats) {
        if self.paced.is_none() && other.paced.is_none() {
            return;
        }
        let ours = self
            .paced
            .get_or_insert_with(|| Box::new(Paced::of_punctual(&self.latency)));
        match &other.paced {
            Some(theirs) => ours.merge(theirs),
            None => ours.merge(&Paced::of_punctual(&other.latency)),
        }
    }

    /// Service time of the processed.
    pub fn service(&self) -> &Histogram {
        self.paced
            .as_ref()
            .map_or(&self.latency, |paced| &paced.service)
    }

    /// Response time of the processed: latency and the connecting made for them.
    pub fn response(&self) -> &Histogram {
        self.paced
            .as_ref()
            .map_or(&self.latency, |paced| &paced.response)
    }

    /// Schedule lag of the processed, `None` if none of them had any.
    pub fn lag(&self) -> Option<&Histogram> {
        self.paced.as_ref().map(|paced| &paced.lag)
    }

    /// Mean schedule lag of the processed, ns.
    pub fn lag_mean_ns(&self) -> f64 {
        self.lag().map_or(0.0, Histogram::mean_ns)
    }

    /// Time of all clients inside `\untimed`.
    pub fn untimed(&self) -> Duration {
        Duration::from_nanos(self.untimed_ns)
    }

    /// Processed transactions that were not late.
    pub fn within_limit(&self) -> u64 {
        self.processed.saturating_sub(self.late)
    }

    /// Processed + failed + skipped.
    pub fn attempted(&self) -> u64 {
        self.processed + self.failed.total() + self.skipped
    }

    /// All transactions that there are records of: attempted + aborted. In a closed loop this is
    /// what was due.
    pub fn recorded(&self) -> u64 {
        self.attempted() + self.aborted.total()
    }

    fn record_retries(&mut self, record: &TransactionRecord) {
        let retries = u64::from(record.retries());
        self.retried += u64::from(retries > 0);
        self.retries += retries;
    }
}

/// Failed transactions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Serialization failures.
    pub serialization: u64,
    /// Deadlocks.
    pub deadlock: u64,
    /// Any other error of the server.
    pub other: u64,
}

impl Failures {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn add(&mut self, kind: Failure) {
        match kind {
            Failure::Serialization => self.serialization += 1,
            Failure::Deadlock => self.deadlock += 1,
            Failure::Other => self.other += 1,
        }
    }

    fn merge(&mut self, other: &Failures) {
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
    }
}

/// Aborted transactions by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aborts {
    /// An error of the server that ends the client.
    pub server: u64,
    /// An error found by pgmark itself.
    pub client: u64,
    /// The connection was lost, before or after COMMIT was sent.
    pub connection_lost: u64,
    /// Those of them whose COMMIT had been sent: their outcome is unknown.
    pub outcome_unknown: u64,
    /// Cancelled by us.
    pub interrupted: u64,
}

impl Aborts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.server + self.client + self.connection_lost + self.interrupted
    }

    fn add(&mut self, why: Abort) {
        match why {
            Abort::Server => self.server += 1,
            Abort::Client => self.client += 1,
            Abort::ConnectionLost => self.connection_lost += 1,
            Abort::ConnectionLostInCommit => {
                self.connection_lost += 1;
                self.outcome_unknown += 1;
            }
            Abort::Interrupted => self.interrupted += 1,
        }
    }

    fn merge(&mut self, other: &Aborts) {
        self.server += other.server;
        self.client += other.client;
        self.connection_lost += other.connection_lost;
        self.outcome_unknown += other.outcome_unknown;
        self.interrupted += other.interrupted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{SqlState, testing};
    use crate::time::Timestamp;

    /// A transaction of `latency_us`.
    fn record(outcome: Outcome, latency_us: u64) -> TransactionRecord {
        TransactionRecord {
            outcome,
            ..testing::processed(Timestamp::ZERO, Timestamp::from_nanos(latency_us * 1000))
        }
    }

    fn of_every_kind() -> Vec<TransactionRecord> {
        let failed = |sqlstate: &[u8; 5], tries| TransactionRecord {
            sqlstate: SqlState(*sqlstate),
            tries,
            ..record(Outcome::Failed, 700)
        };
        let mut records = vec![
            record(Outcome::Processed, 900),
            TransactionRecord {
                tries: 3,
                ..record(Outcome::Processed, 5_100)
            },
            failed(b"40001", 4),
            failed(b"40P01", 1),
            failed(b"22012", 1),
            record(Outcome::Skipped, 60_000),
        ];
        records.extend(
            [
                Abort::Server,
                Abort::Client,
                Abort::ConnectionLost,
                Abort::ConnectionLostInCommit,
                Abort::Interrupted,
            ]
            .map(|why| record(Outcome::Aborted(why), 100)),
        );
        records
    }

    fn stats_of(records: &[TransactionRecord]) -> Stats {
        let mut stats = Stats::default();
        records
            .iter()
            .for_each(|record| stats.record(record, Some(5_000_000)));
        stats
    }

    #[test]
    fn every_outcome_is_counted_once_under_its_kind() {
        let stats = stats_of(&of_every_kind());
        assert_eq!((stats.processed, stats.skipped, stats.late), (2, 1, 1));
        assert_eq!(
            stats.failed,
            Failures {
                serialization: 1,
                deadlock: 1,
                other: 1
            }
        );
        assert_eq!(
            stats.aborted,
            Aborts {
                server: 1,
                client: 1,
                connection_lost: 2,
                outcome_unknown: 1,
                interrupted: 1
            }
        );
        assert_eq!((stats.retried, stats.retries), (2, 5));
        assert_eq!((stats.attempted(), stats.recorded()), (6, 11));
        assert_eq!(stats.errors.total(), 8);
    }

    #[test]
    fn only_processed_transactions_are_in_the_latency_distribution() {
        let stats = stats_of(&of_every_kind());
        assert_eq!(stats.latency.count(), 2);
        assert_eq!(stats.latency.sum_ns(), 6_000_000);
        assert_eq!(stats.failed_latency.count(), 3);
    }

    /// The first that is late makes them apart, and what came before is not lost.
    #[test]
    fn what_is_apart_from_latency_only_under_a_rate_is_exact_from_the_first_on() {
        let punctual = record(Outcome::Processed, 2_000);
        let late = TransactionRecord {
            scheduled_at: Timestamp::ZERO,
            started_at: Timestamp::from_nanos(1_000_000),
            finished_at: Timestamp::from_nanos(5_000_000),
            connecting_ns: 400_000,
            ..punctual
        };
        let stats = stats_of(&[punctual, punctual]);
        assert_eq!(stats.lag_mean_ns(), 0.0);
        assert_eq!(stats.service(), &stats.latency);
        let stats = stats_of(&[punctual, late, punctual]);
        assert_eq!(stats.latency.sum_ns(), 2 * 2_000_000 + 4_600_000);
        assert_eq!(stats.service().sum_ns(), 2 * 2_000_000 + 4_000_000);
        assert_eq!(stats.response().sum_ns(), 2 * 2_000_000 + 5_000_000);
        let lag = stats.lag().expect("one was late");
        assert_eq!((lag.count(), lag.sum_ns()), (3, 600_000));
    }

    #[test]
    fn the_limit_itself_is_not_late() {
        let stats = stats_of(&[record(Outcome::Processed, 5_000)]);
        assert_eq!(stats.late, 0);
    }

    #[test]
    fn a_merge_of_parts_equals_the_record_of_all() {
        let records = of_every_kind();
        for cut in 0..=records.len() {
            let (left, right) = records.split_at(cut);
            let mut merged = stats_of(left);
            merged.merge(&stats_of(right));
            assert_eq!(merged, stats_of(&records), "cut at {cut}");
        }
    }
}
