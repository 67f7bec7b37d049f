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
        }
    }

    /// What happened from `earlier` to this moment.
    pub fn since(&self, earlier: &Activity) -> ActivityDelta {
        let difference = |after: Option<u64>, before: Option<u64>| after?.checked_sub(before?);
        ActivityDelta(Activity {
            checkpoints: difference(self.checkpoints, earlier.checkpoints),
            wal_bytes: difference(self.wal_bytes, earlier.wal_bytes),
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
         case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() - '0/0' end"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_not_told_or_was_reset_is_unknown() {
        let counted = |checkpoints, wal_bytes| Activity {
            checkpoints,
            wal_bytes,
        };
        for (before, after, delta) in [
            ((Some(7), Some(100)), (Some(9), None), (Some(2), None)),
            ((Some(7), Some(100)), (Some(3), Some(100)), (None, Some(0))),
        ] {
            let (before, after) = (counted(before.0, before.1), counted(after.0, after.1));
            let expected = ActivityDelta(counted(delta.0, delta.1));
            assert_eq!(after.since(&before), expected);
        }
    }
}
