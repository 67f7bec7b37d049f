//! Cancels what the first connection is doing for as long as the user wants to stop: again and
//! again, since a cancel request that arrives between two statements is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::control::Cancellation;

/// Between two looks at whether the user wants to stop, and so between two requests.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What is to be cancelled on a stop; nothing while the run tidies up after itself.
pub struct Canceller(Mutex<Option<Cancellation>>);

impl Canceller {
    /// For the connection of `order`.
    pub fn new(order: Cancellation) -> Self {
        Canceller(Mutex::new(Some(order)))
    }

    /// From now on for this connection, or for none.
    pub fn set(&self, order: Option<Cancellation>) {
        *self.lock() = order;
    }

    /// Watches `stop` until nobody is left who could send to `ended`.
    pub fn watch(&self, stop: &AtomicBool, ended: &Receiver<()>) {
        while ended.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if !stop.load(Ordering::Relaxed) {
                continue;
            }
            // Held while it is sent, so that tidying up begins after it.
            if let Some(order) = &*self.lock() {
                order.send();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Cancellation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
