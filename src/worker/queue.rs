//! Which clients have something to do, and since when.

use std::collections::VecDeque;

use crate::time::Timestamp;

/// Why a client is to be handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// When it was first reported. Never earlier than for those before it in the queue.
    pub since: Timestamp,
    /// When the poll that last reported it returned.
    pub stamp: Timestamp,
    /// Bytes, or the end of them, can be read.
    pub readable: bool,
    /// The peer has closed: read on until the end is seen.
    pub closed: bool,
    /// Bytes can be written, or the connection is made or has failed.
    pub writable: bool,
    /// Its shell command has ended.
    pub shell_ended: bool,
    /// Its deadline has passed, or it asked to go on in its next turn.
    pub woken: bool,
}

/// Clients in the order in which they became ready; each is in it at most once.
#[derive(Debug)]
pub struct Queue {
    order: VecDeque<usize>,
    pending: Vec<Option<Ready>>,
}

impl Queue {
    /// An empty queue for so many clients.
    pub fn new(slots: usize) -> Self {
        Queue {
            order: VecDeque::with_capacity(slots),
            pending: vec![None; slots],
        }
    }

    /// Adds what `mark` sets to what the client in `slot` has to do. One that becomes ready again
    /// before it was handled keeps its place and takes the later stamp.
    pub fn mark(&mut self, slot: usize, stamp: Timestamp, mark: impl FnOnce(&mut Ready)) {
        let pending = &mut self.pending[slot];
        let ready = pending.get_or_insert_with(|| {
            self.order.push_back(slot);
            Ready {
                since: stamp,
                ..Ready::default()
            }
        });
        ready.stamp = stamp;
        mark(ready);
    }

    /// The client that has waited longest.
    pub fn pop(&mut self) -> Option<(usize, Ready)> {
        let slot = self.order.pop_front()?;
        let ready = self.pending[slot].take();
        Some((slot, ready.expect("what is in the order is pending")))
    }

    /// Whether nobody is ready.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// No stamp in the queue lies before this one.
    pub fn oldest(&self) -> Option<Timestamp> {
        let slot = *self.order.front()?;
        self.pending[slot].map(|ready| ready.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn each_client_is_in_it_once_in_its_first_place_with_its_last_stamp() {
        let mut queue = Queue::new(3);
        queue.mark(2, at(10), |ready| ready.readable = true);
        queue.mark(0, at(10), |ready| ready.readable = true);
        queue.mark(2, at(20), |ready| ready.closed = true);
        assert_eq!(queue.oldest(), Some(at(10)));

        let (slot, ready) = queue.pop().unwrap();
        assert_eq!((slot, ready.stamp), (2, at(20)));
        assert!(ready.readable && ready.closed && !ready.woken);
        assert_eq!(queue.pop().unwrap().0, 0);
        assert!(queue.is_empty());
        assert_eq!(queue.pop(), None);
    }
}
