//! Whether the files that a run is to write can all be written: no two may be one, none may be one that
//! the run reads, and what is made of several files must be files.

use std::path::{Path, PathBuf};

use super::file_identity::{FileIdentity, refusal, same_file};
use crate::collector::is_further_file;
use crate::error::{Error, Report};
use crate::plan::{CsvStyle, LogFormat, LogPlan, RunPlan};
use crate::values;

/// Refuses files that would be written over each other, before any of them is opened.
///
/// # Errors
/// [`Error::Usage`] with the two names, or the one that cannot be several files.
pub(super) fn check(plan: &RunPlan) -> Result<(), Error> {
    let log = plan.log.as_ref();
    let several = log.filter(|log| has_several_files(log, plan.load.threads));
    let intervals = plan.intervals.as_ref().map(|it| &it.path);
    let tries = plan.tries.as_ref().map(|it| &it.path);
    let paths: Vec<&PathBuf> = log
        .map(|log| &log.path)
        .into_iter()
        .chain(intervals)
        .chain(tries)
        .chain(&plan.keep.hdr)
        .chain(&plan.keep.json)
        .chain(&plan.keep.html)
        .chain(&plan.keep.summary_csv)
        .collect();
    if paths.iter().any(|path| *path == Path::new("-")) {
        return Err(Error::Usage(
            Report::new("standard output (-) belongs to the summary")
                .hint("Name a file, or /dev/stderr."),
        ));
    }
    refuse_inputs(&paths, plan)?;
    for (place, path) in paths.iter().enumerate() {
        for other in &paths[..place] {
            let further = several.is_some_and(|log| is_further_file(&log.path, path));
            if further || FileIdentity::of(other).is_that_of(path) {
                return Err(same_file(other, path));
            }
        }
    }
    match several {
        Some(log) if FileIdentity::of(&log.path) == FileIdentity::Shared => Err(refusal(format!(
            "\"{}\" is no file, so it cannot be a log of several files",
            log.path.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A script or a file of values would be gone once it has been read.
fn refuse_inputs(outputs: &[&PathBuf], plan: &RunPlan) -> Result<(), Error> {
    let scripts = plan.scripts.scripts.iter();
    let scripts = scripts.map(|weighted| PathBuf::from(&weighted.script.name));
    let inputs = scripts.chain(values::files(&plan.scripts));
    for input in inputs.map(|path| FileIdentity::of(&path)) {
        if let Some(path) = outputs.iter().find(|path| input.is_that_of(path)) {
            return Err(refusal(format!(
                "\"{}\" is read by this run, which would replace it",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Whether rows go on in further files, or each thread has its own.
fn has_several_files(log: &LogPlan, threads: u32) -> bool {
    match log.format {
        LogFormat::Csv(CsvStyle { rows_each_file, .. }) => rows_each_file.is_some(),
        LogFormat::Pgbench(_) => threads > 1,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::options::tests::run_plan;

    #[test]
    fn what_a_run_reads_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        fs::write(at("keys.csv"), "id\n1\n").unwrap();
        fs::write(at("mine.sql"), "\\values keys.csv\nSELECT :id;").unwrap();
        for (output, refused) in [("mine.sql", true), ("keys.csv", true), ("log.csv", false)] {
            for option in [
                "--log-file",
                "--interval-csv",
                "--json",
                "--html",
                "--summary-csv",
                "--hdr",
            ] {
                let arguments = format!("-n -f {} {option} {}", at("mine.sql"), at(output));
                let result = check(&run_plan(&arguments));
                assert_eq!(result.is_err(), refused, "{arguments}");
            }
        }
    }

    #[test]
    fn files_that_are_one_and_devices_that_would_be_many_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        fs::write(at("old"), "").unwrap();
        std::os::unix::fs::symlink(at("old"), at("link")).unwrap();
        fs::hard_link(at("old"), at("hard")).unwrap();
        for (arguments, refused) in [
            (
                format!("--log-file {} --log-tries {}", at("a"), at("b")),
                false,
            ),
            (
                format!("--log-file {} --log-tries {}", at("a"), at("./a")),
                true,
            ),
            (
                format!("--log-file {} --log-tries {}", at("old"), at("link")),
                true,
            ),
            (
                format!("--interval-csv {} --log-tries {}", at("old"), at("hard")),
                true,
            ),
            (
                "--log-file /dev/null --log-tries /dev/null".to_owned(),
                false,
            ),
            (
                format!(
                    "--log-file {} --log-split-rows 5 --log-tries {}",
                    at("x.csv"),
                    at("x.17.csv")
                ),
                true,
            ),
            (
                format!("--log-file {} --log-tries {}", at("x.csv"), at("x.17.csv")),
                false,
            ),
            ("--log-file /dev/null --log-split-rows 5".to_owned(), true),
            (
                "--log-file /dev/null --log-format pgbench".to_owned(),
                false,
            ),
            (
                "-c 2 -j 2 --log-file /dev/null --log-format pgbench".to_owned(),
                true,
            ),
            (
                format!(
                    "-c 2 -j 2 --log-file {} --log-format pgbench --interval-csv {}",
                    at("p.log"),
                    at("p.log.1")
                ),
                true,
            ),
        ] {
            assert_eq!(
                check(&run_plan(&arguments)).is_err(),
                refused,
                "{arguments}"
            );
        }
    }
}
