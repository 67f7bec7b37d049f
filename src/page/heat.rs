//! The heat map: how many transactions took how long, over time.

use serde::Serialize;

use crate::result::Course;

/// Columns at most: more would be narrower than what a screen shows.
const MOST_COLUMNS: usize = 300;
/// Rows for each factor of ten.
const ROWS_PER_DECADE: f64 = 8.0;

/// Numbers of transactions by time and latency.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Heat {
    /// Where each column begins, s.
    pub(super) begins_s: Vec<f64>,
    /// Where the last one ends, s.
    pub(super) ends_s: f64,
    /// Where the lowest row begins, ms; each next one is a fixed factor higher.
    pub(super) lowest_ms: f64,
    /// That factor.
    pub(super) factor: f64,
    /// Rows from the lowest one, by column.
    pub(super) columns: Vec<Vec<u64>>,
}

impl Heat {
    /// `None` if nothing was processed.
    pub(super) fn of(course: &Course) -> Option<Heat> {
        let slices: Vec<_> = course.with_beginnings().collect();
        let group = slices.len().div_ceil(MOST_COLUMNS).max(1);
        let mut begins_s = Vec::new();
        let mut columns: Vec<Vec<(i32, u64)>> = Vec::new();
        for some in slices.chunks(group) {
            begins_s.push(some[0].0.as_secs_f64());
            let counts = some
                .iter()
                .flat_map(|(_, slice)| slice.latency.histogram.counts());
            columns.push(counts.map(|(nanos, count)| (row(nanos), count)).collect());
        }
        let rows = || columns.iter().flatten().map(|(row, _)| *row);
        let (lowest, highest) = (rows().min()?, rows().max()?);
        let (last_begins, last) = slices.last()?;
        Some(Heat {
            begins_s,
            ends_s: last_begins.as_secs_f64() + last.length_ns as f64 / 1e9,
            lowest_ms: 10_f64.powf(f64::from(lowest) / ROWS_PER_DECADE) / 1e6,
            factor: 10_f64.powf(1.0 / ROWS_PER_DECADE),
            columns: columns
                .iter()
                .map(|column| filled(column, lowest, highest))
                .collect(),
        })
    }
}

/// Which row so many ns are in.
fn row(nanos: u64) -> i32 {
    ((nanos.max(1) as f64).log10() * ROWS_PER_DECADE).floor() as i32
}

fn filled(column: &[(i32, u64)], lowest: i32, highest: i32) -> Vec<u64> {
    let mut rows = vec![0; (highest - lowest + 1) as usize];
    for (row, count) in column {
        rows[(row - lowest) as usize] += count;
    }
    rows
}
