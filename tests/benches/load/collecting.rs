//! The collector alone: transactions of made-up clients, in batches as workers send them.

use std::path::Path;
use std::time::{Duration, Instant};

use pgmark::collector::{Collector, CollectorPlan, Keepers, LogContext, Progress, open_log};
use pgmark::event::{
    Announcement, Batch, Event, Outcome, Phase, SqlState, ToCollector, TransactionRecord,
};
use pgmark::plan::{CsvStyle, LeadIn, LogFormat, LogPlan, LogRows, LogTime, StopRule};
use pgmark::time::{Clock, Timestamp};

/// Events of a worker's batch.
const BATCH: u64 = 256;
const CLIENTS: u64 = 16;

/// How long the collector takes for a transaction, and how long with a log of this name.
pub fn time_a_transaction(log: Option<&Path>, transactions: u64) -> Duration {
    let mut collector = collector(log);
    let at = Timestamp::from_nanos;
    collector.hear(Announcement::WindowBegins(at(0)));
    let mut events = Vec::with_capacity(BATCH as usize);
    let started = Instant::now();
    for first in (0..transactions).step_by(BATCH as usize) {
        events.extend((first..first + BATCH).map(|number| Event::Transaction(record(number))));
        let batch = ToCollector::Batch(Batch {
            worker: 0,
            events,
            complete_through: at((first + BATCH) * 5_000),
        });
        (_, events) = collector.take(batch).expect("a batch comes back");
    }
    collector.finish();
    started.elapsed() / u32::try_from(transactions).expect("some millions")
}

/// A transaction every 5 us, with latencies from 80 to 207 us.
fn record(number: u64) -> TransactionRecord {
    let finished_at = Timestamp::from_nanos(300_000 + number * 5_000);
    let latency_ns = 80_000 + (number * 7_919 % 128) * 1_000;
    let started_at =
        Timestamp::from_nanos(finished_at.nanos_since(Timestamp::from_nanos(latency_ns)));
    TransactionRecord {
        client: (number % CLIENTS) as u32,
        script: 0,
        outcome: Outcome::Processed,
        sqlstate: SqlState::NONE,
        phase: Phase::Run,
        tries: 1,
        number: number / CLIENTS + 1,
        scheduled_at: started_at,
        started_at,
        finished_at,
        connecting_ns: 0,
        untimed_ns: 0,
    }
}

fn collector(log: Option<&Path>) -> Collector {
    let stop = StopRule::Time(Duration::from_secs(60));
    let plan = CollectorPlan {
        program: "pgmark",
        clients: CLIENTS as u32,
        workers: 1,
        scripts: 1,
        commands: Vec::new(),
        stop,
        rate: None,
        lead_in: LeadIn::default(),
        latency_limit: None,
        with_retries: false,
        watches_outages: false,
        progress: Progress::Silent,
    };
    let clock = Clock::start();
    let context = LogContext {
        script_names: vec!["script".to_owned()],
        clock: clock.clone(),
        stop,
        schedule: None,
        ramp: Duration::ZERO,
        warmup: Duration::ZERO,
        samples: Vec::new(),
    };
    let logs = log.map(|path| {
        let style = CsvStyle {
            time: LogTime::Utc,
            rows_each_file: None,
        };
        let plan = LogPlan {
            path: path.to_owned(),
            format: LogFormat::Csv(style),
            rows: LogRows::Transactions {
                sampling_rate: None,
            },
        };
        open_log(&plan, &context).expect("the directory is ours")
    });
    Collector::new(
        plan,
        clock,
        Keepers {
            logs: logs.into_iter().collect(),
            course: None,
        },
        Box::new(std::io::sink()),
    )
}
