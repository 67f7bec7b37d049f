//! What the server did during a run, as it tells itself.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the server did in the window, or, without ramp and warm-up, from before the clients connected;
/// until after they had left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerActivity {
    /// Checkpoints begun, timed and requested.
    pub checkpoints: Option<u64>,
    /// WAL written, bytes.
    pub wal_bytes: Option<u64>,
    /// What among fsync, synchronous_commit, full_page_writes and assertions is not at its safe
    /// default, each with its value: `fsync off`, `assertions on`.
    pub unsafe_settings: Vec<String>,
    /// Client and server run on one machine; `None` where that is not known.
    pub same_host: Option<bool>,
    /// The server's `checkpoint_timeout`.
    pub checkpoint_timeout: Option<Duration>,
    /// What its statistics counted, as `view.column`; times are in ms. Those of `pg_stat_database` and
    /// `pg_stat_all_tables` are of the one database, the others of the whole server.
    #[serde(default)]
    pub counters: BTreeMap<String, f64>,
    /// Commits that pgmark knows of, against which the server's own count can be held; `None` where
    /// there is no telling.
    #[serde(default)]
    pub expected_commits: Option<ExpectedCommits>,
}

/// Commits of the whole run, ramp and warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedCommits {
    /// As the server counted them in the database.
    pub counted: u64,
    /// As transactions that were processed make them.
    pub transactions: u64,
    /// Room for what is not of transactions: connecting, and our own statements.
    pub others: u64,
}

impl ServerActivity {
    /// What a counter counted, as `view.column`.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.get(name).map(|value| *value as u64)
    }

    /// Commits in the database, our own included.
    pub fn commits(&self) -> Option<u64> {
        self.counter("pg_stat_database.xact_commit")
    }

    /// Blocks that were read from outside of shared buffers.
    pub fn blocks_read(&self) -> Option<u64> {
        self.counter("pg_stat_database.blks_read")
    }

    /// Blocks that were found in shared buffers.
    pub fn blocks_hit(&self) -> Option<u64> {
        self.counter("pg_stat_database.blks_hit")
    }

    /// Full pages in the WAL.
    pub fn wal_full_pages(&self) -> Option<u64> {
        self.counter("pg_stat_wal.wal_fpi")
    }

    /// Tables of the database that autovacuum was done with.
    pub fn autovacuums(&self) -> Option<u64> {
        self.counter("pg_stat_all_tables.autovacuum_count")
    }

    /// Blocks read from outside of shared buffers, as a share of all that were wanted; `None` if none
    /// were.
    pub fn read_share(&self) -> Option<f64> {
        let (read, hit) = (self.blocks_read()?, self.blocks_hit()?);
        (read + hit > 0).then(|| read as f64 / (read + hit) as f64)
    }

    /// The server's count of commits and ours, if they are more than one percent apart. There may
    /// be as many more as others are allowed for.
    pub fn commits_apart(&self) -> Option<(u64, u64)> {
        let expected = self.expected_commits?;
        let counted = expected.counted;
        let slack = expected.transactions / 100;
        let least = expected.transactions - slack;
        let most = expected.transactions + slack + expected.others;
        (!(least..=most).contains(&counted)).then_some((counted, expected.transactions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(
        counters: &[(&str, f64)],
        expected_commits: Option<ExpectedCommits>,
    ) -> ServerActivity {
        let counters = counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        ServerActivity {
            counters: counters.collect(),
            expected_commits,
            ..ServerActivity::default()
        }
    }

    #[test]
    fn commits_are_apart_if_one_percent_and_our_own_do_not_explain_it() {
        for (counted, apart) in [
            (9_899, true),
            (9_900, false),
            (10_150, false),
            (10_151, true),
        ] {
            let expected = ExpectedCommits {
                counted,
                transactions: 10_000,
                others: 50,
            };
            let found = activity(&[], Some(expected)).commits_apart();
            assert_eq!(found.is_some(), apart, "{counted}");
        }
        assert_eq!(activity(&[], None).commits_apart(), None);
    }

    #[test]
    fn the_share_of_reads_is_of_all_blocks_that_were_wanted() {
        let blocks = |read, hit| {
            let counters = [
                ("pg_stat_database.blks_read", read),
                ("pg_stat_database.blks_hit", hit),
            ];
            activity(&counters, None).read_share()
        };
        assert_eq!(blocks(25.0, 75.0), Some(0.25));
        assert_eq!(blocks(0.0, 0.0), None);
    }
}
