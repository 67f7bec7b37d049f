//! The statements that make the tables of the builtin scripts. Texts only: nothing is sent here.

use super::rows::FilledTable;

/// From this scale on account numbers do not fit into an `int` (2^31 / 100,000 is about 21,475).
const BIGINT_SCALE: u32 = 20_000;

/// All four at once, so that foreign keys between them are no obstacle.
pub const DROP: &str = "drop table if exists \
     pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// All four, for the same reason.
pub const TRUNCATE: &str =
    "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// One statement a table: VACUUM refuses to share one.
pub const VACUUM: [&str; 4] = [
    "vacuum analyze pgbench_branches",
    "vacuum analyze pgbench_tellers",
    "vacuum analyze pgbench_accounts",
    "vacuum analyze pgbench_history",
];

/// The keys that the builtin scripts look rows up by; history has none.
pub const PRIMARY_KEYS: [&str; 3] = [
    "alter table pgbench_branches add primary key (bid)",
    "alter table pgbench_tellers add primary key (tid)",
    "alter table pgbench_accounts add primary key (aid)",
];

/// The four tables at `scale`, without any index.
pub fn create(scale: u32) -> [String; 4] {
    let aid = if scale >= BIGINT_SCALE {
        "bigint"
    } else {
        "int"
    };
    [
        format!(
            "create table pgbench_history (tid int, bid int, aid {aid}, delta int, \
             mtime timestamp, filler char(22))"
        ),
        "create table pgbench_tellers (tid int not null, bid int, tbalance int, \
         filler char(84)) with (fillfactor=100)"
            .to_owned(),
        format!(
            "create table pgbench_accounts (aid {aid} not null, bid int, abalance int, \
             filler char(84)) with (fillfactor=100)"
        ),
        "create table pgbench_branches (bid int not null, bbalance int, \
         filler char(88)) with (fillfactor=100)"
            .to_owned(),
    ]
}

/// Asks whether rows may be frozen as they are copied into `table`: the server can (14), and it
/// is an ordinary table. That it was truncated in the same transaction is the caller's part.
pub fn may_freeze(table: FilledTable) -> String {
    format!(
        "select relkind = 'r' and current_setting('server_version_num')::int >= 140000 \
         from pg_catalog.pg_class where oid = '{}'::regclass",
        table.name()
    )
}

/// The COPY that fills `table`.
pub fn copy(table: FilledTable, freeze: bool) -> String {
    let options = if freeze { " with (freeze on)" } else { "" };
    format!("copy {} from stdin{options}", table.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_numbers_are_wide_from_scale_20000_on() {
        for (scale, aid) in [(1, "aid int"), (19_999, "aid int"), (20_000, "aid bigint")] {
            let [history, _, accounts, _] = create(scale);
            assert!(history.contains(&format!("{aid},")), "{history}");
            assert!(accounts.contains(&format!("{aid} not null")), "{accounts}");
        }
    }
}
