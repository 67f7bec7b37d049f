//! A comparison as text.

use std::fmt::Write;

use super::{Comparison, Line, Method, SideSummary, Weight};
use crate::printable::printable;

/// What differs, the figures, and what they are worth.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    let side = |what: &str, side: &SideSummary| {
        let plural = if side.runs == 1 { "" } else { "s" };
        format!(
            "{what} = {}, {} run{plural}",
            printable(&side.name).replace('\n', " "),
            side.runs
        )
    };
    line(side("base", &comparison.base));
    line(side("new", &comparison.new));
    for difference in &comparison.differences {
        let work = match difference.weight {
            Weight::Work => "different work = ",
            Weight::Circumstance => "different = ",
        };
        line(format!(
            "{work}{}",
            printable(&difference.to_string()).replace('\n', " ")
        ));
    }
    line(String::new());
    line(format!(
        "{:<13} {:>12} {:>12}     {:>8} {:>19}  {}",
        "", "base", "new", "change", "", "verdict"
    ));
    comparison.lines.iter().for_each(|it| line(row(it)));
    line(String::new());
    notes(comparison).into_iter().for_each(line);
    text
}

fn row(line: &Line) -> String {
    let (change, interval) = match line.estimate {
        None => (String::new(), String::new()),
        Some(estimate) => (
            percent(estimate.ratio),
            estimate.interval.map_or_else(String::new, |(low, high)| {
                format!("{} to {}", percent(low), percent(high))
            }),
        ),
    };
    format!(
        "{:<13} {:>12} {:>12} {:<3} {change:>8} {interval:>19}  {}",
        line.figure.name,
        number(line.base),
        number(line.new),
        line.figure.unit,
        line.verdict.words()
    )
}

/// A figure, which is never 0.
pub(super) fn number(value: f64) -> String {
    match value > 0.0 {
        true => format!("{value:.3}"),
        false => "n/a".to_owned(),
    }
}

/// How the verdicts came about, and what remains hidden.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let figures = comparison.lines.len() - 1;
    let method = match comparison.method {
        Method::None => {
            return vec![
                "One run says nothing about the next one, so there is no verdict. Repeat both sides, best five times in turn, and compare all runs: --base A... --new B...".to_owned(),
            ];
        }
        Method::Paired => {
            "Runs with the same seed were compared in pairs, so that drift over time does not count"
        }
        Method::Welch => "Each side has a spread of its own (Welch's t test on logarithms)",
    };
    let visible: Vec<String> = comparison
        .lines
        .iter()
        .filter_map(|line| {
            let visible = line.estimate?.visible?;
            Some(format!("{} {}", line.figure.name, visible_words(visible)))
        })
        .collect();
    vec![
        format!(
            "{method}. Intervals are of 95%: that of throughput by itself, the {figures} of latency together, so that none of them cries wolf by its number."
        ),
        format!(
            "The smallest difference that these runs would have shown nine times out of ten: {}. More repeats show smaller ones.",
            visible.join(", ")
        ),
    ]
}

/// A ratio as a change, as in `+7.1%`, or `x12.0` if it is large.
pub fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() < 1000.0 {
        true => format!("{percent:+.1}%"),
        false => format!("x{ratio:.1}"),
    }
}

/// A share as percent, as long as that says something.
pub fn visible_words(share: f64) -> String {
    match share {
        0.0..10.0 => format!("{:.1}%", share * 100.0),
        _ => "more than tenfold".to_owned(),
    }
}
