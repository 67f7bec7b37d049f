//! When clients of a thread have waited too long for the server: what each waits for, and when to
//! look.
//!
//! Nothing is noted when a client begins to wait, so that steady state pays nothing: all clients are
//! looked at, but only when the one that has waited longest may have become overdue. Where nobody
//! waits for long that is once in the time that is long.

use std::time::Duration;

use crate::time::Timestamp;

/// A client that waits for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its number.
    pub client: u32,
    /// When it began to wait.
    pub since: Timestamp,
    /// For what.
    pub place: Place,
    /// The server's process for it, where that is known.
    pub process_id: Option<i32>,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The end of a command of a script.
    Command {
        /// Which script.
        script: usize,
        /// Which of its commands.
        command: usize,
    },
    /// The commands that the connection begins with.
    Greeting,
    /// A connection.
    Connecting,
}

/// Decides for one thread when to look at its clients, and when one is overdue: after its
/// patience, then each time that the longest wait has doubled.
#[derive(Debug)]
pub(super) struct Watchdog {
    patience: Duration,
    threshold: Duration,
}

/// What came of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Somebody is to be told.
    pub overdue: bool,
    /// When to look again.
    pub again_at: Timestamp,
}

impl Watchdog {
    pub fn new(patience: Duration) -> Self {
        Watchdog {
            patience,
            threshold: patience,
        }
    }

    /// Whether somebody who has waited since then is counted when another one is overdue. Those who
    /// wait for the same thing seldom began at the same moment.
    pub fn counts(&self, now: Timestamp, since: Timestamp) -> bool {
        now - since >= self.patience / 2
    }

    /// The one that waits longest has done so since `oldest`.
    pub fn look(&mut self, now: Timestamp, oldest: Option<Timestamp>) -> Look {
        let since = oldest.unwrap_or(now);
        let waited = now - since;
        if waited < self.patience {
            self.threshold = self.patience;
        }
        let overdue = waited >= self.threshold;
        while self.threshold <= waited {
            self.threshold *= 2;
        }
        Look {
            overdue,
            again_at: since + self.threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn second(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(seconds)
    }

    /// When it is told of a wait that lasts from `since` until `until`, s; who is asked says how
    /// often it looked, too.
    fn told(watchdog: &mut Watchdog, since: u64, until: u64) -> (Vec<u64>, usize) {
        let (mut moments, mut looks, mut now) = (Vec::new(), 0, second(since));
        while now < second(until) {
            let look = watchdog.look(now, Some(second(since)));
            if look.overdue {
                moments.push((now - second(since)).as_secs());
            }
            assert!(look.again_at > now, "it would look for ever");
            now = look.again_at;
            looks += 1;
        }
        (moments, looks)
    }

    #[test]
    fn a_wait_is_told_of_after_a_minute_and_whenever_it_has_doubled() {
        let mut watchdog = Watchdog::new(PATIENCE);
        assert_eq!(told(&mut watchdog, 0, 60), (vec![], 1));
        assert_eq!(told(&mut watchdog, 0, 500), (vec![60, 120, 240, 480], 5));
    }

    #[test]
    fn when_all_is_well_again_it_begins_anew() {
        let mut watchdog = Watchdog::new(PATIENCE);
        assert_eq!(told(&mut watchdog, 0, 130).0, [60, 120]);
        let look = watchdog.look(second(240), Some(second(239)));
        let expected = Look {
            overdue: false,
            again_at: second(299),
        };
        assert_eq!(look, expected);
        assert_eq!(told(&mut watchdog, 239, 300).0, [60]);
    }

    #[test]
    fn who_began_a_little_later_is_counted_too() {
        let watchdog = Watchdog::new(PATIENCE);
        assert!(watchdog.counts(second(100), second(41)));
        assert!(watchdog.counts(second(100), second(70)));
        assert!(!watchdog.counts(second(100), second(71)));
    }

    #[test]
    fn where_nobody_waits_it_looks_once_a_minute() {
        let mut watchdog = Watchdog::new(PATIENCE);
        for (now, oldest) in [(60, None), (120, Some(120)), (180, Some(181))] {
            let look = watchdog.look(second(now), oldest.map(second));
            let since = oldest.unwrap_or(now);
            let expected = Look {
                overdue: false,
                again_at: second(since + 60),
            };
            assert_eq!(look, expected);
        }
    }

    #[test]
    fn a_look_that_comes_late_tells_once() {
        let mut watchdog = Watchdog::new(PATIENCE);
        let look = watchdog.look(second(1000), Some(second(0)));
        let expected = Look {
            overdue: true,
            again_at: second(1920),
        };
        assert_eq!(look, expected);
    }
}
