//! Many runs on one page: throughput by clients and scale, how it grows with clients, and how variants
//! differ. Runs that did the same work under the same label are repeats.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::archive::Document;
use crate::compare::{Comparison, Side, Verdict, percent_words, visible_words};
use crate::error::Error;
use crate::stats::student_t;

/// What runs have in common that can be drawn as one line: all but the number of clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Workload {
    script: String,
    mode: &'static str,
    rate: String,
    threads: u32,
    scale: u64,
}

/// A run's place among the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    workload: Workload,
    clients: u32,
}

/// Repeats, and the mean of their throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    runs: usize,
    tps: f64,
    /// Half of the 95 % interval of the mean over repeats; `None` of a single run.
    half_width: Option<f64>,
}

/// Everything that the template knows.
#[derive(Serialize)]
struct View {
    runs: usize,
    variants: Vec<String>,
    grids: Vec<Grid>,
    curves: Vec<Curve>,
    comparisons: Vec<Row>,
    style: &'static str,
}

/// Throughput by scale and clients.
#[derive(Serialize)]
struct Grid {
    title: String,
    clients: Vec<u32>,
    rows: Vec<GridRow>,
}

#[derive(Serialize)]
struct GridRow {
    scale: u64,
    cells: Vec<String>,
}

/// How throughput grows with clients.
#[derive(Serialize)]
struct Curve {
    title: String,
    says: String,
    lines: Vec<CurveLine>,
    x_labels: Vec<Label>,
    y_labels: Vec<Label>,
}

#[derive(Serialize)]
struct CurveLine {
    name: String,
    class: usize,
    path: String,
    points: Vec<CurvePoint>,
}

#[derive(Serialize)]
struct CurvePoint {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct Label {
    at: f64,
    text: String,
}

/// A variant against the first one, where both did the same.
#[derive(Serialize)]
struct Row {
    what: String,
    variant: String,
    change: String,
    interval: String,
    verdict: String,
    visible: String,
}

/// The page of many runs.
pub fn overview(documents: Vec<Document>) -> String {
    let runs = documents.len();
    let mut variants: Vec<String> = Vec::new();
    let mut by_point: BTreeMap<Point, BTreeMap<usize, Vec<Document>>> = BTreeMap::new();
    for document in documents {
        let label = document.run.label.clone();
        let variant = variants.iter().position(|known| *known == label);
        let variant = variant.unwrap_or_else(|| {
            variants.push(label);
            variants.len() - 1
        });
        let of_point = by_point.entry(Point::of(&document)).or_default();
        of_point.entry(variant).or_default().push(document);
    }
    let measured: BTreeMap<(Point, usize), Measured> = by_point
        .iter()
        .flat_map(|(point, sides)| {
            let of_side = |(variant, runs): (&usize, &Vec<Document>)| {
                ((point.clone(), *variant), Measured::of(runs))
            };
            sides.iter().map(of_side).collect::<Vec<_>>()
        })
        .collect();
    super::render(
        "overview",
        include_str!("overview.html"),
        View {
            runs,
            grids: grids(&measured, &variants),
            curves: curves(&measured, &variants),
            comparisons: comparisons(by_point, &variants),
            variants,
            style: super::STYLE,
        },
    )
}

impl Point {
    fn of(document: &Document) -> Self {
        let facts = &document.facts;
        let scripts: Vec<&str> = facts
            .scripts
            .iter()
            .map(|script| script.description.as_str())
            .collect();
        Point {
            workload: Workload {
                script: scripts.join(", "),
                mode: facts.query_mode.name(),
                rate: facts.schedule.map_or_else(
                    || "as fast as it goes".to_owned(),
                    |it| format!("{}/s", it.rate),
                ),
                threads: facts.threads,
                scale: facts.scale,
            },
            clients: facts.clients,
        }
    }
}

impl Workload {
    /// But for the scale.
    fn words(&self) -> String {
        format!(
            "{}, {}, {}, {}",
            self.script,
            self.mode,
            self.rate,
            counted(self.threads, "thread")
        )
    }
}

impl Measured {
    fn of(runs: &[Document]) -> Self {
        let tps: Vec<f64> = runs.iter().map(|run| run.measured.tps()).collect();
        let n = tps.len() as f64;
        let mean = tps.iter().sum::<f64>() / n;
        let squares: f64 = tps.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width =
            (runs.len() > 1).then(|| student_t(0.975, n - 1.0) * (squares / (n - 1.0) / n).sqrt());
        Measured {
            runs: runs.len(),
            tps: mean,
            half_width,
        }
    }

    fn words(&self) -> String {
        match self.half_width {
            Some(half) => format!("{:.1} ± {:.1} ({})", self.tps, half, self.runs),
            None => format!("{:.1} (1)", self.tps),
        }
    }
}

type AllMeasured = BTreeMap<(Point, usize), Measured>;

/// By variant, what was measured with each number of clients.
type Lines = BTreeMap<usize, Vec<(u32, Measured)>>;

/// One for each variant and workload but for the scale.
fn grids(measured: &AllMeasured, variants: &[String]) -> Vec<Grid> {
    let mut cells: BTreeMap<(usize, String), BTreeMap<(u64, u32), Measured>> = BTreeMap::new();
    for ((point, variant), found) in measured {
        let grid = cells.entry((*variant, point.workload.words())).or_default();
        grid.insert((point.workload.scale, point.clients), *found);
    }
    let grid = |((variant, work), cells): ((usize, String), BTreeMap<(u64, u32), Measured>)| {
        let distinct = |values: Vec<u64>| {
            let mut values = values;
            values.sort_unstable();
            values.dedup();
            values
        };
        let scales = distinct(cells.keys().map(|(scale, _)| *scale).collect());
        let clients = distinct(
            cells
                .keys()
                .map(|(_, clients)| u64::from(*clients))
                .collect(),
        );
        let clients: Vec<u32> = clients.into_iter().map(|it| it as u32).collect();
        let row = |scale: u64| GridRow {
            scale,
            cells: clients
                .iter()
                .map(|clients| {
                    cells
                        .get(&(scale, *clients))
                        .map_or_else(String::new, Measured::words)
                })
                .collect(),
        };
        Grid {
            title: format!("{}: {work}", named(&variants[variant])),
            rows: scales.into_iter().map(row).collect(),
            clients,
        }
    };
    cells.into_iter().map(grid).collect()
}

fn counted(number: u32, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

fn named(variant: &str) -> &str {
    if variant.is_empty() {
        "without a label"
    } else {
        variant
    }
}

/// The drawing, in its own units.
const WIDE: f64 = 640.0;
const HIGH: f64 = 240.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 10.0;

/// One for each workload with several numbers of clients; its lines are variants.
fn curves(measured: &AllMeasured, variants: &[String]) -> Vec<Curve> {
    let mut by_workload: BTreeMap<&Workload, Lines> = BTreeMap::new();
    for ((point, variant), found) in measured {
        let lines = by_workload.entry(&point.workload).or_default();
        lines
            .entry(*variant)
            .or_default()
            .push((point.clients, *found));
    }
    by_workload.retain(|_, lines| lines.values().any(|line| line.len() > 1));
    by_workload
        .into_iter()
        .map(|(workload, lines)| curve(workload, &lines, variants))
        .collect()
}

fn curve(workload: &Workload, lines: &Lines, variants: &[String]) -> Curve {
    let all = || lines.values().flatten();
    // An interval of two repeats may be many times as long as the figure: the drawing ends before.
    let highest = all().map(|(_, it)| it.tps).fold(1.0, f64::max);
    let top = |it: &Measured| it.tps + it.half_width.unwrap_or(0.0);
    let most = all()
        .map(|(_, it)| top(it))
        .fold(highest, f64::max)
        .min(highest * 1.5);
    let clients = || all().map(|(clients, _)| f64::from(*clients).log2());
    let (first, last) = (
        clients().fold(f64::MAX, f64::min),
        clients().fold(0.0, f64::max),
    );
    let x = |clients: f64| LEFT + (clients.log2() - first) / (last - first).max(1e-9) * WIDE;
    let y = |tps: f64| TOP + HIGH - (tps.clamp(0.0, most) / most) * HIGH;
    let line = |(variant, points): (&usize, &Vec<(u32, Measured)>)| {
        let points: Vec<CurvePoint> = points
            .iter()
            .map(|(clients, it)| {
                let half = it.half_width.unwrap_or(0.0);
                CurvePoint {
                    x: x(f64::from(*clients)),
                    y: y(it.tps),
                    low: y(it.tps - half),
                    high: y(it.tps + half),
                }
            })
            .collect();
        let places: Vec<String> = points
            .iter()
            .map(|it| format!("{:.1},{:.1}", it.x, it.y))
            .collect();
        CurveLine {
            name: named(&variants[*variant]).to_owned(),
            class: variant % 4,
            path: places.join(" "),
            points,
        }
    };
    let mut numbers: Vec<u32> = all().map(|(clients, _)| *clients).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Curve {
        title: format!("Scale {}: {}", workload.scale, workload.words()),
        says: format!(
            "Throughput by clients, from {} to {} clients, at most {most:.1} a second; the grid has the figures.",
            numbers.first().copied().unwrap_or(0),
            numbers.last().copied().unwrap_or(0)
        ),
        lines: lines.iter().map(line).collect(),
        x_labels: numbers
            .iter()
            .map(|clients| Label {
                at: x(f64::from(*clients)),
                text: clients.to_string(),
            })
            .collect(),
        y_labels: [0.0, 0.5, 1.0]
            .iter()
            .map(|share| Label {
                at: y(most * share),
                text: format!("{:.0}", most * share),
            })
            .collect(),
    }
}

/// Each variant against the first one, wherever both did the same.
fn comparisons(
    by_point: BTreeMap<Point, BTreeMap<usize, Vec<Document>>>,
    variants: &[String],
) -> Vec<Row> {
    let side = |(variant, runs): (usize, Vec<Document>)| Side {
        name: named(&variants[variant]).to_owned(),
        runs,
    };
    by_point
        .into_iter()
        .flat_map(|(point, sides)| {
            let mut sides = sides.into_iter().map(side);
            let base = sides.next();
            let what = format!(
                "{}, scale {}: {}",
                counted(point.clients, "client"),
                point.workload.scale,
                point.workload.words()
            );
            let rows: Vec<Row> = match base {
                Some(base) => sides
                    .map(|new| row(&what, &new, Comparison::of(&base, &new, false)))
                    .collect(),
                None => Vec::new(),
            };
            rows
        })
        .collect()
}

/// Of throughput.
fn row(what: &str, new: &Side, comparison: Result<Comparison, Error>) -> Row {
    let row = |change, interval, verdict: String, visible| Row {
        what: what.to_owned(),
        variant: new.name.clone(),
        change,
        interval,
        verdict,
        visible,
    };
    let comparison = match comparison {
        Ok(comparison) => comparison,
        Err(error) => {
            return row(
                String::new(),
                String::new(),
                error.to_string(),
                String::new(),
            );
        }
    };
    let Some((verdict, estimate)) = comparison.throughput() else {
        return row(
            String::new(),
            String::new(),
            Verdict::NoFigure.words().to_owned(),
            String::new(),
        );
    };
    row(
        percent_words(estimate.ratio),
        estimate.interval.map_or_else(String::new, |(low, high)| {
            format!("{} to {}", percent_words(low), percent_words(high))
        }),
        verdict.words().to_owned(),
        estimate.visible.map_or_else(String::new, visible_words),
    )
}
