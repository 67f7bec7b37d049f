//! The figures of a run for whoever reads a result file without knowing how they are computed. They
//! are written and never read.

use serde::{Deserialize, Serialize};

use crate::result::RunResult;
use crate::stats::Histogram;

/// What the summary says, in numbers. Percentiles are those of nearest rank, however few samples
/// there are; what has no value is 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    window_us: u64,
    tps: f64,
    /// Half width of the 95 % interval within this run, percent; 0 where it cannot be told.
    tps_noise_pct: f64,
    tps_half1: f64,
    tps_half2: f64,
    processed: u64,
    failed: u64,
    skipped: u64,
    aborted: u64,
    due: u64,
    late: u64,
    retried: u64,
    retries: u64,
    latency: Times,
    response: Times,
    service: Times,
    lag: Times,
    initial_connection_us: u64,
    average_concurrency: f64,
    busiest_thread_pct: f64,
    client_delay_avg_us: f64,
}

/// A distribution, in microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Times {
    avg_us: f64,
    stddev_us: f64,
    min_us: f64,
    p50_us: f64,
    p90_us: f64,
    p95_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

impl Times {
    fn of(histogram: &Histogram) -> Self {
        let percentile = |percent| micros(histogram.percentile_ns(percent) as f64);
        Times {
            avg_us: micros(histogram.mean_ns()),
            stddev_us: micros(histogram.stddev_ns()),
            min_us: micros(histogram.min_ns() as f64),
            p50_us: percentile(50.0),
            p90_us: percentile(90.0),
            p95_us: percentile(95.0),
            p99_us: percentile(99.0),
            p999_us: percentile(99.9),
            max_us: micros(histogram.max_ns() as f64),
        }
    }
}

impl Figures {
    pub(super) fn of(result: &RunResult) -> Self {
        let (facts, measured) = (&result.facts, &result.measured);
        let total = &measured.total;
        let noise = measured.noise();
        let halves = noise.map_or([0.0; 2], |noise| noise.halves);
        Figures {
            window_us: measured.window.map_or(0, |window| window.nanos() / 1000),
            tps: measured.tps(),
            tps_noise_pct: noise
                .and_then(|noise| noise.throughput.ok())
                .map_or(0.0, |share| share * 100.0),
            tps_half1: halves[0],
            tps_half2: halves[1],
            processed: total.processed,
            failed: total.failed.total(),
            skipped: total.skipped,
            aborted: total.aborted.total(),
            due: facts
                .schedule
                .map_or(total.recorded(), |schedule| schedule.due.slots),
            late: total.late,
            retried: total.retried,
            retries: total.retries,
            latency: Times::of(&total.latency),
            response: Times::of(total.response()),
            service: Times::of(total.service()),
            lag: total.lag().map(Times::of).unwrap_or_default(),
            initial_connection_us: measured
                .initial_connection_time()
                .map_or(0, |time| time.as_micros() as u64),
            average_concurrency: measured.average_concurrency(),
            busiest_thread_pct: measured.busiest_thread().unwrap_or(0.0) * 100.0,
            client_delay_avg_us: micros(measured.client_delay_mean_ns().unwrap_or(0.0)),
        }
    }
}

fn micros(nanos: f64) -> f64 {
    nanos / 1000.0
}
