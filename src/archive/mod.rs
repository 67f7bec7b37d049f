//! Result files: a finished run as one JSON document, written whole or not at all, and read back.
//!
//! What a program of somebody else wants stands in `figures`, in units that the names tell. The rest
//! is what the run consists of, from which every report can be made again.

mod check;
mod figures;
mod hostile;
mod summary_file;
mod summary_row;
mod whole_file;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Report};
use crate::plan::KeepPlan;
use crate::report;
use crate::result::{Facts, Measured, Place, RunResult};

use figures::Figures;
pub use hostile::drive_hostile;
pub use summary_file::{SummaryFile, summary_table};
pub use whole_file::{WholeFile, resolved};

/// What a result file calls itself.
const SCHEMA: &str = "pgmark-result";

/// Raised when a field is taken away or means something else; new fields come without it.
const SCHEMA_VERSION: u32 = 1;

/// A run as it stands in a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    schema: String,
    schema_version: u32,
    /// Which run it is.
    pub run: Identity,
    /// The exit status of the program that made it.
    pub exit_code: u8,
    figures: Figures,
    /// What was done, and to what.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// Where.
    pub place: Option<Place>,
    /// Where the books do not balance, in words; empty if they do.
    pub violations: Vec<String>,
    /// What was warned of.
    pub warnings: Vec<String>,
}

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Like that of no other run: when it began, and the number of its process.
    #[serde(default)]
    pub id: String,
    /// Arguments of the program, those with a password masked.
    pub command_line: Vec<String>,
    /// `--label`; empty if none was given.
    pub label: String,
    /// `--tag`, in the order in which they were given.
    pub tags: Vec<(String, String)>,
    /// When the measured window began, or the run ended before it did: UTC, `2026-11-30T14:25:16.123456`.
    pub started_utc: String,
}

impl Identity {
    /// Of a run that `keep` says something of and that began at `started_unix_us` microseconds
    /// since 1970.
    pub fn new(keep: &KeepPlan, started_unix_us: u64) -> Self {
        let micros = i64::try_from(started_unix_us).unwrap_or_default();
        let moment = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
        let started = moment.to_zoned_datetime(TimeZone::UTC);
        Identity {
            id: format!(
                "{}-{}",
                started.strftime("%Y%m%dT%H%M%S%6f"),
                std::process::id()
            ),
            command_line: keep.command_line.clone(),
            label: keep.label.clone().unwrap_or_default(),
            tags: keep.tags.clone(),
            started_utc: started.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        }
    }
}

impl Document {
    /// The document of a run that ended with this status.
    pub fn new(result: RunResult, run: Identity, exit_code: u8) -> Self {
        Document {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            run,
            exit_code,
            figures: Figures::of(&result),
            violations: result.check_books(),
            warnings: report::warnings(&result),
            facts: result.facts,
            measured: result.measured,
            place: result.place,
        }
    }

    /// Reads the document at `path` and checks that a report can be made of it.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Environment`] if it is none, or one of a later
    /// version.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let cannot_read = |source| Error::io("read", path, source);
        let mut text = String::new();
        let file = File::open(path).map_err(cannot_read)?;
        BufReader::new(file)
            .read_to_string(&mut text)
            .map_err(cannot_read)?;
        Document::parse(&text).map_err(|problem| {
            Error::Environment(
                Report::new(format!(
                    "\"{}\" is no result file that can be read: {problem}",
                    path.display()
                ))
                .hint("A run writes one with --json."),
            )
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if head.schema != SCHEMA {
            return Err(format!("its schema is not {SCHEMA:?}"));
        }
        if head.schema_version > SCHEMA_VERSION {
            return Err(format!(
                "it has version {} of the schema, and this program knows {SCHEMA_VERSION}",
                head.schema_version
            ));
        }
        // The sums of histograms are too long for a value of JSON, so that the text is read again.
        let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        check::check_numbers(&value)?;
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        check::check(&document.facts, &document.measured)?;
        document.with_its_books()
    }

    /// Fails where numbers do not agree that agreed when it was written.
    fn with_its_books(self) -> Result<Self, String> {
        let result = RunResult {
            facts: self.facts,
            measured: self.measured,
            place: self.place,
        };
        let violations = result.check_books();
        match violations.iter().find(|it| !self.violations.contains(it)) {
            Some(violation) => Err(format!("its numbers do not agree: {violation}")),
            None => Ok(Document {
                facts: result.facts,
                measured: result.measured,
                place: result.place,
                ..self
            }),
        }
    }

    /// The run that it tells of.
    pub fn into_result(self) -> RunResult {
        RunResult {
            facts: self.facts,
            measured: self.measured,
            place: self.place,
        }
    }
}

/// What is looked at first, since the rest may be of another version.
#[derive(Deserialize)]
struct Head {
    schema: String,
    schema_version: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn identity() -> Identity {
        let keep = KeepPlan {
            label: Some("before".to_owned()),
            tags: vec![("branch".to_owned(), "main".to_owned())],
            ..KeepPlan::default()
        };
        Identity::new(&keep, 1_796_048_716_123_456)
    }

    fn text_of(result: &RunResult) -> String {
        let mut text = Vec::new();
        report::text::write_summary(result, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_is_read_back_gives_the_same_report() {
        for (name, result) in testing::of_every_kind() {
            let (text, warnings) = (text_of(&result), report::warnings(&result));
            let written = serde_json::to_string(&Document::new(result, identity(), 0)).unwrap();
            let read = Document::parse(&written).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(read.run, identity());
            assert_eq!(read.warnings, warnings, "{name}");
            let again = read.into_result();
            assert_eq!(text_of(&again), text, "{name}");
            assert_eq!(report::warnings(&again), warnings, "{name}");
        }
    }

    #[test]
    fn the_moment_is_told_as_in_the_logs() {
        assert_eq!(identity().started_utc, "2026-11-30T14:25:16.123456");
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_read_back_to_the_last_digit(bits in proptest::prelude::any::<u64>()) {
            let number = f64::from_bits(bits);
            proptest::prop_assume!(number.is_finite());
            let text = serde_json::to_string(&number).unwrap();
            let read: f64 = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(read.to_bits(), number.to_bits());
        }
    }

    #[test]
    fn a_file_is_complete_or_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        std::fs::write(&path, "before").unwrap();
        drop(WholeFile::at(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        let document = Document::new(testing::timed(), identity(), 0);
        WholeFile::at(&path)
            .unwrap()
            .write_document(&document)
            .unwrap();
        assert_eq!(Document::read(&path).unwrap().run, identity());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(WholeFile::at(&directory.path().join("no/run.json")).is_err());
    }

    #[test]
    fn what_is_no_result_is_refused_with_the_reason() {
        let document = Document::new(testing::timed(), identity(), 0);
        let good = serde_json::to_value(&document).unwrap();
        for (pointer, value, reason) in [
            ("/schema", "other".into(), "its schema is not"),
            ("/schema_version", 2.into(), "version 2 of the schema"),
            ("/facts/clients", 9.into(), "clients"),
            ("/measured/series/width_ns", 0.into(), "series"),
            ("/measured/series/width_ns", 1.into(), "series"),
            ("/measured/window/ends", u64::MAX.into(), "larger than"),
            (
                "/measured/total/aborted/server",
                u64::MAX.into(),
                "larger than",
            ),
            ("/measured/total/processed", 7.into(), "do not agree"),
            ("/measured/clients/0/failed", 1.into(), "failed by clients"),
            ("/measured/scripts", serde_json::json!([]), "scripts"),
            (
                "/facts/summary/percentiles",
                serde_json::json!([200.0]),
                "percentile",
            ),
        ] {
            let mut changed = good.clone();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            let problem = Document::parse(&changed.to_string()).expect_err(pointer);
            assert!(problem.contains(reason), "{pointer}: {problem}");
        }
        assert!(Document::parse("{}").is_err());
    }
}
