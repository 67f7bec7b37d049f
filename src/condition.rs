//! Conditions that a run must not meet (`--fail-if`): what was typed, and whether a result meets it.

use std::fmt;
use std::str::FromStr;

use crate::result::RunResult;
use crate::stats::Histogram;

/// A condition under which a run counts as failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was typed.
    text: String,
    quantity: Quantity,
    comparison: Comparison,
    /// In the unit of the quantity: ns, a share from 0 to 1, or transactions a second.
    bound: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Tps,
    Latency(Figure),
    Response(Figure),
    Share(Share),
}

/// A figure of a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Mean,
    Max,
    Percentile(f64),
}

/// A share of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// Failed ones, of those that were attempted.
    Failed,
    /// Processed ones, of those that were due.
    Achieved,
    /// Processed ones within the latency limit, of those that were due.
    WithinLimit,
    /// Skipped ones, of those that were due.
    Skipped,
}

/// How the figure must lie to the bound for the run to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What a condition that is met says of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    text: String,
    /// `None` if there was nothing to measure.
    found: Option<String>,
    beyond: String,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{}: it is {found}, {}", self.text, self.beyond),
            None => write!(f, "{}: there is nothing that could be measured", self.text),
        }
    }
}

impl Condition {
    /// What is to be said of a run that meets it; `None` if it does not. A time of which there is no
    /// transaction counts as met: nothing shows that all is well.
    pub fn miss(&self, result: &RunResult) -> Option<Miss> {
        let miss = |found, beyond| Miss {
            text: self.text.clone(),
            found,
            beyond,
        };
        let Some(value) = self.quantity.value(result) else {
            return Some(miss(None, String::new()));
        };
        self.comparison.holds(value, self.bound).then(|| {
            let found = self.quantity.shown(value);
            miss(Some(found), self.beyond(value))
        })
    }

    /// By how much the bound was missed.
    fn beyond(&self, value: f64) -> String {
        let difference = self.quantity.shown((value - self.bound).abs());
        let side = if value < self.bound { "less" } else { "more" };
        match value == self.bound {
            true => "which is the bound itself".to_owned(),
            false => format!("{difference} {side} than the bound"),
        }
    }

    /// Whether it is about what only a rate has.
    pub fn needs_rate(&self) -> bool {
        matches!(
            self.quantity,
            Quantity::Share(Share::Achieved | Share::Skipped)
        )
    }

    /// Whether it is about the latency limit.
    pub fn needs_limit(&self) -> bool {
        matches!(
            self.quantity,
            Quantity::Share(Share::WithinLimit | Share::Skipped)
        )
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Above => value > bound,
            Comparison::AtLeast => value >= bound,
            Comparison::Below => value < bound,
            Comparison::AtMost => value <= bound,
        }
    }

    /// Whether it holds for any value from 0 to `most`.
    fn can_hold(self, bound: f64, most: f64) -> bool {
        self.holds(0.0, bound) || self.holds(most, bound)
    }
}

impl Quantity {
    /// `None` if there is nothing to compute it of.
    fn value(self, result: &RunResult) -> Option<f64> {
        let total = &result.measured.total;
        match self {
            Quantity::Tps => Some(result.measured.tps()),
            Quantity::Latency(figure) => figure.of(&total.latency),
            Quantity::Response(figure) => figure.of(total.response()),
            Quantity::Share(share) => share.of(result),
        }
    }

    /// No value is larger.
    fn most(self) -> f64 {
        match self {
            Quantity::Share(_) => 1.0,
            Quantity::Tps | Quantity::Latency(_) | Quantity::Response(_) => f64::INFINITY,
        }
    }

    /// What may have been overlooked in a bound.
    fn reminder(self) -> &'static str {
        match self {
            Quantity::Share(_) => "; of a share, 1 is all (100%), and 1% a hundredth",
            Quantity::Tps | Quantity::Latency(_) | Quantity::Response(_) => "",
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Quantity::Tps => format!("{value:.1}/s"),
            Quantity::Latency(_) | Quantity::Response(_) => format!("{:.3} ms", value / 1e6),
            Quantity::Share(_) => format!("{:.3}%", value * 100.0),
        }
    }

    /// What a bare bound means: the least of what is good if more is better, else the most.
    fn bare_comparison(self) -> Comparison {
        match self {
            Quantity::Tps | Quantity::Share(Share::Achieved | Share::WithinLimit) => {
                Comparison::Below
            }
            Quantity::Latency(_)
            | Quantity::Response(_)
            | Quantity::Share(Share::Failed | Share::Skipped) => Comparison::Above,
        }
    }

    fn named(name: &str) -> Option<Quantity> {
        let share = match name {
            "tps" => return Some(Quantity::Tps),
            "failed" => Share::Failed,
            "achieved" => Share::Achieved,
            "within_limit" => Share::WithinLimit,
            "skipped" => Share::Skipped,
            _ => {
                return match name.strip_prefix("response_") {
                    Some(figure) => Figure::named(figure).map(Quantity::Response),
                    None => Figure::named(name).map(Quantity::Latency),
                };
            }
        };
        Some(Quantity::Share(share))
    }

    /// The number in the unit of the quantity.
    fn bound(self, text: &str) -> Option<f64> {
        let bound = match self {
            Quantity::Tps => text.strip_suffix("/s").unwrap_or(text).trim().parse().ok(),
            Quantity::Latency(_) | Quantity::Response(_) => nanos(text),
            Quantity::Share(_) => match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(text),
            },
        };
        bound.filter(|bound| bound.is_finite() && *bound >= 0.0)
    }
}

impl Figure {
    fn of(self, histogram: &Histogram) -> Option<f64> {
        (histogram.count() > 0).then(|| match self {
            Figure::Mean => histogram.mean_ns(),
            Figure::Max => histogram.max_ns() as f64,
            Figure::Percentile(percent) => histogram.percentile_ns(percent) as f64,
        })
    }

    fn named(name: &str) -> Option<Figure> {
        match name {
            "mean" => Some(Figure::Mean),
            "max" => Some(Figure::Max),
            _ => {
                let percent = number(name.strip_prefix('p')?)?;
                (percent > 0.0 && percent <= 100.0).then_some(Figure::Percentile(percent))
            }
        }
    }
}

impl Share {
    fn of(self, result: &RunResult) -> Option<f64> {
        let total = &result.measured.total;
        let due = result
            .facts
            .schedule
            .map_or(total.recorded(), |schedule| schedule.due.slots);
        let (part, whole) = match self {
            Share::Failed => (total.failed.total(), total.attempted()),
            Share::Achieved => (total.processed, due),
            Share::WithinLimit => (total.within_limit(), due),
            Share::Skipped => (total.skipped, due),
        };
        (whole > 0).then(|| part as f64 / whole as f64)
    }
}

/// A length of time, in milliseconds without a unit.
fn nanos(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let with_unit = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    match with_unit {
        Some((amount, factor)) => Some(number(amount)? * factor),
        None => Some(number(text)? * 1e6),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// Comparisons as they are typed; the longer of two that begin alike first.
const COMPARISONS: [(&str, Option<Comparison>); 5] = [
    (">=", Some(Comparison::AtLeast)),
    ("<=", Some(Comparison::AtMost)),
    (">", Some(Comparison::Above)),
    ("<", Some(Comparison::Below)),
    ("=", None),
];

/// The error says what is wrong with it.
impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = COMPARISONS.iter().find_map(|(sign, comparison)| {
            let (name, bound) = text.split_once(sign)?;
            Some((name.trim(), *comparison, bound.trim()))
        });
        let Some((name, comparison, bound)) = found else {
            return Err(format!("\"{text}\" compares nothing"));
        };
        let Some(quantity) = Quantity::named(name) else {
            return Err(format!("\"{name}\" in \"{text}\" is no figure of a run"));
        };
        let Some(bound) = quantity.bound(bound) else {
            return Err(format!("\"{bound}\" in \"{text}\" is no bound for {name}"));
        };
        let comparison = comparison.unwrap_or(quantity.bare_comparison());
        if !comparison.can_hold(bound, quantity.most()) {
            return Err(format!(
                "\"{text}\" is true of no run{}",
                quantity.reminder()
            ));
        }
        Ok(Condition {
            text: text.trim().to_owned(),
            quantity,
            comparison,
            bound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn parse(text: &str) -> Condition {
        text.parse().unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// What is said of a run on a schedule.
    fn said(text: &str) -> Option<String> {
        let miss = parse(text).miss(&testing::scheduled());
        miss.map(|miss| miss.to_string())
    }

    #[test]
    fn bounds_have_the_unit_of_their_figure() {
        for (text, bound) in [
            ("p99 > 10ms", 1e7),
            ("p99.9>250 us", 250_000.0),
            ("mean > 2", 2e6),
            ("max >= 1.5s", 1.5e9),
            ("response_p95 > 7ms", 7e6),
            ("tps < 1000", 1_000.0),
            ("tps<1000/s", 1_000.0),
            ("failed > 1%", 0.01),
            ("achieved < 0.99", 0.99),
        ] {
            assert_eq!(parse(text).bound, bound, "{text}");
        }
    }

    #[test]
    fn a_bare_bound_is_the_worst_that_is_good() {
        for (text, comparison) in [
            ("p99=10ms", Comparison::Above),
            ("tps=1000", Comparison::Below),
            ("failed=0", Comparison::Above),
            ("within_limit = 99%", Comparison::Below),
        ] {
            assert_eq!(parse(text).comparison, comparison, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for (text, problem) in [
            ("p99", "compares nothing"),
            ("", "compares nothing"),
            ("p99 > ", "is no bound for p99"),
            ("p99 > 10 parsecs", "is no bound"),
            ("p0 > 1ms", "is no figure"),
            ("p101 > 1ms", "is no figure"),
            ("speed < 3", "\"speed\" in \"speed < 3\" is no figure"),
            ("tps < -1", "is no bound"),
            ("tps < nan", "is no bound"),
            ("failed > 1ms", "is no bound"),
            ("failed > 1", "is true of no run; of a share, 1 is all"),
            ("failed=5", "is true of no run"),
            ("skipped >= 101%", "is true of no run"),
            ("achieved < 0", "is true of no run"),
            ("tps < 0", "is true of no run"),
        ] {
            let error = text.parse::<Condition>().expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn a_run_that_meets_one_is_told_by_how_much() {
        let result = testing::scheduled();
        let tps = result.measured.tps();
        assert_eq!(said("tps < 0.001"), None);
        let text = said("tps < 1000000").expect("nobody is so fast");
        let expected = format!(
            "tps < 1000000: it is {tps:.1}/s, {:.1}/s less than the bound",
            1e6 - tps
        );
        assert_eq!(text, expected);
        assert_eq!(said("p50 > 3600s"), None);
        assert!(
            said("max > 1ns")
                .expect("it takes longer")
                .contains("more than the bound")
        );
        assert_eq!(said("skipped > 99.9%"), None);
        assert!(said("achieved >= 0").is_some());
    }

    #[test]
    fn where_nothing_was_measured_nothing_shows_that_all_is_well() {
        let result = testing::nothing_attempted();
        let miss = parse("p99 > 10s")
            .miss(&result)
            .expect("there is no latency");
        assert!(miss.to_string().contains("nothing that could be measured"));
        assert!(parse("tps = 1").miss(&result).is_some());
    }
}
