//! Initialisation: creates the tables of the builtin scripts and fills them, step by step. Every
//! step commits by itself and is undone as a whole where the server allows it; none checks what
//! another left behind.
//!
//! One connection does everything but what `-j` shares out: filling the accounts and building
//! keys. Says on the console what it does; measures nothing but how long each step took.

mod canceller;
mod explain;
mod generate;
mod load;
mod parts;
mod preview;
mod progress;
mod rows;
mod session;
mod sizes;
mod statements;
mod team;
mod way;

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crossbeam_channel::bounded;

use self::canceller::Canceller;
use self::session::{Failure, Session, Stop};
use self::team::Team;
use crate::conninfo::Target;
use crate::console::Console;
use crate::control::{self, Connection};
use crate::error::Error;
use crate::plan::{InitPlan, InitStep, Tables};
use crate::time::Clock;

pub use self::preview::preview;

/// Partitions that are created in one transaction. Each holds a lock until its end, and servers
/// have room for 6,400 by default, less what others hold.
const PARTITIONS_PER_TRANSACTION: u32 = 1_000;

/// How long the emptying of half-filled tables may wait for a lock.
const TIDY_UP_PATIENCE_MS: u32 = 2_000;

/// How often emptying is tried: more than once, since a late cancellation may hit it.
const TIDY_UP_TRIES: u32 = 3;

/// From this version on a partitioned table cannot be unlogged.
const NO_UNLOGGED_PARTITIONED: u32 = 180_000;

/// Takes the steps of `plan` on `client`, which is connected to its target, and says so on
/// `console`, at last with the times.
///
/// Once `stop` is set nothing further is begun, rows stop flowing, and what the server is doing is
/// cancelled. `client` may be another connection afterwards.
///
/// # Errors
/// [`Error::Server`] with the server's message, the statement that failed and the steps that
/// remain. Earlier steps stay done.
pub fn run(
    client: &mut Connection,
    plan: &InitPlan,
    console: &Console,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let canceller = Canceller::new(client.cancellation());
    let mut run = InitRun {
        client,
        canceller: &canceller,
        target: &plan.target,
        tables: &plan.tables,
        console,
        clock,
        stop,
    };
    thread::scope(|scope| {
        // Dropped at the end of the steps, which ends the watch.
        let (_working, ended) = bounded(0);
        let canceller = &canceller;
        // Without this thread a stop waits for the statement that is under way.
        let _ = thread::Builder::new()
            .name("canceller".to_owned())
            .spawn_scoped(scope, move || canceller.watch(stop, &ended));
        run.take_all()
    })
}

impl InitStep {
    /// What it is called in the line of times.
    fn name(self) -> &'static str {
        match self {
            InitStep::DropTables => "drop tables",
            InitStep::CreateTables => "create tables",
            InitStep::GenerateClientSide => "client-side generate",
            InitStep::GenerateServerSide => "server-side generate",
            InitStep::Vacuum => "vacuum",
            InitStep::PrimaryKeys => "primary keys",
            InitStep::ForeignKeys => "foreign keys",
        }
    }

    /// What is said when it begins.
    fn announcement(self) -> &'static str {
        match self {
            InitStep::DropTables => "dropping old tables...",
            InitStep::CreateTables => "creating tables...",
            InitStep::GenerateClientSide => "generating data (client-side)...",
            InitStep::GenerateServerSide => "generating data (server-side)...",
            InitStep::Vacuum => "vacuuming...",
            InitStep::PrimaryKeys => "creating primary keys...",
            InitStep::ForeignKeys => "creating foreign keys...",
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

/// What every step needs.
struct InitRun<'a> {
    client: &'a mut Connection,
    canceller: &'a Canceller,
    target: &'a Target,
    tables: &'a Tables,
    console: &'a Console,
    clock: &'a Clock,
    stop: &'a AtomicBool,
}

impl<'a> InitRun<'a> {
    fn take_all(&mut self) -> Result<(), Error> {
        let all = &self.tables.steps;
        let mut steps = Vec::with_capacity(all.len());
        for (index, &step) in all.iter().enumerate() {
            self.console.line(step.announcement());
            let started_at = self.clock.now();
            self.take(step)
                .map_err(|failure| explain::explain(self, failure, &all[index..]))?;
            steps.push((step, self.clock.now() - started_at));
        }
        self.console.line(&done_line(&steps));
        Ok(())
    }

    fn take(&mut self, step: InitStep) -> Result<(), Failure> {
        match step {
            InitStep::DropTables => self.session().execute(statements::DROP),
            InitStep::CreateTables => self.create_tables(),
            InitStep::GenerateClientSide | InitStep::GenerateServerSide => {
                generate::generate(self, step)
            }
            InitStep::Vacuum => self.session().execute_all(&statements::VACUUM),
            InitStep::PrimaryKeys => self.create_primary_keys(),
            InitStep::ForeignKeys => self
                .session()
                .in_transaction(|session| session.execute_all(&statements::FOREIGN_KEYS)),
        }
    }

    /// The first connection.
    fn session(&mut self) -> Session<'_> {
        Session {
            client: &mut *self.client,
            stop: Stop {
                ordered: self.stop,
                failed_elsewhere: None,
            },
        }
    }

    /// Does `work` in a transaction of the first connection, which is undone if it fails.
    fn in_transaction(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.session().execute("begin")?;
        let outcome = work(self).and_then(|()| self.session().execute("commit"));
        if outcome.is_err() {
            self.session().try_to("rollback");
        }
        outcome
    }

    /// Goes on with a new first connection: the driver loses one on which a COPY was refused
    /// before it began.
    fn reconnect(&mut self) -> Result<(), Failure> {
        let client = control::connect(self.target, self.console).map_err(Failure::Other)?;
        self.canceller.set(Some(client.cancellation()));
        *self.client = client;
        Ok(())
    }

    /// Empties the tables after something was committed that is not complete, also after a stop.
    /// Whoever holds a lock on them for long is not waited for.
    fn tidy_up(&mut self) {
        self.canceller.set(None);
        let mut session = self.session();
        // A cancellation that was sent before may arrive only now, and end what it was not meant for.
        for _ in 0..TIDY_UP_TRIES {
            session.try_to("rollback");
            let emptied = session.try_to(&format!(
                "begin; set local lock_timeout = '{TIDY_UP_PATIENCE_MS}'; {}; commit",
                statements::TRUNCATE
            ));
            if emptied {
                break;
            }
        }
        session.try_to("rollback");
        let order = self.client.cancellation();
        self.canceller.set(Some(order));
    }

    /// Further connections.
    fn team(&self) -> Team<'a> {
        Team {
            target: self.target,
            console: self.console,
            stop: self.stop,
            connections: self.tables.loading.connections,
        }
    }

    fn create_tables(&mut self) -> Result<(), Failure> {
        let (tables, console) = (self.tables, self.console);
        let partitions = tables
            .layout
            .partitioning
            .map_or(0, |partitioning| partitioning.partitions);
        let mut session = self.session();
        let version = session.server_version()?;
        let creations = statements::create(tables, version < NO_UNLOGGED_PARTITIONED);
        let create_partitions = |session: &mut Session<'_>| {
            if partitions > 0 {
                console.line(&format!("creating {partitions} partitions..."));
            }
            statements::create_partitions(tables).try_for_each(|one| session.execute(&one))
        };
        session.in_transaction(|session| {
            if let Some(schema) = &tables.layout.schema
                && !session.is_true(&statements::has_schema(schema))?
            {
                session.execute(&statements::create_schema(schema))?;
            }
            session.execute_all(&creations)?;
            if partitions <= PARTITIONS_PER_TRANSACTION {
                create_partitions(session)?;
            }
            Ok(())
        })?;
        if partitions > PARTITIONS_PER_TRANSACTION {
            create_partitions(&mut session)?;
        }
        Ok(())
    }

    fn create_primary_keys(&mut self) -> Result<(), Failure> {
        let keys = statements::primary_keys(&self.tables.layout);
        if self.tables.loading.connections <= 1 {
            return self
                .session()
                .in_transaction(|session| session.execute_all(&keys));
        }
        self.build_primary_keys_together(&keys)
    }

    /// The partitions get their keys first, each by itself; the parent then only adopts them. What
    /// has a key already keeps it, since what is done by several connections is not undone when
    /// one of them fails.
    fn build_primary_keys_together(&mut self, keys: &[String; 3]) -> Result<(), Failure> {
        let mut session = self.session();
        let keyed: HashSet<String> = first_column(session.rows(statements::KEYED)?);
        let partitions: Vec<String> = session
            .rows(statements::PARTITIONS)?
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        let missing = |table: &str| !keyed.contains(table);
        let [branches, tellers, accounts] = keys;
        let mut first: Vec<String> = partitions
            .iter()
            .filter(|partition| missing(partition))
            .map(|partition| statements::primary_key(partition, "aid", &self.tables.layout))
            .collect();
        let mut last = missing("pgbench_accounts").then_some(accounts);
        if partitions.is_empty() {
            // The longest goes first.
            first.extend(last.take().cloned());
        }
        first.extend(missing("pgbench_tellers").then(|| tellers.clone()));
        first.extend(missing("pgbench_branches").then(|| branches.clone()));
        self.team().share_out(
            &first,
            |session, statement, _| session.execute(statement),
            &mut |_| (),
        )?;
        last.map_or(Ok(()), |statement| self.session().execute(statement))
    }
}

fn first_column(rows: Vec<session::TextRow>) -> HashSet<String> {
    rows.into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use postgres::Client;

    use super::*;
    use crate::cluster::tests::temporary_cluster;
    use crate::conninfo::Target;
    use crate::console::tests::recorded;

    const DEFAULT_STEPS: [InitStep; 5] = [
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
        let target = cluster.target();
        let (console, _) = recorded();
        let mut client = control::connect(&target, &console).unwrap();
        a_failing_statement_is_told_with_its_text(&target);
        all_steps_make_the_tables(&target);
        generating_twice_leaves_one_copy(&target, &mut client);
        a_stop_undoes_the_step_under_way(&target, &mut client);
        a_stop_ends_all_connections(&target, &mut client);
    }

    /// Takes `steps` at scale 2 and tells how it ended and what was said, notices included.
    fn init(target: &Target, steps: &[InitStep]) -> (Result<(), Error>, String) {
        let (console, recording) = recorded();
        let plan = plan(target, Tables::plain(steps.to_vec(), 2));
        let mut client = control::connect(target, &console).unwrap();
        let stop = AtomicBool::new(false);
        let outcome = run(&mut client, &plan, &console, &Clock::start(), &stop);
        (outcome.map(|_| ()), recording.text())
    }

    fn plan(target: &Target, tables: Tables) -> InitPlan {
        InitPlan {
            target: target.clone(),
            tables,
            dry_run: false,
        }
    }

    fn one(client: &mut Client, question: &str) -> String {
        let row = client
            .query_one(&format!("select ({question})::text"), &[])
            .unwrap();
        row.get(0)
    }

    fn a_failing_statement_is_told_with_its_text(target: &Target) {
        let (outcome, text) = init(target, &[InitStep::PrimaryKeys, InitStep::Vacuum]);
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
        assert_eq!(
            error.report().unwrap().hint.as_deref(),
            Some("To go on from here: -I pv")
        );
    }

    fn all_steps_make_the_tables(target: &Target) {
        let (outcome, text) = init(target, &DEFAULT_STEPS);
        outcome.unwrap();
        let (notices, lines): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("NOTICE:"));
        assert!(notices.contains(&"NOTICE:  table \"pgbench_history\" does not exist, skipping"));
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
        let (console, _) = recorded();
        let mut client = control::connect(target, &console).unwrap();
        for (question, answer) in cases {
            assert_eq!(one(&mut client, question), answer, "{question}");
        }
    }

    fn generating_twice_leaves_one_copy(target: &Target, client: &mut Client) {
        init(target, &[InitStep::GenerateClientSide]).0.unwrap();
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
        let steps = vec![InitStep::GenerateClientSide, InitStep::DropTables];
        let plan = plan(target, Tables::plain(steps, 2));
        let mut stopped = control::connect(target, &console).unwrap();
        let outcome = run(&mut stopped, &plan, &console, &Clock::start(), &stop);
        assert!(matches!(outcome, Err(Error::Server(_))));
        drop(stopped);
        assert_eq!(
            one(client, "select count(*) from pgbench_accounts"),
            "200000"
        );
    }

    /// What several connections had committed is emptied again.
    fn a_stop_ends_all_connections(target: &Target, client: &mut Client) {
        let stop = Arc::new(AtomicBool::new(false));
        let console = Console::to(Box::new(StopAtProgress(stop.clone())));
        let mut tables = Tables::plain(vec![InitStep::GenerateClientSide], 2);
        tables.loading.connections = 2;
        tables.loading.batch_rows = Some(5_000);
        let plan = plan(target, tables);
        let mut stopped = control::connect(target, &console).unwrap();
        let outcome = run(&mut stopped, &plan, &console, &Clock::start(), &stop);
        assert!(matches!(outcome, Err(Error::Server(_))));
        assert_eq!(one(client, "select count(*) from pgbench_accounts"), "0");
    }
}
