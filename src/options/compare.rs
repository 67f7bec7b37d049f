//! `pgmark compare`: result files of two kinds of run in, what to tell of their difference out.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

use super::subcommand::{self, Typed};
use crate::error::Error;
use crate::plan::{ComparePlan, Compared, Grouping, Plan};

/// The word that asks for it, if it comes first. A database of that name is reached with `-d`.
pub(super) const WORD: &str = "compare";

const NAME: &str = "pgmark compare";

/// Tell whether runs of two kinds differ in throughput and latency, by how much, and how sure that is, from their result files.
#[derive(Debug, Parser)]
#[command(
    name = "pgmark compare",
    override_usage = "pgmark compare [OPTIONS] BASE.json NEW.json\n       pgmark compare [OPTIONS] --base RESULT.json... --new RESULT.json...\n       pgmark compare [OPTIONS] --by label RESULT.json...",
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "A run writes a result file with --json FILE. Only repeats can show a difference: at least two runs on each side, best five that took turns. For FILE, - is standard output. The exit status is 3 if --fail-if-worse finds something."
)]
struct Arguments {
    /// Two result files, or with --by any number.
    #[arg(value_name = "RESULT.json")]
    files: Vec<PathBuf>,
    /// Result files of the base; none by default.
    #[arg(long, value_name = "RESULT.json", num_args = 1..)]
    base: Vec<PathBuf>,
    /// Result files of what is compared with the base; none by default.
    #[arg(long, value_name = "RESULT.json", num_args = 1..)]
    new: Vec<PathBuf>,
    /// Tell the sides apart by the label of each run (label), or by a tag (tag:NAME); the side of the first file is the base; not by default.
    #[arg(long, value_name = "WHAT", value_parser = grouping)]
    by: Option<Grouping>,
    /// Compare runs that did not do the same work, which is refused by default.
    #[arg(long)]
    allow_different: bool,
    /// End with status 3 if a figure is shown to be worse, and is so by this many percent or more; no such end by default.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_if_worse: Option<f64>,
    /// Write a CSV row for each figure to this file in place of the text; no such file by default.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the comparison to this file as JSON in place of the text; no such file by default.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the comparison to this file as a page for a browser in place of the text; no such file by default.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show this help, then exit.
    #[arg(short = '?', long)]
    help: bool,
}

fn grouping(text: &str) -> Result<Grouping, String> {
    match (text, text.strip_prefix("tag:")) {
        ("label", _) => Ok(Grouping::Label),
        (_, Some(name)) if !name.is_empty() => Ok(Grouping::Tag(name.to_owned())),
        _ => Err("it is neither label nor tag:NAME".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        Ok(_) | Err(_) => Err("it is no share".to_owned()),
    }
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
    Ok(Plan::Compare(ComparePlan {
        runs: compared(arguments.files, arguments.base, arguments.new, arguments.by)?,
        allow_different: arguments.allow_different,
        fail_if_worse: arguments.fail_if_worse,
        csv: arguments.csv,
        json: arguments.json,
        html: arguments.html,
    }))
}

fn compared(
    files: Vec<PathBuf>,
    base: Vec<PathBuf>,
    new: Vec<PathBuf>,
    by: Option<Grouping>,
) -> Result<Compared, Error> {
    match (by, base.is_empty() && new.is_empty()) {
        (Some(by), true) if !files.is_empty() => Ok(Compared::Grouped { by, files }),
        (Some(_), true) => Err(wrong("--by needs result files")),
        (Some(_), false) => Err(wrong(
            "--by finds the sides by itself: without --base and --new",
        )),
        (None, false) if base.is_empty() => Err(wrong("--new needs a --base")),
        (None, false) if new.is_empty() => Err(wrong("--base needs a --new")),
        (None, false) if !files.is_empty() => Err(wrong(format!(
            "\"{}\" belongs neither to --base nor to --new",
            files[0].display()
        ))),
        (None, false) => Ok(Compared::Sides { base, new }),
        (None, true) => match <[PathBuf; 2]>::try_from(files) {
            Ok([base, new]) => Ok(Compared::Sides {
                base: vec![base],
                new: vec![new],
            }),
            Err(files) => Err(wrong(format!(
                "pgmark compare needs two result files, not {}; more go behind --base and --new",
                files.len()
            ))),
        },
    }
}

fn wrong(message: impl Into<String>) -> Error {
    subcommand::wrong(NAME, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Text;

    fn parsed(words: &str) -> Result<Plan, Error> {
        parse(words.split_whitespace().map(OsString::from))
    }

    fn plan(words: &str) -> ComparePlan {
        match parsed(words) {
            Ok(Plan::Compare(plan)) => plan,
            other => panic!("{words}: {other:?}"),
        }
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn sides_are_two_files_or_named_or_found_by_label() {
        for (words, base, new) in [
            ("a b", &["a"][..], &["b"][..]),
            ("--base a b --new c d", &["a", "b"], &["c", "d"]),
            (
                "--new c --allow-different --base a --base b",
                &["a", "b"],
                &["c"],
            ),
        ] {
            let (base, new) = (paths(base), paths(new));
            assert_eq!(plan(words).runs, Compared::Sides { base, new }, "{words}");
        }
        for (words, by) in [
            ("--by label a b c", Grouping::Label),
            ("a b c --by tag:branch", Grouping::Tag("branch".to_owned())),
        ] {
            let files = paths(&["a", "b", "c"]);
            assert_eq!(plan(words).runs, Compared::Grouped { by, files }, "{words}");
        }
        assert!(plan("a b --allow-different").allow_different);
        assert!(!plan("a b").allow_different);
        for (words, percent) in [("--fail-if-worse 3%", 3.0), ("--fail-if-worse=2.5", 2.5)] {
            assert_eq!(plan(&format!("a b {words}")).fail_if_worse, Some(percent));
        }
        assert_eq!(plan("a b --html -").html, Some(PathBuf::from("-")));
        assert!(matches!(parsed("--help"), Ok(Plan::Show(Text::Stdout(_)))));
    }

    #[test]
    fn what_is_no_comparison_is_said() {
        for (words, essence) in [
            ("", "needs two result files, not 0"),
            ("a", "needs two result files, not 1"),
            ("a b c", "needs two result files, not 3"),
            ("--base a", "--base needs a --new"),
            ("--new a", "--new needs a --base"),
            ("x --base a --new b", "\"x\" belongs neither"),
            ("--by label", "--by needs result files"),
            ("--by label --base a --new b", "finds the sides by itself"),
            (
                "--by colour a b",
                "invalid value \"colour\" for option --by",
            ),
            ("--by tag: a b", "invalid value"),
            ("a b --fail-if-worse=-1", "invalid value \"-1\""),
            ("a b --fail-if-worse NaN", "invalid value \"NaN\""),
            ("a b --wat", "unrecognized option '--wat'"),
        ] {
            let error = parsed(words).expect_err(words).to_string();
            assert!(error.contains(essence), "{words}: {error}");
        }
    }
}
