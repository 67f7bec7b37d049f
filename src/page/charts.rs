//! What the charts show, in numbers, and the same as tables for whoever cannot see them.

use serde::Serialize;

use super::heat::Heat;
use crate::archive::Document;
use crate::result::{Course, Measured, Outage, Slice};
use crate::stats::Histogram;

/// Rows of a table beside a chart, at most.
const MOST_ROWS: usize = 60;
/// Points of a curve of percentiles for each factor of ten.
const POINTS_PER_DECADE: u32 = 12;

/// All charts of a page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Charts {
    pub(super) charts: Vec<Chart>,
    pub(super) heat: Option<Heat>,
    /// What happened at the server or to connections.
    pub(super) marks: Vec<Mark>,
}

/// Lines over time, or over percentiles.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// What it shows, in a sentence.
    pub(super) says: String,
    pub(super) unit: &'static str,
    pub(super) over: Over,
    /// Seconds since the window began; for percentiles, one of how many is slower.
    pub(super) x: Vec<f64>,
    pub(super) lines: Vec<Line>,
    /// Whether a logarithmic axis is offered, and shown at first.
    pub(super) logarithmic: bool,
}

/// What the horizontal axis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    Time,
    Percentiles,
}

/// A line of a chart.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) label: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

/// A stretch of time that is marked.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Mark {
    pub(super) kind: &'static str,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
}

/// A table beside a chart.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether rows were left out.
    pub(super) is_sample: bool,
}

impl Charts {
    pub(super) fn of(document: &Document) -> Self {
        let measured = &document.measured;
        if measured.window.is_none() {
            return Charts::default();
        }
        let mut charts = match &measured.course {
            Some(course) if !course.slices().is_empty() => over_course(document, course),
            Some(_) | None => over_series(measured),
        };
        charts.extend(percentile_curve(measured));
        Charts {
            charts,
            heat: measured.course.as_ref().and_then(Heat::of),
            marks: marks(measured),
        }
    }
}

fn over_course(document: &Document, course: &Course) -> Vec<Chart> {
    let x: Vec<f64> = course
        .with_beginnings()
        .map(|(begins, _)| begins.as_secs_f64())
        .collect();
    let slices = course.slices();
    let has_rate = document.facts.schedule.is_some();
    let mut charts = vec![
        over_time(
            "throughput",
            "Throughput",
            "/s",
            &x,
            throughput(slices, has_rate),
            false,
        ),
        over_time(
            "latency",
            "Latency percentiles",
            "ms",
            &x,
            percentiles(slices),
            true,
        ),
    ];
    if has_rate {
        let title = "Lag behind the schedule";
        charts.push(over_time("lag", title, "ms", &x, lag(slices), false));
    }
    let all = i64::from(document.facts.clients);
    let is_quiet = |slice: &Slice| slice.connects == 0 && slice.clients_connected == all;
    if !slices.iter().all(is_quiet) {
        let lines = connections(slices);
        charts.push(over_time(
            "connections",
            "Connections",
            "",
            &x,
            lines,
            false,
        ));
    }
    charts
}

fn line(label: &'static str, slices: &[Slice], value: impl Fn(&Slice) -> Option<f64>) -> Line {
    let values = slices.iter().map(|slice| value(slice).map(rounded));
    Line {
        label,
        values: values.collect(),
    }
}

/// So many things as a number a second.
fn per_second(count: u64, slice: &Slice) -> Option<f64> {
    Some(count as f64 * 1e9 / slice.length_ns.max(1) as f64)
}

/// What failed or was skipped has a line only where there is some.
fn throughput(slices: &[Slice], has_rate: bool) -> Vec<Line> {
    let counted = |label, count: fn(&Slice) -> u64| {
        line(label, slices, |slice| per_second(count(slice), slice))
    };
    let some = |count: fn(&Slice) -> u64| slices.iter().any(|slice| count(slice) > 0);
    let mut lines = vec![counted("processed", |slice| slice.processed)];
    if has_rate {
        lines.push(counted("due", |slice| slice.due));
    }
    if some(|slice| slice.failed) {
        lines.push(counted("failed", |slice| slice.failed));
    }
    if some(|slice| slice.skipped) {
        lines.push(counted("skipped", |slice| slice.skipped));
    }
    lines
}

fn percentiles(slices: &[Slice]) -> Vec<Line> {
    let latency = |label, nanos: fn(&Slice) -> u64| {
        line(label, slices, |slice| {
            (slice.processed > 0).then(|| nanos(slice) as f64 / 1e6)
        })
    };
    vec![
        latency("p50", |slice| slice.latency.p50_ns),
        latency("p90", |slice| slice.latency.p90_ns),
        latency("p99", |slice| slice.latency.p99_ns),
        latency("max", |slice| slice.latency.max_ns),
    ]
}

fn lag(slices: &[Slice]) -> Vec<Line> {
    vec![
        line("mean", slices, |slice| Some(slice.lag_mean_ns / 1e6)),
        line("max", slices, |slice| Some(slice.lag_max_ns as f64 / 1e6)),
    ]
}

fn connections(slices: &[Slice]) -> Vec<Line> {
    vec![
        line("connected", slices, |slice| {
            Some(slice.clients_connected as f64)
        }),
        line("connects each second", slices, |slice| {
            per_second(slice.connects, slice)
        }),
    ]
}

/// Without the course there are sums of each tenth of a second, or more, but no percentiles.
fn over_series(measured: &Measured) -> Vec<Chart> {
    let width_s = measured.series.width().as_secs_f64();
    let points = measured.series.points();
    // As many points as an hour of seconds has are enough for any screen.
    let group = points.len().div_ceil(3_600).max(1);
    let groups: Vec<_> = points.chunks(group).collect();
    let x: Vec<f64> = (0..groups.len())
        .map(|it| (it * group) as f64 * width_s)
        .collect();
    let line = |label, value: &dyn Fn(&[crate::stats::Point]) -> Option<f64>| Line {
        label,
        values: groups
            .iter()
            .map(|group| value(group).map(rounded))
            .collect(),
    };
    let sum = |group: &[crate::stats::Point]| group.iter().map(|it| it.processed).sum::<u64>();
    let throughput = vec![line("processed", &|it| {
        Some(sum(it) as f64 / (it.len() as f64 * width_s))
    })];
    let latency = vec![
        line("mean", &|it| {
            let total: u64 = it.iter().map(|point| point.latency_sum_ns).sum();
            (sum(it) > 0).then(|| total as f64 / sum(it) as f64 / 1e6)
        }),
        line("max", &|it| {
            let longest = it.iter().map(|point| point.latency_max_ns).max();
            (sum(it) > 0).then(|| longest.unwrap_or(0) as f64 / 1e6)
        }),
    ];
    vec![
        over_time("throughput", "Throughput", "/s", &x, throughput, false),
        over_time(
            "latency",
            "Mean and longest latency",
            "ms",
            &x,
            latency,
            true,
        ),
    ]
}

fn over_time(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    x: &[f64],
    lines: Vec<Line>,
    logarithmic: bool,
) -> Chart {
    Chart {
        id,
        title,
        says: ranges(title, unit, &lines),
        unit,
        over: Over::Time,
        x: x.to_vec(),
        lines,
        logarithmic,
    }
}

/// Latency by how rare it is: the axis is 1/(1 − q), so that each factor of ten is as wide as any
/// other.
fn percentile_curve(measured: &Measured) -> Option<Chart> {
    let total = &measured.total;
    let count = total.latency.count();
    if count == 0 {
        return None;
    }
    let decades = (count as f64).log10();
    let last = (decades * f64::from(POINTS_PER_DECADE)).floor() as u32;
    let x: Vec<f64> = (0..=last)
        .map(|it| 10_f64.powf(f64::from(it) / f64::from(POINTS_PER_DECADE)))
        .collect();
    let line = |label, histogram: &Histogram| {
        let percents = x.iter().map(|one_of| (100.0 - 100.0 / one_of).max(1e-6));
        let values = histogram.percentiles_ns(percents).into_iter();
        Line {
            label,
            values: values
                .map(|nanos| Some(rounded(nanos as f64 / 1e6)))
                .collect(),
        }
    };
    let mut lines = vec![line("latency", &total.latency)];
    for (label, histogram) in [("response", total.response()), ("service", total.service())] {
        if *histogram != total.latency {
            lines.push(line(label, histogram));
        }
    }
    let says = [50.0, 90.0, 99.0, 99.9].iter().map(|percent| {
        format!(
            "p{percent} {} ms",
            rounded(total.latency.percentile_ns(*percent) as f64 / 1e6)
        )
    });
    Some(Chart {
        id: "curve",
        title: "Latency by percentile",
        says: format!(
            "Latency of all transactions: {}.",
            says.collect::<Vec<_>>().join(", ")
        ),
        unit: "ms",
        over: Over::Percentiles,
        x,
        lines,
        logarithmic: true,
    })
}

fn marks(measured: &Measured) -> Vec<Mark> {
    let course = measured.course.iter().flat_map(Course::with_beginnings);
    let checkpoints = course
        .filter(|(_, slice)| slice.checkpoints.unwrap_or(0) > 0)
        .map(|(begins, slice)| Mark {
            kind: "checkpoint",
            from_s: begins.as_secs_f64(),
            to_s: begins.as_secs_f64() + slice.length_ns as f64 / 1e9,
        });
    let outages = measured.outages.iter().flat_map(|outages| &outages.list);
    let lasted = |outage: &Outage| outage.recovered_ns.unwrap_or(0).max(outage.length_ns);
    let outages = outages.map(|outage| Mark {
        kind: "outage",
        from_s: outage.begins_ns as f64 / 1e9,
        to_s: (outage.begins_ns as f64 + lasted(outage) as f64) / 1e9,
    });
    checkpoints.chain(outages).collect()
}

/// `Throughput: processed from 4100 to 5300 /s, …`.
fn ranges(title: &str, unit: &str, lines: &[Line]) -> String {
    let ranges = lines.iter().map(|line| {
        let values = || line.values.iter().flatten().copied();
        match (values().reduce(f64::min), values().reduce(f64::max)) {
            (Some(least), Some(most)) => format!("{} from {least} to {most} {unit}", line.label),
            (None, _) | (_, None) => format!("{} none", line.label),
        }
    });
    format!("{title}: {}.", ranges.collect::<Vec<_>>().join(", "))
}

impl Mark {
    /// As in `checkpoint at 12.0 s`.
    pub(super) fn words(&self) -> String {
        format!("{} at {:.1} s", self.kind, self.from_s)
    }
}

impl Chart {
    /// The same in rows.
    pub(super) fn table(&self) -> Table {
        let (what, shown): (&str, fn(f64) -> String) = match self.over {
            Over::Time => ("s", |seconds| seconds.to_string()),
            Over::Percentiles => ("percentile", |one_of| {
                format!("{:.5}", 100.0 - 100.0 / one_of)
            }),
        };
        let stride = self.x.len().div_ceil(MOST_ROWS).max(1);
        let heads = self.lines.iter().map(|line| line.label.to_owned());
        let row = |index: usize| {
            let values = self.lines.iter().map(|line| {
                let value = line.values.get(index).copied().flatten();
                value.map_or_else(String::new, |value| value.to_string())
            });
            std::iter::once(shown(self.x[index]))
                .chain(values)
                .collect()
        };
        Table {
            head: std::iter::once(what.to_owned()).chain(heads).collect(),
            rows: (0..self.x.len()).step_by(stride).map(row).collect(),
            is_sample: stride > 1,
        }
    }
}

/// To three decimals, which keeps the page small.
fn rounded(value: f64) -> f64 {
    match value.is_finite() {
        true => (value * 1e3).round() / 1e3,
        false => 0.0,
    }
}
