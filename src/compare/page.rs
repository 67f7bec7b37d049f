//! A comparison as a page that needs nothing but itself.

use minijinja::{AutoEscape, Environment, Value, context};

use super::text::{notes, number, percent, visible_words};
use super::{Comparison, SideSummary, Verdict, Weight};
use crate::printable::printable;

/// The page; everything from result files is escaped.
pub fn html(comparison: &Comparison) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment
        .add_template("page", include_str!("page.html"))
        .expect("the template is part of the program, and tests make pages of it");
    let rows: Vec<_> = comparison
        .lines
        .iter()
        .map(|line| {
            let estimate = line.estimate;
            let interval = estimate.and_then(|it| it.interval);
            context! {
                name => line.figure.name,
                unit => line.figure.unit,
                base => number(line.base),
                new => number(line.new),
                change => estimate.map(|it| percent(it.ratio)),
                interval => interval.map(|(low, high)| format!("{} to {}", percent(low), percent(high))),
                verdict => line.verdict.words(),
                class => class(line.verdict),
                visible => estimate.and_then(|it| it.visible).map(visible_words),
            }
        })
        .collect();
    let differences: Vec<_> = comparison
        .differences
        .iter()
        .map(|it| {
            context! {
                what => &it.what,
                base => it.base.join(" or "),
                new => it.new.join(" or "),
                is_work => it.weight == Weight::Work,
            }
        })
        .collect();
    let page = environment.get_template("page").and_then(|template| {
        template.render(context! {
            base => side(&comparison.base),
            new => side(&comparison.new),
            rows,
            differences,
            notes => notes(comparison),
        })
    });
    printable(&page.expect("every name of the template is given"))
}

fn side(side: &SideSummary) -> Value {
    context! { name => &side.name, runs => side.runs }
}

/// What a verdict looks like.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifferenceShown | Verdict::NoRepeats | Verdict::NoFigure => "open",
    }
}
