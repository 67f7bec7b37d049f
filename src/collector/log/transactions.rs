//! The per-transaction log: one CSV row for each transaction, whatever its outcome.

use super::row::{Row, moment_column, phase, status};
use super::row_file::RowFile;
use super::sampling::Sampling;
use super::{Log, LogContext};
use crate::collector::listener::Listener;
use crate::event::{Outcome, TransactionRecord};
use crate::plan::LogTime;
use crate::result::LoggedRows;
use crate::stats::ErrorKind;
use crate::time::Timestamp;

/// A column: its name in the header, and what a row has in it.
type Column = (&'static str, fn(&mut Row, &TransactionRecord));

/// The columns in their order; the moment of completion follows in the way that the user wants it.
/// Header and rows both come from here.
const COLUMNS: [Column; 12] = [
    ("client_id", |row, it| row.cells.integer(it.client.into())),
    ("transaction", |row, it| row.cells.count(it.number)),
    ("script", |row, it| row.script(it.script)),
    ("status", |row, it| row.text(status(it.outcome))),
    ("phase", |row, it| row.text(phase(it.phase))),
    ("latency_us", push_latency),
    ("lag_us", |row, it| row.cells.micros(it.lag_ns())),
    ("connect_us", |row, it| row.cells.micros(it.connecting_ns)),
    ("untimed_us", |row, it| row.cells.micros(it.untimed_ns)),
    ("retries", |row, it| row.cells.integer(it.retries().into())),
    ("error", push_error),
    ("completed_us", |row, it| row.since_begin(it.finished_at)),
];

/// A per-transaction log being written.
pub struct TransactionLog {
    file: [RowFile; 1],
    sampling: Option<Sampling>,
    row: Row,
}

impl TransactionLog {
    /// The names of the columns.
    pub(super) fn columns(time: LogTime) -> Vec<&'static str> {
        let names = COLUMNS.iter().map(|(name, _)| *name);
        names.chain(moment_column(time)).collect()
    }

    /// A log into `file`, which has its header already.
    pub(super) fn new(
        file: RowFile,
        time: LogTime,
        sampling: Option<Sampling>,
        context: &LogContext,
    ) -> Self {
        TransactionLog {
            file: [file],
            sampling,
            row: Row::new(time, context),
        }
    }
}

impl Listener for TransactionLog {
    fn begin_window(&mut self, begins: Timestamp) {
        self.row.window_begins = begins;
    }

    fn transaction(&mut self, worker: u32, record: &TransactionRecord) {
        if let Some(sampling) = &mut self.sampling
            && !sampling.keeps(worker)
        {
            return;
        }
        let row = &mut self.row;
        for (_, push) in COLUMNS {
            push(row, record);
        }
        row.moment(record.finished_at);
        self.file[0].push(&mut row.cells);
    }
}

impl Log for TransactionLog {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.file
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::Transactions {
            left_out: self.sampling.as_ref().map_or(0, Sampling::left_out),
        }
    }
}

/// A skipped transaction has no latency, and 0 would be taken for one.
fn push_latency(row: &mut Row, record: &TransactionRecord) {
    match record.outcome {
        Outcome::Skipped => row.text(""),
        Outcome::Processed | Outcome::Failed | Outcome::Aborted(_) => {
            row.cells.micros(record.latency_ns());
        }
    }
}

fn push_error(row: &mut Row, record: &TransactionRecord) {
    row.error(ErrorKind::of(record));
}

#[cfg(test)]
mod tests {
    use super::super::row_file::Form;
    use super::*;
    use crate::collector::testing::{
        Memory, SmallDisk, Story, UNIX_ORIGIN_NS, at, log_context, transaction,
    };
    use crate::event::{Abort, SqlState};
    use crate::random::Generator;
    use crate::time::Clock;
    use std::io::Write;
    use std::path::Path;

    fn log_into(file: impl Write + Send + 'static, names: &[&str]) -> Box<dyn Log> {
        log_with(file, names, LogTime::Utc, None)
    }

    fn log_with(
        file: impl Write + Send + 'static,
        names: &[&str],
        time: LogTime,
        sampling: Option<Sampling>,
    ) -> Box<dyn Log> {
        let context = LogContext {
            clock: Clock::manual(UNIX_ORIGIN_NS),
            ..log_context(names)
        };
        let form = Form::Csv(TransactionLog::columns(time));
        let file = RowFile::new(Box::new(file), Path::new("log.csv"), form);
        let mut log = TransactionLog::new(file, time, sampling, &context);
        log.begin_window(at(0));
        Box::new(log)
    }

    #[test]
    fn rows_are_these_bytes() {
        let memory = Memory::default();
        let mut log = log_into(
            memory.clone(),
            &["tpcb-like", "=evil", "tpcb-like", "a,\"b\"\n"],
        );
        let base = transaction(100, 110);
        let failed = TransactionRecord {
            outcome: Outcome::Failed,
            ..base
        };
        let aborted = |why| TransactionRecord {
            outcome: Outcome::Aborted(why),
            ..base
        };
        for record in [
            TransactionRecord {
                connecting_ns: 99_600,
                untimed_ns: 1_499,
                ..base
            },
            TransactionRecord {
                script: 2,
                tries: 3,
                client: 7,
                number: 12,
                ..base
            },
            TransactionRecord {
                sqlstate: SqlState(*b"40001"),
                script: 1,
                ..failed
            },
            TransactionRecord {
                script: 3,
                ..failed
            },
            TransactionRecord {
                outcome: Outcome::Skipped,
                tries: 0,
                ..base
            },
            TransactionRecord {
                sqlstate: SqlState(*b"22012"),
                ..aborted(Abort::Server)
            },
            aborted(Abort::Client),
            TransactionRecord {
                sqlstate: SqlState(*b"57P01"),
                ..aborted(Abort::ConnectionLost)
            },
            aborted(Abort::ConnectionLostInCommit),
            aborted(Abort::Interrupted),
            transaction(-30, -20),
        ] {
            log.transaction(0, &record);
        }
        let result = log.finish();
        let expected = "\
client_id,transaction,script,status,phase,latency_us,lag_us,connect_us,untimed_us,retries,error,completed_us,completed_utc
0,1,tpcb-like,ok,run,9999,0,100,1,0,,110000,2026-11-30T14:25:16.233456
7,12,tpcb-like#2,ok,run,10000,0,0,0,2,,110000,2026-11-30T14:25:16.233456
0,1,'=evil,failed,run,10000,0,0,0,0,SQLSTATE 40001,110000,2026-11-30T14:25:16.233456
0,1,\"a,\"\"b\"\" \",failed,run,10000,0,0,0,0,server_error,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,skipped,run,,10000,0,0,0,,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,aborted,run,10000,0,0,0,0,SQLSTATE 22012,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,aborted,run,10000,0,0,0,0,client_error,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,aborted,run,10000,0,0,0,0,connection_lost,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,aborted,run,10000,0,0,0,0,connection_lost,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,aborted,run,10000,0,0,0,0,interrupted,110000,2026-11-30T14:25:16.233456
0,1,tpcb-like,ok,warmup,10000,0,0,0,0,,-20000,2026-11-30T14:25:16.103456
";
        assert_eq!(memory.text(), expected);
        assert_eq!(
            (result.rows_written, result.rows_lost, result.failure),
            (11, 0, None)
        );
    }

    #[test]
    fn a_log_without_rows_has_its_header() {
        let memory = Memory::default();
        log_into(memory.clone(), &["s"]).finish();
        assert_eq!(memory.text().lines().count(), 1);
    }

    #[test]
    fn on_a_full_disk_the_run_goes_on_and_every_row_is_accounted_for() {
        for room in [0, 60, 1_000, 20_000] {
            let mut story = Story::of_seconds(1, 5);
            story.logs = vec![log_into(SmallDisk(room), &["s"])];
            let stderr = story.stderr.clone();
            story.works(0, 10, 0, 5_000);
            let measured = story.tell();
            let log = &measured.logs[0];
            assert_eq!(measured.total.processed, 500, "room for {room}");
            assert_eq!(log.rows_written + log.rows_lost, 500, "room for {room}");
            assert!(log.rows_written <= room as u64 / 50, "room for {room}");
            assert!(log.failure.is_some());
            let told = stderr.text();
            assert_eq!(
                told.matches("could not write \"log.csv\"").count(),
                1,
                "{told}"
            );
        }
    }

    /// The promise of the log: with the table of clients it gives every figure again.
    #[test]
    fn figures_can_be_recomputed_from_the_log_and_the_table_of_clients() {
        let memory = Memory::default();
        let mut story = Story::of_seconds(3, 5);
        story.logs = vec![log_into(memory.clone(), &["s"])];
        for (client, each) in [(0, 7), (1, 13), (2, 450)] {
            story.works(client, each, -20, 5_000);
        }
        let measured = story.tell();

        let mut latencies_us: Vec<f64> = Vec::new();
        let mut tps = 0.0;
        for row in csv::Reader::from_reader(memory.text().as_bytes()).records() {
            let row = row.expect("the log is well-formed");
            if (&row[3], &row[4]) == ("ok", "run") {
                let client: usize = row[0].parse().expect("a number");
                latencies_us.push(row[5].parse().expect("a number"));
                tps += 1e9 / measured.clients[client].measured_ns() as f64;
            }
        }
        latencies_us.sort_by(f64::total_cmp);
        let mean_us = latencies_us.iter().sum::<f64>() / latencies_us.len() as f64;
        assert_eq!(latencies_us.len() as u64, measured.total.processed);
        assert!((tps - measured.tps()).abs() < 1e-6);
        assert!((mean_us - measured.total.latency.mean_ns() / 1e3).abs() < 0.5);
        for percent in [50.0, 90.0, 99.0] {
            let rank = (percent / 100.0 * latencies_us.len() as f64).ceil() as usize;
            let ours = measured.total.latency.percentile_ns(percent) as f64 / 1e3;
            let logged = latencies_us[rank - 1];
            assert!((ours - logged).abs() <= logged * 0.001 + 1.0, "p{percent}");
        }
    }

    #[test]
    fn the_last_column_is_the_time_in_the_way_that_is_wanted() {
        for (time, name, cell) in [
            (LogTime::Epoch, ",completed_epoch_us", ",1796048716233456"),
            (LogTime::None, "", ""),
        ] {
            let memory = Memory::default();
            let mut log = log_with(memory.clone(), &["s"], time, None);
            log.transaction(0, &transaction(100, 110));
            log.finish();
            let text = memory.text();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[0].ends_with(&format!(",completed_us{name}")));
            assert!(lines[1].ends_with(&format!(",110000{cell}")));
        }
        let local = TransactionLog::columns(LogTime::Local);
        assert!(local.ends_with(&["completed_us", "completed_local"]));
    }

    #[test]
    fn rows_that_sampling_leaves_out_are_counted() {
        let memory = Memory::default();
        let sampling = Sampling::new(0.25, &[Generator::new(7)]);
        let mut story = Story::of_seconds(1, 5);
        story.logs = vec![log_with(
            memory.clone(),
            &["s"],
            LogTime::Utc,
            Some(sampling),
        )];
        story.works(0, 10, 0, 5_000);
        let measured = story.tell();
        let rows = memory.text().lines().count() as u64 - 1;
        let left_out = 500 - rows;
        assert!((75..=175).contains(&rows), "{rows}");
        assert_eq!(measured.logs[0].rows, LoggedRows::Transactions { left_out });
        assert_eq!(measured.logs[0].rows_written, rows);
    }
}
