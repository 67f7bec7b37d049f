//! The schedule of a rate: when each transaction is due. One timeline for all clients of all
//! threads, drawn from the throttle stream of thread 0, so that with one thread it is pgbench's to
//! the microsecond, and with several no thread queues while another idles.
//!
//! The only lock that clients share, taken once a transaction and only under a rate.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Generator;
use crate::time::Timestamp;

/// When transactions are due.
#[derive(Debug)]
pub struct Schedule {
    rate: f64,
    timeline: Mutex<Timeline>,
}

#[derive(Debug)]
struct Timeline {
    /// The slots that were not drawn yet. Before the start the last one lies at the end of time.
    slots: Slots,
    /// The beginning of the measured window.
    window_begins: Timestamp,
    /// Slots of the window that were drawn, less those that were given back.
    taken: u64,
    /// All slots of the window, once the first of them was drawn.
    window: Option<Slots>,
}

/// Slots in their order.
#[derive(Clone, Debug)]
pub struct Slots {
    generator: Generator,
    /// Mean distance of two slots, µs.
    mean_gap_us: f64,
    /// The one before the next.
    last: Timestamp,
}

/// What a schedule owes in a part of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
                slots: Slots {
                    generator,
                    mean_gap_us: 1e6 / rate,
                    last: Timestamp::MAX,
                },
                window_begins: Timestamp::MAX,
                taken: 0,
                window: None,
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
        timeline.slots.last = start;
        timeline.window_begins = window_begins;
    }

    /// The next slot, for the client that asks at `now`. A backlog from before the window does not
    /// cross its beginning.
    pub fn draw(&self, now: Timestamp) -> Timestamp {
        let mut timeline = self.lock();
        if now >= timeline.window_begins {
            timeline.leave_backlog();
        }
        let before = timeline.slots.clone();
        let slot = timeline.slots.next();
        if slot >= timeline.window_begins {
            timeline.taken += 1;
            timeline.window.get_or_insert(before);
        }
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
        let timeline = self.lock();
        let (mut rest, taken) = (timeline.undrawn_of_window(), timeline.taken);
        drop(timeline);
        let untaken = rest.count_until(end);
        Due {
            slots: taken + untaken.slots,
            ..untaken
        }
    }

    /// The slots of the window, taken or not, from its beginning. To be asked once it has begun.
    pub fn of_window(&self) -> Slots {
        let timeline = self.lock();
        let drawn = timeline.window.clone();
        drawn.unwrap_or_else(|| timeline.undrawn_of_window())
    }

    fn lock(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timeline {
    /// Slots from before the window are not drawn any more.
    fn leave_backlog(&mut self) {
        self.slots.last = self.slots.last.max(self.window_begins);
    }

    fn undrawn_of_window(&self) -> Slots {
        let mut slots = self.slots.clone();
        slots.last = slots.last.max(self.window_begins);
        slots
    }
}

impl Slots {
    /// Passes over the slots before `end` and counts them.
    pub fn count_until(&mut self, end: Timestamp) -> Due {
        for slots in 0..BACKLOG_DRAWN_MAX {
            let before = self.clone();
            if self.next() >= end {
                *self = before;
                return Due {
                    slots,
                    approximate: false,
                };
            }
        }
        let rest_us = end.nanos_since(self.last) as f64 / 1e3;
        self.last = end;
        Due {
            slots: BACKLOG_DRAWN_MAX + (rest_us / self.mean_gap_us) as u64,
            approximate: true,
        }
    }

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
    fn the_slots_of_the_window_can_be_counted_part_by_part_however_they_were_drawn() {
        let (begins, later) = (at_us(100_000), at_us(120_000));
        // 30006, 61342, 122313, 134966, 145874 …
        for drawn_at in [vec![], vec![at_us(0); 4], vec![at_us(0), later, later]] {
            let schedule = of_seed_42(50.0);
            schedule.start(Timestamp::ZERO, begins);
            drawn_at.iter().for_each(|&now| {
                schedule.draw(now);
            });
            let mut slots = schedule.of_window();
            let whole = slots.clone().count_until(at_us(3_000_000));
            let parts: Vec<u64> = (1..=3)
                .map(|second| slots.count_until(at_us(second * 1_000_000)).slots)
                .collect();
            assert_eq!(parts.iter().sum::<u64>(), whole.slots);
            assert_eq!(whole, schedule.due_until(at_us(3_000_000)), "{drawn_at:?}");
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
