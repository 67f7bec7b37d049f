//! What an initialisation would do: rows, bytes and statements, as a commented list. Asks no
//! server, so what depends on one is told as a recent PostgreSQL would have it.

use std::fmt::{Result, Write};

use super::rows::FilledTable;
use super::sizes::{key_bytes, table_bytes};
use super::statements;
use super::way::{Means, Way};
use crate::conninfo::{HostName, Target};
use crate::plan::{InitPlan, InitStep, PartitionMethod, Tables};

/// Statements of which only the number differs that are shown before the rest is counted.
const SHOWN: usize = 3;

/// The text that `--dry-run` prints.
pub fn preview(plan: &InitPlan) -> String {
    let mut text = String::new();
    write_preview(plan, &mut text).expect("writing to a string never fails");
    text
}

fn write_preview(plan: &InitPlan, out: &mut String) -> Result {
    let tables = &plan.tables;
    writeln!(out, "-- Dry run: nothing is done, and no server is asked.")?;
    writeln!(out, "-- {}", place(&plan.target))?;
    write_sizes(tables, out)?;
    for &step in &tables.steps {
        writeln!(out, "\n-- {}: {}", step.letter(), step.name())?;
        write_step(step, tables, out)?;
    }
    Ok(())
}

fn place(target: &Target) -> String {
    let hosts: Vec<String> = target
        .hosts
        .iter()
        .map(|host| match &host.name {
            HostName::SocketDirectory(directory) => {
                format!("socket {} port {}", directory.display(), host.port)
            }
            HostName::Network(name) => format!("{name} port {}", host.port),
        })
        .collect();
    format!(
        "Database \"{}\", role \"{}\", {}",
        target.database,
        target.user,
        hosts.join(" or ")
    )
}

/// The four tables and their sum.
fn write_sizes(tables: &Tables, out: &mut String) -> Result {
    writeln!(
        out,
        "--\n-- At scale {} (bytes are estimates):",
        tables.scale
    )?;
    let (mut rows, mut bytes) = (0, 0);
    for table in FilledTable::ALL {
        let table_rows = table.rows(tables.scale);
        let size = table_bytes(table, tables.scale, tables.layout.fillfactor);
        let key = key_bytes(table, tables.scale);
        writeln!(
            out,
            "-- {:16} {:>23} rows {:>26} bytes {:>25} bytes of primary key",
            table.name(),
            grouped(table_rows),
            grouped(size),
            grouped(key)
        )?;
        rows += table_rows;
        bytes += size + key;
    }
    writeln!(out, "-- {:16} {:>23} rows", "pgbench_history", 0)?;
    writeln!(
        out,
        "-- {:16} {:>23} rows {:>26} bytes, which is {}",
        "all",
        grouped(rows),
        grouped(bytes),
        in_units(bytes)
    )
}

fn write_step(step: InitStep, tables: &Tables, out: &mut String) -> Result {
    match step {
        InitStep::DropTables => writeln!(out, "{};", statements::DROP),
        InitStep::CreateTables => write_creation(tables, out),
        InitStep::GenerateClientSide | InitStep::GenerateServerSide => {
            write_loading(Way::asked_for(step, tables.loading), tables, out)
        }
        InitStep::Vacuum => write_all(&statements::VACUUM, out),
        InitStep::PrimaryKeys => {
            let connections = tables.loading.connections;
            if connections > 1 {
                writeln!(
                    out,
                    "-- by {connections} connections, each partition by itself:"
                )?;
            }
            write_all(&statements::primary_keys(&tables.layout), out)
        }
        InitStep::ForeignKeys => write_all(&statements::FOREIGN_KEYS, out),
    }
}

fn write_creation(tables: &Tables, out: &mut String) -> Result {
    if let Some(schema) = &tables.layout.schema {
        writeln!(
            out,
            "{}; -- unless it is there",
            statements::create_schema(schema)
        )?;
    }
    write_all(&statements::create(tables, false), out)?;
    let partitions = statements::create_partitions(tables);
    write_first(partitions, partition_count(tables), out)
}

fn write_loading(way: Way, tables: &Tables, out: &mut String) -> Result {
    writeln!(out, "{};", statements::TRUNCATE)?;
    if let Some(rows) = way.batch_rows {
        writeln!(out, "-- committing every {} rows:", grouped(rows))?;
    }
    let freeze = way.means == (Means::Copy { freeze: true });
    let (partitions, connections) = (partition_count(tables), tables.loading.connections);
    for table in [FilledTable::Branches, FilledTable::Tellers] {
        writeln!(out, "{};", load_statement(way.means, table, tables))?;
    }
    let accounts = FilledTable::Accounts;
    if partitions > 0 && connections > 1 && by_range(tables) {
        writeln!(
            out,
            "-- by {connections} connections, partition by partition:"
        )?;
        let targets = (1..=partitions).map(|number| match way.means {
            Means::Copy { .. } => statements::copy(&format!("pgbench_accounts_{number}"), freeze),
            Means::Insert | Means::Series => {
                format!("insert into pgbench_accounts_{number} ...")
            }
        });
        return write_first(targets, partitions, out);
    }
    if connections > 1 && !(freeze && partitions == 0) {
        writeln!(
            out,
            "-- by {connections} connections, a range of rows each:"
        )?;
    }
    let means = match way.means {
        Means::Copy { freeze } => Means::Copy {
            freeze: freeze && partitions == 0,
        },
        Means::Insert | Means::Series => way.means,
    };
    writeln!(out, "{};", load_statement(means, accounts, tables))
}

fn load_statement(means: Means, table: FilledTable, tables: &Tables) -> String {
    match means {
        Means::Copy { freeze } => statements::copy(table.name(), freeze),
        Means::Insert => {
            let mut statement = statements::insert_values(table, table.name());
            table.append_values(0, &mut statement);
            statement + ", ..."
        }
        Means::Series => {
            statements::insert_series(table, table.name(), &(0..table.rows(tables.scale)))
        }
    }
}

fn by_range(tables: &Tables) -> bool {
    tables
        .layout
        .partitioning
        .is_some_and(|partitioning| partitioning.method == PartitionMethod::Range)
}

fn partition_count(tables: &Tables) -> u32 {
    tables
        .layout
        .partitioning
        .map_or(0, |partitioning| partitioning.partitions)
}

fn write_all<S: AsRef<str>>(statements: &[S], out: &mut String) -> Result {
    statements
        .iter()
        .try_for_each(|statement| writeln!(out, "{};", statement.as_ref()))
}

fn write_first(statements: impl Iterator<Item = String>, count: u32, out: &mut String) -> Result {
    for statement in statements.take(SHOWN) {
        writeln!(out, "{statement};")?;
    }
    match (count as usize).saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "-- ... and {more} more"),
    }
}

/// `100,000,000,000`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// In the largest decimal unit that leaves at least one before the point.
fn in_units(bytes: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < units.len() {
        size /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{size:.1} {}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conninfo::Host;
    use crate::plan::Partitioning;

    fn shown(tables: Tables) -> String {
        preview(&InitPlan {
            target: Target {
                password: Some("secret".into()),
                application_name: "a".to_owned(),
                ..Target::plain(
                    vec![Host::new(HostName::Network("box".to_owned()), 5433)],
                    "u",
                    "d",
                )
            },
            tables,
            dry_run: true,
        })
    }

    #[track_caller]
    fn assert_holds(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn rows_and_bytes_of_a_million_units() {
        let text = shown(Tables::plain(vec![], 1_000_000));
        assert_holds(
            &text,
            &[
                "Database \"d\", role \"u\", box port 5433",
                " 100,000,000,000 rows         13,429,508,202,496 bytes ",
                " 100,011,000,000 rows ",
                "which is 15.7 TB",
            ],
        );
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains(" -"), "no negative number: {text}");
    }

    #[test]
    fn the_statements_are_those_of_the_steps() {
        let mut tables = Tables::plain(InitStep::ALL.to_vec(), 3);
        let text = shown(tables.clone());
        assert_holds(
            &text,
            &[
                "\n-- d: drop tables\ndrop table if exists pgbench_accounts,",
                "\ncreate table pgbench_branches (bid int not null,",
                "\ncopy pgbench_accounts from stdin with (freeze on);\n",
                "from generate_series(1, 300000) as n;\n",
                "\nvacuum analyze pgbench_history;\n",
                "\nalter table pgbench_accounts add primary key (aid);\n",
                "add constraint pgbench_history_aid_fkey foreign key (aid)",
            ],
        );
        tables.layout.partitioning = Some(Partitioning {
            method: PartitionMethod::Range,
            partitions: 5,
        });
        tables.layout.schema = Some("s".to_owned());
        let text = shown(tables.clone());
        assert_holds(
            &text,
            &[
                "create schema \"s\"; -- unless it is there",
                "pgbench_accounts_3 partition of",
                "-- ... and 2 more",
                "\ncopy pgbench_accounts from stdin;\n",
            ],
        );
        assert!(!text.contains("pgbench_accounts_4"), "{text}");
        tables.loading.connections = 2;
        assert_holds(
            &shown(tables.clone()),
            &["by 2 connections, partition by partition:\n\
               copy pgbench_accounts_1 from stdin with (freeze on);\n"],
        );
        tables.loading.batch_rows = Some(20_000);
        assert_holds(
            &shown(tables),
            &[
                "-- committing every 20,000 rows:",
                "copy pgbench_accounts_1 from stdin;\n",
            ],
        );
    }

    #[test]
    fn numbers_are_grouped_and_have_units() {
        for (number, group, units) in [
            (0, "0", "0 bytes"),
            (999, "999", "999 bytes"),
            (1_000, "1,000", "1.0 kB"),
            (13_434_880, "13,434,880", "13.4 MB"),
            (u64::MAX, "18,446,744,073,709,551,615", "18.4 EB"),
        ] {
            assert_eq!(
                (grouped(number), in_units(number)),
                (group.into(), units.into())
            );
        }
    }
}
