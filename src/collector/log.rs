//! The per-transaction log: one CSV row for each transaction, whatever its outcome. A file that
//! stops taking rows never stops the run: the rows that it did not take are counted.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use csv::ByteRecord;

use crate::error::Error;
use crate::event::{Abort, Outcome, Phase, TransactionRecord};
use crate::result::LogResult;
use crate::time::{Clock, Timestamp};

/// Bytes kept before they are given to the file: some 2,500 rows.
const BUFFER_BYTES: usize = 256 * 1024;

/// A column: its name in the header, and what a row has in it.
type Column = (&'static str, fn(&mut Row, &TransactionRecord));

/// The columns in their order. Header and rows both come from here.
const COLUMNS: [Column; 13] = [
    ("client_id", |row, it| row.integer(it.client.into())),
    ("transaction", |row, it| row.integer(it.number as i64)),
    ("script", |row, it| row.script(it.script)),
    ("status", |row, it| row.text(status(it.outcome))),
    ("phase", |row, it| row.text(phase(it.phase))),
    ("latency_us", push_latency),
    ("lag_us", |row, it| row.micros(it.lag_ns())),
    ("connect_us", |row, it| row.micros(it.connecting_ns)),
    ("untimed_us", |row, it| row.micros(it.untimed_ns)),
    ("retries", |row, it| row.integer(it.retries().into())),
    ("error", push_error),
    ("completed_us", |row, it| row.since_begin(it.finished_at)),
    ("completed_utc", |row, it| row.utc(it.finished_at)),
];

/// A per-transaction log being written.
pub struct Log {
    path: PathBuf,
    writer: csv::Writer<Sink>,
    row: Row,
    rows_offered: u64,
    failure_told: bool,
}

impl Log {
    /// Creates the file, replacing one of that name, before the run begins. Scripts go by their
    /// short `script_names`, `#2` and so on appended to those that come again.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn create(path: &Path, script_names: &[String], clock: Clock) -> Result<Log, Error> {
        let file = File::create(path).map_err(|source| Error::io("create", path, source))?;
        Ok(Log::new(Box::new(file), path, script_names, clock))
    }

    /// A log into any writer; `path` is what it is called.
    pub fn new(
        file: Box<dyn Write + Send>,
        path: &Path,
        script_names: &[String],
        clock: Clock,
    ) -> Log {
        let mut log = Log {
            path: path.to_owned(),
            writer: csv::WriterBuilder::new()
                .buffer_capacity(BUFFER_BYTES)
                .from_writer(Sink::new(file)),
            row: Row::new(script_names, clock),
            rows_offered: 0,
            failure_told: false,
        };
        COLUMNS.iter().for_each(|(name, _)| log.row.text(name));
        log.write_cells();
        log
    }

    /// Sets W1, from which `completed_us` counts.
    pub fn begin_window(&mut self, begins: Timestamp) {
        self.row.window_begins = begins;
    }

    /// Adds a row.
    pub fn write(&mut self, record: &TransactionRecord) {
        for (_, push) in COLUMNS {
            push(&mut self.row, record);
        }
        self.write_cells();
        self.rows_offered += 1;
    }

    /// Gives all rows to the file.
    pub fn flush(&mut self) {
        self.writer.flush().expect(SINK_NEVER_FAILS);
    }

    /// What went wrong with the file, the first time that this is asked after it did.
    pub fn new_failure(&mut self) -> Option<String> {
        if self.failure_told {
            return None;
        }
        let failure = self.writer.get_ref().failure.as_ref()?;
        self.failure_told = true;
        Some(format!(
            "could not write \"{}\": {failure}",
            self.path.display()
        ))
    }

    /// Gives the rest to the file and says what became of all rows.
    pub fn finish(mut self) -> LogResult {
        self.flush();
        let sink = self.writer.get_ref();
        // The header is a line too.
        let rows_written = sink.lines_taken.saturating_sub(1);
        LogResult {
            path: self.path,
            rows_written,
            rows_lost: self.rows_offered - rows_written,
            failure: sink.failure.as_ref().map(io::Error::to_string),
        }
    }

    fn write_cells(&mut self) {
        self.writer
            .write_byte_record(&self.row.cells)
            .expect(SINK_NEVER_FAILS);
        self.row.cells.clear();
    }
}

const SINK_NEVER_FAILS: &str = "the sink keeps errors to itself and every row has all columns";

/// The file, as one that never fails: the first error is kept, and nothing is written after it. A
/// row counts as written when the file took the end of its line; no cell contains one.
struct Sink {
    file: Box<dyn Write + Send>,
    lines_taken: u64,
    failure: Option<io::Error>,
}

impl Sink {
    fn new(file: Box<dyn Write + Send>) -> Self {
        Sink {
            file,
            lines_taken: 0,
            failure: None,
        }
    }

    fn try_write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let lines = bytes[..taken].iter().filter(|&&byte| byte == b'\n');
            self.lines_taken += lines.count() as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_none() {
            self.failure = self.try_write(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            self.failure = self.file.flush().err();
        }
        Ok(())
    }
}

/// The cells of one row, in memory that is used again for the next.
struct Row {
    cells: ByteRecord,
    integer: itoa::Buffer,
    script_names: Vec<String>,
    window_begins: Timestamp,
    clock: Clock,
    utc: UtcText,
}

impl Row {
    fn new(script_names: &[String], clock: Clock) -> Self {
        Row {
            cells: ByteRecord::new(),
            integer: itoa::Buffer::new(),
            script_names: distinct_names(script_names),
            window_begins: Timestamp::ZERO,
            clock,
            utc: UtcText::new(),
        }
    }

    fn text(&mut self, text: &str) {
        self.cells.push_field(text.as_bytes());
    }

    fn integer(&mut self, value: i64) {
        self.cells.push_field(self.integer.format(value).as_bytes());
    }

    fn micros(&mut self, nanos: u64) {
        self.integer(rounded_micros(i128::from(nanos)) as i64);
    }

    fn script(&mut self, index: u8) {
        let name = self.script_names.get(usize::from(index));
        self.cells
            .push_field(name.map_or(b"", |name| name.as_bytes()));
    }

    fn since_begin(&mut self, moment: Timestamp) {
        let nanos = moment.signed_nanos_since(self.window_begins);
        self.integer(rounded_micros(i128::from(nanos)) as i64);
    }

    fn utc(&mut self, moment: Timestamp) {
        let micros = rounded_micros(self.clock.unix_ns(moment));
        self.cells.push_field(self.utc.format(micros));
    }
}

/// `2026-11-30T14:25:16.123456`. The calendar is asked once a second.
struct UtcText {
    second: Option<i64>,
    text: [u8; 26],
}

impl UtcText {
    fn new() -> Self {
        UtcText {
            second: None,
            text: *b"0000-00-00T00:00:00.000000",
        }
    }

    fn format(&mut self, unix_micros: i128) -> &[u8] {
        let second = unix_micros.div_euclid(1_000_000) as i64;
        if self.second != Some(second) {
            self.second = Some(second);
            let calendar = jiff::Timestamp::from_second(second).unwrap_or_default();
            let date_and_time = calendar.strftime("%Y-%m-%dT%H:%M:%S").to_string();
            self.text[..19].copy_from_slice(&date_and_time.as_bytes()[..19]);
        }
        let mut rest = unix_micros.rem_euclid(1_000_000) as u32;
        for digit in self.text[20..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.text
    }
}

/// Whole microseconds, rounded to the nearest so that means over the log are not biased.
fn rounded_micros(nanos: i128) -> i128 {
    (nanos + 500).div_euclid(1000)
}

fn status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Processed => "ok",
        Outcome::Failed => "failed",
        Outcome::Skipped => "skipped",
        Outcome::Aborted(_) => "aborted",
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Ramp => "ramp",
        Phase::Warmup => "warmup",
        Phase::Run => "run",
    }
}

/// A skipped transaction has no latency, and 0 would be taken for one.
fn push_latency(row: &mut Row, record: &TransactionRecord) {
    match record.outcome {
        Outcome::Skipped => row.text(""),
        Outcome::Processed | Outcome::Failed | Outcome::Aborted(_) => {
            row.micros(record.latency_ns());
        }
    }
}

/// `SQLSTATE 40001`: with the word before it no spreadsheet takes it for a number.
fn push_error(row: &mut Row, record: &TransactionRecord) {
    match record.outcome {
        Outcome::Processed | Outcome::Skipped => row.text(""),
        Outcome::Failed | Outcome::Aborted(Abort::Server) => match record.sqlstate.as_str() {
            "" => row.text("server_error"),
            code => {
                let mut text = *b"SQLSTATE .....";
                text[9..].copy_from_slice(code.as_bytes());
                row.cells.push_field(&text);
            }
        },
        Outcome::Aborted(Abort::Client) => row.text("client_error"),
        Outcome::Aborted(Abort::ConnectionLost | Abort::ConnectionLostInCommit) => {
            row.text("connection_lost");
        }
        Outcome::Aborted(Abort::Interrupted) => row.text("interrupted"),
    }
}

/// Names as the log shows them: each once, on one line, none that a spreadsheet would calculate.
fn distinct_names(names: &[String]) -> Vec<String> {
    names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let nth = 1 + names[..index].iter().filter(|other| *other == name).count();
            let name: String = name
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            let quote = if name.starts_with(['=', '+', '-', '@']) {
                "'"
            } else {
                ""
            };
            match nth {
                1 => format!("{quote}{name}"),
                _ => format!("{quote}{name}#{nth}"),
            }
        })
        .collect()
}
