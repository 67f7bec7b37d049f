//! What the user must know before believing a figure: for standard error, never for the summary,
//! which others parse.

use crate::event::ClientEnd;
use crate::plan::StopRule;
use crate::program::Program;
use crate::result::{LogResult, Measured, RunResult, ServerActivity};

/// A thread busier than this leaves replies lying.
const BUSY_LIMIT: f64 = 0.80;
/// Above this share of all latency, client delay is visible in the figures.
const DELAY_LIMIT: f64 = 0.05;
/// Fewer transactions than this say nothing about the client: the first ones wait for memory.
const TRANSACTIONS_TO_JUDGE: u64 = 100;
/// A wall clock that is only slewed differs by less.
const STEP_LIMIT_NS: u128 = 1_000_000_000;
/// WAL of a transaction that writes; readers cause less, by hint bits and the server's own work.
const WAL_OF_A_WRITE_BYTES: u64 = 100;

/// Warnings about this run, each a sentence without a prefix, the gravest first.
pub fn warnings(result: &RunResult) -> Vec<String> {
    let measured = &result.measured;
    let lost_rows = measured.logs.iter().map(lost_rows);
    if result.facts.program == Program::Pgbench {
        // What it does not say, those who replaced it do not expect on standard error.
        return lost_rows.flatten().collect();
    }
    let others = [
        all_failed(measured),
        early_ends(measured),
        ran_out(measured),
        not_recovered(measured),
        behind_schedule(result),
        saturation(measured),
        blocked_sends(measured),
        no_checkpoint(result),
        stepped_clock(result),
    ];
    lost_rows.chain(others).flatten().collect()
}

fn lost_rows(log: &LogResult) -> Option<String> {
    let failure = log.failure.as_ref()?;
    Some(format!(
        "the log \"{}\" lacks {} of {} rows: {failure}",
        log.path.display(),
        log.rows_lost,
        log.rows_lost + log.rows_written
    ))
}

fn all_failed(measured: &Measured) -> Option<String> {
    let total = &measured.total;
    (total.processed == 0 && total.failed.total() > 0)
        .then(|| format!("all {} transactions failed", total.failed.total()))
}

fn early_ends(measured: &Measured) -> Option<String> {
    let ended = measured
        .clients
        .iter()
        .filter(|client| client.end == ClientEnd::Aborted)
        .count();
    (ended > 0).then(|| {
        format!(
            "{ended} of {} clients were aborted before the run ended",
            measured.clients.len()
        )
    })
}

fn ran_out(measured: &Measured) -> Option<String> {
    let ended = measured
        .clients
        .iter()
        .filter(|client| client.end == ClientEnd::RanOut)
        .count();
    (ended > 0).then(|| {
        format!(
            "{ended} of {} clients ended early, since a file of values had no rows (left) for \
             them",
            measured.clients.len()
        )
    })
}

fn not_recovered(measured: &Measured) -> Option<String> {
    let last = measured.outages.as_ref()?.list.last()?;
    last.recovered_ns.is_none().then(|| {
        format!(
            "the last outage was not over when the run ended: not all of {} clients that lost their \
             connections had ended a transaction again",
            last.clients
        )
    })
}

/// More due transactions were left than the clients can have had under way.
fn behind_schedule(result: &RunResult) -> Option<String> {
    let schedule = result.facts.schedule.as_ref()?;
    let abandoned = schedule.abandoned(&result.measured.total);
    let skipped = match result.measured.total.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} were skipped"),
    };
    (abandoned > u64::from(result.facts.clients)).then(|| {
        format!(
            "could not keep up with {} transactions a second: {abandoned} of {} that were due never \
             began{skipped}; use more clients (-c) if the server can do more, or a lower rate (-R)",
            schedule.rate, schedule.due.slots
        )
    })
}

/// The client itself may be what is measured. More threads help only where one is busy; where none
/// is, it is the host that lets them wait for a processor.
fn saturation(measured: &Measured) -> Option<String> {
    if measured.total.processed < TRANSACTIONS_TO_JUDGE {
        return None;
    }
    let busiest = measured.busiest_thread()?;
    let share = measured.client_delay_sum_ns() as f64 / measured.total.latency.sum_ns() as f64;
    let (reason, remedy) = if busiest > BUSY_LIMIT {
        let reason = format!("the busiest thread was {:.0}% busy", busiest * 100.0);
        (reason, "use more threads (--jobs) or another host")
    } else if share > DELAY_LIMIT {
        let reason = "its threads came late to what the server had answered".to_owned();
        (reason, "use another host, or leave more of this one idle")
    } else {
        return None;
    };
    Some(format!(
        "pgmark may be the bottleneck: {reason}; latency may be too high by up to the client delay, \
         {:.0}% of it; {remedy}",
        share * 100.0
    ))
}

fn blocked_sends(measured: &Measured) -> Option<String> {
    let sends: u64 = measured
        .workers
        .iter()
        .map(|worker| worker.blocked_sends)
        .sum();
    let blocked_ns: u64 = measured
        .workers
        .iter()
        .map(|worker| worker.blocked_ns)
        .sum();
    (sends > 0).then(|| {
        format!(
            "threads waited {sends} times, {:.3} s in all, for measurements to be taken from them \
             (is the log on a slow disk?); latency and throughput are affected",
            blocked_ns as f64 / 1e9
        )
    })
}

/// A run that writes without the checkpoint that its writing makes due looks better than the
/// server can do for long.
fn no_checkpoint(result: &RunResult) -> Option<String> {
    let activity = result.facts.server.as_ref()?;
    let window_ns = result.measured.window?.nanos();
    let ServerActivity {
        checkpoints: Some(0),
        wal_bytes: Some(wal_bytes),
        checkpoint_timeout: Some(timeout),
        ..
    } = activity
    else {
        return None;
    };
    let writes = *wal_bytes >= WAL_OF_A_WRITE_BYTES * result.measured.total.processed.max(1);
    let short = u128::from(window_ns) < timeout.as_nanos();
    (writes && short).then(|| {
        let longer = match result.facts.stop {
            StopRule::Time(_) => "--time",
            StopRule::Transactions(_) => "--transactions",
        };
        format!(
            "no checkpoint fell into this run; over more than checkpoint_timeout ({} s) the server \
             may be slower: run longer ({longer})",
            timeout.as_secs()
        )
    })
}

/// Dates are made of the wall clock as it was at the start; durations never are.
fn stepped_clock(result: &RunResult) -> Option<String> {
    // Dates are in the logs alone.
    result.measured.logs.first()?;
    let step_ns = result.facts.wall_step_ns;
    (step_ns.unsigned_abs() > STEP_LIMIT_NS).then(|| {
        format!(
            "the wall clock was stepped by {:+.1} s during the run: completed_utc in the log is \
             off by up to that, no duration is",
            step_ns as f64 / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing;
    use super::*;
    use crate::event::WorkerRecord;

    /// The warnings of `result` that contain `words`.
    fn about(result: &RunResult, words: &str) -> usize {
        warnings(result)
            .iter()
            .filter(|warning| warning.contains(words))
            .count()
    }

    #[test]
    fn a_good_run_has_none() {
        assert_eq!(warnings(&testing::timed()), Vec::<String>::new());
        assert_eq!(warnings(&testing::several_scripts()), Vec::<String>::new());
    }

    #[test]
    fn a_busy_thread_and_long_client_delay_name_the_remedy() {
        let with = |change: fn(&mut WorkerRecord, u64), processed| {
            let mut result = testing::timed();
            let latency_ns = result.measured.total.latency.sum_ns() as u64;
            result.measured.total.processed = processed;
            change(&mut result.measured.workers[0], latency_ns);
            result
        };
        let busy = |worker: &mut WorkerRecord, _| worker.busy_ns = 81_000_000;
        let result = with(busy, TRANSACTIONS_TO_JUDGE);
        assert_eq!(about(&result, "the busiest thread was 81% busy"), 1);
        assert_eq!(about(&result, "use more threads (--jobs)"), 1);
        assert_eq!(
            about(&with(busy, TRANSACTIONS_TO_JUDGE - 1), "bottleneck"),
            0
        );

        let late = |worker: &mut WorkerRecord, latency_ns| worker.delay_sum_ns = latency_ns / 10;
        let result = with(late, TRANSACTIONS_TO_JUDGE);
        assert_eq!(about(&result, "up to the client delay, 10% of it"), 1);
        assert_eq!(about(&result, "--jobs"), 0, "no thread is busy");
    }

    #[test]
    fn clients_that_have_no_values_left_are_told() {
        let mut result = testing::timed();
        result.measured.clients[0].end = ClientEnd::RanOut;
        assert_eq!(about(&result, "clients ended early, since"), 1);
    }

    #[test]
    fn client_delay_is_no_share_of_a_latency_that_nobody_had() {
        for mut result in [testing::nothing_attempted(), testing::all_failed()] {
            for worker in &mut result.measured.workers {
                worker.delay_sum_ns = 1_000_000;
                worker.busy_ns = worker.observed_ns;
            }
            assert_eq!(result.measured.total.processed, 0);
            assert_eq!(about(&result, "bottleneck"), 0);
        }
    }

    #[test]
    fn lost_rows_blocked_threads_and_dead_clients_are_told() {
        let mut result = testing::timed();
        result.measured.logs = vec![testing::cut_log(700, 300)];
        result.measured.workers[1].blocked_sends = 3;
        result.measured.workers[1].blocked_ns = 1_500_000_000;
        assert_eq!(
            about(
                &result,
                "\"run.csv\" lacks 300 of 1000 rows: no storage space"
            ),
            1
        );
        assert_eq!(about(&result, "waited 3 times, 1.500 s in all"), 1);
        assert_eq!(
            about(&testing::nothing_attempted(), "2 of 2 clients were aborted"),
            1
        );
        assert_eq!(
            about(&testing::all_failed(), "all 10 transactions failed"),
            1
        );
    }

    #[test]
    fn a_step_of_the_wall_clock_is_told_if_it_is_more_than_slewing() {
        for (step_ns, words, times) in [
            (1_500_000_000, "stepped by +1.5 s during the run", 1),
            (-3_600_000_000_000, "stepped by -3600.0 s", 1),
            (1_000_000_000, "wall clock", 0),
            (-20_000_000, "wall clock", 0),
        ] {
            let mut result = testing::timed();
            result.facts.wall_step_ns = step_ns;
            assert_eq!(about(&result, "wall clock"), 0, "no log has a date");
            result.measured.logs = vec![testing::cut_log(700, 300)];
            assert_eq!(about(&result, words), times, "{step_ns}");
        }
    }

    #[test]
    fn under_the_name_pgbench_only_what_got_lost_is_told() {
        let mut result = testing::as_pgbench(testing::all_failed());
        assert_eq!(warnings(&result), Vec::<String>::new());
        result.measured.logs = vec![testing::cut_log(700, 300)];
        assert_eq!(warnings(&result).len(), 1);
    }

    #[test]
    fn a_short_run_that_writes_should_see_a_checkpoint() {
        let with = |checkpoints, wal_bytes, timeout_s| {
            let mut result = testing::timed();
            if let Some(server) = &mut result.facts.server {
                server.checkpoints = checkpoints;
                server.wal_bytes = wal_bytes;
                server.checkpoint_timeout = Some(Duration::from_secs(timeout_s));
            }
            about(&result, "no checkpoint fell into this run")
        };
        assert_eq!(with(Some(0), Some(10_000_000), 300), 1);
        assert_eq!(with(Some(0), Some(10_000_000), 5), 0);
        assert_eq!(with(Some(1), Some(10_000_000), 300), 0);
        assert_eq!(with(Some(0), Some(1_000), 300), 0);
        assert_eq!(with(None, None, 300), 0);
    }
}
