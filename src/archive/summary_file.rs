//! Files of summaries: a CSV row for each run. Several programs may add to one at the same time.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use csv::Terminator;

use super::Document;
use super::summary_row::{COLUMNS, Row};
use super::whole_file::{is_device, open_device, resolved, writable};
use crate::error::{Error, Report};

/// A file that rows are added to.
#[derive(Debug)]
pub struct SummaryFile {
    /// As the user named it.
    path: PathBuf,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A file, which is made when it gets its first row.
    File,
    /// A device or a pipe, which has no rows yet.
    Device(File),
}

impl SummaryFile {
    /// Looks at the header of what is there, and whether a row can be added. A device or a pipe is
    /// opened, which waits for the reader of a pipe.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, [`Error::Environment`] if its header has columns that
    /// are none of ours.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let cannot_open = |source| Error::io("open", path, source);
        let destination = match is_device(path) {
            true => Destination::Device(open_device(path).map_err(cannot_open)?),
            false => Destination::File,
        };
        let file = SummaryFile {
            path: path.to_owned(),
            destination,
        };
        if matches!(file.destination, Destination::File) {
            let is_there = resolved(path).map_err(cannot_open)?.exists();
            match is_there {
                true => file.look()?,
                false => writable(path).map(drop).map_err(cannot_open)?,
            }
        }
        Ok(file)
    }

    /// Whether writing may wait for somebody who reads.
    pub fn may_wait(&self) -> bool {
        matches!(self.destination, Destination::Device(_))
    }

    /// Adds the row of a run. `result_file` is where its result lies, empty if it was not kept.
    ///
    /// # Errors
    /// As those of [`SummaryFile::at`].
    pub fn add(&self, document: &Document, result_file: &str) -> Result<(), Error> {
        let row = Row {
            document,
            result_file,
        };
        match &self.destination {
            Destination::Device(file) => {
                let written = (&mut &*file).write_all(&summary_rows(&[], None, &row));
                written.map_err(|source| Error::io("write", &self.path, source))
            }
            Destination::File => self.add_to_file(&row),
        }
    }

    fn look(&self) -> Result<(), Error> {
        let file = self.open()?;
        let found = self.read(&file)?;
        self.header(&found).map(drop)
    }

    /// All at once, and while no other program does the like: a reader finds the row or does not. Of
    /// a row that does not fit onto the disk nothing stays.
    fn add_to_file(&self, row: &Row<'_>) -> Result<(), Error> {
        let mut file = self.open()?;
        let failed = |source| Error::io("write", &self.path, source);
        file.lock().map_err(failed)?;
        let found = self.read(&file)?;
        let header = self.header(&found)?;
        let added = summary_rows(&found, header, row);
        file.write_all(&added).map_err(|source| {
            // What cannot be taken back either is left to whoever adds the next row.
            let _ = file.set_len(found.len() as u64);
            failed(source)
        })
    }

    fn open(&self) -> Result<File, Error> {
        let mut options = File::options();
        let file = options.read(true).append(true).create(true);
        file.open(&self.path)
            .map_err(|source| Error::io("open", &self.path, source))
    }

    fn read(&self, mut file: &File) -> Result<Vec<u8>, Error> {
        let mut found = Vec::new();
        file.read_to_end(&mut found)
            .map_err(|source| Error::io("read", &self.path, source))?;
        Ok(found)
    }

    /// The names of the columns that are there; `None` in an empty file.
    fn header(&self, found: &[u8]) -> Result<Option<Vec<String>>, Error> {
        let refused = |text: String| {
            Error::Environment(
                Report::new(format!(
                    "\"{}\" is no file of summaries: {text}",
                    self.path.display()
                ))
                .hint("Give --summary-csv a file of its own."),
            )
        };
        let mut reader = csv::Reader::from_reader(found);
        let columns = reader
            .headers()
            .map_err(|error| refused(error.to_string()))?;
        if columns.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = columns.iter().map(str::to_owned).collect();
        match names
            .iter()
            .find(|name| COLUMNS.iter().all(|(own, _)| own != name))
        {
            None => Ok(Some(names)),
            Some(foreign) => Err(refused(format!(
                "its column {foreign:?} is none of a summary"
            ))),
        }
    }
}

/// What is to be added to what was found: a header if there is none, the end of a row in whose middle
/// somebody was stopped, and the row.
fn summary_rows(found: &[u8], header: Option<Vec<String>>, row: &Row<'_>) -> Vec<u8> {
    let terminator = match found.windows(2).any(|pair| pair == b"\r\n") {
        true => Terminator::CRLF,
        false => Terminator::Any(b'\n'),
    };
    let mut added = Vec::new();
    if header.is_none() {
        added.extend(line(column_names(), terminator));
    } else if found.iter().filter(|&&byte| byte == b'"').count() % 2 == 1 {
        added.extend(b"\"\n");
    } else if !found.ends_with(b"\n") {
        added.push(b'\n');
    }
    added.extend(row_line(
        row,
        &header.unwrap_or_else(column_names),
        terminator,
    ));
    added
}

/// The rows of runs, below a header, as text.
pub fn summary_table<'d>(runs: impl Iterator<Item = (&'d Document, &'d str)>) -> Vec<u8> {
    let names = column_names();
    let terminator = Terminator::Any(b'\n');
    let mut text = line(column_names(), terminator);
    for (document, result_file) in runs {
        text.extend(row_line(
            &Row {
                document,
                result_file,
            },
            &names,
            terminator,
        ));
    }
    text
}

fn column_names() -> Vec<String> {
    COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The cells of these columns.
fn row_line(row: &Row<'_>, names: &[String], terminator: Terminator) -> Vec<u8> {
    let cells = names.iter().map(|name| {
        let column = COLUMNS.iter().find(|(own, _)| own == name);
        column.map_or_else(String::new, |(_, cell)| cell(row).into_text())
    });
    line(cells, terminator)
}

fn line(cells: impl IntoIterator<Item = String>, terminator: Terminator) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(terminator)
        .from_writer(Vec::new());
    writer.write_record(cells).expect("memory takes all bytes");
    writer.into_inner().expect("memory takes all bytes")
}

#[cfg(test)]
mod tests {
    use super::super::Identity;
    use super::*;
    use crate::plan::KeepPlan;
    use crate::report::testing;

    fn document(label: &str) -> Document {
        let keep = KeepPlan {
            label: Some(label.to_owned()),
            ..KeepPlan::default()
        };
        Document::new(testing::timed(), Identity::new(&keep, 0), 0)
    }

    fn rows(path: &Path) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_path(path)
            .unwrap();
        let rows = reader
            .records()
            .map(|row| row.expect("rows have the cells of the header"));
        rows.map(|row| row.iter().map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn rows_are_added_below_one_header_by_writers_at_the_same_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.csv");
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let path = path.clone();
                std::thread::spawn(move || {
                    for run in 0..10 {
                        let file = SummaryFile::at(&path).unwrap();
                        file.add(&document(&format!("{writer}.{run}")), "").unwrap();
                    }
                })
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        let rows = rows(&path);
        assert_eq!(rows[0], column_names());
        let labels: std::collections::BTreeSet<&String> =
            rows[1..].iter().map(|row| &row[2]).collect();
        assert_eq!((rows.len(), labels.len()), (81, 80));
    }

    #[test]
    fn a_file_with_other_columns_decides_which_a_row_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.csv");
        std::fs::write(&path, "clients,label\n3,cut").unwrap();
        SummaryFile::at(&path)
            .unwrap()
            .add(&document("=a\n\"b\",c"), "")
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "clients,label\n3,cut\n4,\"'=a \"\"b\"\",c\"\n");
    }

    #[test]
    fn rows_end_as_those_before_and_an_open_quote_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.csv");
        for (before, after) in [
            ("clients,label\r\n3,a\r\n", "4,b\r\n"),
            ("clients,label\n3,\"cut", "\"\n4,b\n"),
            ("\u{feff}clients,label\n", "4,b\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            SummaryFile::at(&path)
                .unwrap()
                .add(&document("b"), "")
                .unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("{before}{after}"));
        }
    }

    #[test]
    fn a_run_that_never_was_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.csv");
        drop(SummaryFile::at(&path).unwrap());
        assert!(!path.exists());
        assert!(SummaryFile::at(&directory.path().join("no/summary.csv")).is_err());
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.csv");
        std::fs::write(&path, "client_id,status\n0,ok\n").unwrap();
        let error = SummaryFile::at(&path).unwrap_err().to_string();
        assert!(error.contains("client_id"), "{error}");
    }

    #[test]
    fn no_number_of_a_row_is_empty() {
        for (kind, result) in testing::of_every_kind() {
            let document = Document::new(result, Identity::new(&KeepPlan::default(), 0), 0);
            let row = Row {
                document: &document,
                result_file: "",
            };
            for (name, cell) in COLUMNS {
                let cell = cell(&row);
                let is_text = matches!(cell, super::super::summary_row::Cell::Text(_));
                let text = cell.into_text();
                assert!(
                    is_text || text.parse::<f64>().is_ok_and(f64::is_finite),
                    "{kind} {name} {text}"
                );
            }
        }
    }
}
