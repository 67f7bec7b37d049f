//! What stands on the page besides charts, as texts.

use serde::Serialize;

use super::charts::{Chart, Charts, Mark, Table};
use crate::archive::Document;
use crate::report;
use crate::result::{Facts, Measured, Place, RunResult};
use crate::stats::{Histogram, Stats};

/// What the template shows.
#[derive(Serialize)]
pub(super) struct View {
    figures: Vec<Figure>,
    /// Each in a few words.
    marks: Vec<String>,
    has_heat: bool,
    title: String,
    subtitle: String,
    /// What is wrong or odd, the worst first.
    violations: Vec<String>,
    warnings: Vec<String>,
    cards: Vec<Card>,
    tables: Vec<Named>,
    /// The summary as it was printed.
    summary: String,
}

/// A chart with what stands around it.
#[derive(Serialize)]
struct Figure {
    id: &'static str,
    title: &'static str,
    says: String,
    unit: &'static str,
    logarithmic: bool,
    table: Table,
}

impl Figure {
    fn of(chart: &Chart) -> Self {
        Figure {
            id: chart.id,
            title: chart.title,
            says: chart.says.clone(),
            unit: chart.unit,
            logarithmic: chart.logarithmic,
            table: chart.table(),
        }
    }
}

/// A figure that is worth its size.
#[derive(Serialize)]
struct Card {
    name: &'static str,
    value: String,
    unit: &'static str,
    /// What it means, or how sure it is.
    note: String,
}

/// A table with its heading.
#[derive(Serialize)]
struct Named {
    title: &'static str,
    /// What the figures mean, where that is not plain.
    note: &'static str,
    /// Its cells are numbers, not texts.
    has_numbers: bool,
    #[serde(flatten)]
    table: Table,
}

impl View {
    pub(super) fn of(document: &Document, charts: &Charts) -> Self {
        let facts = &document.facts;
        let label = &document.run.label;
        let first = facts.scripts.first();
        let script = first.map_or("", |script| script.description.as_str());
        let name = if label.is_empty() { script } else { label };
        View {
            figures: charts.charts.iter().map(Figure::of).collect(),
            marks: charts.marks.iter().map(Mark::words).collect(),
            has_heat: charts.heat.is_some(),
            title: name.to_owned(),
            subtitle: format!(
                "{} clients, {} threads, PostgreSQL {}, began {} UTC",
                facts.clients, facts.threads, facts.server_version, document.run.started_utc
            ),
            violations: document.violations.clone(),
            warnings: document.warnings.clone(),
            cards: cards(facts, &document.measured),
            tables: tables(document),
            summary: summary(document),
        }
    }
}

fn summary(document: &Document) -> String {
    let result = RunResult {
        facts: document.facts.clone(),
        measured: document.measured.clone(),
        place: None,
    };
    let mut text = Vec::new();
    report::text::write_all(&result, &mut text).expect("memory takes all bytes");
    String::from_utf8_lossy(&text).into_owned()
}

fn cards(facts: &Facts, measured: &Measured) -> Vec<Card> {
    let total = &measured.total;
    let noise = measured.noise();
    let sure = |share: Option<f64>| {
        share.map_or_else(
            || "how sure it is cannot be told".to_owned(),
            |share| format!("±{:.1}% within this run (95%)", share * 100.0),
        )
    };
    let latency = |name, percent| Card {
        name,
        value: match total.latency.samples_beyond(percent) {
            0..10 => "n/a".to_owned(),
            _ => ms(total.latency.percentile_ns(percent) as f64),
        },
        unit: "ms",
        note: format!("{percent}% of transactions took at most so long"),
    };
    let mut cards = vec![
        Card {
            name: "Throughput",
            value: format!("{:.1}", measured.tps()),
            unit: "/s",
            note: sure(noise.and_then(|noise| noise.throughput.ok())),
        },
        Card {
            name: "Mean latency",
            value: ms(total.latency.mean_ns()),
            unit: "ms",
            note: sure(noise.and_then(|noise| noise.latency.ok())),
        },
        latency("Median latency", 50.0),
        latency("p99 latency", 99.0),
        Card {
            name: "Longest",
            value: ms(total.latency.max_ns() as f64),
            unit: "ms",
            note: format!("of {} processed transactions", total.processed),
        },
    ];
    if let Some(schedule) = &facts.schedule {
        let due = schedule.due.slots;
        cards.push(Card {
            name: "Processed of due",
            value: share(total.processed, due),
            unit: "%",
            note: format!("{due} were due at {} a second", schedule.rate),
        });
    }
    if total.failed.total() + total.aborted.total() > 0 {
        cards.push(Card {
            name: "Failed",
            value: share(total.failed.total(), total.attempted()),
            unit: "%",
            note: format!(
                "{} failed, {} aborted",
                total.failed.total(),
                total.aborted.total()
            ),
        });
    }
    if let Some(outages) = measured.outages.as_ref().filter(|it| !it.list.is_empty()) {
        cards.push(Card {
            name: "Unavailable",
            value: format!("{:.3}", outages.unavailable_ns as f64 / 1e9),
            unit: "s",
            note: format!("in {} outages", outages.list.len() as u64 + outages.further),
        });
    }
    cards
}

fn tables(document: &Document) -> Vec<Named> {
    let (facts, measured) = (&document.facts, &document.measured);
    let mut tables = vec![
        distributions(measured),
        scripts(facts, measured),
        commands(facts, measured),
        errors(&measured.total),
        outages(measured),
        run(document),
        server(document),
    ];
    if let Some(place) = &document.place {
        tables.push(machine(place));
        tables.push(settings(place));
    }
    tables.retain(|table| !table.table.rows.is_empty());
    tables
}

const TIMES: [&str; 8] = [
    "count", "mean", "stddev", "p50", "p90", "p99", "p99.9", "max",
];

/// The cells of [`TIMES`].
fn times(histogram: &Histogram) -> Vec<String> {
    let percentile = |percent| ms(histogram.percentile_ns(percent) as f64);
    vec![
        histogram.count().to_string(),
        ms(histogram.mean_ns()),
        ms(histogram.stddev_ns()),
        percentile(50.0),
        percentile(90.0),
        percentile(99.0),
        percentile(99.9),
        ms(histogram.max_ns() as f64),
    ]
}

fn distributions(measured: &Measured) -> Named {
    let total = &measured.total;
    let rows = [
        ("latency", Some(&total.latency)),
        ("response", unlike(total.response(), &total.latency)),
        ("service", unlike(total.service(), &total.latency)),
        ("lag", total.lag()),
        ("connecting at first", Some(&measured.connections.initial)),
        ("connecting later", Some(&measured.connections.in_window)),
    ];
    let rows = rows.into_iter().filter_map(|(name, histogram)| {
        let histogram = histogram.filter(|it| it.count() > 0)?;
        Some(row(name, times(histogram)))
    });
    named(
        "Distributions, ms",
        "Latency counts from when a transaction was due, service from when it began; response is latency with connecting.",
        &TIMES,
        rows.collect(),
    )
}

/// What would say the same again is left out.
fn unlike<'h>(histogram: &'h Histogram, other: &Histogram) -> Option<&'h Histogram> {
    (histogram != other).then_some(histogram)
}

fn scripts(facts: &Facts, measured: &Measured) -> Named {
    let scripts = facts.scripts.iter().zip(&measured.scripts).enumerate();
    let rows = scripts.map(|(index, (script, stats))| {
        let cells = vec![
            script.weight.to_string(),
            format!("{:.1}", measured.tps_of_script(index)),
            stats.processed.to_string(),
            stats.failed.total().to_string(),
            stats.skipped.to_string(),
            stats.aborted.total().to_string(),
        ];
        let times = times(&stats.latency).split_off(1);
        row(&script.description, [cells, times].concat())
    });
    let head = ["weight", "tps", "processed", "failed", "skipped", "aborted"];
    named(
        "Scripts",
        "Latency in ms.",
        &[&head[..], &TIMES[1..]].concat(),
        rows.collect(),
    )
}

fn commands(facts: &Facts, measured: &Measured) -> Named {
    let rows = facts
        .scripts
        .iter()
        .zip(&measured.commands)
        .flat_map(|(script, commands)| script.commands.iter().zip(commands))
        .map(|(text, stats)| {
            let counts = vec![stats.failures.to_string(), stats.retries.to_string()];
            row(text, [counts, times(&stats.durations)].concat())
        });
    named(
        "Commands",
        "Execution times in ms.",
        &[&["failures", "retries"], &TIMES[..]].concat(),
        rows.collect(),
    )
}

fn errors(total: &Stats) -> Named {
    let rows = total.errors.by_number().into_iter();
    let rows = rows.map(|(kind, count)| row(kind.name(), vec![count.to_string()]));
    named("Errors", "By SQLSTATE.", &["transactions"], rows.collect())
}

fn outages(measured: &Measured) -> Named {
    let outages = measured.outages.iter().flat_map(|outages| &outages.list);
    let rows = outages.enumerate().map(|(index, outage)| {
        let seconds = |nanos: f64| format!("{:.3}", nanos / 1e9);
        row(
            &(index + 1).to_string(),
            vec![
                seconds(outage.begins_ns as f64),
                seconds(outage.length_ns as f64),
                outage.recovered_ns.map_or_else(
                    || "not in this run".to_owned(),
                    |nanos| seconds(nanos as f64),
                ),
                outage.clients.to_string(),
            ],
        )
    });
    let head = [
        "began, s",
        "without a completion, s",
        "recovered in, s",
        "clients",
    ];
    named("Outages", "", &head, rows.collect())
}

fn run(document: &Document) -> Named {
    let tags: Vec<String> = document
        .run
        .tags
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    facts_table(
        "Run",
        vec![
            ("command line", document.run.command_line.join(" ")),
            ("label", document.run.label.clone()),
            ("tags", tags.join(", ")),
            ("pgmark", document.facts.build.version.clone()),
            ("seed", document.facts.seed.to_string()),
            ("exit status", document.exit_code.to_string()),
            ("id", document.run.id.clone()),
        ],
    )
}

fn server(document: &Document) -> Named {
    let server = document.facts.server.as_ref();
    let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
    let counters = server.iter().flat_map(|server| &server.counters);
    let counted = counters.filter(|(_, value)| **value > 0.0);
    let counted = counted.map(|(name, value)| (name.as_str(), value.to_string()));
    facts_table(
        "Server during the run",
        [
            ("version", document.facts.server_version.clone()),
            ("checkpoints", count(server.and_then(|it| it.checkpoints))),
            ("WAL, bytes", count(server.and_then(|it| it.wal_bytes))),
            (
                "settings that are not safe",
                server.map_or_else(String::new, |it| it.unsafe_settings.join(", ")),
            ),
        ]
        .into_iter()
        .chain(counted)
        .collect(),
    )
}

fn machine(place: &Place) -> Named {
    let host = &place.host;
    facts_table(
        "Machine of the client",
        vec![
            ("name", host.name.clone()),
            ("processor", host.cpu.clone()),
            ("processors", host.processors.to_string()),
            ("memory, MB", (host.memory_kb / 1024).to_string()),
            ("kernel", host.kernel.clone()),
            (
                "frequency before and after, MHz",
                host.frequency_mhz
                    .map_or_else(String::new, |[before, after]| {
                        format!("{before:.0}, {after:.0}")
                    }),
            ),
            (
                "time stolen by a hypervisor, %",
                host.steal_pct
                    .map_or_else(String::new, |steal| format!("{steal:.2}")),
            ),
        ],
    )
}

fn settings(place: &Place) -> Named {
    let rows = place.server.settings.iter().map(|setting| {
        let cells = [&setting.value, &setting.unit, &setting.source];
        row(&setting.name, cells.map(String::clone).to_vec())
    });
    let title = "Settings of the server that are not at their default";
    Named {
        has_numbers: false,
        ..named(title, "", &["value", "unit", "source"], rows.collect())
    }
}

/// A table of names and what they are; what is not known is left out.
fn facts_table(title: &'static str, facts: Vec<(&str, String)>) -> Named {
    let known = facts.into_iter().filter(|(_, what)| !what.is_empty());
    let rows = known.map(|(name, what)| row(name, vec![what])).collect();
    Named {
        has_numbers: false,
        ..named(title, "", &[""], rows)
    }
}

fn named(title: &'static str, note: &'static str, head: &[&str], rows: Vec<Vec<String>>) -> Named {
    let head = std::iter::once(&"").chain(head);
    Named {
        title,
        note,
        has_numbers: true,
        table: Table {
            head: head.map(|&name| name.to_owned()).collect(),
            rows,
            is_sample: false,
        },
    }
}

fn row(name: &str, cells: Vec<String>) -> Vec<String> {
    let name = name.replace(char::is_control, " ");
    std::iter::once(name).chain(cells).collect()
}

/// Nanoseconds as milliseconds.
fn ms(nanos: f64) -> String {
    format!("{:.3}", nanos / 1e6)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.2}", part as f64 * 100.0 / whole.max(1) as f64)
}
