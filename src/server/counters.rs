//! The server's own statistics before and after a run: whatever numbers its views have, which differ
//! from version to version. What a server does not tell is left out, never an error.

use std::collections::BTreeMap;
use std::time::Duration;

use postgres::{Client, SimpleQueryRow};

use crate::control::{rows, server_message};

/// Views, the version that brought each, and what is read of it: one row.
const VIEWS: [(&str, u32, &str); 5] = [
    (
        "pg_stat_database",
        0,
        "select * from pg_catalog.pg_stat_database where datname = current_database()",
    ),
    (
        "pg_stat_wal",
        140_000,
        "select * from pg_catalog.pg_stat_wal",
    ),
    (
        "pg_stat_bgwriter",
        0,
        "select * from pg_catalog.pg_stat_bgwriter",
    ),
    (
        "pg_stat_checkpointer",
        170_000,
        "select * from pg_catalog.pg_stat_checkpointer",
    ),
    (
        "pg_stat_all_tables",
        0,
        "select sum(autovacuum_count) as autovacuum_count, \
         sum(autoanalyze_count) as autoanalyze_count from pg_catalog.pg_stat_all_tables",
    ),
];

/// Numbers that count nothing.
const NO_COUNTERS: [&str; 2] = ["datid", "numbackends"];

/// Until statistics are steady: sessions tell theirs when they end, at the latest, and up to version
/// 14 a process of the server collects them.
const STEADY_EVERY: Duration = Duration::from_millis(100);
const STEADY_TRIES: u32 = 20;

/// Counters of the server at one moment, as `view.column`; times are in ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// What is known.
    pub values: BTreeMap<String, f64>,
    /// Sessions in the database, our own included; `None` if it is not told.
    pub sessions: Option<u64>,
    /// Why something is missing, in the server's words.
    pub missing: Option<String>,
}

impl Counters {
    /// The name of that of commits in the database.
    pub const COMMITS: &str = "pg_stat_database.xact_commit";

    /// The counters now.
    pub fn now(client: &mut Client, version_num: u32) -> Self {
        let mut counters = Counters::default();
        for (view, since_version, statement) in VIEWS {
            if version_num < since_version {
                continue;
            }
            match rows(client, statement) {
                Ok(rows) => counters.take(view, rows.first()),
                Err(error) => {
                    let message = server_message(&error);
                    counters.missing.get_or_insert(format!("{view}: {message}"));
                }
            }
        }
        counters
    }

    /// The counters when what the clients did is in them: when the number of commits does not
    /// grow any more, but for our own, or after two seconds.
    pub fn steady(client: &mut Client, version_num: u32) -> Self {
        let mut before = Counters::now(client, version_num);
        for _ in 0..STEADY_TRIES {
            std::thread::sleep(STEADY_EVERY);
            let now = Counters::now(client, version_num);
            let own = VIEWS.len() as f64;
            let grown = now
                .values
                .get(Counters::COMMITS)
                .zip(before.values.get(Counters::COMMITS));
            if grown.is_none_or(|(now, before)| now - before <= own) {
                return now;
            }
            before = now;
        }
        before
    }

    /// What was counted from `earlier` to this moment; what was reset in between is left out.
    pub fn since(&self, earlier: &Counters) -> BTreeMap<String, f64> {
        let counted = self.values.iter().filter_map(|(name, value)| {
            let difference = value - earlier.values.get(name)?;
            (difference >= 0.0).then(|| (name.clone(), difference))
        });
        counted.collect()
    }

    fn take(&mut self, view: &str, row: Option<&SimpleQueryRow>) {
        let Some(row) = row else { return };
        let cells = row.columns().iter().enumerate();
        let cells = cells.map(|(index, column)| (column.name(), row.get(index)));
        self.take_cells(view, cells);
    }

    fn take_cells<'c>(
        &mut self,
        view: &str,
        cells: impl Iterator<Item = (&'c str, Option<&'c str>)>,
    ) {
        for (name, text) in cells {
            let number = text.and_then(|text| text.parse::<f64>().ok());
            let Some(number) = number.filter(|number| number.is_finite()) else {
                continue;
            };
            if name == "numbackends" {
                self.sessions = Some(number as u64);
            }
            if !NO_COUNTERS.contains(&name) {
                self.values.insert(format!("{view}.{name}"), number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(view: &str, cells: &[(&str, &str)]) -> Counters {
        let mut counters = Counters::default();
        counters.take_cells(view, cells.iter().map(|(name, text)| (*name, Some(*text))));
        counters
    }

    /// As PostgreSQL 11 and 19 have them.
    #[test]
    fn whatever_numbers_a_version_has_are_counted() {
        for (view, cells, expected) in [
            (
                "pg_stat_bgwriter",
                &[
                    ("checkpoints_timed", "7"),
                    ("checkpoint_write_time", "120.5"),
                    ("buffers_backend", "3"),
                    ("stats_reset", "2026-11-30 14:25:16.123456+00"),
                ][..],
                &[
                    "buffers_backend",
                    "checkpoint_write_time",
                    "checkpoints_timed",
                ][..],
            ),
            (
                "pg_stat_checkpointer",
                &[("num_timed", "1"), ("num_done", "2"), ("slru_written", "0")],
                &["num_done", "num_timed", "slru_written"],
            ),
            (
                "pg_stat_database",
                &[
                    ("datid", "5"),
                    ("datname", "postgres"),
                    ("numbackends", "4"),
                    ("xact_commit", "9"),
                ],
                &["xact_commit"],
            ),
            ("pg_stat_database", &[("checksum_last_failure", "")], &[]),
        ] {
            let found = counters(view, cells);
            let names: Vec<String> = expected
                .iter()
                .map(|name| format!("{view}.{name}"))
                .collect();
            assert_eq!(found.values.keys().cloned().collect::<Vec<_>>(), names);
        }
        assert_eq!(
            counters("pg_stat_database", &[("numbackends", "4")]).sessions,
            Some(4)
        );
    }

    #[test]
    fn what_was_reset_or_is_new_is_not_counted() {
        let before = counters(
            "v",
            &[("grew", "5"), ("was_reset", "100"), ("stayed", "1.5")],
        );
        let after = counters(
            "v",
            &[
                ("grew", "8"),
                ("was_reset", "3"),
                ("stayed", "1.5"),
                ("new", "9"),
            ],
        );
        let expected = [("v.grew", 3.0), ("v.stayed", 0.0)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(after.since(&before), BTreeMap::from(expected));
    }
}
