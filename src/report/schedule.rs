//! What the summary says of a run with a rate: what was due and what became of it, how late
//! transactions began, and percentiles that do not forget those that never ran.

use crate::result::{Facts, Measured, ScheduleFacts};
use crate::stats::{Histogram, Stats};

use super::text::{millis, percent};

/// `number of transactions skipped: …`, of those attempted; pgbench's line, where there is a limit.
pub(super) fn skipped(facts: &Facts, stats: &Stats) -> Option<String> {
    facts.schedule.as_ref()?;
    facts.latency_limit?;
    Some(format!(
        "number of transactions skipped: {} ({:.3}%)",
        stats.skipped,
        percent(stats.skipped, stats.attempted())
    ))
}

/// Percentiles of all that was due, in parentheses; what was not processed is above the limit.
pub(super) fn of_all_due(facts: &Facts, measured: &Measured, percents: &[f64]) -> Option<String> {
    let schedule = facts.schedule.as_ref()?;
    facts.latency_limit?;
    let judged = judged(facts, &measured.total);
    let mut parts = Vec::new();
    for percent in percents {
        match value_of_due(judged, schedule.due.slots, *percent) {
            Some(nanos) => parts.push(format!("p{percent} {}", millis(nanos as f64))),
            None => {
                parts.push(format!("p{percent} above the limit"));
                break;
            }
        }
    }
    // They are judged by what a caller waits, which is not what stands before the parentheses.
    let connecting = match facts.connects_for_transactions() {
        true => ", connecting included",
        false => "",
    };
    Some(format!(
        " (of the processed; of all due{connecting}: {})",
        parts.join(", ")
    ))
}

/// How late transactions began: pgbench's line.
pub(super) fn lag(facts: &Facts, stats: &Stats) -> Option<String> {
    facts.schedule.as_ref()?;
    (stats.processed > 0).then(|| {
        format!(
            "rate limit schedule lag: avg {} (max {}) ms",
            millis(stats.lag_mean_ns()),
            millis(stats.lag().map_or(0, Histogram::max_ns) as f64)
        )
    })
}

/// The account of the schedule, and service time.
pub(super) fn account(facts: &Facts, measured: &Measured) -> Vec<String> {
    let Some(schedule) = &facts.schedule else {
        return Vec::new();
    };
    let total = &measured.total;
    let mut lines = vec![what_became_of(schedule, measured)];
    if let Some(limit) = facts.latency_limit {
        let within = total.within_limit();
        lines.push(format!(
            "within the {:.1} ms limit = {within} of {}{} due ({:.3}%)",
            limit.as_secs_f64() * 1e3,
            about(schedule),
            schedule.due.slots,
            percent(within, schedule.due.slots)
        ));
    }
    if total.processed > 0 {
        lines.push(times("service time", total.service()));
        if facts.connects_for_transactions() {
            lines.push(times("response time", total.response()));
        }
    }
    lines
}

fn what_became_of(schedule: &ScheduleFacts, measured: &Measured) -> String {
    let total = &measured.total;
    let aborted = match total.aborted.total() {
        0 => String::new(),
        aborted => format!(", {aborted} aborted"),
    };
    format!(
        "schedule = {}{} due: {} processed, {} failed, {} skipped{aborted}, {}{} abandoned at the end",
        about(schedule),
        schedule.due.slots,
        total.processed,
        total.failed.total(),
        total.skipped,
        about(schedule),
        schedule.abandoned(total)
    )
}

/// Marks a number that was not counted to its end.
fn about(schedule: &ScheduleFacts) -> &'static str {
    if schedule.due.approximate { "≈" } else { "" }
}

/// What `--latency-limit` judges: with a connection for each transaction what a caller waits.
fn judged<'a>(facts: &Facts, stats: &'a Stats) -> &'a Histogram {
    if facts.connects_for_transactions() {
        stats.response()
    } else {
        &stats.latency
    }
}

/// The value at the nearest rank of `percent` of all that was due; `None` if that rank falls on
/// one that was not processed.
fn value_of_due(processed: &Histogram, due: u64, percent: f64) -> Option<u64> {
    let rank = (percent / 100.0 * due as f64).ceil().max(1.0);
    let count = processed.count() as f64;
    (rank <= count).then(|| processed.percentile_ns(rank / count * 100.0))
}

fn times(what: &str, histogram: &Histogram) -> String {
    format!(
        "{what} = average {}, p50 {}, p99 {}, max {} ms",
        millis(histogram.mean_ns()),
        millis(histogram.percentile_ns(50.0) as f64),
        millis(histogram.percentile_ns(99.0) as f64),
        millis(histogram.max_ns() as f64)
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn what_was_not_processed_counts_as_slower_than_all_that_was() {
        let mut processed = Histogram::default();
        (1..=90).for_each(|ms| processed.record(ms * 1_000_000));
        let near = |percent, expected_ms: u64| {
            let found = value_of_due(&processed, 100, percent).unwrap();
            assert!(
                found.abs_diff(expected_ms * 1_000_000) <= expected_ms * 1_000,
                "{found}"
            );
        };
        near(50.0, 50);
        near(90.0, 90);
        assert_eq!(value_of_due(&processed, 100, 90.1), None);
    }

    #[test]
    fn percentiles_of_all_due_say_that_they_include_connecting() {
        for (connects, words) in [(false, "of all due: "), (true, "connecting included: ")] {
            let mut result = testing::scheduled();
            result.facts.connect_per_transaction = connects;
            let told = of_all_due(&result.facts, &result.measured, &[50.0]);
            assert!(told.is_some_and(|told| told.contains(words)), "{words}");
        }
    }
}
