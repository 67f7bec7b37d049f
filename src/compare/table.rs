//! A comparison as CSV: a row for each figure.

use super::Comparison;
use crate::spreadsheet;

/// The rows, below a header. What has no value is 0, as in every file of numbers.
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = [
        "figure",
        "unit",
        "base_label",
        "new_label",
        "base_runs",
        "new_runs",
        "base",
        "new",
        "ratio",
        "ratio_low",
        "ratio_high",
        "verdict",
        "smallest_visible_pct",
    ];
    writer.write_record(header).expect("memory takes all bytes");
    for line in &comparison.lines {
        let estimate = line.estimate;
        let interval = estimate.and_then(|it| it.interval).unwrap_or((0.0, 0.0));
        let visible = estimate.and_then(|it| it.visible).unwrap_or(0.0);
        let six_decimals = |number: f64| format!("{number:.6}");
        let row = [
            line.figure.name.to_owned(),
            line.figure.unit.to_owned(),
            spreadsheet::cell(&comparison.base.name),
            spreadsheet::cell(&comparison.new.name),
            comparison.base.runs.to_string(),
            comparison.new.runs.to_string(),
            six_decimals(line.base),
            six_decimals(line.new),
            six_decimals(estimate.map_or(0.0, |it| it.ratio)),
            six_decimals(interval.0),
            six_decimals(interval.1),
            line.verdict.words().to_owned(),
            six_decimals(visible * 100.0),
        ];
        writer.write_record(row).expect("memory takes all bytes");
    }
    writer.into_inner().expect("memory takes all bytes")
}
