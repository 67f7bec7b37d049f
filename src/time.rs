//! Time as pgmark measures it: nanoseconds of one monotonic clock since the program started.
//!
//! [`Clock`] is the only reader of the operating system's clock. Everything else receives a
//! [`Timestamp`] as a value, so that whole runs can be tested in virtual time.

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use rustix::time::{ClockId, clock_gettime};

/// A moment on the monotonic clock, in nanoseconds since the clock was started.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment the clock was started.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Later than every moment that can be read from a clock.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The moment `nanos` nanoseconds after the clock was started.
    pub const fn from_nanos(nanos: u64) -> Self {
        Timestamp(nanos)
    }

    /// Nanoseconds since the clock was started.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to this moment, 0 if `earlier` is in fact later.
    pub const fn nanos_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Nanoseconds from `origin` to this moment, negative if this moment is the earlier one.
    pub const fn signed_nanos_since(self, origin: Timestamp) -> i64 {
        self.0.wrapping_sub(origin.0) as i64
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    /// The time from `earlier` to this moment, zero if `earlier` is in fact later.
    fn sub(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    /// The moment `duration` later; saturates at [`Timestamp::MAX`].
    fn add(self, duration: Duration) -> Timestamp {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(nanos))
    }
}

/// The one clock of a run. Clones read the same clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    /// Unix time of [`Timestamp::ZERO`] in nanoseconds, read once. Wall time never enters a
    /// duration: it only turns timestamps into dates.
    unix_origin_ns: i64,
}

#[derive(Clone, Debug)]
enum Source {
    /// Counted from this reading of the system's clock.
    Monotonic {
        origin_ns: u64,
    },
    Manual(Arc<ManualTime>),
}

/// What a manual clock shows.
#[derive(Debug, Default)]
struct ManualTime {
    now_ns: AtomicU64,
    wall_step_ns: AtomicI64,
}

impl Clock {
    /// Starts the clock: now is [`Timestamp::ZERO`].
    pub fn start() -> Self {
        let source = Source::Monotonic {
            origin_ns: monotonic_ns(),
        };
        Clock {
            source,
            unix_origin_ns: unix_now_ns(),
        }
    }

    /// A clock that stands still until [`Clock::set`] moves it, for tests in virtual time.
    /// `unix_origin_ns` is the Unix time of its [`Timestamp::ZERO`] in nanoseconds.
    pub fn manual(unix_origin_ns: i64) -> Self {
        Clock {
            source: Source::Manual(Arc::default()),
            unix_origin_ns,
        }
    }

    /// Moves a manual clock to `now`.
    ///
    /// # Panics
    /// On a clock that follows the operating system's: only tests own manual clocks.
    pub fn set(&self, now: Timestamp) {
        match &self.source {
            Source::Manual(time) => time.now_ns.store(now.nanos(), Ordering::Relaxed),
            Source::Monotonic { .. } => panic!("only a manual clock can be set"),
        }
    }

    /// Steps the wall clock behind a manual clock, as somebody does who sets the time of the host.
    ///
    /// # Panics
    /// As [`Clock::set`].
    pub fn step_wall(&self, nanos: i64) {
        match &self.source {
            Source::Manual(time) => time.wall_step_ns.fetch_add(nanos, Ordering::Relaxed),
            Source::Monotonic { .. } => panic!("only a manual clock can be stepped"),
        };
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::Monotonic { origin_ns } => Timestamp(monotonic_ns().saturating_sub(*origin_ns)),
            Source::Manual(time) => Timestamp(time.now_ns.load(Ordering::Relaxed)),
        }
    }

    /// Unix time of `moment` in nanoseconds, by the offset recorded at the start; the last of the year
    /// 2262 at most.
    pub fn unix_ns(&self, moment: Timestamp) -> i64 {
        self.unix_origin_ns.saturating_add_unsigned(moment.nanos())
    }

    /// Unix time of `moment` in microseconds; 0 before 1970.
    pub fn unix_us(&self, moment: Timestamp) -> u64 {
        u64::try_from(self.unix_ns(moment) / 1000).unwrap_or(0)
    }

    /// How far the wall clock was stepped since the start, in nanoseconds (positive: forward).
    /// Slewing shows too; only steps of more than a second are worth a word.
    pub fn wall_step_ns(&self) -> i64 {
        match &self.source {
            Source::Monotonic { .. } => unix_now_ns() - self.unix_ns(self.now()),
            Source::Manual(time) => time.wall_step_ns.load(Ordering::Relaxed),
        }
    }
}

/// The system's monotonic clock, without the detour over a duration of seconds and nanoseconds.
/// 2^64 ns are 584 years.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn unix_now_ns() -> i64 {
    let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        let (early, late) = (Timestamp::from_nanos(5), Timestamp::from_nanos(12));
        assert_eq!(late.nanos_since(early), 7);
        assert_eq!(early.nanos_since(late), 0);
        assert_eq!(early.signed_nanos_since(late), -7);
        assert_eq!(late - early, Duration::from_nanos(7));
        assert_eq!(early + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn clones_of_a_manual_clock_move_together() {
        let clock = Clock::manual(1_000);
        let other = clock.clone();
        clock.set(Timestamp::from_nanos(42));
        assert_eq!(other.now(), Timestamp::from_nanos(42));
        assert_eq!(other.unix_ns(other.now()), 1_042);
    }

    #[test]
    fn a_step_of_the_wall_clock_is_known_and_moves_no_moment() {
        let clock = Clock::manual(1_000);
        clock.set(Timestamp::from_nanos(42));
        clock.step_wall(-3_600_000_000_000);
        assert_eq!(clock.now(), Timestamp::from_nanos(42));
        assert_eq!(clock.unix_ns(clock.now()), 1_042);
        assert_eq!(clock.wall_step_ns(), -3_600_000_000_000);
    }

    #[test]
    fn the_monotonic_clock_never_goes_back() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
