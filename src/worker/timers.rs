//! Deadlines of one worker thread, precise to well under a millisecond.
//!
//! `Poll::poll` rounds a timeout up to whole milliseconds, which would appear as schedule lag and
//! as longer sleeps. So the earliest deadline is armed in a timer descriptor that the poll watches
//! like a socket; it is re-armed only when the earliest deadline changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::time::Timestamp;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// The client in this slot asked for it. It is stale, and ignored, unless the client still
    /// wants to be woken at this very moment.
    Client(usize),
    /// The measured window ends.
    WindowEnd,
    /// Transactions still under way after a stop signal are to be cancelled.
    CancelDue,
    /// Connections that are still open after that are closed.
    CloseDue,
    /// A client may have waited for the server too long.
    WaitsDue,
}

/// The deadlines of one thread, earliest first.
#[derive(Debug)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, Wake)>>,
    descriptor: OwnedFd,
    armed: Option<Timestamp>,
}

impl Timers {
    /// An empty set whose descriptor wakes the poll under `token`.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new(registry: &Registry, token: Token, capacity: usize) -> io::Result<Self> {
        let descriptor = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        registry.register(
            &mut SourceFd(&descriptor.as_raw_fd()),
            token,
            Interest::READABLE,
        )?;
        Ok(Timers {
            heap: BinaryHeap::with_capacity(capacity),
            descriptor,
            armed: None,
        })
    }

    /// Adds a deadline.
    pub fn add(&mut self, deadline: Timestamp, wake: Wake) {
        self.heap.push(Reverse((deadline, wake)));
    }

    /// The earliest deadline that is not later than `now`, removed from the set.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Wake)> {
        let Reverse((deadline, _)) = *self.heap.peek()?;
        if deadline > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Arms the descriptor for the earliest deadline, seen from `now`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn arm(&mut self, now: Timestamp) -> io::Result<()> {
        let earliest = self.heap.peek().map(|Reverse((deadline, _))| *deadline);
        if earliest == self.armed {
            return Ok(());
        }
        // A zero time would disarm the descriptor: what is due already is due in a nanosecond.
        let wait = earliest.map_or(Duration::ZERO, |deadline| {
            (deadline - now).max(Duration::from_nanos(1))
        });
        timerfd_settime(
            &self.descriptor,
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: timespec(Duration::ZERO),
                it_value: timespec(wait),
            },
        )?;
        self.armed = earliest;
        Ok(())
    }

    /// The descriptor has fired: whatever is earliest next has to be armed anew. Its counter need
    /// not be read, since the poll is edge-triggered and arming resets it.
    pub fn fired(&mut self) {
        self.armed = None;
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn deadlines_come_out_in_order_and_only_when_due() {
        let poll = Poll::new().unwrap();
        let mut timers = Timers::new(poll.registry(), Token(0), 4).unwrap();
        timers.add(at(30), Wake::Client(1));
        timers.add(at(10), Wake::Client(2));
        timers.add(at(20), Wake::WindowEnd);

        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(timers.pop_due(at(25)), Some((at(10), Wake::Client(2))));
        assert_eq!(timers.pop_due(at(25)), Some((at(20), Wake::WindowEnd)));
        assert_eq!(timers.pop_due(at(25)), None);
    }

    #[test]
    fn the_descriptor_wakes_the_poll_each_time_it_is_armed() {
        let mut poll = Poll::new().unwrap();
        let mut timers = Timers::new(poll.registry(), Token(7), 4).unwrap();
        let mut events = Events::with_capacity(4);
        for round in 0..3 {
            timers.add(at(round), Wake::WindowEnd);
            timers.arm(at(round)).unwrap();
            // Blocks for ever, and so fails the test run, if arming did nothing. Other tests of this
            // process send signals.
            while let Err(error) = poll.poll(&mut events, None) {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted);
            }
            assert!(events.iter().any(|event| event.token() == Token(7)));
            timers.fired();
            assert!(timers.pop_due(at(round)).is_some());
        }
    }
}
