//! Whether one way to run a benchmark is faster than another, as far as repeats of both can tell.
//!
//! Each run counts once, whatever its length: what differs from run to run (caches, the layout of
//! tables, other machines) is not in the noise within one. Figures are compared as ratios, on
//! logarithms. Reads no files and prints nothing.

mod differences;
mod estimate;
mod figures;
mod page;
#[cfg(test)]
mod simulation;
mod table;
mod text;

pub use differences::{Difference, Weight};
pub use estimate::{Estimate, Method, Verdict};
pub use figures::{Direction, Figure};
pub use page::html;
pub use table::csv;
pub use text::{percent as percent_words, text, visible_words};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::archive::Document;
use crate::error::{Error, Report};
use figures::{FIGURES, Family};

/// What a comparison calls itself as JSON.
const SCHEMA: &str = "pgmark-comparison";

/// Raised when a field is taken away or means something else.
const SCHEMA_VERSION: u32 = 1;

/// Runs that are repeats of one another.
pub struct Side {
    /// What they are called.
    pub name: String,
    /// At least one.
    pub runs: Vec<Document>,
}

/// A side, as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct SideSummary {
    /// What it is called.
    pub name: String,
    /// How many runs it has.
    pub runs: usize,
}

impl SideSummary {
    fn of(side: &Side) -> Self {
        SideSummary {
            name: side.name.clone(),
            runs: side.runs.len(),
        }
    }
}

/// Two sides compared.
#[derive(Debug, Serialize)]
pub struct Comparison {
    schema: &'static str,
    schema_version: u32,
    /// The base.
    pub base: SideSummary,
    /// What is compared with it.
    pub new: SideSummary,
    /// What is not the same on both sides.
    pub differences: Vec<Difference>,
    /// How the figures were compared.
    pub method: Method,
    /// The figures.
    pub lines: Vec<Line>,
}

/// A figure on both sides.
#[derive(Debug, Serialize)]
pub struct Line {
    /// What it is.
    pub figure: Figure,
    /// Geometric mean of the base's runs.
    pub base: f64,
    /// The same of the new ones.
    pub new: f64,
    /// The ratio and how sure it is; `None` where a run has no such figure.
    pub estimate: Option<Estimate>,
    /// What may be said of it.
    pub verdict: Verdict,
}

impl Line {
    /// By how much it is worse than the base, percent: of throughput how much is lost, of latency
    /// how much is added. Negative if it is better.
    pub fn worse_pct(&self) -> f64 {
        let ratio = self.estimate.map_or(1.0, |estimate| estimate.ratio);
        match self.figure.direction {
            Direction::HigherIsBetter => (1.0 - ratio) * 100.0,
            Direction::LowerIsBetter => (ratio - 1.0) * 100.0,
        }
    }
}

impl Comparison {
    /// Compares repeats. Unless `allow_different`, runs of unlike work are refused.
    ///
    /// # Errors
    /// [`Error::Environment`] for what cannot be compared: a debug build, a run that counts twice, a
    /// run that measured nothing; unless it is allowed, unlike work or a run that was cut short.
    pub fn of(base: &Side, new: &Side, allow_different: bool) -> Result<Self, Error> {
        refuse_unusable(base, new)?;
        let differences = differences::between(base, new);
        if !allow_different {
            refuse_cut_short(base, new)?;
            refuse_unlike(&differences)?;
        }
        let method = estimate::method(&seeds(base), &seeds(new));
        Ok(Comparison {
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
            base: SideSummary::of(base),
            new: SideSummary::of(new),
            differences,
            method,
            lines: FIGURES
                .iter()
                .map(|(figure, family, value)| line(*figure, *family, *value, (base, new), method))
                .collect(),
        })
    }

    /// Figures that are shown to be worse, and are so by at least `percent`.
    pub fn worse_by(&self, percent: f64) -> impl Iterator<Item = &Line> {
        let is_worse =
            move |line: &&Line| line.verdict == Verdict::Worse && line.worse_pct() >= percent;
        self.lines.iter().filter(is_worse)
    }

    /// Figures that a run lacks, so that nothing can be said of them.
    pub fn unjudged(&self) -> impl Iterator<Item = &Line> {
        let is_missing = |line: &&Line| line.verdict == Verdict::NoFigure;
        self.lines.iter().filter(is_missing)
    }

    /// What may be said of throughput; `None` where a run has none.
    pub fn throughput(&self) -> Option<(Verdict, Estimate)> {
        let line = self.lines.first()?;
        Some((line.verdict, line.estimate?))
    }

    /// Whether both sides have repeats, so that there can be verdicts.
    pub fn has_repeats(&self) -> bool {
        self.method != Method::None
    }
}

fn line(
    figure: Figure,
    family: Family,
    value: fn(&Document) -> f64,
    (base, new): (&Side, &Side),
    method: Method,
) -> Line {
    // Runs of a pair stand side by side.
    let values = |side: &Side| -> Vec<f64> {
        let mut runs: Vec<&Document> = side.runs.iter().collect();
        if method == Method::Paired {
            runs.sort_by_key(|run| run.facts.seed);
        }
        runs.into_iter().map(value).collect()
    };
    let (base, new) = (values(base), values(new));
    let estimate = estimate::estimate(&base, &new, method, family.doubt());
    Line {
        figure,
        base: estimate::geometric_mean(&base),
        new: estimate::geometric_mean(&new),
        verdict: estimate::verdict(estimate.as_ref(), figure.direction),
        estimate,
    }
}

fn seeds(side: &Side) -> Vec<u64> {
    side.runs.iter().map(|run| run.facts.seed).collect()
}

/// What makes every comparison worthless.
fn refuse_unusable(base: &Side, new: &Side) -> Result<(), Error> {
    let mut seen: BTreeMap<&str, &Document> = BTreeMap::new();
    for run in base.runs.iter().chain(&new.runs) {
        let named = |what: &str| format!("the run that began at {} {what}", run.run.started_utc);
        if run.facts.build.debug {
            return Err(refusal(
                named("was made by a debug build of pgmark, which is the bottleneck itself"),
                "Make the runs with a program that \"make\" has built.",
            ));
        }
        if run.measured.total.processed == 0 {
            return Err(refusal(
                named("has no processed transactions"),
                "Leave it out, or run it again.",
            ));
        }
        if !run.run.id.is_empty() && seen.insert(&run.run.id, run).is_some() {
            return Err(refusal(
                named("is given twice"),
                "Repeats are runs of their own; give each result file once.",
            ));
        }
    }
    Ok(())
}

/// A run that missed a condition of `--fail-if` is a run like others.
fn refuse_cut_short(base: &Side, new: &Side) -> Result<(), Error> {
    let mut runs = base.runs.iter().chain(&new.runs);
    match runs.find(|run| !matches!(run.exit_code, 0 | 3)) {
        None => Ok(()),
        Some(run) => Err(refusal(
            format!(
                "the run that began at {} did not end as planned (exit status {})",
                run.run.started_utc, run.exit_code
            ),
            "Run it again; or say --allow-different.",
        )),
    }
}

fn refuse_unlike(differences: &[Difference]) -> Result<(), Error> {
    let unlike: Vec<String> = differences
        .iter()
        .filter(|difference| difference.weight == Weight::Work)
        .map(ToString::to_string)
        .collect();
    if unlike.is_empty() {
        return Ok(());
    }
    Err(refusal(
        format!("the runs did not do the same work: {}", unlike.join("; ")),
        "If that is what you want to compare, say --allow-different.",
    ))
}

fn refusal(text: String, hint: &str) -> Error {
    Error::Environment(Report::new(text).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::simulation::document;
    use super::*;

    fn side(name: &str, tps: &[u64]) -> Side {
        let runs = tps.iter().enumerate();
        Side {
            name: name.to_owned(),
            runs: runs
                .map(|(seed, &tps)| document(&format!("{name}{seed}"), seed as u64 + 1, tps))
                .collect(),
        }
    }

    fn refused(base: &Side, new: &Side, allow: bool) -> String {
        Comparison::of(base, new, allow)
            .expect_err("it is nonsense")
            .to_string()
    }

    #[test]
    fn what_is_shown_is_worse_and_by_how_much() {
        let base = side("a", &[1000, 1010, 990, 1005, 995]);
        let new = side("b", &[900, 912, 890, 903, 896]);
        let comparison = Comparison::of(&base, &new, false).unwrap();
        assert_eq!(comparison.method, Method::Paired);
        let throughput = &comparison.lines[0];
        assert_eq!(throughput.verdict, Verdict::Worse);
        assert!(
            (throughput.worse_pct() - 10.0).abs() < 0.5,
            "{throughput:?}"
        );
        assert!(comparison.worse_by(9.0).count() > 0);
        assert_eq!(comparison.worse_by(50.0).count(), 0);
        // The other way round it is better, by the same ratio.
        let back = Comparison::of(&new, &base, false).unwrap();
        assert_eq!(back.lines[0].verdict, Verdict::Better);
        assert_eq!(back.worse_by(0.0).count(), 0);
    }

    #[test]
    fn what_a_run_lacks_is_named() {
        let base = side("a", &[1000, 1010, 1020]);
        let new = side("b", &[500, 505, 495]);
        let comparison = Comparison::of(&base, &new, false).unwrap();
        let names: Vec<&str> = comparison.unjudged().map(|it| it.figure.name).collect();
        assert_eq!(names, ["p99.9"]);
        let same = Comparison::of(&base, &side("c", &[1000, 1001, 1002]), false).unwrap();
        assert_eq!(same.unjudged().count(), 0);
    }

    #[test]
    fn one_run_a_side_is_never_a_verdict() {
        let comparison = Comparison::of(&side("a", &[1000]), &side("b", &[2000]), false).unwrap();
        assert!(!comparison.has_repeats());
        assert!(
            comparison
                .lines
                .iter()
                .all(|line| line.verdict == Verdict::NoRepeats)
        );
        let comparison =
            Comparison::of(&side("a", &[1000, 1001]), &side("b", &[2000]), false).unwrap();
        assert!(
            comparison
                .lines
                .iter()
                .all(|line| line.verdict == Verdict::NoRepeats)
        );
    }

    #[test]
    fn the_same_runs_are_no_repeats() {
        let text = refused(&side("a", &[1000, 1001]), &side("a", &[1000, 1001]), true);
        assert!(text.contains("is given twice"), "{text}");
    }

    #[test]
    fn debug_builds_and_empty_runs_are_refused_whatever_is_allowed() {
        let base = side("a", &[1000, 1001]);
        let mut debug = side("b", &[1000, 1001]);
        debug.runs[1].facts.build.debug = true;
        assert!(refused(&base, &debug, true).contains("debug build"));
        let nothing = side("b", &[1000, 0]);
        assert!(refused(&base, &nothing, true).contains("no processed"));
    }

    #[test]
    fn a_run_that_was_cut_short_is_refused_unless_it_is_allowed() {
        let base = side("a", &[1000, 1001]);
        let mut new = side("b", &[1000, 1001]);
        new.runs[1].exit_code = 3;
        assert!(Comparison::of(&base, &new, false).is_ok());
        new.runs[1].exit_code = 130;
        let text = refused(&base, &new, false);
        assert!(
            text.contains("did not end as planned (exit status 130)"),
            "{text}"
        );
        assert!(Comparison::of(&base, &new, true).is_ok());
    }

    #[test]
    fn unlike_work_is_refused_unless_it_is_allowed() {
        let mut base = side("a", &[1000, 1001]);
        let mut new = side("b", &[1000, 1001]);
        for run in &mut base.runs {
            run.facts.server_version = "16.4".to_owned();
        }
        for run in &mut new.runs {
            run.facts.scale = 7;
            run.facts.server_version = "17.1".to_owned();
        }
        let text = refused(&base, &new, false);
        assert!(text.contains("scale: 1, then 7"), "{text}");
        let comparison = Comparison::of(&base, &new, true).unwrap();
        let names: Vec<&str> = comparison
            .differences
            .iter()
            .map(|it| it.what.as_str())
            .collect();
        assert_eq!(names, ["scale", "server version"]);
        // Another version of the server may be what is compared.
        for run in &mut new.runs {
            run.facts.scale = 1;
        }
        assert!(Comparison::of(&base, &new, false).is_ok());
    }
}
