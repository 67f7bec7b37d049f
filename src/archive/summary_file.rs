//! Files of summaries: a CSV row for each run. Several programs may add to one at the same time.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Document;
use super::summary_row::{COLUMNS, Row};
use crate::error::{Error, Report};

/// A file that rows are added to.
#[derive(Debug)]
pub struct SummaryFile {
    path: PathBuf,
    file: File,
}

impl SummaryFile {
    /// Opens the file at `path`, or makes an empty one, and looks at the header of what is there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, [`Error::Environment`] if its header has columns that
    /// are none of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path);
        let mut opened = SummaryFile {
            path: path.to_owned(),
            file: file.map_err(|source| Error::io("open", path, source))?,
        };
        opened.locked(|file| file.header().map(drop))?;
        Ok(opened)
    }

    /// Adds the row of a run. `result_file` is where its result lies, empty if it was not kept.
    ///
    /// # Errors
    /// As those of [`SummaryFile::open`].
    pub fn add(&mut self, document: &Document, result_file: &str) -> Result<(), Error> {
        let row = Row {
            document,
            result_file,
        };
        self.locked(|file| {
            let header = file.header()?;
            let mut text = Vec::new();
            if header.is_none() {
                text = header_line();
            } else if !file.ends_with_a_line()? {
                // Somebody was stopped in the middle of a row.
                text.push(b'\n');
            }
            let names = header.unwrap_or_else(column_names);
            text.extend(row_line(&row, &names));
            file.write(&text)
        })
    }

    /// Does something while no other program does the like.
    fn locked<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        // What cannot be locked, such as a pipe, has no other writers either.
        let is_locked = self.file.lock().is_ok();
        let done = act(self);
        if is_locked {
            let _ = self.file.unlock();
        }
        done
    }

    /// The names of the columns that are there; `None` in an empty file.
    fn header(&mut self) -> Result<Option<Vec<String>>, Error> {
        if !self.is_regular()? {
            return Ok(None);
        }
        self.seek(SeekFrom::Start(0))?;
        let mut reader = csv::ReaderBuilder::new().from_reader(&self.file);
        let refused = |text: String| {
            Error::Environment(
                Report::new(format!(
                    "\"{}\" is no file of summaries: {text}",
                    self.path.display()
                ))
                .hint("Give --summary-csv a file of its own."),
            )
        };
        let found = reader
            .headers()
            .map_err(|error| refused(error.to_string()))?;
        if found.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = found.iter().map(str::to_owned).collect();
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

    fn ends_with_a_line(&mut self) -> Result<bool, Error> {
        self.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        let read = (&self.file).read_exact(&mut last);
        read.map_err(|source| Error::io("read", &self.path, source))?;
        Ok(last == *b"\n")
    }

    fn is_regular(&self) -> Result<bool, Error> {
        let facts = self.file.metadata();
        let facts = facts.map_err(|source| Error::io("read", &self.path, source))?;
        Ok(facts.is_file())
    }

    fn seek(&mut self, to: SeekFrom) -> Result<(), Error> {
        let sought = self.file.seek(to);
        sought
            .map(drop)
            .map_err(|source| Error::io("read", &self.path, source))
    }

    /// All at once: a reader finds the row or does not.
    fn write(&mut self, text: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(text).and_then(|()| self.file.flush());
        written.map_err(|source| Error::io("write", &self.path, source))
    }
}

/// The rows of runs, below a header, as text.
pub fn summary_table<'d>(runs: impl Iterator<Item = (&'d Document, &'d str)>) -> Vec<u8> {
    let names = column_names();
    let mut text = header_line();
    for (document, result_file) in runs {
        text.extend(row_line(
            &Row {
                document,
                result_file,
            },
            &names,
        ));
    }
    text
}

fn column_names() -> Vec<String> {
    COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn header_line() -> Vec<u8> {
    line(column_names())
}

/// The cells of these columns.
fn row_line(row: &Row<'_>, names: &[String]) -> Vec<u8> {
    let cells = names.iter().map(|name| {
        let column = COLUMNS.iter().find(|(own, _)| own == name);
        column.map_or_else(String::new, |(_, cell)| cell(row).into_text())
    });
    line(cells)
}

fn line(cells: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
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
                        let mut file = SummaryFile::open(&path).unwrap();
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
        SummaryFile::open(&path)
            .unwrap()
            .add(&document("=a\n\"b\",c"), "")
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "clients,label\n3,cut\n4,\"'=a \"\"b\"\",c\"\n");
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.csv");
        std::fs::write(&path, "client_id,status\n0,ok\n").unwrap();
        let error = SummaryFile::open(&path).unwrap_err().to_string();
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
