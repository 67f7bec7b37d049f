//! Runs told as stories in virtual time, for tests. Times are milliseconds from the beginning of
//! the window, which lies ten seconds after the clock was started.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Collector, CollectorPlan, CourseKeeper, Keepers, Log, LogContext, Progress};
use crate::event::testing::processed;
use crate::event::{
    Announcement, Batch, ClientEnd, ClientRecord, CommandRecord, ConnectionRecord, Event, Phase,
    SpanKind, ToCollector, TransactionRecord,
};
use crate::plan::{LeadIn, StopRule};
use crate::result::Measured;
use crate::time::{Clock, Timestamp};

/// The moment `ms` after the beginning of the window; negative before it.
pub(crate) fn at(ms: i64) -> Timestamp {
    let nanos = (10_000 + ms) * 1_000_000;
    Timestamp::from_nanos(u64::try_from(nanos).expect("stories begin after the clock"))
}

/// A writer whose bytes can be read afterwards.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no writer panicked").clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("only text is written")
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk with room for so many bytes.
pub(crate) struct SmallDisk(pub(crate) usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// 2026-11-30T14:25:06.123456 at the start of the clock.
pub(crate) const UNIX_ORIGIN_NS: i64 = 1_796_048_706_123_456_000;

/// What a log knows of a run of these scripts, ten transactions long, without a lead-in.
pub(crate) fn log_context(script_names: &[&str]) -> LogContext {
    LogContext {
        script_names: script_names.iter().map(|&name| name.to_owned()).collect(),
        clock: Clock::manual(UNIX_ORIGIN_NS),
        stop: StopRule::Transactions(10),
        schedule: None,
        ramp: Duration::ZERO,
        warmup: Duration::ZERO,
        samples: Vec::new(),
    }
}

/// A processed transaction of client 0.
pub(crate) fn transaction(from_ms: i64, to_ms: i64) -> TransactionRecord {
    TransactionRecord {
        phase: if from_ms < 0 {
            Phase::Warmup
        } else {
            Phase::Run
        },
        ..processed(at(from_ms), at(to_ms))
    }
}

/// A run of one worker: what its clients do, in any order.
pub(crate) struct Story {
    pub(crate) plan: CollectorPlan,
    pub(crate) logs: Vec<Box<dyn Log>>,
    pub(crate) course: Option<CourseKeeper>,
    pub(crate) stderr: Memory,
    events: Vec<(Timestamp, Event)>,
    told_end: Option<Timestamp>,
    numbers: Vec<u64>,
}

impl Story {
    pub(crate) fn new(clients: u32, stop: StopRule) -> Self {
        Story {
            plan: CollectorPlan {
                program: "pgmark",
                clients,
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
            },
            logs: Vec::new(),
            course: None,
            stderr: Memory::default(),
            events: Vec::new(),
            told_end: None,
            numbers: vec![0; clients as usize],
        }
    }

    /// A run with `--time`.
    pub(crate) fn of_seconds(clients: u32, seconds: u64) -> Self {
        Story::new(clients, StopRule::Time(Duration::from_secs(seconds)))
    }

    /// Adds a transaction as it is, but for its running number.
    pub(crate) fn record(&mut self, record: TransactionRecord) {
        let number = &mut self.numbers[record.client as usize];
        *number += 1;
        let record = TransactionRecord {
            number: *number,
            ..record
        };
        self.events
            .push((record.finished_at, Event::Transaction(record)));
    }

    /// `client` processes transactions of `each_ms` one after the other, from `from_ms` until it
    /// would begin one at `until_ms` or later. Returns when it was done with the last.
    pub(crate) fn works(&mut self, client: u32, each_ms: i64, from_ms: i64, until_ms: i64) -> i64 {
        let mut now = from_ms;
        while now < until_ms {
            self.record(TransactionRecord {
                client,
                ..transaction(now, now + each_ms)
            });
            now += each_ms;
        }
        now
    }

    /// `client` connects anew for each transaction: `connect_ms`, then `each_ms`. The connect that
    /// `until_ms` comes upon is cut off.
    pub(crate) fn reconnects(&mut self, client: u32, connect_ms: i64, each_ms: i64, until_ms: i64) {
        let mut now = 0;
        while now < until_ms {
            if now + connect_ms >= until_ms {
                return self.span(client, SpanKind::ConnectCut, now, until_ms);
            }
            self.span(client, SpanKind::Connect, now, now + connect_ms);
            now += connect_ms;
            self.record(TransactionRecord {
                client,
                connecting_ns: connect_ms as u64 * 1_000_000,
                ..transaction(now, now + each_ms)
            });
            now += each_ms;
        }
    }

    pub(crate) fn span(&mut self, client: u32, kind: SpanKind, from_ms: i64, to_ms: i64) {
        let span = ConnectionRecord {
            client,
            kind,
            started_at: at(from_ms),
            finished_at: at(to_ms),
        };
        self.events
            .push((span.finished_at, Event::Connection(span)));
    }

    /// `client` executed a command of its script in the window, until `ms`.
    pub(crate) fn command(&mut self, ms: i64, record: CommandRecord) {
        self.events.push((at(ms), Event::Command(record)));
    }

    pub(crate) fn done(&mut self, client: u32, end: ClientEnd, ms: i64) {
        let record = ClientRecord {
            client,
            ended_at: at(ms),
            end,
            think_ns: 0,
            slot_wait_ns: 0,
        };
        self.events
            .push((record.ended_at, Event::ClientDone(record)));
    }

    /// The end of the window is announced: time over, signal, last client dead.
    pub(crate) fn told_end(&mut self, ms: i64) {
        self.told_end = Some(at(ms));
    }

    /// Tells it to a collector in batches of 100 ms, as a worker does.
    pub(crate) fn tell(mut self) -> Measured {
        self.events.sort_by_key(|(moment, _)| *moment);
        let clock = Clock::manual(0);
        let keepers = Keepers {
            logs: self.logs,
            course: self.course,
        };
        let mut collector = Collector::new(self.plan, clock, keepers, Box::new(self.stderr));
        let batch = |events, complete_through| {
            ToCollector::Batch(Batch {
                worker: 0,
                events,
                complete_through,
            })
        };
        let (before, after): (Vec<_>, Vec<_>) = self
            .events
            .into_iter()
            .partition(|(_, event)| is_initial_connect(event));
        let before = before.into_iter().map(|(_, event)| event).collect();
        collector.take(batch(before, at(0)));
        collector.hear(Announcement::WindowBegins(at(0)));
        for part in after.chunk_by(|(a, _), (b, _)| tenths(*a) == tenths(*b)) {
            let through = part.last().map_or(at(0), |(moment, _)| *moment);
            collector.take(batch(
                part.iter().map(|(_, event)| *event).collect(),
                through,
            ));
        }
        if let Some(end) = self.told_end {
            collector.hear(Announcement::WindowEnds(end));
        }
        collector.finish()
    }
}

fn is_initial_connect(event: &Event) -> bool {
    matches!(event, Event::Connection(span) if span.started_at < at(0))
}

fn tenths(moment: Timestamp) -> u64 {
    moment.nanos() / 100_000_000
}
