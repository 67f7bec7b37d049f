//! Result files of runs that are compared: read, compared, shown.

use std::path::{Path, PathBuf};

use super::file_identity::check_outputs;
use super::reports::write;
use super::{ExitStatus, Surroundings, print};
use crate::archive::Document;
use crate::compare::{self, Comparison, Line, Side};
use crate::error::{Error, Report};
use crate::plan::{ComparePlan, Compared, Grouping};

/// Compares what the plan names, and shows it as the plan says.
///
/// # Errors
/// Those of [`Document::read`] and [`Comparison::of`]; [`Error::Environment`] where there are not two
/// sides, [`Error::Io`] if a file cannot be written.
pub(super) fn compare(
    plan: &ComparePlan,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    check_outputs(&outputs(plan), inputs(&plan.runs))?;
    let (base, new) = sides(&plan.runs)?;
    let comparison = Comparison::of(&base, &new, plan.allow_different)?;
    let shown = show(plan, &comparison, around)?;
    match plan.fail_if_worse {
        None => Ok(shown),
        Some(_) if !comparison.has_repeats() => Err(Error::Environment(
            Report::new("--fail-if-worse cannot tell from a single run a side")
                .hint("Repeat both sides, and give all runs: --base A... --new B..."),
        )),
        Some(percent) => Ok(judge(&comparison, percent, shown, around)),
    }
}

fn outputs(plan: &ComparePlan) -> Vec<&Path> {
    let paths = [&plan.csv, &plan.json, &plan.html].into_iter();
    paths.filter_map(|path| path.as_deref()).collect()
}

fn inputs(runs: &Compared) -> impl Iterator<Item = &Path> {
    let (some, more): (&[PathBuf], &[PathBuf]) = match runs {
        Compared::Sides { base, new } => (base, new),
        Compared::Grouped { files, .. } => (files, &[]),
    };
    some.iter().chain(more).map(PathBuf::as_path)
}

fn show(
    plan: &ComparePlan,
    comparison: &Comparison,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    let mut status = ExitStatus::Success;
    let csv = || String::from_utf8_lossy(&compare::csv(comparison)).into_owned();
    let json =
        || serde_json::to_string_pretty(comparison).expect("it has only names for keys") + "\n";
    let files: [(&Option<PathBuf>, &dyn Fn() -> String); 3] = [
        (&plan.csv, &csv),
        (&plan.json, &json),
        (&plan.html, &|| compare::html(comparison)),
    ];
    let mut asked = files
        .iter()
        .filter_map(|(path, text)| Some((path.as_deref()?, text)))
        .peekable();
    if asked.peek().is_none() {
        return Ok(print(&compare::text(comparison), around));
    }
    for (path, text) in asked {
        if let failed @ ExitStatus::Failure = write(path, &text(), around)? {
            status = failed;
        }
    }
    Ok(status)
}

/// Says what is worse than allowed.
fn judge(
    comparison: &Comparison,
    percent: f64,
    status: ExitStatus,
    around: &Surroundings<'_>,
) -> ExitStatus {
    for line in comparison.unjudged() {
        around.console.warning(&format!(
            "--fail-if-worse does not judge {}: too few transactions of a run were beyond it",
            line.figure.name
        ));
    }
    let worse: Vec<&Line> = comparison.worse_by(percent).collect();
    for line in &worse {
        around.console.error(&format!(
            "failed by --fail-if-worse {percent}%: {} is worse by {:.1}%",
            line.figure.name,
            line.worse_pct()
        ));
    }
    match (status, worse.is_empty()) {
        (ExitStatus::Success, false) => ExitStatus::ConditionMet,
        (status, _) => status,
    }
}

fn sides(runs: &Compared) -> Result<(Side, Side), Error> {
    match runs {
        Compared::Sides { base, new } => Ok((side(base)?, side(new)?)),
        Compared::Grouped { by, files } => grouped(by, files),
    }
}

/// Named by the label that all have, or by the file.
fn side(files: &[PathBuf]) -> Result<Side, Error> {
    let runs = read(files)?;
    let label = runs
        .first()
        .map_or("", |run| run.run.label.as_str())
        .to_owned();
    let is_label = !label.is_empty() && runs.iter().all(|run| run.run.label == label);
    let first = files
        .first()
        .map_or_else(String::new, |path| path.display().to_string());
    let name = match (is_label, files.len()) {
        (true, _) => label,
        (false, 0 | 1) => first,
        (false, _) => format!("{first} and others"),
    };
    Ok(Side { name, runs })
}

fn read(files: &[PathBuf]) -> Result<Vec<Document>, Error> {
    files
        .iter()
        .map(|path: &PathBuf| Document::read(Path::new(path)))
        .collect()
}

fn grouped(by: &Grouping, files: &[PathBuf]) -> Result<(Side, Side), Error> {
    let mut sides: Vec<Side> = Vec::new();
    for run in read(files)? {
        let name = group(by, &run);
        match sides.iter_mut().find(|side| side.name == name) {
            Some(side) => side.runs.push(run),
            None => sides.push(Side {
                name,
                runs: vec![run],
            }),
        }
    }
    match <[Side; 2]>::try_from(sides) {
        Ok([base, new]) => Ok((base, new)),
        Err(sides) => {
            let names: Vec<String> = sides
                .iter()
                .map(|side| format!("{:?}", side.name))
                .collect();
            Err(Error::Environment(
                Report::new(format!(
                    "two kinds of run can be compared, and these are {}: {}",
                    names.len(),
                    names.join(", ")
                ))
                .hint("Give only the files of two of them."),
            ))
        }
    }
}

/// Empty for a run that has no such label or tag.
fn group(by: &Grouping, run: &Document) -> String {
    match by {
        Grouping::Label => run.run.label.clone(),
        Grouping::Tag(name) => {
            let tag = run.run.tags.iter().find(|(own, _)| own == name);
            tag.map_or_else(String::new, |(_, value)| value.clone())
        }
    }
}
