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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{Memory, Story, at, transaction};
    use crate::event::SqlState;

    /// 2026-11-30T14:25:06.123456 at the start of the clock.
    const UNIX_ORIGIN_NS: i128 = 1_796_048_706_123_456_000;

    fn log_into(file: impl Write + Send + 'static, names: &[&str]) -> Log {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let clock = Clock::manual(UNIX_ORIGIN_NS);
        let mut log = Log::new(Box::new(file), Path::new("log.csv"), &names, clock);
        log.begin_window(at(0));
        log
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
            log.write(&record);
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
    fn times_carry_over_seconds_days_and_years() {
        let mut utc = UtcText::new();
        for (micros, expected) in [
            (1_798_761_599_999_999, "2026-12-31T23:59:59.999999"),
            (1_798_761_600_000_000, "2027-01-01T00:00:00.000000"),
            (1_798_761_599_000_001, "2026-12-31T23:59:59.000001"),
            (-1, "1969-12-31T23:59:59.999999"),
        ] {
            assert_eq!(utc.format(micros), expected.as_bytes());
        }
    }

    /// A disk with room for so many bytes.
    struct SmallDisk(usize);

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

    #[test]
    fn on_a_full_disk_the_run_goes_on_and_every_row_is_accounted_for() {
        for room in [0, 60, 1_000, 20_000] {
            let mut story = Story::of_seconds(1, 5);
            story.log = Some(log_into(SmallDisk(room), &["s"]));
            let stderr = story.stderr.clone();
            story.works(0, 10, 0, 5_000);
            let measured = story.tell();
            let log = measured.log.expect("a log was asked for");
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

    #[test]
    fn a_path_that_cannot_be_created_is_an_error_that_names_it() {
        let path = Path::new("/nowhere/at/all.csv");
        let error = Log::create(path, &[], Clock::manual(0))
            .err()
            .expect("no such directory");
        assert!(
            error
                .to_string()
                .starts_with("could not create \"/nowhere/at/all.csv\": ")
        );
    }

    /// The promise of the log: with the table of clients it gives every figure again.
    #[test]
    fn figures_can_be_recomputed_from_the_log_and_the_table_of_clients() {
        let memory = Memory::default();
        let mut story = Story::of_seconds(3, 5);
        story.log = Some(log_into(memory.clone(), &["s"]));
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
}
