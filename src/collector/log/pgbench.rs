//! The logs as pgbench 18 writes them: one file a thread, fields separated by blanks, transactions
//! or aggregates. Differs where pgbench loses something: failures are in the aggregates whatever
//! the options, and so is the last, partial interval; a skipped transaction has its true lag.
//! Aborted transactions and those of the warm-up have no line.

use std::path::Path;
use std::time::Duration;

use super::Log;
use super::row_file::{Form, RowFile, numbered};
use super::sampling::Sampling;
use super::text::{Cells, signed_micros, whole_micros};
use crate::collector::listener::{Known, Listener};
use crate::error::Error;
use crate::event::{Failure, Outcome, TransactionRecord};
use crate::plan::PgbenchFields;
use crate::result::LoggedRows;
use crate::time::{Clock, Timestamp};

/// Creates a file for each of so many threads: `path`, `path.1`, `path.2` and so on.
///
/// # Errors
/// [`Error::Io`] if one cannot be created.
pub(super) fn create_files(path: &Path, threads: usize) -> Result<Vec<RowFile>, Error> {
    (0..threads as u64)
        .map(|thread| match thread {
            0 => RowFile::create(path, Form::Blanks, None),
            _ => RowFile::create(&numbered(path, thread), Form::Blanks, None),
        })
        .collect()
}

/// Whether a transaction has a line, or is in one.
fn is_told(record: &TransactionRecord) -> bool {
    let attempted = match record.outcome {
        Outcome::Processed | Outcome::Failed | Outcome::Skipped => true,
        Outcome::Aborted(_) => false,
    };
    record.phase.is_measured() && attempted
}

/// A line for each transaction.
pub struct PgbenchTransactions {
    files: Vec<RowFile>,
    fields: PgbenchFields,
    sampling: Option<Sampling>,
    clock: Clock,
    cells: Cells,
}

impl PgbenchTransactions {
    /// A log into these files, one a worker.
    pub(super) fn new(
        files: Vec<RowFile>,
        fields: PgbenchFields,
        sampling: Option<Sampling>,
        clock: Clock,
    ) -> Self {
        PgbenchTransactions {
            files,
            fields,
            sampling,
            clock,
            cells: Cells::default(),
        }
    }

    /// The third field: what became of it.
    fn push_latency(&mut self, record: &TransactionRecord) {
        let word: &[u8] = match record.outcome {
            Outcome::Processed | Outcome::Aborted(_) => {
                return self.cells.micros(record.latency_ns());
            }
            Outcome::Skipped => b"skipped",
            Outcome::Failed if !self.fields.failures_detailed => b"failed",
            Outcome::Failed => match Failure::of(record.sqlstate) {
                Failure::Serialization => b"serialization",
                Failure::Deadlock => b"deadlock",
                Failure::Other => b"other",
            },
        };
        self.cells.text(word);
    }
}

impl Listener for PgbenchTransactions {
    fn begin_window(&mut self, _begins: Timestamp) {}

    fn transaction(&mut self, worker: u32, record: &TransactionRecord) {
        if !is_told(record) {
            return;
        }
        if let Some(sampling) = &mut self.sampling
            && !sampling.keeps(worker)
        {
            return;
        }
        self.cells.integer(record.client.into());
        self.cells.count(record.number);
        self.push_latency(record);
        self.cells.integer(record.script.into());
        let unix_micros = signed_micros(self.clock.unix_ns(record.finished_at));
        self.cells.integer(unix_micros.div_euclid(1_000_000));
        self.cells.integer(unix_micros.rem_euclid(1_000_000));
        if self.fields.lag {
            self.cells.micros(record.lag_ns());
        }
        if self.fields.retries {
            self.cells.integer(record.retries().into());
        }
        self.files[worker as usize].push(&mut self.cells);
    }
}

impl Log for PgbenchTransactions {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.files
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::AttemptedInWindow {
            left_out: self.sampling.as_ref().map_or(0, Sampling::left_out),
        }
    }
}

/// A line for each interval of whole seconds. They begin at whole seconds of the wall clock.
pub struct PgbenchIntervals {
    files: Vec<RowFile>,
    /// What each thread has of the interval that it is in.
    open: Vec<Aggregate>,
    fields: PgbenchFields,
    length_us: i64,
    /// When the present interval of all threads began, in microseconds of Unix time.
    begins_us: Vec<i64>,
    /// Transactions in all lines so far.
    transactions: u64,
    clock: Clock,
    cells: Cells,
}

impl PgbenchIntervals {
    /// A log into these files, one a worker, of intervals of `length`.
    pub(super) fn new(
        files: Vec<RowFile>,
        fields: PgbenchFields,
        length: Duration,
        clock: Clock,
    ) -> Self {
        PgbenchIntervals {
            open: vec![Aggregate::default(); files.len()],
            begins_us: vec![0; files.len()],
            files,
            fields,
            length_us: (length.as_secs().max(1) as i64).saturating_mul(1_000_000),
            transactions: 0,
            clock,
            cells: Cells::default(),
        }
    }

    /// Writes the intervals of this thread that are over at `unix_us`, quiet ones too.
    fn advance(&mut self, thread: usize, unix_us: i64) {
        while self.begins_us[thread].saturating_add(self.length_us) <= unix_us {
            self.write(thread);
            self.begins_us[thread] += self.length_us;
        }
    }

    fn advance_all(&mut self, unix_us: i64) {
        (0..self.files.len()).for_each(|thread| self.advance(thread, unix_us));
    }

    fn write(&mut self, thread: usize) {
        let interval = std::mem::take(&mut self.open[thread]);
        self.transactions += interval.attempted();
        let begins_s = self.begins_us[thread].div_euclid(1_000_000);
        interval.push(begins_s, self.fields, &mut self.cells);
        self.files[thread].push(&mut self.cells);
    }

    fn unix_us(&self, moment: Timestamp) -> i64 {
        signed_micros(self.clock.unix_ns(moment))
    }
}

impl Listener for PgbenchIntervals {
    fn begin_window(&mut self, begins: Timestamp) {
        let second = self.unix_us(begins).div_euclid(1_000_000) * 1_000_000;
        self.begins_us.fill(second);
    }

    fn transaction(&mut self, worker: u32, record: &TransactionRecord) {
        if !is_told(record) {
            return;
        }
        let thread = worker as usize;
        self.advance(thread, self.unix_us(record.finished_at));
        self.open[thread].add(record);
    }

    fn complete_through(&mut self, known: Known) {
        self.advance_all(self.unix_us(known.through));
    }

    /// The interval that the end falls into is written too.
    fn end(&mut self, ends: Timestamp) {
        let unix_us = self.unix_us(ends);
        self.advance_all(unix_us);
        for thread in 0..self.files.len() {
            if self.begins_us[thread] < unix_us || self.open[thread] != Aggregate::default() {
                self.write(thread);
            }
        }
    }
}

impl Log for PgbenchIntervals {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.files
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::IntervalsOfAttempted {
            transactions: self.transactions,
        }
    }
}

/// What pgbench tells of an interval. Durations are whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Aggregate {
    latency: Sums,
    lag: Sums,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

impl Aggregate {
    fn add(&mut self, record: &TransactionRecord) {
        match record.outcome {
            Outcome::Processed => {
                self.latency.add(whole_micros(record.latency_ns()));
                self.lag.add(whole_micros(record.lag_ns()));
            }
            Outcome::Failed => match Failure::of(record.sqlstate) {
                Failure::Serialization => self.serialization += 1,
                Failure::Deadlock => self.deadlock += 1,
                Failure::Other => self.other += 1,
            },
            Outcome::Skipped => self.skipped += 1,
            Outcome::Aborted(_) => {}
        }
        self.retried += u64::from(record.retries() > 0);
        self.retries += u64::from(record.retries());
    }

    fn attempted(&self) -> u64 {
        let failed = self.serialization + self.deadlock + self.other;
        self.latency.count + failed + self.skipped
    }

    fn push(&self, begins_s: i64, fields: PgbenchFields, cells: &mut Cells) {
        cells.integer(begins_s);
        cells.count(self.latency.count);
        self.latency.push(cells);
        self.lag.push(cells);
        for count in [
            self.skipped,
            self.retried,
            self.retries,
            self.serialization,
            self.deadlock,
        ] {
            cells.count(count);
        }
        if fields.other_failures {
            cells.count(self.other);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    count: u64,
    sum: u128,
    /// Squares of durations of hours, a million of them, exceed 64 bits.
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Sums {
    fn add(&mut self, micros: u64) {
        self.min = match self.count {
            0 => micros,
            _ => self.min.min(micros),
        };
        self.max = self.max.max(micros);
        self.count += 1;
        self.sum += u128::from(micros);
        self.sum_of_squares += u128::from(micros) * u128::from(micros);
    }

    fn push(&self, cells: &mut Cells) {
        cells.sum(self.sum);
        cells.sum(self.sum_of_squares);
        cells.count(self.min);
        cells.count(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{Memory, Story, UNIX_ORIGIN_NS, at, transaction};
    use crate::event::{Abort, Phase, SqlState};
    use crate::random::Generator;

    const FIELDS: PgbenchFields = PgbenchFields {
        lag: false,
        retries: false,
        failures_detailed: false,
        other_failures: false,
    };
    const ALL_FIELDS: PgbenchFields = PgbenchFields {
        lag: true,
        retries: true,
        failures_detailed: true,
        other_failures: true,
    };

    fn files(threads: usize) -> (Vec<Memory>, Vec<RowFile>) {
        let memories = vec![(); threads];
        let memories: Vec<Memory> = memories.iter().map(|()| Memory::default()).collect();
        let files = memories.iter().map(|memory| {
            let file = Box::new(memory.clone());
            RowFile::new(file, Path::new("pgbench_log.1"), Form::Blanks)
        });
        let files = files.collect();
        (memories, files)
    }

    fn clock() -> Clock {
        Clock::manual(UNIX_ORIGIN_NS)
    }

    fn of_every_kind() -> Vec<TransactionRecord> {
        let base = TransactionRecord {
            client: 3,
            number: 9,
            script: 1,
            scheduled_at: at(95),
            ..transaction(100, 110)
        };
        let failed = |sqlstate: &[u8; 5]| TransactionRecord {
            outcome: Outcome::Failed,
            sqlstate: SqlState(*sqlstate),
            ..base
        };
        vec![
            TransactionRecord { tries: 3, ..base },
            TransactionRecord {
                outcome: Outcome::Skipped,
                tries: 0,
                ..base
            },
            failed(b"40001"),
            failed(b"40P01"),
            failed(b"22012"),
            TransactionRecord {
                outcome: Outcome::Aborted(Abort::Server),
                ..base
            },
            TransactionRecord {
                phase: Phase::Warmup,
                ..base
            },
        ]
    }

    #[test]
    fn lines_of_transactions_are_these_bytes() {
        for (fields, expected) in [
            (
                FIELDS,
                "3 9 15000 1 1796048716 233456\n3 9 skipped 1 1796048716 233456\n\
                 3 9 failed 1 1796048716 233456\n3 9 failed 1 1796048716 233456\n\
                 3 9 failed 1 1796048716 233456\n",
            ),
            (
                ALL_FIELDS,
                "3 9 15000 1 1796048716 233456 5000 2\n3 9 skipped 1 1796048716 233456 15000 0\n\
                 3 9 serialization 1 1796048716 233456 5000 0\n\
                 3 9 deadlock 1 1796048716 233456 5000 0\n\
                 3 9 other 1 1796048716 233456 5000 0\n",
            ),
        ] {
            let (memories, files) = files(2);
            let mut log: Box<dyn Log> =
                Box::new(PgbenchTransactions::new(files, fields, None, clock()));
            for record in of_every_kind() {
                log.transaction(1, &record);
            }
            assert_eq!(log.finish().rows_written, 5);
            assert_eq!(memories[0].text(), "");
            assert_eq!(memories[1].text(), expected);
        }
    }

    #[test]
    fn only_what_has_a_line_is_drawn_for() {
        let (_, files) = files(1);
        let sampling = Sampling::new(0.5, &[Generator::new(1)]);
        let mut log = PgbenchTransactions::new(files, FIELDS, Some(sampling), clock());
        for record in of_every_kind().iter().cycle().take(7 * 100) {
            log.transaction(0, record);
        }
        let mut stream = Generator::new(1);
        let expected = (0..500).filter(|_| stream.double() > 0.5).count() as u64;
        let LoggedRows::AttemptedInWindow { left_out } = log.rows() else {
            panic!("{:?}", log.rows());
        };
        assert_eq!(left_out, expected);
    }

    #[test]
    fn aggregates_begin_at_whole_seconds_and_lose_nothing() {
        let (memories, files) = files(1);
        let length = Duration::from_secs(2);
        let log = PgbenchIntervals::new(files, ALL_FIELDS, length, clock());
        let mut story = Story::of_seconds(4, 6);
        story.plan.scripts = 2;
        story.logs = vec![Box::new(log)];
        // The window begins at …716.123456, so the first interval ends 1.876544 s later.
        for record in of_every_kind() {
            story.record(record);
        }
        story.record(transaction(1_800, 1_876));
        story.record(transaction(1_800, 1_877));
        story.record(transaction(5_980, 6_001));
        let measured = story.tell();
        assert_eq!(
            memories[0].text(),
            "1796048716 2 91000 6001000000 15000 76000 5000 25000000 0 5000 1 1 2 1 1 1\n\
             1796048718 1 77000 5929000000 77000 77000 0 0 0 0 0 0 0 0 0 0\n\
             1796048720 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             1796048722 1 21000 441000000 21000 21000 0 0 0 0 0 0 0 0 0 0\n"
        );
        assert_eq!(
            measured.logs[0].rows,
            LoggedRows::IntervalsOfAttempted { transactions: 8 }
        );
    }

    #[test]
    fn a_quiet_thread_tells_of_quiet_intervals_up_to_the_end() {
        let (memories, files) = files(2);
        let length = Duration::from_secs(1);
        let mut log = PgbenchIntervals::new(files, FIELDS, length, clock());
        log.begin_window(at(0));
        log.transaction(0, &transaction(0, 1_000));
        log.end(at(1_000));
        let log: &mut dyn Log = &mut log;
        log.finish();
        assert_eq!(
            memories[0].text(),
            "1796048716 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             1796048717 1 1000000 1000000000000 1000000 1000000 0 0 0 0 0 0 0 0 0\n"
        );
        assert_eq!(memories[1].text().lines().count(), 2);
    }
}
