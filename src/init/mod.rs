//! Initialisation: creates the tables of the builtin scripts and fills them, step by step over
//! one connection. Every step commits by itself; none checks what another left behind.
//!
//! Says on the console what it does; measures nothing but how long each step took.

mod progress;
mod rows;
mod statements;

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::Client;

use self::progress::Progress;
use self::rows::FilledTable;
use crate::console::Console;
use crate::control::{self, server_message};
use crate::error::{Error, Report};
use crate::plan::{InitStep, Tables};
use crate::time::{Clock, Timestamp};

/// Rows that are formatted at once: about 100 KiB, and it divides the rows between two progress
/// lines.
const ROWS_PER_CHUNK: u64 = 5_000;
const _: () = assert!(progress::ROWS_PER_LINE.is_multiple_of(ROWS_PER_CHUNK));

/// Rows that are sent by one COPY. The driver tells of an error only when a COPY ends, so this
/// bounds what is sent in vain (about 200 MB) after the server ran out of disk.
const ROWS_PER_COPY: u64 = 10_000_000;

/// Takes the steps of `tables` on `client` and says so on `console`, at last with the times.
///
/// Once `stop` is set nothing further is begun and rows stop flowing; whoever sets it also sends
/// a cancel request by the client's cancel token, for the statement that is under way.
///
/// # Errors
/// [`Error::Server`] with the server's message and the statement that failed. Earlier steps stay
/// done.
pub fn run(
    client: &mut Client,
    tables: &Tables,
    console: &Console,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut session = InitSession {
        client,
        tables,
        console,
        clock,
        stop,
    };
    let mut steps = Vec::with_capacity(tables.steps.len());
    for &step in &tables.steps {
        console.line(step.announcement());
        let started_at = clock.now();
        session.take(step)?;
        steps.push((step, clock.now() - started_at));
    }
    console.line(&done_line(&steps));
    Ok(())
}

impl InitStep {
    /// What it is called in the line of times.
    fn name(self) -> &'static str {
        match self {
            InitStep::DropTables => "drop tables",
            InitStep::CreateTables => "create tables",
            InitStep::GenerateClientSide => "client-side generate",
            InitStep::Vacuum => "vacuum",
            InitStep::PrimaryKeys => "primary keys",
        }
    }

    /// What is said when it begins.
    fn announcement(self) -> &'static str {
        match self {
            InitStep::DropTables => "dropping old tables...",
            InitStep::CreateTables => "creating tables...",
            InitStep::GenerateClientSide => "generating data (client-side)...",
            InitStep::Vacuum => "vacuuming...",
            InitStep::PrimaryKeys => "creating primary keys...",
        }
    }
}

/// The steps taken and how long each took:
/// `done in 0.36 s (drop tables 0.01 s, create tables 0.00 s, …).`
fn done_line(steps: &[(InitStep, Duration)]) -> String {
    let total: Duration = steps.iter().map(|(_, duration)| duration).sum();
    let each: Vec<String> = steps
        .iter()
        .map(|(step, duration)| format!("{} {:.2} s", step.name(), duration.as_secs_f64()))
        .collect();
    format!(
        "done in {:.2} s ({}).",
        total.as_secs_f64(),
        each.join(", ")
    )
}

/// One table while it is filled.
struct Filling<'a> {
    table: FilledTable,
    statement: String,
    started_at: Timestamp,
    progress: Progress<'a>,
    /// Rows on their way; one buffer for all of them.
    chunk: Vec<u8>,
}

/// What every step needs.
struct InitSession<'a> {
    client: &'a mut Client,
    tables: &'a Tables,
    console: &'a Console,
    clock: &'a Clock,
    stop: &'a AtomicBool,
}

impl InitSession<'_> {
    fn take(&mut self, step: InitStep) -> Result<(), Error> {
        match step {
            InitStep::DropTables => self.execute(statements::DROP),
            InitStep::CreateTables => self.execute_all(&statements::create(self.tables.scale)),
            InitStep::GenerateClientSide => self.generate(),
            InitStep::Vacuum => self.execute_all(&statements::VACUUM),
            InitStep::PrimaryKeys => self.execute_all(&statements::PRIMARY_KEYS),
        }
    }

    /// In one transaction, since rows may only be frozen in the one that emptied the table.
    fn generate(&mut self) -> Result<(), Error> {
        self.execute("begin")?;
        self.execute(statements::TRUNCATE)?;
        for table in FilledTable::ALL {
            self.fill(table)?;
        }
        self.execute("commit")
    }

    fn fill(&mut self, table: FilledTable) -> Result<(), Error> {
        let freeze = self.ask(&statements::may_freeze(table))?;
        let total = table.rows(self.tables.scale);
        let mut filling = Filling {
            table,
            statement: statements::copy(table, freeze),
            started_at: self.clock.now(),
            progress: Progress::new(self.console, table, total, self.tables.quiet),
            chunk: Vec::new(),
        };
        let mut outcome = Ok(());
        let mut done = 0;
        while outcome.is_ok() && done < total {
            let end = total.min(done + ROWS_PER_COPY);
            outcome = self.copy_rows(&mut filling, done..end);
            done = end;
        }
        filling.progress.finish();
        outcome
    }

    /// One COPY of the rows numbered `rows`.
    fn copy_rows(&mut self, filling: &mut Filling<'_>, rows: Range<u64>) -> Result<(), Error> {
        self.check_stop()?;
        let failed = |error: &postgres::Error| statement_failed(&filling.statement, error);
        let mut writer = self
            .client
            .copy_in(&filling.statement)
            .map_err(|e| failed(&e))?;
        let mut next = rows.start;
        while next < rows.end {
            if self.stop.load(Ordering::Relaxed) {
                // Dropping the writer aborts the COPY.
                return Err(stopped());
            }
            let end = rows.end.min(next + ROWS_PER_CHUNK);
            filling.chunk.clear();
            for k in next..end {
                filling.table.append_row(k, &mut filling.chunk);
            }
            if writer.write_all(&filling.chunk).is_err() {
                // Only that the stream is broken is known here; ending the COPY tells why.
                break;
            }
            next = end;
            let elapsed = self.clock.now() - filling.started_at;
            filling.progress.advance(next, elapsed);
        }
        writer.finish().map_err(|e| failed(&e))?;
        Ok(())
    }

    fn execute_all<S: AsRef<str>>(&mut self, statements: &[S]) -> Result<(), Error> {
        statements
            .iter()
            .try_for_each(|statement| self.execute(statement.as_ref()))
    }

    fn execute(&mut self, statement: &str) -> Result<(), Error> {
        self.check_stop()?;
        self.client
            .batch_execute(statement)
            .map_err(|error| statement_failed(statement, &error))
    }

    /// The answer to a question of one boolean; no row means no.
    fn ask(&mut self, question: &str) -> Result<bool, Error> {
        self.check_stop()?;
        let rows = control::rows(self.client, question)
            .map_err(|error| statement_failed(question, &error))?;
        let answer = rows.first().and_then(|row| row.try_get(0).ok()?);
        Ok(answer == Some("t"))
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        Ok(())
    }
}

fn statement_failed(statement: &str, error: &postgres::Error) -> Error {
    Error::Server(
        Report::new(format!("query failed: {}", server_message(error)))
            .detail(format!("Query was: {statement}")),
    )
}

fn stopped() -> Error {
    Error::Server(Report::new("initialization was stopped before its end"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::tests::temporary_cluster;
    use crate::conninfo::Target;
    use crate::console::tests::recorded;

    const ALL_STEPS: [InitStep; 5] = [
        InitStep::DropTables,
        InitStep::CreateTables,
        InitStep::GenerateClientSide,
        InitStep::Vacuum,
        InitStep::PrimaryKeys,
    ];

    #[test]
    fn the_last_line_tells_the_time_of_each_step() {
        let line = |steps: &[(InitStep, u64)]| {
            let with_ms = steps.iter();
            let steps: Vec<_> = with_ms
                .map(|&(step, ms)| (step, Duration::from_millis(ms)))
                .collect();
            done_line(&steps)
        };
        assert_eq!(line(&[]), "done in 0.00 s ().");
        let steps = [
            (InitStep::DropTables, 10),
            (InitStep::CreateTables, 0),
            (InitStep::GenerateClientSide, 1_170),
            (InitStep::Vacuum, 70),
            (InitStep::PrimaryKeys, 110),
        ];
        assert_eq!(
            line(&steps),
            "done in 1.36 s (drop tables 0.01 s, create tables 0.00 s, client-side generate \
             1.17 s, vacuum 0.07 s, primary keys 0.11 s)."
        );
    }

    /// One server for everything that needs one, since starting it takes most of the time.
    #[test]
    fn tables_on_a_server() {
        let cluster = temporary_cluster();
        let (console, _) = recorded();
        let mut client = control::connect(&cluster.target(), &console).unwrap();
        a_failing_statement_is_told_with_its_text(&mut client);
        all_steps_make_the_tables(&cluster.target());
        generating_twice_leaves_one_copy(&mut client);
        a_stop_undoes_the_step_under_way(&cluster.target(), &mut client);
        a_partitioned_table_is_filled(&mut client);
    }

    fn init(
        client: &mut Client,
        steps: &[InitStep],
        stop: &AtomicBool,
    ) -> (Result<(), Error>, String) {
        let (console, recording) = recorded();
        let tables = Tables {
            steps: steps.to_vec(),
            scale: 2,
            quiet: false,
        };
        let outcome = run(client, &tables, &console, &Clock::start(), stop);
        (outcome, recording.text())
    }

    fn one(client: &mut Client, question: &str) -> String {
        let row = client
            .query_one(&format!("select ({question})::text"), &[])
            .unwrap();
        row.get(0)
    }

    fn a_failing_statement_is_told_with_its_text(client: &mut Client) {
        let stop = AtomicBool::new(false);
        let (outcome, text) = init(client, &[InitStep::PrimaryKeys], &stop);
        assert_eq!(text, "creating primary keys...\n");
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Server(_)));
        assert_eq!(
            error.to_string(),
            "query failed: ERROR:  relation \"pgbench_branches\" does not exist"
        );
        assert_eq!(
            error.report().unwrap().detail.as_deref(),
            Some("Query was: alter table pgbench_branches add primary key (bid)")
        );
    }

    fn all_steps_make_the_tables(target: &Target) {
        let (console, notices) = recorded();
        let mut client = control::connect(target, &console).unwrap();
        let (outcome, text) = init(&mut client, &ALL_STEPS, &AtomicBool::new(false));
        outcome.unwrap();
        assert!(
            notices
                .text()
                .contains("NOTICE:  table \"pgbench_history\" does not exist, skipping")
        );
        let lines: Vec<&str> = text.lines().collect();
        let begins = [
            "dropping old tables...",
            "creating tables...",
            "generating data (client-side)...",
            "100000 of 200000 tuples (50%) of pgbench_accounts done (elapsed ",
            "200000 of 200000 tuples (100%) of pgbench_accounts done (elapsed ",
            "vacuuming...",
            "creating primary keys...",
            "done in ",
        ];
        assert_eq!(lines.len(), begins.len(), "{text}");
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
        let cases = [
            (
                "select count(*) from pgbench_branches where filler is null and bbalance = 0",
                "2",
            ),
            (
                "select max(tid) || '/' || max(bid) from pgbench_tellers",
                "20/2",
            ),
            ("select count(distinct aid) from pgbench_accounts", "200000"),
            ("select bid from pgbench_accounts where aid = 100001", "2"),
            (
                "select octet_length(filler) from pgbench_accounts where aid = 1",
                "84",
            ),
            (
                "select reloptions from pg_class where relname = 'pgbench_accounts'",
                "{fillfactor=100}",
            ),
            (
                "select relallvisible = relpages from pg_class where relname = 'pgbench_accounts'",
                "true",
            ),
            (
                "select count(*) from pg_index where indisprimary and indrelid::regclass::text like 'pgbench%'",
                "3",
            ),
        ];
        for (question, answer) in cases {
            assert_eq!(one(&mut client, question), answer, "{question}");
        }
    }

    fn generating_twice_leaves_one_copy(client: &mut Client) {
        let steps = [InitStep::GenerateClientSide];
        init(client, &steps, &AtomicBool::new(false)).0.unwrap();
        assert_eq!(one(client, "select count(*) from pgbench_branches"), "2");
        // Only frozen rows can be marked visible to all without a vacuum.
        let marked = "select pg_relation_size('pgbench_accounts', 'vm') > 0";
        assert_eq!(one(client, marked), "true");
    }

    /// Sets the flag as soon as a line of progress is printed.
    struct StopAtProgress(Arc<AtomicBool>);

    impl Write for StopAtProgress {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.starts_with(b"100000 of 200000") {
                self.0.store(true, Ordering::Relaxed);
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn a_stop_undoes_the_step_under_way(target: &Target, client: &mut Client) {
        let stop = Arc::new(AtomicBool::new(false));
        let console = Console::to(Box::new(StopAtProgress(stop.clone())));
        let tables = Tables {
            steps: vec![InitStep::GenerateClientSide, InitStep::DropTables],
            scale: 2,
            quiet: false,
        };
        let mut stopped = control::connect(target, &console).unwrap();
        let outcome = run(&mut stopped, &tables, &console, &Clock::start(), &stop);
        assert!(matches!(outcome, Err(Error::Server(_))));
        drop(stopped);
        assert_eq!(
            one(client, "select count(*) from pgbench_accounts"),
            "200000"
        );
    }

    fn a_partitioned_table_is_filled(client: &mut Client) {
        client
            .batch_execute(
                "drop table pgbench_accounts; \
                 create table pgbench_accounts (aid int, bid int, abalance int, filler char(84)) \
                 partition by hash (aid); \
                 create table pgbench_accounts_1 partition of pgbench_accounts \
                 for values with (modulus 1, remainder 0)",
            )
            .unwrap();
        let steps = [InitStep::GenerateClientSide];
        init(client, &steps, &AtomicBool::new(false)).0.unwrap();
        assert_eq!(
            one(client, "select count(*) from pgbench_accounts_1"),
            "200000"
        );
    }
}
