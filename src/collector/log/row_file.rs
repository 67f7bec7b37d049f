//! A file of rows that never fails: the first error is kept, nothing is written after it, and what
//! the file did not take is counted. Compresses where the name says so, and goes on in a new file
//! where only so many rows may be in one. Knows nothing of what is in a row.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use csv::{QuoteStyle, Writer, WriterBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::text::Cells;
use crate::error::Error;

/// Bytes kept before they are given to the file: some 2,500 rows.
const BUFFER_BYTES: usize = 256 * 1024;

/// What the lines of a file look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// CSV, below a header with the names of these columns.
    Csv(Vec<&'static str>),
    /// pgbench's: no header, a blank between fields, none of which has one in it.
    Blanks,
    /// These whole lines, then cells with commas between them.
    Lines(String),
}

impl Form {
    /// A writer of such lines, header first.
    fn writer(&self, mut output: Output) -> Writer<Output> {
        let mut builder = WriterBuilder::new();
        // The few cells that may need quotes have them already: looking at each byte of all others
        // would be a third of the work.
        builder
            .buffer_capacity(BUFFER_BYTES)
            .quote_style(QuoteStyle::Never);
        match self {
            Form::Csv(columns) => {
                let mut writer = builder.from_writer(output);
                writer
                    .write_record(columns)
                    .expect("the first row has any length, and an output never fails");
                writer
            }
            Form::Blanks => builder.delimiter(b' ').from_writer(output),
            Form::Lines(head) => {
                output
                    .write_all(head.as_bytes())
                    .expect("an output never fails");
                builder.from_writer(output)
            }
        }
    }

    fn header_lines(&self) -> u64 {
        match self {
            Form::Csv(_) => 1,
            Form::Blanks => 0,
            Form::Lines(head) => head.lines().count() as u64,
        }
    }
}

/// A file, or with a split a row of files.
pub struct RowFile {
    /// As the user named it.
    path: PathBuf,
    form: Form,
    split: Option<Split>,
    writer: Writer<Output>,
    /// The file, until there is something to write.
    reserved: Option<Reserved>,
    rows_in_file: u64,
    rows_offered: u64,
    /// Rows that files took that were ended.
    rows_taken_before: u64,
    failure: Option<io::Error>,
    failure_told: bool,
}

/// When to go on in a new file.
struct Split {
    rows_each: u64,
    /// Number of the file that is being written, from 1.
    number: u64,
}

impl RowFile {
    /// Reserves the file; with `rows_each` the first of `PATH.1`, `PATH.2` and so on. One of that name
    /// is replaced at the first row, or at the end if there is none.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub(super) fn create(
        path: &Path,
        form: Form,
        rows_each: Option<u64>,
    ) -> Result<RowFile, Error> {
        let split = rows_each.map(|rows_each| Split {
            rows_each: rows_each.max(1),
            number: 1,
        });
        let first = match &split {
            Some(split) => numbered(path, split.number),
            None => path.to_owned(),
        };
        let reserved =
            Reserved::open(&first).map_err(|source| Error::io("create", &first, source))?;
        Ok(RowFile {
            split,
            reserved: Some(reserved),
            ..RowFile::with_output(Output::none(), path, form)
        })
    }

    /// Rows into any writer; `path` is what it is called.
    #[cfg(test)]
    pub(super) fn new(file: Box<dyn Write + Send>, path: &Path, form: Form) -> RowFile {
        RowFile::with_output(Output::new(file, is_compressed(path)), path, form)
    }

    fn with_output(output: Output, path: &Path, form: Form) -> RowFile {
        RowFile {
            path: path.to_owned(),
            writer: form.writer(output),
            form,
            split: None,
            reserved: None,
            rows_in_file: 0,
            rows_offered: 0,
            rows_taken_before: 0,
            failure: None,
            failure_told: false,
        }
    }

    /// Changes what stands above the rows, of which there are none yet.
    pub(super) fn begin_as(&mut self, form: Form) {
        self.form = form;
        if self.reserved.is_none() {
            let output = Output::none();
            let empty = std::mem::replace(&mut self.writer, self.form.writer(output));
            let Ok(output) = empty.into_inner() else {
                unreachable!("an output never fails");
            };
            self.writer = self.form.writer(output);
        }
    }

    /// Adds a row; the cells are empty afterwards.
    pub(super) fn push(&mut self, row: &mut Cells) {
        self.take_reserved();
        if self
            .split
            .as_ref()
            .is_some_and(|split| self.rows_in_file >= split.rows_each)
        {
            self.next_file();
        }
        self.writer
            .write_byte_record(row.record())
            .expect("rows have the cells of their header, and an output never fails");
        row.clear();
        self.rows_in_file += 1;
        self.rows_offered += 1;
    }

    /// Gives all rows to the file, so that a reader finds them.
    pub(super) fn flush(&mut self) {
        self.writer.flush().expect("an output never fails");
    }

    /// Gives the rest to the file and ends it.
    pub(super) fn finish(&mut self) {
        self.take_reserved();
        self.go_on_with(Output::none());
    }

    /// What went wrong with the file, the first time that this is asked after it did.
    pub(super) fn new_failure(&mut self) -> Option<String> {
        if self.failure_told {
            return None;
        }
        let failure = self.failure()?;
        self.failure_told = true;
        let file = match &self.split {
            Some(split) => numbered(&self.path, split.number),
            None => self.path.clone(),
        };
        Some(format!("could not write \"{}\": {failure}", file.display()))
    }

    /// Where it lies: what the user named, also if it is split.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Rows that the file took whole. Of a compressed file only what was flushed is known.
    pub(super) fn rows_written(&self) -> u64 {
        self.rows_taken_before + self.rows_taken(self.writer.get_ref())
    }

    /// Rows that it did not take.
    pub(super) fn rows_lost(&self) -> u64 {
        self.rows_offered - self.rows_written()
    }

    /// Why not, in the system's words.
    pub(super) fn failure(&self) -> Option<String> {
        let failure = self.failure.as_ref();
        let failure = failure.or(self.writer.get_ref().failure.as_ref());
        failure.map(io::Error::to_string)
    }

    fn rows_taken(&self, output: &Output) -> u64 {
        output.lines_taken.saturating_sub(self.form.header_lines())
    }

    /// From now on the file is ours.
    fn take_reserved(&mut self) {
        let Some(reserved) = self.reserved.take() else {
            return;
        };
        let compressed = is_compressed(&self.path);
        match reserved.take() {
            Ok(file) => self.go_on_with(Output::of_file(file, compressed)),
            Err(error) => self.failure = Some(error),
        }
    }

    /// A failure stays: rows after a gap would be taken for all there were.
    fn next_file(&mut self) {
        let Some(split) = &mut self.split else { return };
        split.number += 1;
        self.rows_in_file = 0;
        let path = numbered(&self.path, split.number);
        self.go_on_with(Output::none());
        if self.failure.is_some() {
            return;
        }
        match File::create(&path) {
            Ok(file) => self.go_on_with(Output::of_file(file, is_compressed(&path))),
            Err(error) => self.failure = Some(error),
        }
    }

    /// Ends the present file and writes from now on to `output`.
    fn go_on_with(&mut self, output: Output) {
        let writer = std::mem::replace(&mut self.writer, self.form.writer(output));
        let Ok(mut ended) = writer.into_inner() else {
            unreachable!("an output never fails");
        };
        ended.finish();
        self.rows_taken_before += self.rows_taken(&ended);
        self.failure = self.failure.take().or(ended.failure);
    }
}

/// A file that can be written, and is as it was before. If it is not taken in the end, because there
/// was no run, one that was not there before is removed.
struct Reserved {
    /// `None` when it was taken.
    file: Option<File>,
    path: PathBuf,
    is_new: bool,
}

impl Reserved {
    fn open(path: &Path) -> io::Result<Reserved> {
        let mut writable = OpenOptions::new();
        writable.write(true);
        let (file, is_new) = match writable.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            // What is there may be a link to nowhere, which opening creates.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (writable.create(true).truncate(false).open(path)?, false)
            }
            Err(error) => return Err(error),
        };
        Ok(Reserved {
            file: Some(file),
            path: path.to_owned(),
            is_new,
        })
    }

    /// The file, with nothing in it.
    fn take(mut self) -> io::Result<File> {
        let file = self.file.take().expect("it is taken only once");
        // A pipe or a device has no length.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.is_new && self.file.is_some() {
            // What cannot be removed is an empty file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The name of the `number`th file beside `path`: `log.csv` gives `log.2.csv`, `log.csv.gz` gives
/// `log.2.csv.gz`, other names get the number behind them.
pub(super) fn numbered(path: &Path, number: u64) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let ending = [".csv.gz", ".csv", ".gz"]
        .into_iter()
        .find(|ending| bytes.ends_with(ending.as_bytes()))
        .unwrap_or("");
    let mut name = bytes[..bytes.len() - ending.len()].to_vec();
    name.extend_from_slice(format!(".{number}{ending}").as_bytes());
    PathBuf::from(OsString::from_vec(name))
}

/// Whether `other` is the name of a further file of the log at `path`: the same with a number.
pub fn is_further_file(path: &Path, other: &Path) -> bool {
    let name = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let (first, other) = (name(&numbered(path, 0)), name(other));
    // The number is the last thing that is not the ending.
    let Some(place) = first.windows(2).rposition(|two| two == b".0") else {
        return false;
    };
    let (stem, ending) = (&first[..=place], &first[place + 2..]);
    let number = other
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_suffix(ending));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

fn is_compressed(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b".gz")
}

/// Where bytes go, and what became of them. As a writer it never fails: after the first error it
/// takes what it is given and drops it. No cell contains a line end, so lines are rows.
struct Output {
    /// For a file that is not compressed.
    whole: Option<WholeLines>,
    sink: Sink,
    lines_taken: u64,
    failure: Option<io::Error>,
}

enum Sink {
    Plain(Box<dyn Write + Send>),
    /// What the encoder still holds cannot be told apart, so lines count when it was flushed.
    Gzip {
        encoder: GzEncoder<Box<dyn Write + Send>>,
        lines_held: u64,
    },
    /// There is no file, or none any more.
    None,
}

/// How far the lines of a file are whole.
struct WholeLines {
    /// The same file as the sink's.
    file: File,
    bytes_taken: u64,
    bytes_whole: u64,
}

impl WholeLines {
    fn note(&mut self, taken: &[u8]) {
        if let Some(end) = taken.iter().rposition(|&byte| byte == b'\n') {
            self.bytes_whole = self.bytes_taken + end as u64 + 1;
        }
        self.bytes_taken += taken.len() as u64;
    }

    /// Takes off a line that the file did not take whole: it would be read as a row.
    fn cut(&self) {
        let is_file = self.file.metadata().is_ok_and(|facts| facts.is_file());
        if is_file && self.bytes_whole < self.bytes_taken {
            // The failure is told anyway.
            let _ = self.file.set_len(self.bytes_whole);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|output| output.try_write(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(|output| output.try_flush(false));
        Ok(())
    }
}

impl Output {
    fn new(file: Box<dyn Write + Send>, compressed: bool) -> Self {
        let sink = match compressed {
            // A log must keep up with the run; better levels are for afterwards.
            true => Sink::Gzip {
                encoder: GzEncoder::new(file, Compression::fast()),
                lines_held: 0,
            },
            false => Sink::Plain(file),
        };
        Output {
            sink,
            ..Output::none()
        }
    }

    /// Into a file, which keeps no line that it did not take whole.
    fn of_file(file: File, compressed: bool) -> Self {
        let whole = match compressed {
            true => None,
            false => file.try_clone().ok(),
        };
        Output {
            whole: whole.map(|file| WholeLines {
                file,
                bytes_taken: 0,
                bytes_whole: 0,
            }),
            ..Output::new(Box::new(file), compressed)
        }
    }

    /// One that drops everything.
    fn none() -> Self {
        Output {
            whole: None,
            sink: Sink::None,
            lines_taken: 0,
            failure: None,
        }
    }

    fn finish(&mut self) {
        self.attempt(|output| output.try_flush(true));
    }

    fn attempt(&mut self, action: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.failure.is_none() {
            self.failure = action(self).err();
        }
        if self.failure.is_some()
            && let Some(whole) = self.whole.take()
        {
            whole.cut();
        }
    }

    fn try_write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.sink {
            Sink::Plain(file) => file,
            Sink::Gzip {
                encoder,
                lines_held,
            } => {
                encoder.write_all(bytes)?;
                *lines_held += lines(bytes);
                return Ok(());
            }
            Sink::None => return Ok(()),
        };
        while !bytes.is_empty() {
            let taken = match file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.lines_taken += lines(&bytes[..taken]);
            if let Some(whole) = &mut self.whole {
                whole.note(&bytes[..taken]);
            }
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    fn try_flush(&mut self, at_the_end: bool) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(file) => file.flush(),
            Sink::Gzip {
                encoder,
                lines_held,
            } => {
                match at_the_end {
                    true => encoder.try_finish()?,
                    false => encoder.flush()?,
                }
                self.lines_taken += std::mem::take(lines_held);
                Ok(())
            }
            Sink::None => Ok(()),
        }
    }
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{Memory, SmallDisk};
    use std::io::Read;

    fn form() -> Form {
        Form::Csv(vec!["n"])
    }

    fn push(file: &mut RowFile, number: i64) {
        let mut cells = Cells::default();
        cells.integer(number);
        file.push(&mut cells);
    }

    fn unzipped(bytes: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_string(&mut text)
            .expect("the file is complete");
        text
    }

    #[test]
    fn numbers_stand_before_what_a_name_ends_in() {
        for (name, expected) in [
            ("a/log.csv", "a/log.7.csv"),
            ("log.csv.gz", "log.7.csv.gz"),
            ("log.gz", "log.7.gz"),
            ("pgbench_log.4711", "pgbench_log.4711.7"),
            ("a.csv/log", "a.csv/log.7"),
        ] {
            assert_eq!(numbered(Path::new(name), 7), Path::new(expected));
        }
    }

    #[test]
    fn a_name_that_says_so_is_compressed_and_complete() {
        let memory = Memory::default();
        let path = Path::new("log.csv.gz");
        let mut file = RowFile::new(Box::new(memory.clone()), path, form());
        push(&mut file, 1);
        file.flush();
        assert_eq!(file.rows_written(), 1);
        push(&mut file, 2);
        assert_eq!(file.rows_written(), 1, "what is not flushed is not known");
        file.finish();
        assert_eq!((file.rows_written(), file.rows_lost()), (2, 0));
        assert_eq!(unzipped(&memory.bytes()), "n\n1\n2\n");
    }

    #[test]
    fn rows_that_a_compressed_file_did_not_take_are_lost() {
        let path = Path::new("log.csv.gz");
        let mut file = RowFile::new(Box::new(SmallDisk(40)), path, form());
        push(&mut file, 1);
        file.flush();
        for number in 0..10_000 {
            push(&mut file, number * 7919);
        }
        file.finish();
        assert_eq!((file.rows_written(), file.rows_lost()), (1, 10_000));
        assert!(file.new_failure().is_some() && file.new_failure().is_none());
    }

    #[test]
    fn without_a_run_no_file_is_left_behind_and_none_is_lost() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, before) in [("new.csv", None), ("old.csv", Some("old\n"))] {
            let path = directory.path().join(name);
            if let Some(text) = before {
                std::fs::write(&path, text).expect("the directory is ours");
            }
            let mut file = RowFile::create(&path, form(), None).expect("it can be created");
            assert!(path.exists(), "others see that the name is taken");
            file.flush();
            drop(file);
            assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before);

            let mut file = RowFile::create(&path, form(), None).expect("it can be created");
            file.finish();
            let text = std::fs::read_to_string(&path).expect("a run without rows has a log");
            assert_eq!(text, "n\n");
        }
    }

    #[test]
    fn a_split_goes_on_in_the_next_file_header_and_all() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("log.csv");
        let mut file = RowFile::create(&path, form(), Some(2)).expect("it can be created");
        (1..=5).for_each(|number| push(&mut file, number));
        file.finish();
        assert_eq!((file.rows_written(), file.rows_lost()), (5, 0));
        for (number, expected) in [(1, "n\n1\n2\n"), (2, "n\n3\n4\n"), (3, "n\n5\n")] {
            let text = std::fs::read_to_string(numbered(&path, number)).expect("it was written");
            assert_eq!(text, expected);
        }
        assert!(!path.exists() && !numbered(&path, 4).exists());
    }

    #[test]
    fn a_split_that_cannot_go_on_counts_what_is_lost() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("log.csv");
        let mut file = RowFile::create(&path, form(), Some(2)).expect("it can be created");
        std::fs::create_dir(numbered(&path, 2)).expect("the directory is ours");
        (1..=5).for_each(|number| push(&mut file, number));
        file.finish();
        assert_eq!((file.rows_written(), file.rows_lost()), (2, 3));
        assert!(file.failure().is_some());
    }
}
