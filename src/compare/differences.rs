//! What is not the same on both sides: work that makes a comparison nonsense, and circumstances that
//! may be the very thing that is compared.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::Side;
use crate::archive::Document;
use crate::plan::StopRule;
use crate::result::{Facts, Place, ServerPlace};

/// Something that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// What it is in the runs of the base, each value once.
    pub base: Vec<String>,
    /// What it is in the new ones.
    pub new: Vec<String>,
    /// Whether the runs can be compared all the same.
    pub weight: Weight,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The runs did not do the same work.
    Work,
    /// The same work was done elsewhere, or with other settings.
    Circumstance,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |values: &[String]| values.join(" or ");
        write!(
            f,
            "{}: {}, then {}",
            self.what,
            or(&self.base),
            or(&self.new)
        )
    }
}

/// Something about a run that is worth a look, as text.
type Aspect = (&'static str, Weight, fn(&Document) -> String);

const ASPECTS: &[Aspect] = &[
    ("how it ended", Weight::Work, |run| {
        ended(run.exit_code).to_owned()
    }),
    ("scripts", Weight::Work, |run| scripts(&run.facts)),
    ("scale", Weight::Work, |run| run.facts.scale.to_string()),
    ("partitions", Weight::Work, |run| partitions(&run.facts)),
    ("query mode", Weight::Work, |run| {
        run.facts.query_mode.name().to_owned()
    }),
    ("clients", Weight::Work, |run| run.facts.clients.to_string()),
    ("threads", Weight::Work, |run| run.facts.threads.to_string()),
    ("duration", Weight::Work, |run| duration(run.facts.stop)),
    ("lead-in", Weight::Work, lead_in),
    ("rate", Weight::Work, |run| rate(&run.facts)),
    ("latency limit", Weight::Work, |run| {
        optional(run.facts.latency_limit.map(seconds))
    }),
    ("tries", Weight::Work, |run| {
        run.facts
            .max_tries
            .map_or_else(|| "unlimited".to_owned(), |tries| tries.to_string())
    }),
    ("connecting", Weight::Work, |run| {
        connecting(&run.facts).to_owned()
    }),
    ("server version", Weight::Circumstance, |run| {
        run.facts.server_version.clone()
    }),
    ("pgmark version", Weight::Circumstance, |run| {
        run.facts.build.version.clone()
    }),
    ("connection", Weight::Circumstance, |run| {
        connection(&run.facts)
    }),
    (
        "client and server on one host",
        Weight::Circumstance,
        |run| {
            let same = run
                .facts
                .server
                .as_ref()
                .and_then(|server| server.same_host);
            optional(same.map(|same| if same { "yes" } else { "no" }))
        },
    ),
    ("database", Weight::Circumstance, |run| {
        of_place(run, |place| place.server.database.clone())
    }),
    ("host", Weight::Circumstance, |run| {
        of_place(run, |place| place.host.name.clone())
    }),
    ("processor", Weight::Circumstance, |run| {
        of_place(run, |place| place.host.cpu.clone())
    }),
    ("processors", Weight::Circumstance, |run| {
        of_place(run, |place| place.host.processors.to_string())
    }),
    ("memory", Weight::Circumstance, |run| {
        of_place(run, |place| format!("{} MB", place.host.memory_kb / 1024))
    }),
    ("kernel", Weight::Circumstance, |run| {
        of_place(run, |place| place.host.kernel.clone())
    }),
];

/// All that is not the same on both sides, work first; then the settings of the servers by name.
pub(super) fn between(base: &Side, new: &Side) -> Vec<Difference> {
    let mut differences: Vec<Difference> = ASPECTS
        .iter()
        .filter_map(|(what, weight, aspect)| {
            let values = |side: &Side| distinct(side.runs.iter().map(aspect));
            difference(what, *weight, values(base), values(new))
        })
        .collect();
    differences.extend(setting_names(base, new).iter().filter_map(|name| {
        let values = |side: &Side| {
            let servers = side.runs.iter().filter_map(server);
            distinct(servers.map(|server| setting(server, name)))
        };
        let what = format!("setting {name}");
        difference(&what, Weight::Circumstance, values(base), values(new))
    }));
    differences
}

/// Values of runs are the same if there is one on both sides. What a side does not know, it does not
/// deny.
fn difference(
    what: &str,
    weight: Weight,
    base: Vec<String>,
    new: Vec<String>,
) -> Option<Difference> {
    let is_one =
        base.len() <= 1 && new.len() <= 1 && (base == new || base.is_empty() || new.is_empty());
    (!is_one).then(|| Difference {
        what: what.to_owned(),
        base,
        new,
        weight,
    })
}

/// Each text once, but for those that say nothing.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let texts: BTreeSet<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.into_iter().collect()
}

fn server(run: &Document) -> Option<&ServerPlace> {
    run.place.as_ref().map(|place| &place.server)
}

fn setting_names(base: &Side, new: &Side) -> BTreeSet<String> {
    let servers = base.runs.iter().chain(&new.runs).filter_map(server);
    let settings = servers.flat_map(|server| &server.settings);
    settings.map(|setting| setting.name.clone()).collect()
}

fn setting(server: &ServerPlace, name: &str) -> String {
    let found = server.settings.iter().find(|setting| setting.name == name);
    match found {
        None => "default".to_owned(),
        Some(setting) if setting.value.is_empty() => "\"\"".to_owned(),
        Some(setting) if setting.unit.is_empty() => setting.value.clone(),
        Some(setting) => format!("{} x {}", setting.value, setting.unit),
    }
}

fn of_place(run: &Document, what: fn(&Place) -> String) -> String {
    run.place.as_ref().map_or_else(String::new, what)
}

/// A run that missed a condition of `--fail-if` is a run like others.
fn ended(exit_code: u8) -> &'static str {
    match exit_code {
        0 | 3 => "as planned",
        2 => "with aborted clients",
        1 => "with a failure of pgmark itself",
        _ => "by a signal",
    }
}

fn scripts(facts: &Facts) -> String {
    let scripts: Vec<String> = facts
        .scripts
        .iter()
        .map(|script| {
            let hash = script.sha256.get(..8).unwrap_or_default();
            format!("{}@{} ({hash})", script.description, script.weight)
        })
        .collect();
    scripts.join(", ")
}

fn partitions(facts: &Facts) -> String {
    match facts.partitions {
        Some(partitioning) => {
            format!("{} by {:?}", partitioning.partitions, partitioning.method).to_lowercase()
        }
        None => "none".to_owned(),
    }
}

fn duration(stop: StopRule) -> String {
    match stop {
        StopRule::Transactions(count) => format!("{count} transactions a client"),
        StopRule::Time(time) => seconds(time),
    }
}

/// Ramp and warm-up.
fn lead_in(run: &Document) -> String {
    let window = run.measured.window;
    window.map_or_else(String::new, |window| {
        seconds(window.begins - window.released_at)
    })
}

fn rate(facts: &Facts) -> String {
    match facts.schedule {
        Some(schedule) => format!("{}/s", schedule.rate),
        None => "as fast as it goes".to_owned(),
    }
}

fn connecting(facts: &Facts) -> &'static str {
    match (facts.connect_per_transaction, facts.reconnect_on_loss) {
        (true, _) => "for each transaction",
        (false, true) => "once, and after a loss",
        (false, false) => "once",
    }
}

fn connection(facts: &Facts) -> String {
    facts
        .connection
        .as_ref()
        .map_or_else(String::new, |connection| {
            let tls = connection.tls.as_deref().unwrap_or("no TLS");
            format!(
                "{:?}, {tls}, {}",
                connection.transport, connection.authentication
            )
            .to_lowercase()
        })
}

fn optional(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "none".to_owned(), |text| text.to_string())
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
