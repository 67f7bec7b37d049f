//! The row of a run in a file of summaries: what is in each column.

use super::Document;
use crate::result::{Facts, Measured, Place, ServerActivity, sha256_of_lines};
use crate::spreadsheet;
use crate::stats::Histogram;

/// What a column has in a row.
pub(super) enum Cell {
    Text(String),
    Integer(u64),
    /// With exactly six decimals: with three, a German spreadsheet would read 1.912 as 1912.
    Decimal(f64),
}

impl Cell {
    /// As it stands in the file, but for quotes.
    pub(super) fn into_text(self) -> String {
        match self {
            Cell::Text(text) => spreadsheet::cell(&text),
            Cell::Integer(number) => number.to_string(),
            Cell::Decimal(number) if number.is_finite() => format!("{number:.6}"),
            Cell::Decimal(_) => "0.000000".to_owned(),
        }
    }
}

/// A run, and where its result lies.
pub(super) struct Row<'a> {
    pub(super) document: &'a Document,
    /// Empty if it was not kept.
    pub(super) result_file: &'a str,
}

impl Row<'_> {
    fn facts(&self) -> &Facts {
        &self.document.facts
    }

    fn measured(&self) -> &Measured {
        &self.document.measured
    }

    fn place(&self) -> Option<&Place> {
        self.document.place.as_ref()
    }

    fn server(&self) -> Option<&ServerActivity> {
        self.facts().server.as_ref()
    }
}

/// A column: its name, and what a row has in it.
type Column = (&'static str, fn(&Row<'_>) -> Cell);

/// All columns in their order. What has no value is 0, or empty if it is a text.
pub(super) const COLUMNS: &[Column] = &[
    ("schema", |_| text("pgmark-summary-1")),
    ("run_id", |row| text(&row.document.run.id)),
    ("label", |row| text(&row.document.run.label)),
    ("tags", |row| Cell::Text(tags(&row.document.run.tags))),
    ("status", |row| text(status(row.document.exit_code))),
    ("exit_code", |row| {
        Cell::Integer(row.document.exit_code.into())
    }),
    ("started_utc", |row| text(&row.document.run.started_utc)),
    ("pgmark_version", |row| text(&row.facts().build.version)),
    ("server_version", |row| text(&row.facts().server_version)),
    ("database", |row| {
        of_place(row, |place| &place.server.database)
    }),
    ("client_host", |row| of_place(row, |place| &place.host.name)),
    ("same_host", |row| {
        text(match row.server().and_then(|server| server.same_host) {
            Some(true) => "true",
            Some(false) => "false",
            None => "",
        })
    }),
    ("scripts", |row| Cell::Text(scripts(row.facts()))),
    ("script_sha", |row| Cell::Text(scripts_sha(row.facts()))),
    ("scale", |row| Cell::Integer(row.facts().scale)),
    ("query_mode", |row| text(row.facts().query_mode.name())),
    ("clients", |row| Cell::Integer(row.facts().clients.into())),
    ("threads", |row| Cell::Integer(row.facts().threads.into())),
    ("connect_per_transaction", |row| {
        text(if row.facts().connect_per_transaction {
            "true"
        } else {
            "false"
        })
    }),
    ("rate", |row| {
        Cell::Decimal(row.facts().schedule.map_or(0.0, |schedule| schedule.rate))
    }),
    ("latency_limit_us", |row| {
        Cell::Integer(
            row.facts()
                .latency_limit
                .map_or(0, |limit| limit.as_micros() as u64),
        )
    }),
    ("max_tries", |row| {
        Cell::Integer(row.facts().max_tries.unwrap_or(0).into())
    }),
    ("seed", |row| Cell::Integer(row.facts().seed)),
    ("warmup_us", |row| {
        let window = row.measured().window;
        Cell::Integer(window.map_or(0, |it| it.begins.nanos_since(it.released_at) / 1000))
    }),
    ("window_us", |row| {
        Cell::Integer(row.measured().window.map_or(0, |it| it.nanos() / 1000))
    }),
    ("due", |row| Cell::Integer(due(row))),
    ("processed", |row| {
        Cell::Integer(row.measured().total.processed)
    }),
    ("failed", |row| {
        Cell::Integer(row.measured().total.failed.total())
    }),
    ("skipped", |row| Cell::Integer(row.measured().total.skipped)),
    ("abandoned", |row| {
        let schedule = row.facts().schedule;
        Cell::Integer(schedule.map_or(0, |schedule| schedule.abandoned(&row.measured().total)))
    }),
    ("aborted", |row| {
        Cell::Integer(row.measured().total.aborted.total())
    }),
    ("lost", |row| {
        Cell::Integer(row.measured().total.aborted.connection_lost)
    }),
    ("retried", |row| Cell::Integer(row.measured().total.retried)),
    ("retries", |row| Cell::Integer(row.measured().total.retries)),
    ("late", |row| Cell::Integer(row.measured().total.late)),
    ("within_limit", |row| {
        let total = &row.measured().total;
        Cell::Integer(match row.facts().latency_limit {
            Some(_) => total.within_limit(),
            None => 0,
        })
    }),
    ("tps", |row| Cell::Decimal(row.measured().tps())),
    ("tps_noise_pct", |row| {
        let noise = row
            .measured()
            .noise()
            .and_then(|noise| noise.throughput.ok());
        Cell::Decimal(noise.map_or(0.0, |share| share * 100.0))
    }),
    ("tps_half1", |row| Cell::Decimal(half(row, 0))),
    ("tps_half2", |row| Cell::Decimal(half(row, 1))),
    ("latency_avg_us", |row| mean(latency(row))),
    ("latency_stddev_us", |row| {
        Cell::Decimal(latency(row).stddev_ns() / 1e3)
    }),
    ("latency_min_us", |row| micros(latency(row).min_ns())),
    ("p50_us", |row| percentile(latency(row), 50.0)),
    ("p90_us", |row| percentile(latency(row), 90.0)),
    ("p95_us", |row| percentile(latency(row), 95.0)),
    ("p99_us", |row| percentile(latency(row), 99.0)),
    ("p999_us", |row| percentile(latency(row), 99.9)),
    ("max_us", |row| micros(latency(row).max_ns())),
    ("response_avg_us", |row| {
        mean(row.measured().total.response())
    }),
    ("response_p99_us", |row| {
        percentile(row.measured().total.response(), 99.0)
    }),
    ("service_avg_us", |row| mean(row.measured().total.service())),
    ("service_p99_us", |row| {
        percentile(row.measured().total.service(), 99.0)
    }),
    ("lag_avg_us", |row| {
        Cell::Decimal(row.measured().total.lag_mean_ns() / 1e3)
    }),
    ("lag_max_us", |row| {
        micros(row.measured().total.lag().map_or(0, Histogram::max_ns))
    }),
    ("initial_connection_us", |row| {
        let time = row.measured().initial_connection_time();
        Cell::Integer(time.map_or(0, |time| time.as_micros() as u64))
    }),
    ("connects", |row| {
        Cell::Integer(row.measured().connections.in_window.count())
    }),
    ("connect_avg_us", |row| {
        mean(&row.measured().connections.in_window)
    }),
    ("connect_p99_us", |row| {
        percentile(&row.measured().connections.in_window, 99.0)
    }),
    ("connect_max_us", |row| {
        micros(row.measured().connections.in_window.max_ns())
    }),
    ("excluding_reconnection_per_s", |row| {
        Cell::Decimal(row.measured().tps_excluding_reconnection())
    }),
    ("concurrency", |row| {
        Cell::Decimal(row.measured().average_concurrency())
    }),
    ("busiest_thread_pct", |row| {
        Cell::Decimal(row.measured().busiest_thread().unwrap_or(0.0) * 100.0)
    }),
    ("client_delay_avg_us", |row| {
        Cell::Decimal(row.measured().client_delay_mean_ns().unwrap_or(0.0) / 1e3)
    }),
    ("client_steal_pct", |row| {
        Cell::Decimal(
            row.place()
                .and_then(|place| place.host.steal_pct)
                .unwrap_or(0.0),
        )
    }),
    ("checkpoints", |row| {
        of_server(row, |server| server.checkpoints)
    }),
    ("wal_bytes", |row| of_server(row, |server| server.wal_bytes)),
    ("wal_fpi", |row| {
        of_server(row, ServerActivity::wal_full_pages)
    }),
    ("blocks_read", |row| {
        of_server(row, ServerActivity::blocks_read)
    }),
    ("blocks_hit", |row| {
        of_server(row, ServerActivity::blocks_hit)
    }),
    ("server_commits", |row| {
        of_server(row, ServerActivity::commits)
    }),
    ("fsync", |row| Cell::Text(setting(row, "fsync"))),
    ("synchronous_commit", |row| {
        Cell::Text(setting(row, "synchronous_commit"))
    }),
    ("full_page_writes", |row| {
        Cell::Text(setting(row, "full_page_writes"))
    }),
    ("settings_sha", |row| {
        Cell::Text(row.place().map_or_else(String::new, settings_sha))
    }),
    ("outages", |row| {
        let outages = row.measured().outages.as_ref();
        Cell::Integer(outages.map_or(0, |outages| outages.list.len() as u64 + outages.further))
    }),
    ("outage_us", |row| {
        let outages = row.measured().outages.as_ref();
        Cell::Integer(outages.map_or(0, |outages| outages.unavailable_ns / 1000))
    }),
    ("warnings", |row| {
        Cell::Text(row.document.warnings.join("; "))
    }),
    ("result_file", |row| text(row.result_file)),
];

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn latency<'a>(row: &'a Row<'_>) -> &'a Histogram {
    &row.measured().total.latency
}

fn mean(histogram: &Histogram) -> Cell {
    Cell::Decimal(histogram.mean_ns() / 1e3)
}

fn percentile(histogram: &Histogram, percent: f64) -> Cell {
    micros(histogram.percentile_ns(percent))
}

/// Whole microseconds, rounded to the nearest.
fn micros(nanos: u64) -> Cell {
    Cell::Integer(nanos.saturating_add(500) / 1000)
}

fn of_place(row: &Row<'_>, what: fn(&Place) -> &str) -> Cell {
    text(row.place().map_or("", what))
}

fn of_server(row: &Row<'_>, what: fn(&ServerActivity) -> Option<u64>) -> Cell {
    Cell::Integer(row.server().and_then(what).unwrap_or(0))
}

fn half(row: &Row<'_>, index: usize) -> f64 {
    row.measured()
        .noise()
        .map_or(0.0, |noise| noise.halves[index])
}

/// Without a rate, what is due is what is done.
fn due(row: &Row<'_>) -> u64 {
    let schedule = row.facts().schedule;
    schedule.map_or(row.measured().total.recorded(), |schedule| {
        schedule.due.slots
    })
}

fn tags(tags: &[(String, String)]) -> String {
    let pairs: Vec<String> = tags
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(";")
}

fn status(exit_code: u8) -> &'static str {
    match exit_code {
        0 => "ok",
        1 => "failure",
        2 => "aborted",
        3 => "condition",
        _ => "interrupted",
    }
}

fn scripts(facts: &Facts) -> String {
    let names: Vec<&str> = facts
        .scripts
        .iter()
        .map(|script| script.description.as_str())
        .collect();
    names.join(";")
}

/// Of a single script its own; of several one of all of them and their weights.
fn scripts_sha(facts: &Facts) -> String {
    match &facts.scripts[..] {
        [only] => only.sha256.clone(),
        several => sha256_of_lines(
            several
                .iter()
                .map(|it| format!("{} {}", it.sha256, it.weight)),
        ),
    }
}

/// Of all settings of the server that are not at their default.
fn settings_sha(place: &Place) -> String {
    let settings = place.server.settings.iter();
    sha256_of_lines(settings.map(|it| format!("{}={} {}", it.name, it.value, it.unit)))
}

/// A setting that decides what a commit costs; what is not told of otherwise is on.
fn setting(row: &Row<'_>, name: &str) -> String {
    let Some(server) = row.server() else {
        return String::new();
    };
    let told = server.unsafe_settings.iter().find_map(|setting| {
        let value = setting.strip_prefix(name)?.strip_prefix(' ')?;
        Some(value.to_owned())
    });
    told.unwrap_or_else(|| "on".to_owned())
}
