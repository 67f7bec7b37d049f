//! Results for tests of pages.

use crate::archive::{Document, Identity};
use crate::event::CommandEnd;
use crate::plan::KeepPlan;
use crate::report::testing;
use crate::result::{
    Course, Host, Place, RunResult, ScriptFacts, ServerPlace, ServerSetting, Slice, SliceLatency,
};
use crate::stats::{CommandStats, Histogram};

fn document(result: RunResult, text: &str) -> Document {
    let keep = KeepPlan {
        label: Some(text.to_owned()),
        tags: vec![(text.to_owned(), text.to_owned())],
        command_line: vec![text.to_owned()],
        ..KeepPlan::default()
    };
    Document::new(result, Identity::new(&keep, 1_796_048_706_123_456), 0)
}

pub(crate) fn of_every_kind() -> Vec<(&'static str, Document)> {
    let kinds = testing::of_every_kind().into_iter();
    kinds
        .map(|(kind, result)| (kind, document(result, "")))
        .collect()
}

/// A run under a rate of so many seconds and commands, every text of which is `text`.
pub(crate) fn hour(seconds: u64, commands: usize, text: &str) -> Document {
    let mut result = testing::scheduled();
    let mut course = Course::new();
    for second in 0..seconds {
        course.push(slice(second));
    }
    result.measured.course = Some(course);
    result.facts.scripts = vec![ScriptFacts {
        description: text.to_owned(),
        weight: 1,
        commands: vec![text.to_owned(); commands],
        sha256: String::new(),
    }];
    let mut stats = CommandStats::default();
    (1..2_000).for_each(|micros| stats.record(CommandEnd::Done, micros * 1_000));
    result.measured.commands = vec![vec![stats; commands]];
    result.place = Some(Place {
        host: Host {
            name: text.to_owned(),
            cpu: text.to_owned(),
            ..Host::default()
        },
        server: ServerPlace {
            settings: vec![ServerSetting {
                name: text.to_owned(),
                value: text.to_owned(),
                unit: text.to_owned(),
                source: text.to_owned(),
            }],
            ..ServerPlace::default()
        },
    });
    document(result, text)
}

fn slice(second: u64) -> Slice {
    let mut latency = Histogram::new();
    for number in 0..300 {
        latency.record(1_000_000 + (number * number * 977 + second * 7_919) % 9_000_000);
    }
    Slice {
        length_ns: 1_000_000_000,
        clients_connected: 8 - (second % 97 / 96) as i64,
        due: 301,
        processed: 300,
        skipped: second % 2,
        checkpoints: Some(u64::from(second % 300 == 7)),
        latency: SliceLatency::of(&latency),
        lag_mean_ns: (second * 31 % 9_973) as f64 * 1e3,
        lag_max_ns: second * 37 % 99_991 * 1_000,
        ..Slice::default()
    }
}
