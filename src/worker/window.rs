//! The measured window as one worker sees it: what has begun, what may begin, what has to end.

use crate::event::Phase;
use crate::plan::{Load, StopRule};
use crate::time::Timestamp;

/// The measured window. Before the start nothing lies in it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    ramp_ends: Timestamp,
    begins: Timestamp,
    ends: Timestamp,
    /// A stop signal came: nothing new begins.
    pub stopping: bool,
    /// What was under way at the stop has been cancelled.
    pub cancelling: bool,
    /// What was not finished by the cancellation is being closed.
    pub closing: bool,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            ramp_ends: Timestamp::MAX,
            begins: Timestamp::MAX,
            ends: Timestamp::MAX,
            stopping: false,
            cancelling: false,
            closing: false,
        }
    }
}

impl Window {
    /// The window of a run whose clients are released at `start`.
    pub fn starting_at(start: Timestamp, load: &Load) -> Self {
        let begins = start + load.lead_in.total();
        Window {
            ramp_ends: start + load.lead_in.ramp,
            begins,
            ends: match load.stop {
                StopRule::Time(time) => begins + time,
                StopRule::Transactions(_) => Timestamp::MAX,
            },
            ..Window::default()
        }
    }

    /// Whether the clients have been released.
    pub fn started(&self) -> bool {
        self.begins != Timestamp::MAX
    }

    /// Its beginning (W1).
    pub fn begin(&self) -> Timestamp {
        self.begins
    }

    /// Its end, where that is known.
    pub fn end(&self) -> Option<Timestamp> {
        (self.ends != Timestamp::MAX).then_some(self.ends)
    }

    /// Ends it at `moment` unless it ends earlier anyway.
    pub fn stop(&mut self, moment: Timestamp) {
        self.stopping = true;
        self.ends = self.ends.min(moment);
    }

    /// Whether a transaction may begin at `moment`.
    pub fn is_open(&self, moment: Timestamp) -> bool {
        !self.stopping && moment < self.ends
    }

    /// The part of the run that a transaction which begins (under a rate: is due) at `moment`
    /// belongs to.
    pub fn phase(&self, moment: Timestamp) -> Phase {
        if moment < self.ramp_ends {
            Phase::Ramp
        } else if moment < self.begins {
            Phase::Warmup
        } else {
            Phase::Run
        }
    }

    /// How much of the span from `from` to `to` lies in the window, ns.
    pub fn overlap_ns(&self, from: Timestamp, to: Timestamp) -> u64 {
        to.min(self.ends).nanos_since(from.max(self.begins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LeadIn;
    use std::time::Duration;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn nothing_overlaps_before_the_start() {
        let window = Window::default();
        assert!(!window.started());
        assert_eq!(window.overlap_ns(at(0), at(100)), 0);
    }

    #[test]
    fn it_ends_by_time_or_earlier_by_a_stop() {
        let load = Load::of_one_client(StopRule::Time(Duration::from_nanos(50)));
        let mut window = Window::starting_at(at(100), &load);
        assert!(window.is_open(at(149)) && !window.is_open(at(150)));
        assert_eq!(window.overlap_ns(at(90), at(400)), 50);
        window.stop(at(120));
        assert_eq!(window.overlap_ns(at(90), at(400)), 20);
        assert!(!window.is_open(at(110)));
        assert_eq!(window.end(), Some(at(120)));
    }

    #[test]
    fn ramp_and_warm_up_come_first_and_nothing_of_them_overlaps() {
        let load = Load {
            lead_in: LeadIn {
                ramp: Duration::from_nanos(10),
                warmup: Duration::from_nanos(20),
            },
            ..Load::of_one_client(StopRule::Time(Duration::from_nanos(50)))
        };
        let window = Window::starting_at(at(100), &load);
        let phases = [109, 110, 129, 130].map(|nanos| window.phase(at(nanos)));
        assert_eq!(
            phases,
            [Phase::Ramp, Phase::Warmup, Phase::Warmup, Phase::Run]
        );
        assert_eq!(window.overlap_ns(at(100), at(140)), 10);
        assert_eq!(window.end(), Some(at(180)));
    }
}
