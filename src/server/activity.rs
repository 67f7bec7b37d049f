//! What the server was doing during a run: its counters before and after, and their difference. A
//! counter that is not told is `None`, never an error.

use postgres::Client;

use super::number;
use crate::control::rows;

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

    fn delta(checkpoints: Option<u64>, wal_bytes: Option<u64>) -> ActivityDelta {
        ActivityDelta(Activity {
            checkpoints,
            wal_bytes,
            ..Activity::default()
        })
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
