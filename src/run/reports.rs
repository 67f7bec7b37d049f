//! What is made of result files of runs that are over.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::file_identity::check_outputs;
use super::{ExitStatus, Surroundings, print};
use crate::archive::{Document, WholeFile, summary_table};
use crate::error::Error;
use crate::page;
use crate::plan::ReportPlan;
use crate::printable::printable;
use crate::report;

/// Makes what the plan asks for.
///
/// # Errors
/// Those of [`Document::read`], [`Error::Io`] if a file cannot be written.
pub(super) fn report(
    plan: &ReportPlan,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    let outputs: Vec<&Path> = [&plan.csv, &plan.html]
        .into_iter()
        .filter_map(|path| path.as_deref())
        .collect();
    check_outputs(&outputs, plan.files.iter().map(PathBuf::as_path))?;
    let mut asked = Vec::new();
    if let Some(csv) = &plan.csv {
        asked.push((csv, table(plan)?));
    }
    if let Some(html) = &plan.html {
        asked.push((html, page(plan)?));
    }
    if asked.is_empty() {
        return Ok(print(&text(plan)?, around));
    }
    let mut status = ExitStatus::Success;
    for (path, text) in asked {
        if let failed @ ExitStatus::Failure = write(path, &text, around)? {
            status = failed;
        }
    }
    Ok(status)
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
    Ok(printable(&String::from_utf8_lossy(&text)))
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

/// Of a single run with its charts, of several as an overview.
fn page(plan: &ReportPlan) -> Result<String, Error> {
    let documents: Vec<Document> = plan
        .files
        .iter()
        .map(|path| Document::read(path))
        .collect::<Result<_, Error>>()?;
    Ok(match &documents[..] {
        [only] => page::page(only),
        _ => page::overview(documents),
    })
}

/// Writes to a file in one step, or to standard output for `-`.
pub(super) fn write(
    path: &Path,
    text: &str,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    if path == Path::new("-") {
        return Ok(print(text, around));
    }
    WholeFile::at(path)?.write_text(text)?;
    Ok(ExitStatus::Success)
}
