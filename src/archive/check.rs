//! Whether what was read is a run that a report can be made of: its parts belong together, its books are
//! as they were written, and no sum of its numbers is too large for a report to compute.

use serde_json::Value;

use crate::result::{ClientResult, Facts, Measured};

/// Beyond every time in ns and every count that is told as a fraction.
const FRACTION_MAX: f64 = u64::MAX as f64;

/// The sum of all whole numbers but the seed and those of histograms, which are looked at where they
/// are read. If it fits into 64 bits, so does whatever a report adds up. What a run measures comes to
/// about seven times its length for each client: ten thousand of them can run for three days.
///
/// Says what is wrong.
pub(super) fn check_numbers(document: &Value) -> Result<(), String> {
    let beyond = || "its numbers are larger than those of any run".to_owned();
    sum(document)
        .and_then(|sum| u64::try_from(sum).ok())
        .map(drop)
        .ok_or_else(beyond)
}

/// `None` if a number is out of all bounds.
fn sum(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), _, _) => Some(u128::from(whole)),
            (None, Some(negative), _) => Some(u128::from(negative.unsigned_abs())),
            (None, None, Some(fraction)) => (fraction.abs() < FRACTION_MAX).then_some(0),
            (None, None, None) => None,
        },
        Value::Array(parts) => parts
            .iter()
            .try_fold(0, |before, part| Some(before + sum(part)?)),
        Value::Object(parts) if parts.contains_key("hdr_v2_deflate") => Some(0),
        Value::Object(parts) => parts
            .iter()
            .filter(|(name, _)| *name != "seed")
            .try_fold(0, |before, (_, part)| Some(before + sum(part)?)),
        Value::Null | Value::Bool(_) | Value::String(_) => Some(0),
    }
}

/// Says what is wrong.
pub(super) fn check(facts: &Facts, measured: &Measured) -> Result<(), String> {
    let scripts = facts.scripts.len();
    let wrong = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what} do not belong together, or cannot be")),
    };
    wrong(scripts > 0 && measured.scripts.len() == scripts, "scripts")?;
    wrong(
        measured.clients.len() == facts.clients as usize && facts.clients > 0,
        "clients",
    )?;
    let has_all = |client: &ClientResult| client.processed_by_script.len() == scripts;
    wrong(measured.clients.iter().all(has_all), "figures of clients")?;
    let commands = facts.scripts.iter().map(|script| script.commands.len());
    wrong(
        measured.commands.is_empty() || measured.commands.iter().map(Vec::len).eq(commands),
        "commands",
    )?;
    wrong(measured.series.is_possible(), "points of the series")?;
    let percentiles = &facts.summary.percentiles;
    wrong(
        percentiles
            .iter()
            .all(|percent| *percent > 0.0 && *percent <= 100.0),
        "percentiles",
    )?;
    let rate = facts.schedule.map_or(1.0, |schedule| schedule.rate);
    wrong(rate.is_finite() && rate > 0.0, "figures of the schedule")
}
