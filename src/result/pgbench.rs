//! What versions of pgbench would have printed of a run: formulas of others, kept apart from ours.

use super::{Facts, RunResult};
use crate::plan::deal;

/// What versions of pgbench would have printed of a run, for those who go on with an archive of
/// their figures. None of them is what its name says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PgbenchFigures {
    /// Up to 13, "including connections establishing": n / T.
    pub including: f64,
    /// Up to 13, "excluding connections establishing": n / (T − K/C). K is a sum over threads, but
    /// divided by the number of clients; without any time left it is not finite.
    pub excluding: f64,
    /// Latencies derived from the time of the whole run, where pgbench did not measure any.
    pub derived: Option<DerivedLatency>,
}

/// Latencies that pgbench derived, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DerivedLatency {
    /// Up to 13: T · C / transactions, so that connecting is in it.
    pub up_to_13_ns: f64,
    /// 14 to 18: D · C / attempted.
    pub from_14_ns: f64,
}

impl Facts {
    /// Without progress, a rate or a latency limit pgbench measures no latency.
    pub fn pgbench_measures(&self) -> bool {
        self.progress || self.schedule.is_some() || self.latency_limit.is_some()
    }
}

impl RunResult {
    /// The figures of pgbench 13 to 18; `None` where nothing was attempted.
    ///
    /// n are the processed transactions, C the clients. D is the time from W1 to the end of the last
    /// transaction, T the same and connecting before the start. K is the time from the first connect
    /// until a thread's last client was connected, summed over the threads, and all connecting and
    /// disconnecting in the window.
    pub fn pgbench_figures(&self) -> Option<PgbenchFigures> {
        let (facts, measured) = (&self.facts, &self.measured);
        let window = measured.window?;
        let attempted = measured.total.attempted();
        let ends = measured.clients.iter().map(|client| client.ends).max()?;
        if attempted == 0 {
            return None;
        }
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let elapsed_s = seconds(ends.nanos_since(window.begins));
        let connecting = measured.initial_connection_time().unwrap_or_default();
        let whole_s = elapsed_s + connecting.as_secs_f64();
        let in_window_ns = measured.clients.iter().map(|client| client.connecting_ns);
        let connecting_s = seconds(self.connecting_of_threads_ns() + in_window_ns.sum::<u64>());
        let clients = f64::from(facts.clients);
        let processed = measured.total.processed as f64;
        Some(PgbenchFigures {
            including: processed / whole_s,
            excluding: processed / (whole_s - connecting_s / clients),
            derived: (!facts.pgbench_measures()).then(|| DerivedLatency {
                up_to_13_ns: whole_s * 1e9 * clients / attempted as f64,
                from_14_ns: elapsed_s * 1e9 * clients / attempted as f64,
            }),
        })
    }

    /// Σ over threads: from the first connect until the last client of the thread was connected.
    /// Under `-C` nothing connects before the start.
    fn connecting_of_threads_ns(&self) -> u64 {
        let Some(first) = self.measured.first_connect_at else {
            return 0;
        };
        let (clients, threads) = (self.facts.clients, self.facts.threads);
        let of_thread = |thread| {
            let connected = deal(clients, threads, thread)
                .filter_map(|client| self.measured.clients.get(client as usize)?.connected_at);
            connected.max().map_or(0, |last| last.nanos_since(first))
        };
        (0..threads).map(of_thread).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::three_transactions;
    use super::*;
    use crate::collector::testing::Story;
    use crate::event::SpanKind;
    use crate::plan::StopRule;
    use crate::stats::Stats;

    /// A run of three clients on one thread: connecting took 3 s, then each did a transaction of
    /// 10 ms every 10 ms for a second.
    fn slow_to_connect() -> RunResult {
        let stop = StopRule::Time(Duration::from_secs(1));
        let mut story = Story::of_seconds(3, 1);
        for client in 0..3 {
            let second = 1_000 * i64::from(client);
            story.span(client, SpanKind::Connect, second - 3_000, second - 2_000);
            story.works(client, 10, 0, 1_000);
        }
        let mut result = three_transactions();
        result.facts.clients = 3;
        result.facts.stop = stop;
        result.measured = story.tell();
        result
    }

    #[test]
    fn what_pgbench_would_have_printed_follows_from_the_times_of_the_clients() {
        // n 300, C 3, T 4 s, D 1 s; K is 3 s on one thread, and 2 + 3 s on two.
        let figures = slow_to_connect().pgbench_figures().unwrap();
        assert_eq!((figures.including, figures.excluding), (75.0, 100.0));
        assert_eq!(
            figures.derived,
            Some(DerivedLatency {
                up_to_13_ns: 40e6,
                from_14_ns: 10e6
            })
        );
        let mut on_two = slow_to_connect();
        on_two.facts.threads = 2;
        on_two.facts.progress = true;
        let figures = on_two.pgbench_figures().unwrap();
        let expected = 300.0 / (4.0 - 5.0 / 3.0);
        assert!((figures.excluding - expected).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.derived, None, "with progress pgbench measures");

        let mut nothing = slow_to_connect();
        nothing.measured.total = Stats::default();
        assert_eq!(nothing.pgbench_figures(), None);
    }
}
