//! What the user must know before believing a figure: for standard error, never for the summary,
//! which others parse.

use crate::event::ClientEnd;
use crate::plan::StopRule;
use crate::program::Program;
use crate::result::{LogResult, Measured, RunResult, ServerActivity};
use crate::time::Timestamp;

/// A thread busier than this leaves replies lying.
const BUSY_LIMIT: f64 = 0.80;
/// Above this share of all latency, client delay is visible in the figures.
const DELAY_LIMIT: f64 = 0.05;
/// Fewer transactions than this say nothing about the client: the first ones wait for memory.
const TRANSACTIONS_TO_JUDGE: u64 = 100;
/// Nor does a shorter window, in which one pause of the host weighs much.
const WINDOW_TO_JUDGE_NS: u64 = 1_000_000_000;
/// Skipping more than this share of what was due is no accident of a moment.
const SKIPPED_LIMIT: f64 = 0.01;
/// A wall clock that is only slewed differs by less.
const STEP_LIMIT_NS: u64 = 1_000_000_000;
/// WAL of a transaction that writes; readers cause less, by hint bits and the server's own work.
const WAL_OF_A_WRITE_BYTES: u64 = 100;
/// Less WAL than this is what a server writes by itself.
const WAL_OF_A_RUN_BYTES: u64 = 1_000_000;

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
        ran_out(result),
        not_recovered(measured),
        behind_schedule(result),
        saturation(measured),
        blocked_sends(measured),
        no_checkpoint(result),
        other_commits(result),
        stepped_clock(result),
    ];
    lost_rows.chain(others).flatten().collect()
}

fn lost_rows(log: &LogResult) -> Option<String> {
    let failure = log.failure.as_ref()?;
    Some(format!(
        "the log \"{}\" lacks {} of {} rows: {failure}",
        log.path,
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

/// Since when fewer clients work than were asked for, and of which file.
fn ran_out(result: &RunResult) -> Option<String> {
    let measured = &result.measured;
    let begins = measured.window?.begins;
    let clients = measured.clients.iter();
    let ended = clients.filter(|client| client.end == ClientEnd::RanOut);
    let ends: Vec<Timestamp> = ended.map(|client| client.last_end).collect();
    let first_s = ends.iter().min()?.nanos_since(begins) as f64 / 1e9;
    let files = result.facts.exhausted_values.iter();
    let files: Vec<String> = files.map(|path| format!("\"{path}\"")).collect();
    Some(format!(
        "{} of {} clients ended early, the first of them {first_s:.3} s after the measured time began: \
         {} had no row (left) for them",
        ends.len(),
        measured.clients.len(),
        files.join(" and ")
    ))
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

/// More due transactions were left than the clients can have had under way, or many were skipped.
fn behind_schedule(result: &RunResult) -> Option<String> {
    let schedule = result.facts.schedule.as_ref()?;
    let (due, skipped) = (schedule.due.slots, result.measured.total.skipped);
    let abandoned = schedule.abandoned(&result.measured.total);
    let left = abandoned > u64::from(result.facts.clients);
    if !left && skipped as f64 <= SKIPPED_LIMIT * due as f64 {
        return None;
    }
    let what = match skipped {
        0 => format!("{abandoned} of {due} that were due never began"),
        skipped => format!(
            "of {due} that were due, {skipped} were skipped since they were too late (-L), and \
             {abandoned} others never began"
        ),
    };
    Some(format!(
        "could not keep up with {} transactions a second: {what}; use more clients (-c) if the server \
         can do more, or a lower rate (-R)",
        schedule.rate
    ))
}

/// The client itself may be what is measured. More threads help only where one is busy; where none
/// is, it is the host that lets them wait for a processor.
fn saturation(measured: &Measured) -> Option<String> {
    let long_enough = measured.window?.nanos() >= WINDOW_TO_JUDGE_NS;
    if !long_enough || measured.total.processed < TRANSACTIONS_TO_JUDGE {
        return None;
    }
    let busiest = measured.busiest_thread()?;
    let total = &measured.total;
    let latency_ns = total.latency.sum_ns() + total.failed_latency.sum_ns();
    let share = measured.client_delay_sum_ns() as f64 / latency_ns as f64;
    let (reason, remedy) = if busiest > BUSY_LIMIT {
        let reason = format!("the busiest thread was {:.0}% busy", busiest * 100.0);
        (reason, "use more threads (--jobs) or another host")
    } else if share > DELAY_LIMIT {
        let reason = "its threads came late to what the server had answered".to_owned();
        (reason, "use another host, or leave more of this one idle")
    } else {
        return None;
    };
    // Not all of the delay is in the latency: none of that after a transaction's last reply.
    let effect = match share < 1.0 {
        true => format!(
            "latency may be too high by up to the client delay, {:.0}% of it",
            share * 100.0
        ),
        false => "clients waited for it longer than for the server".to_owned(),
    };
    Some(format!(
        "pgmark may be the bottleneck: {reason}; {effect}; {remedy}"
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

/// The server counts commits by itself.
fn other_commits(result: &RunResult) -> Option<String> {
    let (counted, ours) = result.facts.server.as_ref()?.commits_apart()?;
    Some(format!(
        "the server counted {counted} commits in this database during the run, and the transactions that \
         pgmark saw make {ours}: others were at work there, or a pooler or trigger commits more or less \
         than the script says"
    ))
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
    let least = WAL_OF_A_WRITE_BYTES * result.measured.total.processed;
    let writes = *wal_bytes >= least.max(WAL_OF_A_RUN_BYTES);
    let short = u128::from(window_ns) < timeout.as_nanos();
    (writes && short).then(|| {
        let timeout_s = timeout.as_secs();
        let remedy = match result.facts.stop {
            StopRule::Time(_) => format!("run for at least that long (-T {timeout_s})"),
            StopRule::Transactions(_) => "run for at least that long".to_owned(),
        };
        format!(
            "no checkpoint fell into this run, and the server begins one every {timeout_s} s \
             (checkpoint_timeout): what that costs is in no figure; {remedy}"
        )
    })
}

/// Moments are made of the wall clock as it was at the start; durations never are.
fn stepped_clock(result: &RunResult) -> Option<String> {
    let step_ns = result.facts.wall_step_ns;
    (result.facts.logs_moments && step_ns.unsigned_abs() > STEP_LIMIT_NS).then(|| {
        format!(
            "the wall clock was stepped by {:+.1} s during the run: when transactions ended may be off \
             by that in the log; no duration is",
            step_ns as f64 / 1e9
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing;
    use super::*;
    use crate::collector::testing::at;
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
        let mut short = with(busy, TRANSACTIONS_TO_JUDGE);
        if let Some(window) = &mut short.measured.window {
            window.ends = window.begins + Duration::from_millis(999);
        }
        assert_eq!(about(&short, "bottleneck"), 0);

        let late = |worker: &mut WorkerRecord, latency_ns| worker.delay_sum_ns = latency_ns / 10;
        let result = with(late, TRANSACTIONS_TO_JUDGE);
        assert_eq!(about(&result, "up to the client delay, 10% of it"), 1);
        assert_eq!(about(&result, "--jobs"), 0, "no thread is busy");
    }

    #[test]
    fn clients_that_have_no_values_left_are_told_with_the_file() {
        let mut result = testing::timed();
        result.facts.exhausted_values = vec!["keys.csv".to_owned()];
        for (client, end_ms) in [(0, 1_500), (2, 3_000)] {
            let ran_out = &mut result.measured.clients[client];
            (ran_out.end, ran_out.last_end) = (ClientEnd::RanOut, at(end_ms));
        }
        let expected = "2 of 4 clients ended early, the first of them 1.500 s after the measured time \
                        began: \"keys.csv\" had no row (left) for them";
        assert_eq!(about(&result, expected), 1);
    }

    #[test]
    fn a_rate_that_is_too_high_is_told_with_all_that_was_not_done() {
        let with = |skipped, abandoned| {
            let mut result = testing::scheduled();
            result.measured.total.skipped = skipped;
            let recorded = result.measured.total.recorded();
            if let Some(schedule) = &mut result.facts.schedule {
                schedule.due.slots = recorded + abandoned;
            }
            let told = warnings(&result).into_iter();
            told.filter(|text| text.starts_with("could not keep up"))
                .collect::<String>()
        };
        assert_eq!(with(2, 1), "", "a moment's delay, and what was under way");
        assert!(with(0, 3).contains("transactions a second: 3 of "));
        assert!(
            with(40, 3).contains(" 40 were skipped since they were too late (-L), and 3 others")
        );
        assert!(with(40, 0).contains(" 40 were skipped"));
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
            assert_eq!(about(&result, "wall clock"), 0, "no log tells moments");
            result.facts.logs_moments = true;
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
        assert_eq!(with(Some(0), Some(999_999), 300), 0);
        assert_eq!(with(None, None, 300), 0);
    }
}
