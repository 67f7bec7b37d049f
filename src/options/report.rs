//! `pgmark report`: result files in, what to tell of them out.

use std::ffi::OsString;
use std::path::PathBuf;

use super::complaint::{usage, usage_with_hint};
use crate::error::Error;
use crate::plan::{Plan, ReportPlan, Text};

/// The word that asks for it, if it comes first. A database of that name is reached with `-d`.
pub(super) const WORD: &str = "report";

const HELP: &str = "\
pgmark report prints what runs have printed when they were over, from their result files.

The form of the command:
  pgmark report RESULT.json...

A run writes a result file with --json FILE. Of several files, each summary has the name of its
file above it.
";

const HINT: &str = "Try \"pgmark report --help\" for more information.";

/// The plan that the words behind [`WORD`] ask for.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn parse(words: impl Iterator<Item = OsString>) -> Result<Plan, Error> {
    let mut files = Vec::new();
    for word in words {
        match word.to_string_lossy().as_ref() {
            "--help" | "-?" => return Ok(Plan::Show(Text::Stdout(HELP.to_owned()))),
            option if option.starts_with('-') && option.len() > 1 => {
                return Err(usage_with_hint(
                    format!("unrecognized option '{option}' of pgmark report"),
                    HINT,
                ));
            }
            _ => files.push(PathBuf::from(word)),
        }
    }
    if files.is_empty() {
        return Err(usage("pgmark report needs the result file of a run"));
    }
    Ok(Plan::Report(ReportPlan { files }))
}
