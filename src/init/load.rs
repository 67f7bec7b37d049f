//! Rows of one table, or of a part of it, into the server over one connection. Whether the table
//! is empty, and what becomes of it after a failure, is the caller's business.

use std::io::Write;
use std::ops::Range;

use super::progress::ROWS_PER_LINE;
use super::rows::FilledTable;
use super::session::{Failure, Session};
use super::statements;
use super::way::{Means, Way};

/// Rows that are formatted at once: about 100 KiB, and it divides the rows between two progress
/// lines.
const ROWS_PER_CHUNK: u64 = 5_000;
const _: () = assert!(ROWS_PER_LINE.is_multiple_of(ROWS_PER_CHUNK));

/// Rows that are sent by one COPY. The driver tells of an error only when a COPY ends, so this
/// bounds what is sent in vain (about 200 MB) after the server ran out of disk.
const ROWS_PER_COPY: u64 = 10_000_000;

/// Rows of one INSERT: a statement of about 20 kB, which any server parses at once.
const ROWS_PER_INSERT: u64 = 1_000;

/// What is loaded.
pub struct Load<'a> {
    /// Whose rows.
    pub table: FilledTable,
    /// Where they go: the table, or a partition of it.
    pub target: &'a str,
    /// Their numbers, counted from 0.
    pub rows: Range<u64>,
    /// How; freezing must be possible if it says so.
    pub way: Way,
}

/// Loads the rows; `told` hears how many more are loaded.
pub fn load(
    session: &mut Session<'_>,
    load: &Load<'_>,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let Some(batch_rows) = load.way.batch_rows else {
        return load_range(session, load, load.rows.clone(), told);
    };
    for batch in slices(load.rows.clone(), batch_rows) {
        session.in_transaction(|session| load_range(session, load, batch, told))?;
    }
    Ok(())
}

/// Some of the rows, in the transaction that is under way.
fn load_range(
    session: &mut Session<'_>,
    load: &Load<'_>,
    rows: Range<u64>,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    match load.way.means {
        Means::Copy { freeze } => {
            let statement = statements::copy(load.target, freeze);
            slices(rows, ROWS_PER_COPY)
                .try_for_each(|rows| copy(session, &statement, load.table, rows, told))
        }
        Means::Insert => slices(rows, ROWS_PER_INSERT)
            .try_for_each(|rows| insert(session, load.table, load.target, rows, told)),
        Means::Series => {
            session.execute(&statements::insert_series(load.table, load.target, &rows))?;
            told(rows.end - rows.start);
            Ok(())
        }
    }
}

fn copy(
    session: &mut Session<'_>,
    statement: &str,
    table: FilledTable,
    rows: Range<u64>,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    session.stop.check()?;
    let failed = |error| Failure::of(statement, error);
    let mut writer = session.client.copy_in(statement).map_err(failed)?;
    let mut chunk = Vec::new();
    for part in slices(rows, ROWS_PER_CHUNK) {
        // Dropping the writer aborts the COPY.
        session.stop.check()?;
        chunk.clear();
        let count = part.end - part.start;
        for k in part {
            table.append_row(k, &mut chunk);
        }
        if writer.write_all(&chunk).is_err() {
            // Only that the stream is broken is known here; ending the COPY tells why.
            break;
        }
        told(count);
    }
    writer.finish().map_err(failed)?;
    Ok(())
}

fn insert(
    session: &mut Session<'_>,
    table: FilledTable,
    target: &str,
    rows: Range<u64>,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let count = rows.end - rows.start;
    let beginning = statements::insert_values(table, target);
    let mut statement = beginning.clone();
    for k in rows.clone() {
        if k > rows.start {
            statement.push(',');
        }
        table.append_values(k, &mut statement);
    }
    let shown = format!("{beginning}... (rows {} to {})", rows.start + 1, rows.end);
    session.execute_as(&statement, &shown)?;
    told(count);
    Ok(())
}

/// `rows` cut into ranges of at most `size`.
fn slices(rows: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut start = rows.start;
    std::iter::from_fn(move || {
        let slice = start..rows.end.min(start.saturating_add(size));
        start = slice.end;
        (!slice.is_empty()).then_some(slice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_rows_in_order() {
        for (rows, size, expected) in [
            (0..10, 4, &[(0, 4), (4, 8), (8, 10)][..]),
            (5..6, 4, &[(5, 6)]),
            (0..8, 8, &[(0, 8)]),
            (3..3, 8, &[]),
            (0..5_000_000_000, u64::MAX, &[(0, 5_000_000_000)]),
        ] {
            let cut = slices(rows.clone(), size).map(|slice| (slice.start, slice.end));
            assert_eq!(cut.collect::<Vec<_>>(), expected, "{rows:?}");
        }
    }
}
