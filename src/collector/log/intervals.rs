//! The file of intervals: a CSV row for each, all scripts together, then, where there are several, a
//! row for each script.

use std::time::Duration;

use super::row::phase;
use super::row_file::RowFile;
use super::text::{Cells, script_cells, signed_micros};
use super::{Log, LogContext};
use crate::collector::by_interval::{ByInterval, ClosedInterval, InScript, IntervalSink};
use crate::result::LoggedRows;

/// A column: its name in the header, and what a row has in it.
type Column = (&'static str, fn(&mut Cells, &Row<'_>));

/// The columns in their order. Header and rows both come from here.
const COLUMNS: [Column; 21] = [
    ("interval_start_us", |cells, row| {
        cells.integer(signed_micros(row.closed.start_ns))
    }),
    ("interval_us", |cells, row| {
        cells.micros(row.closed.length_ns)
    }),
    ("phase", |cells, row| {
        cells.text(phase(row.closed.phase).as_bytes())
    }),
    ("script", |cells, row| cells.text(row.script)),
    ("clients_connected", |cells, row| {
        cells.integer(row.closed.connected)
    }),
    ("due", |cells, row| cells.count(row.kept.due)),
    ("processed", |cells, row| {
        cells.count(row.kept.stats.processed)
    }),
    ("failed", |cells, row| {
        cells.count(row.kept.stats.failed.total())
    }),
    ("skipped", |cells, row| cells.count(row.kept.stats.skipped)),
    ("aborted", |cells, row| {
        cells.count(row.kept.stats.aborted.total())
    }),
    ("lost", |cells, row| {
        cells.count(row.kept.stats.aborted.connection_lost)
    }),
    ("retries", |cells, row| cells.count(row.kept.stats.retries)),
    ("tps", |cells, row| {
        cells.six_decimals(row.closed.per_second(row.kept.stats.processed));
    }),
    ("latency_avg_us", |cells, row| {
        cells.six_decimals(row.kept.stats.latency.mean_ns() / 1e3);
    }),
    ("p50_us", |cells, row| {
        cells.micros(row.kept.stats.latency.percentile_ns(50.0))
    }),
    ("p90_us", |cells, row| {
        cells.micros(row.kept.stats.latency.percentile_ns(90.0))
    }),
    ("p99_us", |cells, row| {
        cells.micros(row.kept.stats.latency.percentile_ns(99.0))
    }),
    ("max_us", |cells, row| {
        cells.micros(row.kept.stats.latency.max_ns())
    }),
    ("lag_avg_us", |cells, row| {
        cells.six_decimals(row.kept.stats.lag_mean_ns() / 1e3);
    }),
    ("connects", |cells, row| cells.count(row.connects)),
    ("checkpoint", |cells, row| match row.checkpoints {
        Some(begun) => cells.count(begun),
        None => cells.text(b""),
    }),
];

/// The name of the row of all scripts.
const ALL: &[u8] = b"all";

/// What a row is made from.
struct Row<'a> {
    closed: &'a ClosedInterval,
    script: &'a [u8],
    /// Of all scripts, or of this one.
    kept: &'a InScript,
    /// Connections made in it. They belong to no script.
    connects: u64,
    /// Checkpoints that the server was seen to begin in it, if it was looked at. They belong to no
    /// script.
    checkpoints: Option<u64>,
}

/// The file of intervals being written.
pub type IntervalLog = ByInterval<IntervalRows>;

/// Rows of intervals.
pub struct IntervalRows {
    file: [RowFile; 1],
    cells: Cells,
    scripts: Vec<Vec<u8>>,
    /// Transactions in all rows so far.
    transactions: u64,
}

impl IntervalLog {
    /// The names of the columns.
    pub(super) fn columns() -> Vec<&'static str> {
        COLUMNS.iter().map(|(name, _)| *name).collect()
    }

    /// Rows of intervals of `length` into `file`, which has its header already.
    pub(super) fn new(file: RowFile, length: Duration, context: &LogContext) -> Self {
        let rows = IntervalRows {
            file: [file],
            cells: Cells::default(),
            scripts: script_cells(&context.script_names),
            transactions: 0,
        };
        ByInterval::of(length, context, rows)
    }
}

impl IntervalSink for IntervalRows {
    fn take(&mut self, closed: &ClosedInterval) {
        self.transactions += closed.total.stats.recorded();
        let mut row = Row {
            closed,
            script: ALL,
            kept: &closed.total,
            connects: closed.connects,
            checkpoints: closed.checkpoints,
        };
        push(&mut self.cells, &mut self.file[0], &row);
        if self.scripts.len() < 2 {
            return;
        }
        let none = InScript::default();
        row.connects = 0;
        row.checkpoints = closed.checkpoints.map(|_| 0);
        for (index, name) in self.scripts.iter().enumerate() {
            row.script = name;
            row.kept = closed.scripts.get(index).unwrap_or(&none);
            push(&mut self.cells, &mut self.file[0], &row);
        }
    }
}

fn push(cells: &mut Cells, file: &mut RowFile, row: &Row<'_>) {
    for (_, column) in COLUMNS {
        column(cells, row);
    }
    file.push(cells);
}

impl Log for IntervalLog {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.sink.file
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::Intervals {
            transactions: self.sink.transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_file::Form;
    use super::*;
    use crate::collector::Known;
    use crate::collector::testing::{Memory, Story, at, log_context, transaction};
    use crate::event::{
        Abort, ConnectionRecord, Outcome, Phase, SpanKind, SqlState, TransactionRecord,
    };
    use crate::plan::StopRule;
    use crate::random::Generator;
    use crate::schedule::Schedule;
    use std::path::Path;
    use std::sync::Arc;

    /// A story of `seconds` whose intervals of `length_ms` can be read afterwards.
    fn story(clients: u32, seconds: u64, length_ms: u64, scripts: &[&str]) -> (Story, Memory) {
        let mut story = Story::of_seconds(clients, seconds);
        story.plan.scripts = scripts.len();
        let memory = Memory::default();
        let log = log_into(&memory, length_ms, scripts, story.plan.stop, Duration::ZERO);
        story.logs = vec![log];
        (story, memory)
    }

    fn log_into(
        memory: &Memory,
        length_ms: u64,
        scripts: &[&str],
        stop: StopRule,
        lead_in: Duration,
    ) -> Box<dyn Log> {
        let context = LogContext {
            stop,
            ramp: lead_in / 4,
            warmup: lead_in / 4 * 3,
            ..log_context(scripts)
        };
        log_of(memory, length_ms, &context)
    }

    fn log_of(memory: &Memory, length_ms: u64, context: &LogContext) -> Box<dyn Log> {
        let file = RowFile::new(
            Box::new(memory.clone()),
            Path::new("intervals.csv"),
            Form::Csv(IntervalLog::columns()),
        );
        let length = Duration::from_millis(length_ms);
        Box::new(IntervalLog::new(file, length, context))
    }

    /// Ten transactions a second are due from the beginning of the window.
    fn of_ten_a_second() -> Arc<Schedule> {
        let schedule = Schedule::new(10.0, Generator::new(42));
        schedule.start(at(0), at(0));
        Arc::new(schedule)
    }

    fn cells(memory: &Memory) -> Vec<Vec<String>> {
        let text = memory.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows = reader.records().map(|row| row.expect("well-formed"));
        rows.map(|row| row.iter().map(str::to_owned).collect())
            .collect()
    }

    /// The cells of these columns of all rows.
    fn columns(memory: &Memory, names: &[&str]) -> Vec<String> {
        let places: Vec<usize> = names
            .iter()
            .map(|name| {
                let mut columns = COLUMNS.iter();
                columns.position(|(column, _)| column == name)
            })
            .map(|place| place.expect("there is such a column"))
            .collect();
        let rows = cells(memory).into_iter().map(|row| {
            let cells: Vec<&str> = places.iter().map(|&place| row[place].as_str()).collect();
            cells.join(" ")
        });
        rows.collect()
    }

    #[test]
    fn rows_are_these_bytes() {
        let (mut story, memory) = story(2, 2, 1_000, &["a", "a,b"]);
        story.span(0, SpanKind::Connect, -20, -10);
        story.span(1, SpanKind::Connect, -20, -10);
        let of_second = |from, to| TransactionRecord {
            client: 1,
            script: 1,
            ..transaction(from, to)
        };
        story.record(TransactionRecord {
            scheduled_at: at(90),
            tries: 3,
            ..transaction(100, 110)
        });
        story.record(TransactionRecord {
            outcome: Outcome::Failed,
            sqlstate: SqlState(*b"40001"),
            ..of_second(200, 300)
        });
        story.record(TransactionRecord {
            outcome: Outcome::Skipped,
            tries: 0,
            ..of_second(300, 300)
        });
        story.record(of_second(400, 1_400));
        story.record(TransactionRecord {
            outcome: Outcome::Aborted(Abort::ConnectionLost),
            ..of_second(1_400, 1_500)
        });
        story.span(1, SpanKind::Disconnect, 1_500, 1_501);
        story.record(transaction(1_900, 2_004));
        let measured = story.tell();
        let expected = "\
interval_start_us,interval_us,phase,script,clients_connected,due,processed,failed,skipped,aborted,\
lost,retries,tps,latency_avg_us,p50_us,p90_us,p99_us,max_us,lag_avg_us,connects,checkpoint
0,1000000,run,all,2,3,1,1,1,0,0,2,1.000000,20000.000000,20000,20000,20000,20000,10000.000000,0,
0,1000000,run,a,2,1,1,0,0,0,0,2,1.000000,20000.000000,20000,20000,20000,20000,10000.000000,0,
0,1000000,run,\"a,b\",2,2,0,1,1,0,0,0,0.000000,0.000000,0,0,0,0,0.000000,0,
1000000,1004000,run,all,1,3,2,0,0,1,1,0,1.992032,552000.000000,104000,1000000,1000000,1000000,0.000000,0,
1000000,1004000,run,a,1,1,1,0,0,0,0,0,0.996016,104000.000000,104000,104000,104000,104000,0.000000,0,
1000000,1004000,run,\"a,b\",1,2,1,0,0,1,1,0,0.996016,1000000.000000,1000000,1000000,1000000,1000000,0.000000,0,
";
        assert_eq!(memory.text(), expected);
        assert_eq!(
            measured.logs[0].rows,
            LoggedRows::Intervals { transactions: 6 }
        );
        assert_eq!(measured.logs[0].rows_written, 6);
    }

    #[test]
    fn a_run_shorter_than_an_interval_has_one_row_and_quiet_intervals_have_theirs() {
        let (mut short, memory) = story(1, 5, 5_000, &["s"]);
        short.works(0, 10, 0, 300);
        short.told_end(300);
        short.tell();
        assert_eq!(columns(&memory, &["interval_us", "due"]), ["300000 30"]);

        let (mut quiet, memory) = story(1, 3, 1_000, &["s"]);
        quiet.record(transaction(2_500, 2_600));
        quiet.tell();
        let names = ["interval_start_us", "due", "max_us"];
        assert_eq!(
            columns(&memory, &names),
            ["0 0 0", "1000000 0 0", "2000000 1 100000"]
        );
    }

    #[test]
    fn who_disconnects_because_the_run_is_over_was_connected_to_the_end() {
        let span = |kind, from, to| ConnectionRecord {
            client: 0,
            kind,
            started_at: at(from),
            finished_at: at(to),
        };
        for (stop, told) in [
            (StopRule::Time(Duration::from_secs(2)), None),
            (StopRule::Time(Duration::from_secs(60)), Some(at(2_000))),
            (StopRule::Transactions(5), Some(at(2_000))),
        ] {
            let memory = Memory::default();
            let mut log = log_into(&memory, 1_000, &["s"], stop, Duration::ZERO);
            log.connection(&span(SpanKind::Connect, -20, -10));
            log.begin_window(at(0));
            told.into_iter().for_each(|ends| log.end_window(ends));
            log.connection(&span(SpanKind::Disconnect, 2_010, 2_020));
            log.end(at(2_040));
            log.finish();
            let connected = columns(&memory, &["clients_connected"]);
            assert!(connected.iter().all(|clients| clients == "1"), "{stop:?}");
            assert!(connected.len() >= 2, "{stop:?}");
        }
    }

    #[test]
    fn connections_are_counted_where_they_were_made() {
        let (mut story, memory) = story(1, 2, 1_000, &["s"]);
        for begin in [0, 900, 1_500] {
            story.span(0, SpanKind::Connect, begin, begin + 50);
            story.record(transaction(begin + 50, begin + 80));
            story.span(0, SpanKind::Disconnect, begin + 80, begin + 120);
        }
        story.tell();
        let names = ["clients_connected", "connects", "due"];
        assert_eq!(columns(&memory, &names), ["1 2 2", "0 1 1"]);
    }

    /// A client is stuck from 0.5 s to 3.2 s; what was due meanwhile comes late, but for one it
    /// has to skip. The other has nothing to do.
    #[test]
    fn under_a_rate_transactions_are_due_when_they_were_scheduled() {
        let memory = Memory::default();
        let stop = StopRule::Transactions(4);
        let context = LogContext {
            stop,
            schedule: Some(of_ten_a_second()),
            ..log_context(&["s"])
        };
        let mut story = Story::new(1, stop);
        story.logs = vec![log_of(&memory, 1_000, &context)];
        let slot_and_span = [
            (400, 500, 3_200),
            (1_500, 3_200, 3_300),
            (2_500, 3_300, 3_400),
        ];
        for (slot, from, to) in slot_and_span {
            story.record(TransactionRecord {
                scheduled_at: at(slot),
                ..transaction(from, to)
            });
        }
        story.record(TransactionRecord {
            outcome: Outcome::Skipped,
            scheduled_at: at(2_700),
            ..transaction(3_400, 3_400)
        });
        story.tell();
        let names = ["due", "processed", "skipped", "lag_avg_us"];
        assert_eq!(
            columns(&memory, &names),
            [
                "1 0 0 0.000000",
                "1 0 0 0.000000",
                "2 0 0 0.000000",
                "0 3 1 866666.666667"
            ]
        );
    }

    /// Two of some forty slots are taken. What all scripts owe is told by the second; it is the sum
    /// that the summary tells.
    #[test]
    fn slots_that_nobody_took_were_due_all_the_same() {
        let memory = Memory::default();
        let stop = StopRule::Time(Duration::from_secs(4));
        let schedule = of_ten_a_second();
        let context = LogContext {
            stop,
            schedule: Some(Arc::clone(&schedule)),
            ..log_context(&["a", "b"])
        };
        let mut story = Story::new(1, stop);
        story.plan.scripts = 2;
        story.logs = vec![log_of(&memory, 1_000, &context)];
        for (from, to) in [(0, 1_500), (1_500, 4_300)] {
            story.record(TransactionRecord {
                scheduled_at: schedule.draw(at(from)),
                ..transaction(from, to)
            });
        }
        story.tell();
        let rows = columns(&memory, &["script", "due"]);
        let due_of = |script: &str| -> Vec<u64> {
            let rows = rows
                .iter()
                .filter_map(|row| row.strip_prefix(script)?.strip_prefix(' '));
            rows.map(|due| due.parse().expect("a number")).collect()
        };
        let all = due_of("all");
        assert!(all.iter().all(|&due| (3..=20).contains(&due)), "{all:?}");
        assert_eq!(all.iter().sum::<u64>(), schedule.due_until(at(4_000)).slots);
        assert_eq!(due_of("a").iter().sum::<u64>(), 2);
    }

    #[test]
    fn checkpoints_stand_where_they_were_seen_and_nowhere_if_nobody_looked() {
        let memory = Memory::default();
        let stop = StopRule::Time(Duration::from_secs(5));
        let mut log = log_into(&memory, 1_000, &["s"], stop, Duration::ZERO);
        log.begin_window(at(0));
        let goes_on = |log: &mut dyn Log, ms| {
            log.complete_through(Known {
                through: at(ms),
                due_through: at(ms),
                lead_in_over: true,
            });
        };
        goes_on(&mut *log, 1_100);
        log.checkpoints(at(1_150), 0);
        log.checkpoints(at(2_150), 1);
        goes_on(&mut *log, 2_200);
        // Its row is written already.
        log.checkpoints(at(1_990), 2);
        log.checkpoints(at(3_150), 1);
        goes_on(&mut *log, 3_200);
        log.checkpoints_unknown();
        log.end(at(5_000));
        log.finish();
        assert_eq!(columns(&memory, &["checkpoint"]), ["", "0", "3", "1", ""]);
    }

    #[test]
    fn rows_wait_for_what_was_due_in_them_but_not_for_ever() {
        let memory = Memory::default();
        let context = LogContext {
            schedule: Some(of_ten_a_second()),
            ..log_context(&["s"])
        };
        let mut log = log_of(&memory, 1_000, &context);
        log.begin_window(at(0));
        let mut rows_when = |through_ms, due_through_ms| {
            log.complete_through(Known {
                through: at(through_ms),
                due_through: at(due_through_ms),
                lead_in_over: true,
            });
            log.flush();
            memory.text().lines().count() - 1
        };
        assert_eq!(rows_when(3_000, 500), 0);
        assert_eq!(rows_when(3_000, 2_100), 2);
        assert_eq!(rows_when(11_900, 2_100), 2);
        assert_eq!(rows_when(13_900, 2_100), 3);
        log.transaction(
            0,
            &TransactionRecord {
                scheduled_at: at(2_200),
                ..transaction(2_300, 13_000)
            },
        );
        log.end(at(14_000));
        log.finish();
        let due = columns(&memory, &["due"]);
        assert_eq!(
            (due.len(), due[2].as_str(), due[3].as_str()),
            (14, "0", "1")
        );
    }

    /// Two clients in a warm-up of three seconds after a ramp of one; a transaction of the warm-up
    /// outlasts it by more than a second.
    #[test]
    fn the_lead_in_has_rows_of_its_own_with_all_that_began_in_it() {
        let lead_in = Duration::from_secs(4);
        let mut story = Story::of_seconds(2, 3);
        story.plan.lead_in.warmup = lead_in;
        let memory = Memory::default();
        story.logs = vec![log_into(&memory, 2_000, &["s"], story.plan.stop, lead_in)];
        story.record(TransactionRecord {
            phase: Phase::Ramp,
            ..transaction(-3_500, -2_500)
        });
        story.works(0, 100, -2_500, 3_000);
        story.record(TransactionRecord {
            client: 1,
            ..transaction(-1_000, 1_200)
        });
        story.record(TransactionRecord {
            client: 1,
            ..transaction(1_200, 1_300)
        });
        let measured = story.tell();
        let names = ["interval_start_us", "interval_us", "phase", "due"];
        assert_eq!(
            columns(&memory, &names),
            [
                "-4000000 1000000 ramp 1",
                "-3000000 2000000 warmup 15",
                "-1000000 1000000 warmup 11",
                "0 2000000 run 21",
                "2000000 1000000 run 10",
            ]
        );
        assert_eq!(measured.before_window, 27);
        assert_eq!(
            measured.logs[0].rows,
            LoggedRows::Intervals { transactions: 58 }
        );
    }
}
