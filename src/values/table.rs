//! A file of CSV as a table in memory. Knows nothing of who wants its rows.

use std::fmt::Display;
use std::io::Read;

/// The rows of a file, one after the other in one buffer. There is at least one, and all have as many
/// cells as the header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    columns: usize,
    text: Vec<u8>,
    /// Where each cell ends in the text.
    ends: Vec<usize>,
}

impl Table {
    /// Reads a header and the rows below it.
    ///
    /// # Errors
    /// What is wrong with the file, to follow its name.
    pub(super) fn read(file: impl Read) -> Result<(csv::ByteRecord, Table), String> {
        // Behind the last line a quote opens one cell more, unless one is open there: then it closes
        // that. Else a forgotten quote would swallow the rest of the file unnoticed.
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(file.chain(&b"\n\""[..]));
        let header = reader.byte_headers().map_err(unreadable)?.clone();
        let mut table = Table {
            columns: header.len(),
            ..Table::default()
        };
        let (mut last, mut next) = (header.clone(), csv::ByteRecord::new());
        let mut is_header = true;
        while reader.read_byte_record(&mut next).map_err(unreadable)? {
            if !is_header {
                table.push(&last)?;
            }
            is_header = false;
            std::mem::swap(&mut last, &mut next);
        }
        if last.len() != 1 || !last[0].is_empty() {
            let line = line_of(&last);
            return Err(format!("has a quote in line {line} that is never closed"));
        }
        if table.ends.is_empty() {
            return Err("has no row below its header".to_owned());
        }
        Ok((header, table))
    }

    fn push(&mut self, record: &csv::ByteRecord) -> Result<(), String> {
        let line = line_of(record);
        if record.len() != self.columns {
            return Err(format!(
                "has {} values in line {line}, and {} columns in its header",
                record.len(),
                self.columns
            ));
        }
        if record.as_slice().contains(&0) {
            return Err(format!(
                "has a zero byte in line {line}, which no text of PostgreSQL can hold"
            ));
        }
        for cell in record {
            self.text.extend_from_slice(cell);
            self.ends.push(self.text.len());
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        (self.ends.len() / self.columns) as u64
    }

    /// The cells of a row, from 0.
    pub(super) fn row(&self, row: u64) -> impl Iterator<Item = &[u8]> {
        let first = row as usize * self.columns;
        (first..first + self.columns).map(|cell| {
            let start = cell.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..self.ends[cell]]
        })
    }
}

/// A file that cannot be read, as [`Table::read`] tells it.
pub(super) fn unreadable(error: impl Display) -> String {
    format!("cannot be read: {error}")
}

/// The line of the file in which a record begins, from 1.
fn line_of(record: &csv::ByteRecord) -> u64 {
    record.position().map_or(1, csv::Position::line)
}
