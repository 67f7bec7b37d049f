//! What is said while a run goes on: one line an interval, or one live line that is redrawn.
//! Texts only: `console` puts them on the terminal.

use std::time::Duration;

use super::CollectorPlan;
use super::intervals::Interval;
use super::outages::OutageNow;
use crate::plan::{LeadIn, ProgressPlan, StopRule};

/// How a run shows that it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not at all.
    Silent,
    /// One line each interval, and one for the partial interval at the end.
    Lines(ProgressPlan),
    /// One line, redrawn each second; for a terminal.
    Live,
}

impl Progress {
    /// The interval that is shown, if any is.
    pub(super) fn interval(self) -> Option<Duration> {
        match self {
            Progress::Silent => None,
            Progress::Lines(lines) => Some(lines.interval),
            Progress::Live => Some(Duration::from_secs(1)),
        }
    }
}

/// The live line is cut here, so that it never wraps and can be redrawn.
const LIVE_WIDTH: usize = 80;

/// `progress: 1.0 s, 3389.5 tps, lat 1.164 ms stddev 0.535, 0 failed`, then, under a rate,
/// `lag 0.119 ms`, with a limit also `0 skipped`, and retries where a transaction may be tried
/// again: pgbench's line, which others parse. Time counts from the beginning of the window; it is
/// `unix_ns` where that is given.
pub(super) fn line(interval: &Interval, unix_ns: Option<i64>, plan: &CollectorPlan) -> String {
    let stats = &interval.kept;
    let time = match unix_ns {
        Some(unix_ns) => format!("{:.3}", unix_ns as f64 / 1e9),
        None => format!("{:.1}", interval.ends_ns() as f64 / 1e9),
    };
    let mut line = format!(
        "progress: {time} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
        interval.per_second(stats.processed),
        stats.latency.mean_ns() / 1e6,
        stats.latency.stddev_ns() / 1e6,
        stats.failed.total(),
    );
    if plan.rate.is_some() {
        line += &format!(", lag {:.3} ms", stats.lag_mean_ns() / 1e6);
        if plan.latency_limit.is_some() {
            line += &format!(", {} skipped", stats.skipped);
        }
    }
    if plan.with_retries {
        line += &format!(", {} retried, {} retries", stats.retried, stats.retries);
    }
    line
}

/// `, p99 2.801 ms`: what stands after the line under our own name.
pub(super) fn percentile(interval: &Interval) -> String {
    let p99_ns = interval.kept.latency.percentile_ns(99.0);
    format!(", p99 {:.3} ms", p99_ns as f64 / 1e6)
}

/// Totals that the live line shows beside the last interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SoFar {
    processed: u64,
    failed: u64,
    skipped: u64,
}

impl SoFar {
    /// Adds a closed interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        self.processed += interval.kept.processed;
        self.failed += interval.kept.failed.total();
        self.skipped += interval.kept.skipped;
    }
}

/// `[ 25/60 s] 5494 tps (avg 4712)  lat 1.41  p99 2.80  max 9.14 ms  0 failed`: rate and latencies
/// of the last interval, average and failures of the run. Under a rate
/// `[ 25/60 s] 498 of 500/s  lat 11.8  p99 62.3 ms  lag 1.3  skipped 811  0 failed`: what was to be
/// done is known there, and what was skipped in the run if there is a limit.
pub(super) fn live_line(interval: &Interval, so_far: &SoFar, plan: &CollectorPlan) -> String {
    let elapsed_s = interval.ends_ns() as f64 / 1e9;
    let place = place(elapsed_s, plan.stop);
    let stats = &interval.kept;
    let per_second = interval.per_second(stats.processed);
    let mean = three_digits_ms(stats.latency.mean_ns());
    let p99 = three_digits_ms(stats.latency.percentile_ns(99.0) as f64);
    let figures = match plan.rate {
        None => format!(
            "{per_second:.0} tps (avg {:.0})  lat {mean}  p99 {p99}  max {} ms",
            so_far.processed as f64 / elapsed_s,
            three_digits_ms(stats.latency.max_ns() as f64),
        ),
        Some(rate) => {
            let skipped = match plan.latency_limit {
                Some(_) => format!("  skipped {}", so_far.skipped),
                None => String::new(),
            };
            format!(
                "{per_second:.0} of {rate_text}/s  lat {mean}  p99 {p99} ms  lag {}{skipped}",
                three_digits_ms(stats.lag_mean_ns()),
                rate_text = (rate * 10.0).round() / 10.0,
            )
        }
    };
    cut(format!("[{place}] {figures}  {} failed", so_far.failed))
}

/// How far the run is, `25/60 s` or, where its end is no time, `25 s`.
fn place(elapsed_s: f64, stop: StopRule) -> String {
    match stop {
        StopRule::Time(whole) => {
            let whole = format!("{:.0}", whole.as_secs_f64());
            format!("{elapsed_s:>0$.0}/{whole} s", whole.len() + 1)
        }
        StopRule::Transactions(_) => format!("{elapsed_s:.0} s"),
    }
}

/// `[ 27/60 s] OUTAGE 2.0 s  0 of 8 connected  170 tries  last: 57P03`: nothing has completed for so
/// long, since clients lost their connections.
pub(super) fn outage_line(interval: &Interval, outage: &OutageNow, plan: &CollectorPlan) -> String {
    cut(format!(
        "[{}] OUTAGE {:.1} s  {} of {} connected  {} tries  last: {}",
        place(interval.ends_ns() as f64 / 1e9, plan.stop),
        outage.silent_ns as f64 / 1e9,
        outage.clients.saturating_sub(outage.away),
        outage.clients,
        outage.tries,
        outage.latest,
    ))
}

/// `[warm-up 12/30 s] 5402 tps  lat 1.45  p99 2.91 ms`, or `ramp` before that: rate and latencies of
/// an interval of the time before the window, which counts from the release of the clients.
pub(super) fn lead_in_line(interval: &Interval, lead_in: LeadIn) -> String {
    let (ramp_s, warmup_s) = (lead_in.ramp.as_secs_f64(), lead_in.warmup.as_secs_f64());
    let elapsed_s = interval.ends_ns() as f64 / 1e9;
    let (phase, elapsed_s, whole_s) = match elapsed_s <= ramp_s {
        true => ("ramp", elapsed_s, ramp_s),
        false => ("warm-up", elapsed_s - ramp_s, warmup_s),
    };
    let stats = &interval.kept;
    cut(format!(
        "[{phase} {elapsed_s:.0}/{whole_s:.0} s] {:.0} tps  lat {}  p99 {} ms",
        interval.per_second(stats.processed),
        three_digits_ms(stats.latency.mean_ns()),
        three_digits_ms(stats.latency.percentile_ns(99.0) as f64),
    ))
}

/// `[connecting 412 of 500, 3.1 s]`.
pub(super) fn connecting_line(connected: u64, clients: usize, elapsed: Duration) -> String {
    cut(format!(
        "[connecting {connected} of {clients}, {:.1} s]",
        elapsed.as_secs_f64()
    ))
}

fn three_digits_ms(nanos: f64) -> String {
    let millis = nanos / 1e6;
    let decimals = match millis {
        small if small < 9.995 => 2,
        medium if medium < 99.95 => 1,
        _ => 0,
    };
    format!("{millis:.decimals$}")
}

fn cut(mut line: String) -> String {
    // The line is ASCII, so every byte is a character.
    line.truncate(LIVE_WIDTH);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::testing::{Story, at, transaction};
    use crate::event::{LossCause, Outcome, SqlState, TransactionRecord};
    use crate::stats::Stats;

    fn interval(ends_s: u64, latencies_ms: &[i64]) -> Interval {
        let mut stats = Stats::default();
        for &latency in latencies_ms {
            stats.record(&transaction(0, latency), None);
        }
        Interval {
            begins_ns: (ends_s - 1) * 1_000_000_000,
            length_ns: 1_000_000_000,
            kept: stats,
        }
    }

    #[test]
    fn a_line_tells_the_time_as_it_is_wanted() {
        let two = interval(2, &[1, 3]);
        for (unix_ns, retries, expected) in [
            (
                None,
                false,
                "progress: 2.0 s, 2.0 tps, lat 2.000 ms stddev 1.000, 0 failed",
            ),
            (
                Some(1_796_048_863_118_400_000),
                true,
                "progress: 1796048863.118 s, 2.0 tps, lat 2.000 ms stddev 1.000, 0 failed, \
                 0 retried, 0 retries",
            ),
        ] {
            let mut plan = Story::of_seconds(1, 5).plan;
            plan.with_retries = retries;
            assert_eq!(line(&two, unix_ns, &plan), expected);
        }
        assert_eq!(percentile(&two), ", p99 2.999 ms");
    }

    #[test]
    fn the_live_line_shows_place_rate_latencies_and_failures() {
        let mut so_far = SoFar::default();
        so_far.add(&interval(1, &[1; 30]));
        let last = interval(2, &[1, 1, 12, 250]);
        so_far.add(&last);
        for (stop, expected) in [
            (
                StopRule::Time(Duration::from_secs(60)),
                "[  2/60 s] 4 tps (avg 17)  lat 66.0  p99 250  max 250 ms  0 failed",
            ),
            (
                StopRule::Transactions(100),
                "[2 s] 4 tps (avg 17)  lat 66.0  p99 250  max 250 ms  0 failed",
            ),
        ] {
            let plan = Story::new(1, stop).plan;
            assert_eq!(live_line(&last, &so_far, &plan), expected);
        }
    }

    #[test]
    fn under_a_rate_the_live_line_shows_what_was_to_be_done() {
        let mut stats = Stats::default();
        stats.record(
            &TransactionRecord {
                scheduled_at: at(0),
                ..transaction(4, 12)
            },
            None,
        );
        stats.record(
            &TransactionRecord {
                outcome: Outcome::Skipped,
                ..transaction(4, 4)
            },
            None,
        );
        let last = Interval {
            kept: stats,
            ..interval(2, &[])
        };
        let mut so_far = SoFar::default();
        so_far.add(&last);
        let mut plan = Story::of_seconds(1, 60).plan;
        for (rate, limit_s, expected) in [
            (500.0, None, "1 of 500/s  lat 12.0  p99 12.0 ms  lag 4.00"),
            (
                0.25,
                Some(1),
                "1 of 0.3/s  lat 12.0  p99 12.0 ms  lag 4.00  skipped 1",
            ),
        ] {
            plan.rate = Some(rate);
            plan.latency_limit = limit_s.map(Duration::from_secs);
            let line = live_line(&last, &so_far, &plan);
            assert_eq!(line, format!("[  2/60 s] {expected}  0 failed"));
        }
    }

    #[test]
    fn the_live_line_never_wraps() {
        let last = Interval {
            length_ns: 1,
            ..interval(1_000_000_000, &[900_000_000; 9])
        };
        let so_far = SoFar {
            processed: u64::MAX,
            failed: u64::MAX,
            skipped: u64::MAX,
        };
        let mut plan = Story::of_seconds(1, u64::MAX).plan;
        assert_eq!(live_line(&last, &so_far, &plan).len(), LIVE_WIDTH);
        plan.rate = Some(f64::MAX);
        assert_eq!(live_line(&last, &so_far, &plan).len(), LIVE_WIDTH);
    }

    #[test]
    fn an_outage_has_a_line_of_its_own() {
        let outage = OutageNow {
            silent_ns: 2_000_000_000,
            away: 8,
            clients: 8,
            tries: 170,
            latest: LossCause::SqlState(SqlState(*b"57P03")),
        };
        let plan = Story::of_seconds(8, 60).plan;
        assert_eq!(
            outage_line(&interval(27, &[]), &outage, &plan),
            "[ 27/60 s] OUTAGE 2.0 s  0 of 8 connected  170 tries  last: 57P03"
        );
    }

    #[test]
    fn ramp_and_warm_up_have_lines_of_their_own() {
        let lead_in = LeadIn {
            ramp: Duration::from_secs(2),
            warmup: Duration::from_secs(30),
        };
        for (seconds, place) in [(2, "ramp 2/2"), (14, "warm-up 12/30")] {
            let line = lead_in_line(&interval(seconds, &[8; 4]), lead_in);
            assert_eq!(line, format!("[{place} s] 4 tps  lat 8.00  p99 8.00 ms"));
        }
    }

    #[test]
    fn connecting_has_a_line_of_its_own() {
        let line = connecting_line(412, 500, Duration::from_millis(3_100));
        assert_eq!(line, "[connecting 412 of 500, 3.1 s]");
    }
}
