//! What is made of result files of runs that are over.

use std::io::Write;
use std::path::Path;

use super::{ExitStatus, Surroundings, print};
use crate::archive::{Document, summary_table};
use crate::error::Error;
use crate::plan::ReportPlan;
use crate::report;

/// Makes what the plan asks for.
///
/// # Errors
/// Those of [`Document::read`], [`Error::Io`] if a file cannot be written.
pub(super) fn report(
    plan: &ReportPlan,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    match &plan.csv {
        Some(csv) => write(csv, &table(plan)?, around),
        None => Ok(print(&text(plan)?, around)),
    }
}

/// The summaries, as they were printed.
fn text(plan: &ReportPlan) -> Result<String, Error> {
    let mut text = Vec::new();
    for (index, path) in plan.files.iter().enumerate() {
        if plan.files.len() > 1 {
            let gap = if index == 0 { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{}:", path.display());
        }
        let document = Document::read(path)?;
        report::text::write_all(&document.into_result(), &mut text)
            .expect("memory takes all bytes");
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Their rows.
fn table(plan: &ReportPlan) -> Result<String, Error> {
    let mut runs = Vec::new();
    for path in &plan.files {
        runs.push((Document::read(path)?, path.display().to_string()));
    }
    let runs = runs
        .iter()
        .map(|(document, path)| (document, path.as_str()));
    Ok(String::from_utf8_lossy(&summary_table(runs)).into_owned())
}

/// Writes to a file, or to standard output for `-`.
pub(super) fn write(
    path: &Path,
    text: &str,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    if path == Path::new("-") {
        return Ok(print(text, around));
    }
    std::fs::write(path, text).map_err(|source| Error::io("write", path, source))?;
    Ok(ExitStatus::Success)
}
