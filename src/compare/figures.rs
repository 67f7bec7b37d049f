//! The figures that are compared.

use serde::Serialize;

use crate::archive::Document;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// What it is called.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// As with throughput.
    HigherIsBetter,
    /// As with latency.
    LowerIsBetter,
}

/// Figures that are judged together: 5 % is the chance that any of them is called different where
/// nothing is.
#[derive(Clone, Copy)]
pub(super) enum Family {
    /// Throughput, the headline, by itself.
    Throughput,
    /// All figures of latency.
    Latency,
}

impl Family {
    /// The chance of a false alarm for each of its figures (Bonferroni).
    pub(super) fn doubt(self) -> f64 {
        match self {
            Family::Throughput => 0.05,
            Family::Latency => 0.05 / (FIGURES.len() - 1) as f64,
        }
    }
}

const fn latency(name: &'static str) -> Figure {
    Figure {
        name,
        unit: "ms",
        direction: Direction::LowerIsBetter,
    }
}

/// A figure, whom it is judged with, and its value in a run; 0 where it has none.
type Row = (Figure, Family, fn(&Document) -> f64);

/// All of them.
pub(super) const FIGURES: [Row; 7] = [
    (
        Figure {
            name: "throughput",
            unit: "/s",
            direction: Direction::HigherIsBetter,
        },
        Family::Throughput,
        |run| run.measured.tps(),
    ),
    (latency("mean latency"), Family::Latency, |run| {
        run.measured.total.latency.mean_ns() / 1e6
    }),
    (latency("p50"), Family::Latency, |run| percentile(run, 50.0)),
    (latency("p90"), Family::Latency, |run| percentile(run, 90.0)),
    (latency("p95"), Family::Latency, |run| percentile(run, 95.0)),
    (latency("p99"), Family::Latency, |run| percentile(run, 99.0)),
    (latency("p99.9"), Family::Latency, |run| {
        percentile(run, 99.9)
    }),
];

/// Of latency, ms; none where fewer than ten samples lie beyond, as in the summary.
fn percentile(run: &Document, percent: f64) -> f64 {
    let latency = &run.measured.total.latency;
    match latency.samples_beyond(percent) {
        0..10 => 0.0,
        _ => latency.percentile_ns(percent) as f64 / 1e6,
    }
}
