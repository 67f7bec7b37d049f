//! The statements that make the tables of the builtin scripts. Texts only: nothing is sent here,
//! and nothing is known about the server but what the caller says.

use std::ops::Range;

use super::rows::FilledTable;
use crate::plan::{Layout, PartitionMethod, Tables};

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

/// Each refers to a primary key.
pub const FOREIGN_KEYS: [&str; 5] = [
    "alter table pgbench_tellers add constraint pgbench_tellers_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_accounts add constraint pgbench_accounts_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_history add constraint pgbench_history_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_history add constraint pgbench_history_tid_fkey \
     foreign key (tid) references pgbench_tellers",
    "alter table pgbench_history add constraint pgbench_history_aid_fkey \
     foreign key (aid) references pgbench_accounts",
];

/// Whether account numbers are wide at `scale`.
pub fn has_wide_accounts(scale: u32) -> bool {
    scale >= BIGINT_SCALE
}

/// The four tables, without any index and without partitions. Servers from version 18 on refuse
/// a partitioned table that is unlogged, so there only its partitions are.
pub fn create(tables: &Tables, partitioned_may_be_unlogged: bool) -> [String; 4] {
    let layout = &tables.layout;
    let aid = if has_wide_accounts(tables.scale) {
        "bigint"
    } else {
        "int"
    };
    let storage = format!(" with (fillfactor={})", layout.fillfactor);
    let statement = |name: &str, columns: &str, logged: bool, storage: &str| {
        let unlogged = if logged { "" } else { "unlogged " };
        let tablespace = tablespace(" tablespace", layout.tablespace.as_deref());
        format!("create {unlogged}table {name} ({columns}){storage}{tablespace}")
    };
    let logged = !layout.unlogged;
    let (accounts_logged, accounts_storage) = match layout.partitioning {
        None => (logged, storage.clone()),
        Some(partitioning) => (
            logged || !partitioned_may_be_unlogged,
            format!(" partition by {} (aid)", partitioning.method.name()),
        ),
    };
    [
        statement(
            "pgbench_history",
            &format!("tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)"),
            logged,
            "",
        ),
        statement(
            "pgbench_tellers",
            "tid int not null, bid int, tbalance int, filler char(84)",
            logged,
            &storage,
        ),
        statement(
            "pgbench_accounts",
            &format!("aid {aid} not null, bid int, abalance int, filler char(84)"),
            accounts_logged,
            &accounts_storage,
        ),
        statement(
            "pgbench_branches",
            "bid int not null, bbalance int, filler char(88)",
            logged,
            &storage,
        ),
    ]
}

/// The partitions of the accounts, in their order.
pub fn create_partitions(tables: &Tables) -> impl Iterator<Item = String> {
    let Layout {
        unlogged,
        fillfactor,
        partitioning,
        ..
    } = tables.layout;
    let unlogged = if unlogged { "unlogged " } else { "" };
    let count = partitioning.map_or(0, |partitioning| partitioning.partitions);
    let rows = FilledTable::Accounts.rows(tables.scale);
    (1..=u64::from(count)).map(move |number| {
        let bounds = match partitioning.map(|partitioning| partitioning.method) {
            Some(PartitionMethod::Hash) => {
                format!("with (modulus {count}, remainder {})", number - 1)
            }
            Some(PartitionMethod::Range) | None => range_bounds(rows, count.into(), number),
        };
        format!(
            "create {unlogged}table pgbench_accounts_{number} partition of pgbench_accounts \
             for values {bounds} with (fillfactor={fillfactor})"
        )
    })
}

/// The keys that the builtin scripts look rows up by; history has none.
pub fn primary_keys(layout: &Layout) -> [String; 3] {
    [
        primary_key("pgbench_branches", "bid", layout),
        primary_key("pgbench_tellers", "tid", layout),
        primary_key("pgbench_accounts", "aid", layout),
    ]
}

/// The primary key of one table, which may also be a partition.
pub fn primary_key(table: &str, column: &str, layout: &Layout) -> String {
    let tablespace = tablespace(
        " using index tablespace",
        layout.index_tablespace.as_deref(),
    );
    format!("alter table {table} add primary key ({column}){tablespace}")
}

/// Asks whether rows may be frozen as they are copied into `table`: the server can (14), and it
/// is an ordinary table. That it was truncated in the same transaction is the caller's part.
pub fn may_freeze(table: &str) -> String {
    format!(
        "select relkind = 'r' and current_setting('server_version_num')::int >= 140000 \
         from pg_catalog.pg_class where oid = '{table}'::regclass"
    )
}

/// Asks for the partitions of the accounts: name, bounds, and whether it can be truncated by
/// itself and filled with frozen rows.
pub const PARTITIONS: &str = "select oid::regclass, pg_get_expr(relpartbound, oid), \
     relkind = 'r' and current_setting('server_version_num')::int >= 140000 \
     and not exists (select from pg_catalog.pg_constraint where contype = 'f' and confrelid = c.oid) \
     from pg_catalog.pg_inherits join pg_catalog.pg_class c on oid = inhrelid \
     where inhparent = 'pgbench_accounts'::regclass order by oid";

/// Asks which tables and partitions have a primary key.
pub const KEYED: &str = "select indrelid::regclass from pg_catalog.pg_index where indisprimary";

/// Who is asking, where its tables go, and what a schema would have to be called to be found.
pub const WHO_AND_WHERE: &str = "select current_user, current_schema(), \
     current_setting('search_path'), current_database()";

/// Asks whether there is a schema of this name.
pub fn has_schema(name: &str) -> String {
    format!(
        "select true from pg_catalog.pg_namespace where nspname = '{}'",
        name.replace('\'', "''")
    )
}

/// A schema of this name.
pub fn create_schema(name: &str) -> String {
    format!("create schema {}", quoted(name))
}

/// The COPY that fills `target`.
pub fn copy(target: &str, freeze: bool) -> String {
    let options = if freeze { " with (freeze on)" } else { "" };
    format!("copy {target} from stdin{options}")
}

/// The INSERT of rows numbered from 0 that the server makes by itself.
pub fn insert_series(table: FilledTable, target: &str, rows: &Range<u64>) -> String {
    let columns = table.columns();
    let (first, last) = (rows.start + 1, rows.end);
    let values = match table {
        FilledTable::Branches => "n, 0, null".to_owned(),
        FilledTable::Tellers => format!("n, (n - 1) / {} + 1, 0, null", table.rows(1)),
        FilledTable::Accounts => format!("n, (n - 1) / {} + 1, 0, ''", table.rows(1)),
    };
    format!(
        "insert into {target} ({columns}) select {values} from generate_series({first}, {last}) as n"
    )
}

/// The beginning of an INSERT, up to its rows.
pub fn insert_values(table: FilledTable, target: &str) -> String {
    format!("insert into {target} ({}) values ", table.columns())
}

/// Partition `number`, counted from 1, of `partitions` equal ones; the first and the last are
/// open, so that any number has its place.
fn range_bounds(rows: u64, partitions: u64, number: u64) -> String {
    let width = rows.div_ceil(partitions);
    let from = match number {
        1 => "minvalue".to_owned(),
        _ => ((number - 1) * width + 1).to_string(),
    };
    let to = if number == partitions {
        "maxvalue".to_owned()
    } else {
        (number * width + 1).to_string()
    };
    format!("from ({from}) to ({to})")
}

fn tablespace(clause: &str, name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("{clause} {}", quoted(name)))
}

/// A name as an identifier.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Partitioning;

    fn tables(scale: u32, change: impl FnOnce(&mut Layout)) -> Tables {
        let mut tables = Tables::plain(vec![], scale);
        change(&mut tables.layout);
        tables
    }

    fn partitioned(method: PartitionMethod, partitions: u32) -> impl FnOnce(&mut Layout) {
        move |layout| layout.partitioning = Some(Partitioning { method, partitions })
    }

    #[test]
    fn account_numbers_are_wide_from_scale_20000_on() {
        for (scale, aid) in [(1, "aid int"), (19_999, "aid int"), (20_000, "aid bigint")] {
            let [history, _, accounts, _] = create(&tables(scale, |_| ()), true);
            assert!(history.contains(&format!("{aid},")), "{history}");
            assert!(accounts.contains(&format!("{aid} not null")), "{accounts}");
        }
    }

    #[test]
    fn tables_have_what_was_asked_for() {
        let all = tables(1, |layout| {
            layout.fillfactor = 70;
            layout.unlogged = true;
            layout.tablespace = Some("fast \"disk\"".to_owned());
        });
        assert_eq!(
            create(&all, true),
            [
                "create unlogged table pgbench_history (tid int, bid int, aid int, delta int, \
                 mtime timestamp, filler char(22)) tablespace \"fast \"\"disk\"\"\"",
                "create unlogged table pgbench_tellers (tid int not null, bid int, tbalance int, \
                 filler char(84)) with (fillfactor=70) tablespace \"fast \"\"disk\"\"\"",
                "create unlogged table pgbench_accounts (aid int not null, bid int, abalance int, \
                 filler char(84)) with (fillfactor=70) tablespace \"fast \"\"disk\"\"\"",
                "create unlogged table pgbench_branches (bid int not null, bbalance int, \
                 filler char(88)) with (fillfactor=70) tablespace \"fast \"\"disk\"\"\"",
            ]
        );
        let keys = tables(1, |layout| layout.index_tablespace = Some("x".to_owned()));
        assert_eq!(
            primary_keys(&keys.layout)[2],
            "alter table pgbench_accounts add primary key (aid) using index tablespace \"x\""
        );
    }

    #[test]
    fn of_a_partitioned_table_the_partitions_are_stored() {
        for (servers_allow, unlogged) in [(true, "unlogged "), (false, "")] {
            let unlogged_tables = tables(1, |layout| {
                layout.unlogged = true;
                layout.fillfactor = 90;
                partitioned(PartitionMethod::Hash, 2)(layout);
            });
            let all = create(&unlogged_tables, servers_allow);
            assert_eq!(
                all[2],
                format!(
                    "create {unlogged}table pgbench_accounts (aid int not null, bid int, \
                     abalance int, filler char(84)) partition by hash (aid)"
                )
            );
            for other in [&all[0], &all[1], &all[3]] {
                assert!(other.starts_with("create unlogged table"), "{other}");
            }
            assert_eq!(
                create_partitions(&unlogged_tables).last().as_deref(),
                Some(
                    "create unlogged table pgbench_accounts_2 partition of pgbench_accounts \
                     for values with (modulus 2, remainder 1) with (fillfactor=90)"
                )
            );
        }
    }

    #[test]
    fn ranges_are_equal_and_open_at_their_ends() {
        let bounds = |scale, partitions| -> Vec<String> {
            let tables = tables(scale, partitioned(PartitionMethod::Range, partitions));
            create_partitions(&tables)
                .map(|statement| {
                    let (_, bounds) = statement.split_once("for values ").unwrap();
                    bounds
                        .strip_suffix(" with (fillfactor=100)")
                        .unwrap()
                        .to_owned()
                })
                .collect()
        };
        assert_eq!(
            bounds(3, 3),
            [
                "from (minvalue) to (100001)",
                "from (100001) to (200001)",
                "from (200001) to (maxvalue)"
            ]
        );
        assert_eq!(bounds(1, 1), ["from (minvalue) to (maxvalue)"]);
        assert_eq!(bounds(1, 3)[1], "from (33335) to (66669)");
        // More partitions than rows: one row each, then none.
        let many = bounds(1, 100_002);
        assert_eq!(many.len(), 100_002);
        assert_eq!(many[99_999], "from (100000) to (100001)");
        assert_eq!(many[100_001], "from (100002) to (maxvalue)");
        // 64 bits.
        assert_eq!(
            bounds(2_000_000_000, 2)[1],
            "from (100000000000001) to (maxvalue)"
        );
    }

    #[test]
    fn the_server_makes_the_same_rows() {
        assert_eq!(
            insert_series(FilledTable::Branches, "pgbench_branches", &(0..3)),
            "insert into pgbench_branches (bid, bbalance, filler) \
             select n, 0, null from generate_series(1, 3) as n"
        );
        assert_eq!(
            insert_series(FilledTable::Tellers, "pgbench_tellers", &(0..30)),
            "insert into pgbench_tellers (tid, bid, tbalance, filler) \
             select n, (n - 1) / 10 + 1, 0, null from generate_series(1, 30) as n"
        );
        assert_eq!(
            insert_series(FilledTable::Accounts, "part", &(100..3_800_000_000)),
            "insert into part (aid, bid, abalance, filler) \
             select n, (n - 1) / 100000 + 1, 0, '' from generate_series(101, 3800000000) as n"
        );
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(create_schema("a\"b"), "create schema \"a\"\"b\"");
        assert!(has_schema("o'clock").ends_with("nspname = 'o''clock'"));
    }
}
