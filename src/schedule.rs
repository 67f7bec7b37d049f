//! The schedule of a rate: when each transaction is due. One timeline for all clients of all
//! threads, drawn from the throttle stream of thread 0, so that with one thread it is pgbench's to
//! the microsecond, and with several no thread queues while another idles.
//!
//! The only lock that clients share, taken once a transaction and only under a rate.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::random::Generator;
use crate::time::Timestamp;

/// When transactions are due.
#[derive(Debug)]
pub struct Schedule {
    rate: f64,
    timeline: Mutex<Timeline>,
}

#[derive(Clone, Debug)]
struct Timeline {
    generator: Generator,
    /// Mean distance of two slots, µs.
    mean_gap_us: f64,
    /// The last slot drawn. Before the start it lies at the end of time.
    last: Timestamp,
    /// The beginning of the measured window.
    window_begins: Timestamp,
    /// Slots of the window that were drawn, less those that were given back.
    taken: u64,
}

/// What a schedule owed from the beginning of the measured window to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Slots.
    pub slots: u64,
    /// There were too many to draw them all: the rest was taken as rate × time.
    pub approximate: bool,
}

/// Slots that nobody took are drawn up to so many when the run is over, which takes some tenths of
/// a second; of more than that a count to the last one is no news. A number of slots, not a time,
/// so that the same seed gives the same figure everywhere.
const BACKLOG_DRAWN_MAX: u64 = 10_000_000;

impl Schedule {
    /// A schedule of `rate` transactions a second.
    pub fn new(rate: f64, generator: Generator) -> Self {
        Schedule {
            rate,
            timeline: Mutex::new(Timeline {
                generator,
                mean_gap_us: 1e6 / rate,
                last: Timestamp::MAX,
                window_begins: Timestamp::MAX,
                taken: 0,
            }),
        }
    }

    /// Transactions a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The clients are released at `start`, the measured window begins at `window_begins`.
    pub fn start(&self, start: Timestamp, window_begins: Timestamp) {
        let mut timeline = self.lock();
        timeline.last = start;
        timeline.window_begins = window_begins;
    }

    /// The next slot, for the client that asks at `now`. A backlog from before the window does not
    /// cross its beginning.
    pub fn draw(&self, now: Timestamp) -> Timestamp {
        let mut timeline = self.lock();
        if now >= timeline.window_begins {
            timeline.last = timeline.last.max(timeline.window_begins);
        }
        let slot = timeline.next();
        timeline.taken += u64::from(slot >= timeline.window_begins);
        slot
    }

    /// The client that drew `slot` will not use it, because the run ends before it.
    pub fn give_back(&self, slot: Timestamp) {
        let mut timeline = self.lock();
        timeline.taken -= u64::from(slot >= timeline.window_begins);
    }

    /// What was due by transactions that were counted: the slots that clients took.
    pub fn taken(&self) -> Due {
        Due {
            slots: self.lock().taken,
            approximate: false,
        }
    }

    /// What was due until `end`: the slots that clients took, and those that nobody took. These are
    /// still there afterwards.
    pub fn due_until(&self, end: Timestamp) -> Due {
        let mut timeline = self.lock().clone();
        timeline.last = timeline.last.max(timeline.window_begins);
        for drawn in 0..BACKLOG_DRAWN_MAX {
            if timeline.next() >= end {
                return Due {
                    slots: timeline.taken + drawn,
                    approximate: false,
                };
            }
        }
        let rest_ns = end.nanos_since(timeline.last) as f64;
        Due {
            slots: timeline.taken + BACKLOG_DRAWN_MAX + (rest_ns / 1e9 * self.rate) as u64,
            approximate: true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timeline {
    fn next(&mut self) -> Timestamp {
        let gap_us = self.generator.exponential_gap(self.mean_gap_us);
        self.last = self.last + Duration::from_micros(gap_us);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeds;

    fn at_us(us: u64) -> Timestamp {
        Timestamp::from_nanos(us * 1000)
    }

    fn of_seed_42(rate: f64) -> Schedule {
        let seeds = Seeds::draw(42, 1, 1, false);
        let schedule = Schedule::new(rate, Generator::new(seeds.threads[0].throttle));
        schedule.start(Timestamp::ZERO, Timestamp::ZERO);
        schedule
    }

    #[test]
    fn with_one_thread_the_slots_are_those_of_pgbench() {
        let schedule = of_seed_42(50.0);
        let mut before = Timestamp::ZERO;
        for gap_us in [30006, 31336, 60971, 12653, 10908, 2388, 1524, 14183] {
            let slot = schedule.draw(Timestamp::ZERO);
            assert_eq!(slot - before, Duration::from_micros(gap_us));
            before = slot;
        }
    }

    #[test]
    fn what_is_due_are_the_slots_before_the_end_taken_or_not() {
        let schedule = of_seed_42(50.0);
        schedule.draw(Timestamp::ZERO);
        schedule.draw(Timestamp::ZERO);
        assert_eq!(schedule.taken().slots, 2);
        // 30006, 61342, 122313, 134966, 145874 …
        for (end_us, slots) in [(140_000, 4), (134_967, 4), (134_966, 3), (61_343, 2)] {
            let due = schedule.due_until(at_us(end_us));
            assert_eq!((due.slots, due.approximate), (slots, false), "{end_us}");
        }
    }

    #[test]
    fn a_slot_given_back_was_not_due() {
        let schedule = of_seed_42(50.0);
        schedule.draw(Timestamp::ZERO);
        let late = schedule.draw(Timestamp::ZERO);
        schedule.give_back(late);
        assert_eq!(schedule.taken().slots, 1);
    }

    #[test]
    fn no_backlog_crosses_the_beginning_of_the_window() {
        let schedule = of_seed_42(50.0);
        schedule.start(Timestamp::ZERO, at_us(1_000_000));
        assert!(schedule.draw(at_us(5)) < at_us(1_000_000));
        assert!(schedule.draw(at_us(2_000_000)) >= at_us(1_000_000));
        assert_eq!(schedule.taken().slots, 1);
    }

    #[test]
    fn an_absurd_rate_is_not_drawn_to_its_end() {
        let schedule = of_seed_42(1e9);
        // Gaps are whole microseconds, nearly all of them 0.
        let due = schedule.due_until(at_us(10_000_000_000));
        assert!(due.approximate);
        assert!(due.slots > 1_000_000_000);
        assert_eq!(schedule.due_until(at_us(10_000_000_000)), due);
    }
}
