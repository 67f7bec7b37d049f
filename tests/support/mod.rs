//! What the end-to-end tests have in common: a private PostgreSQL server, a proxy that makes
//! connecting slow, the program under test as a story, and its log as data.

// Each test binary takes what it needs and leaves the rest.
#![allow(dead_code, unused_imports)]

mod case;
pub mod certificates;
mod hostile_proxy;
mod log;
pub mod null_server;
mod program;
mod proxy;
mod server;
mod terminal;
mod tripwire;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use case::{Case, Outcome};
pub use hostile_proxy::{HostileProxy, Mischief};
pub use log::{Log, Row};
pub use program::{Finished, Program, Running, Signal, pgmark, pgmark_alone, pgmark_at};
pub use proxy::DelayingProxy;
pub use server::{Server, Statement};
pub use terminal::Terminal;
pub use tripwire::Tripwire;

/// Held by a test that measures, so that no other test of its binary takes the processors away.
pub fn measuring() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed while it held the turn has left nothing half done.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks every 20 ms whether `condition` has come true. Fails the test after a minute, which no
/// machine that can run the tests at all needs.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Fails unless the larger of two positive figures is at most `ratio` times the smaller.
#[track_caller]
pub fn assert_close(what: &str, left: f64, right: f64, ratio: f64) {
    assert!(
        left > 0.0 && right > 0.0 && left / right <= ratio && right / left <= ratio,
        "{what}: {left} and {right} differ by more than a factor of {ratio}"
    );
}
