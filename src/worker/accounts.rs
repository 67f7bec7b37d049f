//! What a worker accounts for: the events of its clients on their way to the collector, and how busy
//! the thread was. It neither waits for anything nor acts on a client.

use std::time::Duration;

use super::delay::Delays;
use super::recorder::Recorder;
use crate::event::{Event, SqlState, WorkerRecord};
use crate::time::{Clock, Timestamp};

/// The collector hears from each worker at least this often.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The accounts of one worker.
#[derive(Debug)]
pub struct Accounts {
    /// Where records and messages go.
    pub recorder: Recorder,
    /// Where client delays go.
    pub delays: Delays,
    /// SQLSTATEs of failed transactions that this thread has told of.
    pub told: Vec<SqlState>,
    clock: Clock,
    flushed_at: Timestamp,
    waited_ns: u64,
}

impl Accounts {
    /// Accounts without an entry.
    pub fn new(recorder: Recorder, clock: Clock) -> Self {
        Accounts {
            recorder,
            delays: Delays::default(),
            told: Vec::new(),
            clock,
            flushed_at: Timestamp::ZERO,
            waited_ns: 0,
        }
    }

    /// Sends what has been recorded if that is due. Returns the moment after it, so that a send
    /// that had to wait counts as time that the thread was busy.
    pub fn flush_if_due(&mut self) -> Timestamp {
        let now = self.clock.now();
        if now < self.flush_due_at() {
            return now;
        }
        self.recorder.flush();
        self.flushed_at = now;
        self.clock.now()
    }

    /// When the collector is to hear from this worker again.
    pub fn flush_due_at(&self) -> Timestamp {
        self.flushed_at + FLUSH_INTERVAL
    }

    /// Adds time of the measured window in which there was nothing to do, ns.
    pub fn add_wait(&mut self, waited_ns: u64) {
        self.waited_ns += waited_ns;
    }

    /// Sends the last word of `worker`, which ends at `now` and was in the measured window for
    /// `observed_ns`.
    pub fn close(&mut self, worker: u32, observed_ns: u64, now: Timestamp) {
        let (blocked_sends, blocked_ns) = self.recorder.blocked();
        self.recorder.record(Event::WorkerDone(WorkerRecord {
            worker,
            busy_ns: observed_ns.saturating_sub(self.waited_ns),
            observed_ns,
            delays: self.delays.count(),
            delay_sum_ns: self.delays.sum_ns(),
            delay_p99_ns: self.delays.p99_ns(),
            delay_max_ns: self.delays.max_ns(),
            blocked_sends,
            blocked_ns,
        }));
        self.recorder.advance_to(now);
        self.recorder.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToCollector;
    use crossbeam_channel::unbounded;

    fn at_ms(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_collector_hears_at_each_interval_and_in_the_end_how_busy_the_thread_was() {
        let (sender, reports) = unbounded();
        let (_, emptied) = unbounded();
        let clock = Clock::manual(0);
        let recorder = Recorder::new(3, sender, emptied, clock.clone());
        let mut accounts = Accounts::new(recorder, clock.clone());
        for (ms, sent) in [(99, 0), (100, 1), (199, 0), (250, 1), (349, 0)] {
            clock.set(at_ms(ms));
            assert_eq!(accounts.flush_if_due(), at_ms(ms));
            assert_eq!(reports.try_iter().count(), sent, "{ms} ms");
        }
        assert_eq!(accounts.flush_due_at(), at_ms(350));
        accounts.add_wait(30);
        accounts.add_wait(40);
        accounts.close(3, 100, at_ms(400));
        let Ok(ToCollector::Batch(last)) = reports.try_recv() else {
            panic!("the last word has been sent");
        };
        let [Event::WorkerDone(record)] = last.events[..] else {
            panic!("it is the only event: {:?}", last.events);
        };
        assert_eq!(
            (record.worker, record.busy_ns, record.observed_ns),
            (3, 30, 100)
        );
        assert_eq!(last.complete_through, at_ms(400));
    }
}
