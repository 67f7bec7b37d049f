//! What the control connection learns of the server under test before and after a run: version,
//! settings that decide the figures, scale of the tables, what it was doing meanwhile.
//!
//! Only what a run cannot do without is an error; whatever a server does not know or does not
//! tell is `None`. Takes no part in the load.

mod activity;
mod before;
mod counters;
mod place;
mod waiting;

use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, SimpleQueryRow};

pub use self::activity::{Activity, ActivityDelta};
pub use self::before::before;
pub use self::counters::Counters;
pub use self::place::place;
pub use self::waiting::{ServerWaits, waits};
use crate::console::Console;
use crate::control::{rows, server_message};
use crate::error::{Error, Report};
use crate::plan::{PartitionMethod, Partitioning, Vacuum};
use crate::program::Program;

/// What the server is and how it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its own text, as in `18.6 (Debian 18.6-1)`.
    pub version: String,
    /// As in `180006`; 0 if it does not tell.
    pub version_num: u32,
    /// Settings that decide how much work a transaction is.
    pub settings: Settings,
    /// Whether it runs on this machine: reached through a socket, or by an address that both ends
    /// share.
    pub same_host: Option<bool>,
    /// Connections it accepts in all. A pooler in between may have other limits.
    pub max_connections: Option<u32>,
    /// Those of them that ordinary users do not get.
    pub reserved_connections: Option<u32>,
    /// Connections that the role may have at once, if it has a limit of its own.
    pub role_connections: Option<u32>,
    /// Connections that the database takes at once, if it has a limit of its own.
    pub database_connections: Option<u32>,
}

/// Settings as the control connection sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `fsync`
    pub fsync: Option<String>,
    /// `synchronous_commit`
    pub synchronous_commit: Option<String>,
    /// `full_page_writes`
    pub full_page_writes: Option<String>,
    /// `debug_assertions`: compiled with checks that make it slow.
    pub debug_assertions: Option<String>,
    /// `checkpoint_timeout`
    pub checkpoint_timeout: Option<Duration>,
}

impl Settings {
    /// Those that are not at their safe default, in words.
    pub fn deviations(&self) -> Vec<String> {
        [
            ("fsync", &self.fsync, "on"),
            ("synchronous_commit", &self.synchronous_commit, "on"),
            ("full_page_writes", &self.full_page_writes, "on"),
            ("assertions", &self.debug_assertions, "off"),
        ]
        .into_iter()
        .filter_map(|(name, value, safe)| match value {
            Some(value) if value != safe => Some(format!("{name} {value}")),
            _ => None,
        })
        .collect()
    }
}

/// Asks for version and settings, in one statement.
///
/// # Errors
/// [`Error::Server`] where even that is refused.
pub fn facts(client: &mut Client) -> Result<ServerFacts, Error> {
    let failed = |error: &postgres::Error| {
        let message = server_message(error);
        Error::Server(Report::new(format!(
            "could not ask the server for its version and settings: {message}"
        )))
    };
    let rows = rows(client, FACTS).map_err(|e| failed(&e))?;
    let text = |column: &str| -> Option<String> {
        let value = rows.first()?.try_get(column).ok()??;
        Some(value.to_owned())
    };
    let number = |column: &str| -> Option<u32> { text(column)?.parse().ok() };
    Ok(ServerFacts {
        version: text("version").unwrap_or_else(|| "unknown".to_owned()),
        version_num: number("version_num").unwrap_or(0),
        settings: Settings {
            fsync: text("fsync"),
            synchronous_commit: text("synchronous_commit"),
            full_page_writes: text("full_page_writes"),
            debug_assertions: text("debug_assertions"),
            checkpoint_timeout: number("checkpoint_timeout_s")
                .map(|seconds| Duration::from_secs(seconds.into())),
        },
        same_host: text("same_host").map(|value| value == "t"),
        max_connections: number("max_connections"),
        reserved_connections: number("reserved_connections"),
        role_connections: number("role_connections"),
        database_connections: number("database_connections"),
    })
}

/// The scale of the tables: the rows of `pgbench_branches`. `hint` is what to do if they are
/// missing, [`initialization_hint`].
///
/// # Errors
/// [`Error::Server`] where they cannot be counted, with a hint where the table is missing.
pub fn scale(client: &mut Client, hint: &str) -> Result<u64, Error> {
    let failed = |message: &str, missing: bool| {
        let report = Report::new(format!("could not count number of branches: {message}"));
        Error::Server(match missing {
            true => report.hint(hint),
            false => report,
        })
    };
    let rows = rows(client, "select count(*) from pgbench_branches").map_err(|error| {
        failed(
            &server_message(&error),
            error.code() == Some(&SqlState::UNDEFINED_TABLE),
        )
    })?;
    let count = rows.first().and_then(|row| number(row, 0));
    count.ok_or_else(|| failed("the server gave no number", false))
}

/// Rows of `pgbench_history`.
///
/// # Errors
/// The server's words, where they cannot be counted.
pub fn history_rows(client: &mut Client) -> Result<u64, String> {
    let rows = rows(client, "select count(*) from pgbench_history")
        .map_err(|error| server_message(&error))?;
    let count = rows.first().and_then(|row| number(row, 0));
    count.ok_or_else(|| "the server gave no number".to_owned())
}

/// How the accounts table that the clients will find is partitioned, if it is.
///
/// # Errors
/// [`Error::Server`] where there is no such table, its method is unknown here, or the server does
/// not answer.
pub fn partitions(client: &mut Client, hint: &str) -> Result<Option<Partitioning>, Error> {
    let rows = match rows(client, PARTITIONS) {
        Ok(rows) => rows,
        Err(error) if lacks_catalogue(&error) => return Ok(None),
        Err(error) => {
            let message = server_message(&error);
            return Err(Error::Server(Report::new(format!(
                "could not ask how pgbench_accounts is partitioned: {message}"
            ))));
        }
    };
    let Some(row) = rows.first() else {
        return Err(Error::Server(
            Report::new("no pgbench_accounts table found in \"search_path\"").hint(hint),
        ));
    };
    let method = match row.try_get(0) {
        Ok(None) | Err(_) => return Ok(None),
        Ok(Some("r")) => PartitionMethod::Range,
        Ok(Some("h")) => PartitionMethod::Hash,
        Ok(Some(other)) => {
            return Err(Error::Server(Report::new(format!(
                "pgbench_accounts is partitioned by an unknown method: \"{other}\""
            ))));
        }
    };
    let partitions = number(row, 1).and_then(|count| u32::try_from(count).ok());
    Ok(partitions.map(|partitions| Partitioning { method, partitions }))
}

/// A server that does not know the catalogue, or not as it is now, has no partitions.
fn lacks_catalogue(error: &postgres::Error) -> bool {
    [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN]
        .iter()
        .any(|code| error.code() == Some(code))
}

/// Vacuums before a run and empties history, saying so. A table that is missing is told of and
/// is no error, since the script may not use it.
pub fn vacuum(client: &mut Client, vacuum: Vacuum, console: &Console) {
    let mut execute = |announcement: &str, statements: &[&str]| {
        console.begin_line(announcement);
        for statement in statements {
            if let Err(error) = client.batch_execute(statement) {
                console.error(&server_message(&error));
                console.detail("(ignoring this error and continuing anyway)");
            }
        }
        console.end_line("end.");
    };
    let small_tables = [
        "vacuum pgbench_branches",
        "vacuum pgbench_tellers",
        "truncate pgbench_history",
    ];
    match vacuum {
        Vacuum::None => {}
        Vacuum::Default => execute("starting vacuum...", &small_tables),
        Vacuum::All => {
            execute("starting vacuum...", &small_tables);
            execute(
                "starting vacuum pgbench_accounts...",
                &["vacuum analyze pgbench_accounts"],
            );
        }
    }
}

/// What to do where the tables are missing.
pub fn initialization_hint(program: Program, database: &str) -> String {
    let program = program.name();
    format!("Perhaps you need to do initialization (\"{program} -i\") in database \"{database}\".")
}

fn number(row: &SimpleQueryRow, index: usize) -> Option<u64> {
    row.try_get(index).ok()??.parse().ok()
}

/// A setting that a version lacks is NULL. `pg_settings` gives times in their base unit.
const FACTS: &str = "select \
     current_setting('server_version') as version, \
     current_setting('server_version_num') as version_num, \
     current_setting('fsync', true) as fsync, \
     current_setting('synchronous_commit', true) as synchronous_commit, \
     current_setting('full_page_writes', true) as full_page_writes, \
     current_setting('debug_assertions', true) as debug_assertions, \
     (select setting from pg_catalog.pg_settings where name = 'checkpoint_timeout') \
         as checkpoint_timeout_s, \
     inet_client_addr() is null or inet_client_addr() = inet_server_addr() \
         or inet_server_addr() <<= '127.0.0.0/8' as same_host, \
     current_setting('max_connections', true) as max_connections, \
     coalesce(current_setting('superuser_reserved_connections', true)::int, 0) \
         + coalesce(current_setting('reserved_connections', true)::int, 0) \
         as reserved_connections, \
     (select rolconnlimit from pg_catalog.pg_roles where rolname = session_user) \
         as role_connections, \
     (select datconnlimit from pg_catalog.pg_database where datname = current_database()) \
         as database_connections";

/// One row if the table is found, with the method only if it is partitioned.
const PARTITIONS: &str = "select max(p.partstrat::text), count(i.inhrelid) \
     from pg_catalog.pg_class c \
     left join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid \
     left join pg_catalog.pg_inherits i on i.inhparent = c.oid \
     where c.oid = to_regclass('pgbench_accounts') group by c.oid";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::temporary_cluster;
    use crate::console::tests::recorded;
    use crate::control;

    const HINT: &str = "initialize";

    /// One server for everything that needs one, since starting it takes most of the time.
    #[test]
    fn on_a_server() {
        let cluster = temporary_cluster();
        let (console, _) = recorded();
        let mut client = control::connect(&cluster.target(), &console).unwrap();
        tables_that_are_missing_are_told_of(&mut client);
        client
            .batch_execute(
                "create table pgbench_branches (bid int); \
                 insert into pgbench_branches select generate_series(1, 3); \
                 create table pgbench_tellers (tid int, tbalance int); \
                 create table pgbench_accounts (aid int); \
                 create table pgbench_history (tid int)",
            )
            .unwrap();
        assert_eq!(scale(&mut client, HINT).unwrap(), 3);
        assert_eq!(partitions(&mut client, HINT).unwrap(), None);
        the_server_is_described(&mut client);
        its_activity_is_counted(&mut client);
        the_vacuum_empties_history(&mut client);
        partitions_are_counted(&mut client);
        the_server_is_prepared_as_asked(&mut client);
    }

    #[test]
    fn only_what_is_not_at_its_safe_default_deviates() {
        let settings = |value: &str, assertions: &str| Settings {
            fsync: Some(value.to_owned()),
            synchronous_commit: Some(value.to_owned()),
            full_page_writes: Some(value.to_owned()),
            debug_assertions: Some(assertions.to_owned()),
            checkpoint_timeout: None,
        };
        assert_eq!(settings("on", "off").deviations(), Vec::<String>::new());
        assert_eq!(Settings::default().deviations(), Vec::<String>::new());
        assert_eq!(
            settings("off", "on").deviations(),
            [
                "fsync off",
                "synchronous_commit off",
                "full_page_writes off",
                "assertions on"
            ]
        );
    }

    fn tables_that_are_missing_are_told_of(client: &mut Client) {
        let (console, recording) = recorded();
        vacuum(client, Vacuum::Default, &console);
        let text = recording.text();
        assert!(
            text.starts_with(
                "starting vacuum...\n\
                 pgmark: error: ERROR:  relation \"pgbench_branches\" does not exist\n\
                 pgmark: detail: (ignoring this error and continuing anyway)\n"
            ),
            "{text}"
        );
        assert!(text.ends_with("\nend.\n"), "{text}");
        let error = scale(client, HINT).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("could not count number of branches: ERROR:")
        );
        assert_eq!(error.report().unwrap().hint.as_deref(), Some(HINT));
        assert!(partitions(client, HINT).is_err());
    }

    fn the_server_is_described(client: &mut Client) {
        let facts = facts(client).unwrap();
        assert!(facts.version_num >= 130_000, "{facts:?}");
        assert!(
            facts
                .version
                .starts_with(&(facts.version_num / 10_000).to_string())
        );
        assert_eq!(facts.settings.fsync.as_deref(), Some("off"));
        assert_eq!(
            facts.settings.checkpoint_timeout,
            Some(Duration::from_secs(300))
        );
        assert_eq!(facts.same_host, Some(true));
        assert_eq!(facts.max_connections, Some(100));
        assert_eq!(facts.reserved_connections, Some(3));
    }

    fn its_activity_is_counted(client: &mut Client) {
        let version_num = facts(client).unwrap().version_num;
        let before = Activity::now(client, version_num);
        // A checkpoint is counted a moment after CHECKPOINT has returned, but before the next one.
        client
            .batch_execute("update pgbench_tellers set tbalance = 1; checkpoint; checkpoint")
            .unwrap();
        let counted = Activity::now(client, version_num).since(&before).0;
        assert!(counted.checkpoints >= Some(1), "{counted:?}");
        assert!(counted.wal_bytes > Some(0), "{counted:?}");
        // Asked as another version, the server refuses: then nothing is known.
        let other_version = if version_num < 170_000 {
            170_000
        } else {
            160_000
        };
        assert_eq!(Activity::now(client, other_version), Activity::default());
    }

    fn the_vacuum_empties_history(client: &mut Client) {
        client
            .batch_execute("insert into pgbench_history (tid) values (1)")
            .unwrap();
        let (console, recording) = recorded();
        vacuum(client, Vacuum::All, &console);
        assert_eq!(
            recording.text(),
            "starting vacuum...end.\nstarting vacuum pgbench_accounts...end.\n"
        );
        let rows = rows(client, "select count(*) from pgbench_history").unwrap();
        assert_eq!(number(&rows[0], 0), Some(0));
    }

    fn the_server_is_prepared_as_asked(client: &mut Client) {
        use crate::plan::Preparation::{Checkpoint, Prewarm, Reset, Vacuum};
        let (console, recording) = recorded();
        client
            .batch_execute("select count(*) from pgbench_branches")
            .unwrap();
        before(client, &[Vacuum, Checkpoint, Reset], &console).unwrap();
        assert_eq!(
            recording.text(),
            "vacuum and analyze of the database...end.\n\
             checkpoint...end.\n\
             reset of statistics...end.\n"
        );
        // Where the extension is not installed, the remedy is told.
        let error = before(client, &[Prewarm], &console).unwrap_err();
        assert!(
            error.to_string().starts_with("--before prewarm failed: "),
            "{error}"
        );
        let hint = error.report().and_then(|report| report.hint.clone());
        assert!(hint.is_some_and(|hint| hint.contains("CREATE EXTENSION pg_prewarm")));
        if client.batch_execute("create extension pg_prewarm").is_ok() {
            before(client, &[Prewarm], &console).unwrap();
        }
    }

    fn partitions_are_counted(client: &mut Client) {
        client
            .batch_execute(
                "drop table pgbench_accounts; \
                 create table pgbench_accounts (aid int) partition by hash (aid); \
                 create table pgbench_accounts_1 partition of pgbench_accounts \
                 for values with (modulus 2, remainder 0); \
                 create table pgbench_accounts_2 partition of pgbench_accounts \
                 for values with (modulus 2, remainder 1)",
            )
            .unwrap();
        let expected = Partitioning {
            method: PartitionMethod::Hash,
            partitions: 2,
        };
        assert_eq!(partitions(client, HINT).unwrap(), Some(expected));
        // A transaction that has failed answers nothing more, which is not to have no partitions.
        assert!(client.batch_execute("begin; select 1/0").is_err());
        let error = partitions(client, HINT).unwrap_err();
        assert!(error.to_string().contains("is aborted"), "{error}");
        client.batch_execute("rollback").unwrap();
    }
}
