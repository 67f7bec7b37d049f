//! What the main thread tells the workers, and what they tell it: start, stop, ready, failed.
//!
//! The only state that threads share. There is no barrier: it would hang when a connect fails
//! elsewhere. Each worker is woken by a waker of its own after a value here has changed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::conninfo::Endpoint;
use crate::time::Timestamp;

use super::watchdog::Wait;

/// Orders to all workers. Each is a moment; before it is given it lies at the end of time.
#[derive(Debug)]
pub struct Control {
    /// The clients are released (W0); where the measured window begins is derived from it.
    started_at: AtomicU64,
    /// Begin nothing new.
    stopped_at: AtomicU64,
    /// Close everything now.
    closed_at: AtomicU64,
    /// How often it has been asked who waits for the server.
    censuses: AtomicU32,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            started_at: AtomicU64::new(u64::MAX),
            stopped_at: AtomicU64::new(u64::MAX),
            closed_at: AtomicU64::new(u64::MAX),
            censuses: AtomicU32::new(0),
        }
    }
}

impl Control {
    /// Releases the clients at `moment`.
    pub fn start(&self, moment: Timestamp) {
        self.started_at.store(moment.nanos(), Ordering::Release);
    }

    /// From `moment` on nothing new begins.
    pub fn stop(&self, moment: Timestamp) {
        self.stopped_at.fetch_min(moment.nanos(), Ordering::AcqRel);
    }

    /// Whatever is still under way at `moment` is cut off.
    pub fn close(&self, moment: Timestamp) {
        self.stop(moment);
        self.closed_at.fetch_min(moment.nanos(), Ordering::AcqRel);
    }

    /// Asks each worker who waits for the server.
    pub fn take_census(&self) {
        self.censuses.fetch_add(1, Ordering::AcqRel);
    }

    /// How often that has been asked.
    pub fn censuses(&self) -> u32 {
        self.censuses.load(Ordering::Acquire)
    }

    /// When the clients were released.
    pub fn started_at(&self) -> Option<Timestamp> {
        moment(&self.started_at)
    }

    /// When nothing new was to begin any more.
    pub fn stopped_at(&self) -> Option<Timestamp> {
        moment(&self.stopped_at)
    }

    /// When everything was to be closed.
    pub fn closed_at(&self) -> Option<Timestamp> {
        moment(&self.closed_at)
    }
}

fn moment(nanos: &AtomicU64) -> Option<Timestamp> {
    match nanos.load(Ordering::Acquire) {
        u64::MAX => None,
        nanos => Some(Timestamp::from_nanos(nanos)),
    }
}

/// What a worker tells the main thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// All clients of this worker are connected (or, with a connection for each transaction, need
    /// not be yet).
    Ready,
    /// A client was let in for the first time.
    Authenticated {
        /// Where: the first address that worked.
        endpoint: Endpoint,
        /// Protocol and cipher, if the connection is encrypted.
        tls: Option<String>,
        /// How it was authenticated.
        method: &'static str,
    },
    /// A client could not make its initial connection, so there can be no run.
    ConnectFailed {
        /// Its number.
        client: u32,
        /// All attempts with their errors.
        report: crate::error::Report,
    },
    /// A client was aborted in the run, which was to end the run.
    ClientAborted,
    /// A client has waited for the server too long.
    Overdue,
    /// The answer to a census: who has waited long, of this worker's clients.
    Waits(Vec<Wait>),
    /// The thread has ended, well or in a panic. Said once, by whoever started it.
    Done,
}
