//! Finished runs of every kind, for the tests of reports.

use std::time::Duration;

use crate::collector::testing::{Story, at, transaction};
use crate::error::Signal;
use crate::event::{
    Abort, ClientEnd, CommandEnd, CommandRecord, Outcome, Phase, SpanKind, SqlState,
    TransactionRecord, WorkerRecord,
};
use crate::plan::{PartitionMethod, Partitioning, StopRule, SummaryPlan};
use crate::program::Program;
use crate::result::testing::facts as plain;
use crate::result::{
    Connection, Facts, LogResult, LoggedRows, Measured, RunResult, ScheduleFacts, ScriptFacts,
    ServerActivity, Transport,
};
use crate::schedule::Due;

/// Facts of a run with one builtin script against a server on this host.
fn facts(clients: u32, stop: StopRule) -> Facts {
    Facts {
        server_version: "18.6".to_owned(),
        scripts: vec![script("<builtin: TPC-B (sort of)>", 1)],
        scale: 50,
        threads: 2,
        connection: Some(Connection {
            transport: Transport::Socket,
            tls: None,
            authentication: "trust".into(),
        }),
        server: Some(ServerActivity {
            checkpoints: Some(2),
            wal_bytes: Some(5_900_000),
            unsafe_settings: vec!["fsync off".to_owned()],
            same_host: Some(true),
            checkpoint_timeout: Some(Duration::from_secs(300)),
            ..ServerActivity::default()
        }),
        ..plain(clients, stop)
    }
}

fn script(description: &str, weight: u64) -> ScriptFacts {
    ScriptFacts {
        description: description.to_owned(),
        weight,
        commands: vec!["\\set aid 1".to_owned(), "SELECT :aid;".to_owned()],
        sha256: String::new(),
    }
}

fn seconds(count: u64) -> StopRule {
    StopRule::Time(Duration::from_secs(count))
}

fn worker(busy_percent: u64) -> WorkerRecord {
    WorkerRecord {
        worker: 0,
        busy_ns: busy_percent * 1_000_000,
        observed_ns: 100_000_000,
        delays: 1_000,
        delay_sum_ns: 11_000_000,
        ..WorkerRecord::default()
    }
}

fn joined(facts: Facts, mut measured: Measured) -> RunResult {
    measured.workers = vec![worker(19), worker(12)];
    RunResult {
        facts,
        measured,
        place: None,
    }
}

/// Four clients for five seconds; latencies differ from client to client.
pub(crate) fn timed() -> RunResult {
    let mut story = Story::of_seconds(4, 5);
    for (client, each) in (0..).zip([3, 5, 8, 13]) {
        story.span(client, SpanKind::Connect, -22, -2);
        story.works(client, each, 0, 5_000);
    }
    joined(facts(4, seconds(5)), story.tell())
}

/// As [`timed`], but one of the clients slows down in between, stopped by a signal.
pub(crate) fn interrupted() -> RunResult {
    let mut story = Story::of_seconds(2, 60);
    story.works(0, 4, 0, 3_000);
    let slow = story.works(1, 4, 0, 1_000);
    story.works(1, 20, slow, 3_000);
    story.told_end(3_000);
    let facts = Facts {
        interrupted: Some(Signal::Interrupt),
        server: None,
        ..facts(2, seconds(60))
    };
    joined(facts, story.tell())
}

/// `-C`: 100 ms to connect, 10 ms to work.
pub(crate) fn reconnecting() -> RunResult {
    let mut story = Story::of_seconds(4, 5);
    (0..4).for_each(|client| story.reconnects(client, 100, 10, 5_000));
    let facts = Facts {
        connect_per_transaction: true,
        ..facts(4, seconds(5))
    };
    joined(facts, story.tell())
}

/// Two scripts, a latency limit, retries, failures: a number of transactions for each client.
pub(crate) fn several_scripts() -> RunResult {
    let stop = StopRule::Transactions(100);
    let limit = Some(Duration::from_millis(15));
    let mut story = Story::new(2, stop);
    story.plan.scripts = 2;
    story.plan.latency_limit = limit;
    for client in 0..2 {
        for number in 0..100 {
            let begin = 20 * number;
            let record = transaction(begin, begin + 10 + number % 10);
            story.record(TransactionRecord {
                client,
                script: u8::from(number % 4 == 0),
                outcome: if number % 20 == 4 {
                    Outcome::Failed
                } else {
                    Outcome::Processed
                },
                sqlstate: if number % 20 == 4 {
                    SqlState(*b"40001")
                } else {
                    SqlState::NONE
                },
                tries: if number % 20 == 4 {
                    3
                } else {
                    1 + u32::from(number % 10 == 1)
                },
                ..record
            });
        }
        story.done(client, ClientEnd::Finished, 2_000);
    }
    let facts = Facts {
        scripts: vec![
            script("transfer.sql", 3),
            script("<builtin: select only>", 1),
        ],
        partitions: Some(Partitioning {
            method: PartitionMethod::Hash,
            partitions: 8,
        }),
        max_tries: Some(3),
        latency_limit: limit,
        server: None,
        ..facts(2, stop)
    };
    joined(facts, story.tell())
}

/// As [`timed`], with a report of commands.
pub(crate) fn commands() -> RunResult {
    let mut story = Story::of_seconds(1, 5);
    story.plan.commands = vec![2];
    story.works(0, 5, 0, 5_000);
    for ms in (5..=5_000).step_by(5) {
        commands_of(&mut story, 0, ms);
    }
    joined(facts(1, seconds(5)), story.tell())
}

/// As [`several_scripts`], with a report of commands.
pub(crate) fn commands_of_several_scripts() -> RunResult {
    let mut story = Story::of_seconds(1, 5);
    story.plan.scripts = 2;
    story.plan.commands = vec![2, 2];
    for begin in (0..5_000).step_by(10) {
        let script = u8::from(begin % 40 == 0);
        story.record(TransactionRecord {
            script,
            ..transaction(begin, begin + 10)
        });
        commands_of(&mut story, script, begin + 10);
    }
    let facts = Facts {
        scripts: vec![
            script("transfer.sql", 3),
            script("<builtin: select only>", 1),
        ],
        max_tries: Some(3),
        ..facts(1, seconds(5))
    };
    joined(facts, story.tell())
}

/// Two commands of a transaction that ended at `ms`. Some had to be tried again.
fn commands_of(story: &mut Story, script: u8, ms: i64) {
    let of_second = CommandRecord {
        client: 0,
        script,
        command: 1,
        phase: Phase::Run,
        end: CommandEnd::Done,
        duration_ns: 4_000_000,
    };
    if ms % 100 == 0 {
        let end = CommandEnd::Retried;
        story.command(ms, CommandRecord { end, ..of_second });
    }
    let of_first = CommandRecord {
        command: 0,
        duration_ns: 1_000 + ms as u64,
        ..of_second
    };
    story.command(ms, of_first);
    story.command(ms, of_second);
}

/// Every client died of its first transaction.
pub(crate) fn nothing_attempted() -> RunResult {
    let stop = StopRule::Transactions(3);
    let mut story = Story::new(2, stop);
    for client in 0..2 {
        let outcome = Outcome::Aborted(Abort::Server);
        story.record(TransactionRecord {
            client,
            outcome,
            ..transaction(0, 5)
        });
        story.done(client, ClientEnd::Aborted, 5);
    }
    joined(facts(2, stop), story.tell())
}

/// Every transaction failed, and none can be tried often enough.
pub(crate) fn all_failed() -> RunResult {
    let mut story = Story::of_seconds(1, 1);
    for begin in (0..1_000).step_by(100) {
        let outcome = Outcome::Failed;
        story.record(TransactionRecord {
            outcome,
            ..transaction(begin, begin + 100)
        });
    }
    joined(
        Facts {
            max_tries: None,
            ..facts(1, seconds(1))
        },
        story.tell(),
    )
}

/// `--rate 100 --latency-limit 50` with a stall of half a second; progress was shown.
pub(crate) fn scheduled() -> RunResult {
    let limit = Some(Duration::from_millis(50));
    let mut story = Story::of_seconds(1, 5);
    story.plan.latency_limit = limit;
    for due in (0..5_000).step_by(10) {
        let stalled = (1_000..1_500).contains(&due);
        let began = if stalled { 1_500.max(due) } else { due + 1 };
        let skipped = stalled && began - due > 50;
        let record = transaction(due, if skipped { began } else { began + 6 });
        story.record(TransactionRecord {
            outcome: match skipped {
                true => Outcome::Skipped,
                false => Outcome::Processed,
            },
            started_at: at(began),
            tries: u32::from(!skipped),
            ..record
        });
    }
    let facts = Facts {
        schedule: Some(ScheduleFacts {
            rate: 100.0,
            due: Due {
                slots: 503,
                approximate: false,
            },
        }),
        latency_limit: limit,
        progress: true,
        ..facts(1, seconds(5))
    };
    joined(facts, story.tell())
}

/// As [`several_scripts`], with everything that can be asked for besides.
pub(crate) fn detailed() -> RunResult {
    let mut result = several_scripts();
    result.facts.continue_on_error = true;
    result.facts.summary = SummaryPlan {
        failures_detailed: true,
        percentiles: vec![25.0, 75.0, 100.0],
        pgbench_figures: true,
    };
    result
}

/// As [`timed`], with what pgbench would have printed.
pub(crate) fn with_pgbenchs_figures() -> RunResult {
    let mut result = timed();
    result.facts.summary.pgbench_figures = true;
    result
}

/// The same run under the name pgbench.
pub(crate) fn as_pgbench(mut result: RunResult) -> RunResult {
    result.facts.program = Program::Pgbench;
    result
}

/// One of every kind, by name.
pub(crate) fn of_every_kind() -> Vec<(&'static str, RunResult)> {
    vec![
        ("timed", timed()),
        ("interrupted", interrupted()),
        ("reconnecting", reconnecting()),
        ("several_scripts", several_scripts()),
        ("commands", commands()),
        ("commands_of_several_scripts", commands_of_several_scripts()),
        ("nothing_attempted", nothing_attempted()),
        ("all_failed", all_failed()),
        ("scheduled", scheduled()),
        ("detailed", detailed()),
        ("with_pgbenchs_figures", with_pgbenchs_figures()),
    ]
}

/// A log that lost rows to a full disk.
pub(crate) fn cut_log(rows_written: u64, rows_lost: u64) -> LogResult {
    LogResult {
        path: "run.csv".to_owned(),
        rows: LoggedRows::Transactions { left_out: 0 },
        rows_written,
        rows_lost,
        failure: Some("no storage space".to_owned()),
    }
}
