//! What the server was doing during a run: its counters before and after, their difference, and
//! what is said of it. A counter that is not told is `None`, never an error.

use std::time::Duration;

use postgres::Client;

use super::{ServerFacts, number, rows};

/// Counters of the server at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Checkpoints begun, by time and by request.
    pub checkpoints: Option<u64>,
    /// Bytes of WAL inserted.
    pub wal_bytes: Option<u64>,
    /// Transactions committed in this database.
    pub commits: Option<u64>,
    /// Blocks of this database read from outside shared buffers.
    pub blocks_read: Option<u64>,
    /// Blocks of this database found in shared buffers.
    pub blocks_hit: Option<u64>,
}

/// What the counters did between two moments; `None` where one was unknown, or was reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityDelta(pub Activity);

impl Activity {
    /// The counters now, in one statement. A server that does not answer it is no error: then
    /// nothing is known.
    pub fn now(client: &mut Client, version_num: u32) -> Self {
        let Ok(rows) = rows(client, &activity_statement(version_num)) else {
            return Activity::default();
        };
        let column = |index| rows.first().and_then(|row| number(row, index));
        Activity {
            checkpoints: column(0),
            wal_bytes: column(1),
            commits: column(2),
            blocks_read: column(3),
            blocks_hit: column(4),
        }
    }

    /// What happened from `earlier` to this moment.
    pub fn since(&self, earlier: &Activity) -> ActivityDelta {
        let difference = |after: Option<u64>, before: Option<u64>| after?.checked_sub(before?);
        ActivityDelta(Activity {
            checkpoints: difference(self.checkpoints, earlier.checkpoints),
            wal_bytes: difference(self.wal_bytes, earlier.wal_bytes),
            commits: difference(self.commits, earlier.commits),
            blocks_read: difference(self.blocks_read, earlier.blocks_read),
            blocks_hit: difference(self.blocks_hit, earlier.blocks_hit),
        })
    }
}

/// The value of the summary's line `server = `, as in
/// `2 checkpoints, 5.9 kB WAL per transaction, fsync off, on this host`, for a run of
/// `transactions`.
pub fn summary(facts: &ServerFacts, delta: &ActivityDelta, transactions: u64) -> String {
    let mut parts = vec![
        match delta.0.checkpoints {
            Some(1) => "1 checkpoint".to_owned(),
            Some(count) => format!("{count} checkpoints"),
            None => "checkpoints unknown".to_owned(),
        },
        match delta.wal_per_transaction(transactions) {
            Some(bytes) => format!("{} WAL per transaction", byte_text(bytes)),
            None => "WAL unknown".to_owned(),
        },
    ];
    parts.extend(facts.settings.deviations());
    match facts.same_host {
        Some(true) => parts.push("on this host".to_owned()),
        Some(false) => parts.push("on another host".to_owned()),
        None => {}
    }
    parts.join(", ")
}

/// What is to be said of a run of length `measured` that wrote and met no checkpoint, though a
/// longer one would: its throughput is not what the server can hold.
pub fn checkpoint_notice(
    facts: &ServerFacts,
    delta: &ActivityDelta,
    transactions: u64,
    measured: Duration,
) -> Option<String> {
    let timeout = facts.settings.checkpoint_timeout?;
    let writes = delta.wal_per_transaction(transactions)? >= WRITING_WAL_BYTES;
    (writes && delta.0.checkpoints == Some(0) && measured < timeout).then(|| {
        format!(
            "no checkpoint fell into this run, which is shorter than checkpoint_timeout ({} s); \
             a longer run will be slower while checkpoints are written",
            timeout.as_secs()
        )
    })
}

/// WAL of a transaction that writes: one row changed is more, what a server writes beside
/// reading transactions is less.
const WRITING_WAL_BYTES: f64 = 64.0;

impl ActivityDelta {
    /// Bytes of WAL over `transactions`; `None` also where there were none.
    fn wal_per_transaction(&self, transactions: u64) -> Option<f64> {
        let bytes = self.0.wal_bytes?;
        (transactions > 0).then(|| bytes as f64 / transactions as f64)
    }
}

/// PostgreSQL's own units: 1 kB is 1024 bytes.
fn byte_text(bytes: f64) -> String {
    if bytes < 1024.0 {
        format!("{bytes:.0} B")
    } else if bytes < 1024.0 * 1024.0 {
        format!("{:.1} kB", bytes / 1024.0)
    } else {
        format!("{:.1} MB", bytes / (1024.0 * 1024.0))
    }
}

/// Checkpoints have a view of their own since 17. A standby has no insert position.
fn activity_statement(version_num: u32) -> String {
    let checkpoints = if version_num >= 170_000 {
        "select num_timed + num_requested from pg_catalog.pg_stat_checkpointer"
    } else {
        "select checkpoints_timed + checkpoints_req from pg_catalog.pg_stat_bgwriter"
    };
    format!(
        "select ({checkpoints}), \
         case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() - '0/0' end, \
         xact_commit, blks_read, blks_hit \
         from pg_catalog.pg_stat_database where datname = current_database()"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;

    fn facts_of(settings: Settings, same_host: Option<bool>) -> ServerFacts {
        ServerFacts {
            version: "18.6".to_owned(),
            version_num: 180_006,
            settings,
            same_host,
            max_connections: Some(100),
            reserved_connections: Some(3),
        }
    }

    fn set(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    fn delta(checkpoints: Option<u64>, wal_bytes: Option<u64>) -> ActivityDelta {
        ActivityDelta(Activity {
            checkpoints,
            wal_bytes,
            ..Activity::default()
        })
    }

    #[test]
    fn the_summary_names_what_happened_and_what_is_unsafe() {
        let safe = Settings {
            fsync: set("on"),
            synchronous_commit: set("on"),
            full_page_writes: set("on"),
            debug_assertions: set("off"),
            checkpoint_timeout: None,
        };
        let fast = Settings {
            fsync: set("off"),
            synchronous_commit: set("local"),
            full_page_writes: set("off"),
            debug_assertions: set("on"),
            checkpoint_timeout: None,
        };
        let cases = [
            (
                facts_of(safe.clone(), Some(true)),
                delta(Some(2), Some(604_160)),
                "2 checkpoints, 5.9 kB WAL per transaction, on this host",
            ),
            (
                facts_of(fast, Some(false)),
                delta(Some(1), Some(1_200)),
                "1 checkpoint, 12 B WAL per transaction, fsync off, synchronous_commit local, \
                 full_page_writes off, assertions on, on another host",
            ),
            (
                facts_of(Settings::default(), None),
                delta(None, None),
                "checkpoints unknown, WAL unknown",
            ),
            (
                facts_of(safe, None),
                delta(Some(0), Some(200 * 1024 * 1024)),
                "0 checkpoints, 2.0 MB WAL per transaction",
            ),
        ];
        for (facts, delta, expected) in cases {
            assert_eq!(summary(&facts, &delta, 100), expected);
        }
        let none = facts_of(Settings::default(), None);
        assert_eq!(
            summary(&none, &delta(Some(0), Some(10)), 0),
            "0 checkpoints, WAL unknown"
        );
    }

    #[test]
    fn a_short_writing_run_without_a_checkpoint_gets_a_notice() {
        let settings = Settings {
            checkpoint_timeout: Some(Duration::from_secs(300)),
            ..Settings::default()
        };
        let facts = facts_of(settings, None);
        let noticed = |delta: ActivityDelta, seconds| {
            checkpoint_notice(&facts, &delta, 10, Duration::from_secs(seconds)).is_some()
        };
        assert!(noticed(delta(Some(0), Some(6_000)), 60));
        assert!(!noticed(delta(Some(0), Some(6_000)), 300));
        assert!(!noticed(delta(Some(1), Some(6_000)), 60));
        assert!(!noticed(delta(Some(0), Some(60)), 60));
        assert!(!noticed(delta(None, None), 60));
    }

    #[test]
    fn a_counter_that_was_reset_is_unknown() {
        let before = Activity {
            checkpoints: Some(7),
            wal_bytes: Some(100),
            commits: Some(1_000),
            ..Activity::default()
        };
        let after = Activity {
            checkpoints: Some(9),
            wal_bytes: None,
            commits: Some(3),
            blocks_hit: Some(5),
            ..Activity::default()
        };
        assert_eq!(after.since(&before), delta(Some(2), None));
    }
}
