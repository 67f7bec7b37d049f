//! How sure a ratio is: t tests on logarithms.

use std::collections::BTreeSet;

use serde::Serialize;

use super::figures::Direction;
use crate::stats::student_t;

/// How the runs of both sides were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Runs with the same seed are pairs, as suites make them: only what differs within pairs
    /// counts, so that a machine that gets slower over the night does not matter.
    Paired,
    /// Welch's test: each side with a spread of its own.
    Welch,
    /// One side has a single run.
    None,
}

/// The ratio of a figure, new to base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// As measured: of geometric means.
    pub ratio: f64,
    /// The interval that holds the true ratio; `None` without repeats.
    pub interval: Option<(f64, f64)>,
    /// The smallest difference that so many repeats with this much noise show nine times out of ten, as a
    /// share of the base; `None` without repeats.
    pub visible: Option<f64>,
}

/// What may be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is shown to be better.
    Better,
    /// It is shown to be worse.
    Worse,
    /// No difference is shown; there may be one.
    NoDifferenceShown,
    /// Without repeats on both sides nothing can be said.
    NoRepeats,
    /// A run has no such figure, or too few transactions for it.
    NoFigure,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifferenceShown => "no difference shown",
            Verdict::NoRepeats => "no verdict",
            Verdict::NoFigure => "not measured",
        }
    }
}

/// How runs with these seeds can be compared. They are pairs if each seed is there once on either
/// side.
pub(super) fn method(base: &[u64], new: &[u64]) -> Method {
    if base.len() < 2 || new.len() < 2 {
        return Method::None;
    }
    let distinct = |seeds: &[u64]| seeds.iter().copied().collect::<BTreeSet<u64>>();
    let (ours, theirs) = (distinct(base), distinct(new));
    match ours == theirs && ours.len() == base.len() && theirs.len() == new.len() {
        true => Method::Paired,
        false => Method::Welch,
    }
}

/// e to the mean of the logarithms; 0 if a value is 0.
pub(super) fn geometric_mean(values: &[f64]) -> f64 {
    match logarithms(values) {
        Some(logs) => mean(&logs).exp(),
        None => 0.0,
    }
}

/// The ratio of the values, those of pairs in the same order on both sides. `doubt` is the chance
/// that the interval misses. `None` if a value is not above 0.
pub(super) fn estimate(base: &[f64], new: &[f64], method: Method, doubt: f64) -> Option<Estimate> {
    let (base, new) = (logarithms(base)?, logarithms(new)?);
    let difference = mean(&new) - mean(&base);
    let spread = match method {
        Method::None => None,
        Method::Welch => Some(welch(&base, &new)),
        Method::Paired => {
            let pairs = base.iter().zip(&new);
            let differences: Vec<f64> = pairs.map(|(base, new)| new - base).collect();
            Some(Spread {
                error: (variance(&differences) / differences.len() as f64).sqrt(),
                freedom: differences.len() as f64 - 1.0,
            })
        }
    };
    let interval = spread.map(|spread| {
        let half = spread.half_width(doubt);
        ((difference - half).exp(), (difference + half).exp())
    });
    Some(Estimate {
        ratio: difference.exp(),
        interval,
        visible: spread.map(|spread| spread.visible(doubt).exp_m1()),
    })
}

/// What may be said of a figure.
pub(super) fn verdict(estimate: Option<&Estimate>, direction: Direction) -> Verdict {
    let Some(estimate) = estimate else {
        return Verdict::NoFigure;
    };
    let Some((low, high)) = estimate.interval else {
        return Verdict::NoRepeats;
    };
    match (low > 1.0, high < 1.0, direction) {
        (false, false, _) => Verdict::NoDifferenceShown,
        (true, _, Direction::HigherIsBetter) | (_, true, Direction::LowerIsBetter) => {
            Verdict::Better
        }
        (true, _, Direction::LowerIsBetter) | (_, true, Direction::HigherIsBetter) => {
            Verdict::Worse
        }
    }
}

/// How well a difference of logarithms is known.
#[derive(Clone, Copy)]
struct Spread {
    /// Its standard error.
    error: f64,
    /// Degrees of freedom of that.
    freedom: f64,
}

impl Spread {
    fn half_width(self, doubt: f64) -> f64 {
        self.error * student_t(1.0 - doubt / 2.0, self.freedom)
    }

    /// The difference whose interval leaves out 0 nine times out of ten, by Johnson's and Welch's
    /// normal approximation of the noncentral t distribution. That an estimated error is on average too
    /// small by 4f/(4f + 1) is made up for.
    fn visible(self, doubt: f64) -> f64 {
        /// The normal quantile of 0.9.
        const NINE_OF_TEN: f64 = 1.281_551_565_544_6;
        let t = student_t(1.0 - doubt / 2.0, self.freedom);
        let scatter = (1.0 + t * t / (2.0 * self.freedom)).sqrt();
        let made_up = 1.0 + 1.0 / (4.0 * self.freedom);
        self.error * (t + NINE_OF_TEN * scatter * made_up)
    }
}

/// Degrees of freedom after Welch and Satterthwaite.
fn welch(base: &[f64], new: &[f64]) -> Spread {
    let share = |values: &[f64]| variance(values) / values.len() as f64;
    let (ours, theirs) = (share(base), share(new));
    let square = ours + theirs;
    let weight = |share: f64, values: &[f64]| share * share / (values.len() as f64 - 1.0);
    let freedom = square * square / (weight(ours, base) + weight(theirs, new));
    let least = base.len().min(new.len()) as f64 - 1.0;
    Spread {
        error: square.sqrt(),
        // Without any spread there is nothing to divide by.
        freedom: if freedom.is_finite() { freedom } else { least },
    }
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let is_figure = |value: &f64| *value > 0.0 && value.is_finite();
    let all = !values.is_empty() && values.iter().all(is_figure);
    all.then(|| values.iter().map(|value| value.ln()).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// With n − 1, of at least two.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welchs_interval_is_that_of_the_textbook() {
        // Logs 0, 0.1, 0.2 and 0.3, 0.5, 0.7: means 0.1 and 0.5, variances 0.01 and 0.04.
        let exp = |logs: [f64; 3]| logs.map(f64::exp);
        let found = estimate(
            &exp([0.0, 0.1, 0.2]),
            &exp([0.3, 0.5, 0.7]),
            Method::Welch,
            0.05,
        )
        .unwrap();
        assert!((found.ratio - 0.4_f64.exp()).abs() < 1e-12);
        // (0.05/3)² / ((0.01/3)²/2 + (0.04/3)²/2) = 2.941 degrees of freedom: t 3.2184.
        let half = 3.2184 * (0.05_f64 / 3.0).sqrt();
        let (low, high) = found.interval.unwrap();
        assert!((low - (0.4 - half).exp()).abs() < 1e-3, "{low}");
        assert!((high - (0.4 + half).exp()).abs() < 2e-3, "{high}");
    }

    #[test]
    fn pairs_take_out_what_both_share() {
        let base = [100.0, 200.0, 400.0];
        let new = [102.0, 203.0, 409.0];
        let paired = estimate(&base, &new, Method::Paired, 0.05).unwrap();
        let welch = estimate(&base, &new, Method::Welch, 0.05).unwrap();
        assert_eq!(
            verdict(Some(&paired), Direction::HigherIsBetter),
            Verdict::Better
        );
        assert_eq!(
            verdict(Some(&paired), Direction::LowerIsBetter),
            Verdict::Worse
        );
        assert_eq!(
            verdict(Some(&welch), Direction::HigherIsBetter),
            Verdict::NoDifferenceShown
        );
        assert!(paired.visible < welch.visible);
    }

    #[test]
    fn runs_are_pairs_if_every_seed_is_there_once_on_either_side() {
        for (base, new, expected) in [
            (&[1, 2][..], &[2, 1][..], Method::Paired),
            (&[1, 2], &[1, 3], Method::Welch),
            (&[1, 1], &[1, 1], Method::Welch),
            (&[1, 2, 3], &[1, 2], Method::Welch),
            (&[1], &[1], Method::None),
            (&[1, 2], &[1], Method::None),
        ] {
            assert_eq!(method(base, new), expected, "{base:?} {new:?}");
        }
    }

    #[test]
    fn figures_without_spread_or_value_are_no_trouble() {
        let equal = [5.0, 5.0];
        for method in [Method::Paired, Method::Welch] {
            let found = estimate(&equal, &equal, method, 0.05).unwrap();
            assert_eq!(
                (found.ratio, found.interval, found.visible),
                (1.0, Some((1.0, 1.0)), Some(0.0))
            );
            assert_eq!(
                verdict(Some(&found), Direction::HigherIsBetter),
                Verdict::NoDifferenceShown
            );
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(estimate(&equal, &[5.0, bad], Method::Welch, 0.05), None);
            assert_eq!(geometric_mean(&[5.0, bad]), 0.0);
        }
        assert_eq!(verdict(None, Direction::LowerIsBetter), Verdict::NoFigure);
    }
}
