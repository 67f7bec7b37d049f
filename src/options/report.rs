//! `pgmark report`: result files in, what to tell of them out.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use super::subcommand::{self, Typed, wrong};
use crate::error::Error;
use crate::plan::{Plan, ReportPlan};

/// The word that asks for it, if it comes first. A database of that name is reached with `-d`.
pub(super) const WORD: &str = "report";

const NAME: &str = "pgmark report";

/// Print what runs have printed when they were over, from their result files, or make something else of these.
#[derive(Debug, Parser)]
#[command(
    name = "pgmark report",
    override_usage = "pgmark report [OPTIONS] RESULT.json...",
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "A run writes a result file with --json FILE. Of several files, each summary has the name of its file above it. For FILE, - is standard output."
)]
struct Arguments {
    /// Result files.
    #[arg(value_name = "RESULT.json")]
    files: Vec<PathBuf>,
    /// Write a CSV row for each result, below a header, to this file, as runs append them with --summary-csv; no such file by default.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page for a browser to this file: of a single result with its charts, of several with throughput by clients and scale and a comparison of labels; no such file by default.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show this help, then exit.
    #[arg(short = '?', long)]
    help: bool,
}

/// The plan that the words behind [`WORD`] ask for.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn parse(words: impl Iterator<Item = OsString>) -> Result<Plan, Error> {
    let arguments: Arguments = match subcommand::take(NAME, words)? {
        Typed::Arguments(arguments) => arguments,
        Typed::Help(help) => return Ok(help),
    };
    if arguments.files.is_empty() {
        return Err(wrong(NAME, "pgmark report needs the result file of a run"));
    }
    Ok(Plan::Report(ReportPlan {
        files: arguments.files,
        csv: arguments.csv,
        html: arguments.html,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Text;

    fn parsed(words: &str) -> Result<Plan, Error> {
        parse(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn files_and_what_to_make_of_them_stand_in_any_order() {
        for words in [
            "a.json b.json --csv x.csv",
            "--csv=x.csv a.json b.json",
            "a.json --csv x.csv -- b.json",
        ] {
            match parsed(words) {
                Ok(Plan::Report(plan)) => {
                    assert_eq!(plan.files, ["a.json", "b.json"].map(PathBuf::from));
                    assert_eq!(plan.csv, Some(PathBuf::from("x.csv")));
                }
                other => panic!("{words}: {other:?}"),
            }
        }
        assert!(matches!(parsed("-?"), Ok(Plan::Show(Text::Stdout(_)))));
    }

    #[test]
    fn what_is_wrong_points_to_the_help_of_the_command() {
        for (words, essence) in [
            ("", "needs the result file"),
            ("--csv", "option --csv requires an argument"),
            ("a.json --cvs x", "unrecognized option '--cvs'"),
            ("-x a.json", "invalid option -- 'x'"),
        ] {
            let error = parsed(words).expect_err(words);
            assert!(error.to_string().contains(essence), "{error}");
            let hint = error.report().and_then(|report| report.hint.clone());
            let hint = hint.expect("it says what to do");
            assert!(
                hint.contains("pgmark report --help") || hint.contains("--csv"),
                "{hint}"
            );
        }
    }
}
