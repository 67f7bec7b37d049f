//! The worker's end of the channel to the collector: gathers events into batches and sends them.
//!
//! Batches are recycled: emptied ones come back over a channel of this worker's own, so that in
//! steady state nothing is allocated. The channel is bounded, since memory must be; a send that has
//! to wait for the collector is counted, never silent, and loses nothing.

use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::event::{Batch, Event, Level, Message, ToCollector};
use crate::time::{Clock, Timestamp};

/// Events in a batch. One channel operation for so many costs a few nanoseconds for each.
pub const BATCH_EVENTS: usize = 256;

/// Collects the events of one worker and hands them over.
#[derive(Debug)]
pub struct Recorder {
    worker: u32,
    events: Vec<Event>,
    sender: Sender<ToCollector>,
    emptied: Receiver<Vec<Event>>,
    clock: Clock,
    complete_through: Timestamp,
    blocked_sends: u64,
    blocked_ns: u64,
}

impl Recorder {
    /// A recorder for `worker` that sends to `sender`; `emptied` brings batches back.
    pub fn new(
        worker: u32,
        sender: Sender<ToCollector>,
        emptied: Receiver<Vec<Event>>,
        clock: Clock,
    ) -> Self {
        Recorder {
            worker,
            events: Vec::with_capacity(BATCH_EVENTS),
            sender,
            emptied,
            clock,
            complete_through: Timestamp::ZERO,
            blocked_sends: 0,
            blocked_ns: 0,
        }
    }

    /// Promises that no event recorded from now on ended before `moment`.
    pub fn advance_to(&mut self, moment: Timestamp) {
        self.complete_through = self.complete_through.max(moment);
    }

    /// Adds an event; sends the batch when it is full.
    pub fn record(&mut self, event: Event) {
        self.events.push(event);
        if self.events.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Sends what there is, also an empty batch: it tells how far this worker has come.
    pub fn flush(&mut self) {
        let fresh = self
            .emptied
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(BATCH_EVENTS));
        let events = std::mem::replace(&mut self.events, fresh);
        self.send(ToCollector::Batch(Batch {
            worker: self.worker,
            events,
            complete_through: self.complete_through,
        }));
    }

    /// Sends a line for the user, after the events so far.
    pub fn say(&mut self, level: Level, text: String) {
        self.flush();
        self.send(ToCollector::Message(Message { level, text }));
    }

    /// How many sends had to wait for the collector, and for how long (ns).
    pub fn blocked(&self) -> (u64, u64) {
        (self.blocked_sends, self.blocked_ns)
    }

    /// A collector that is gone has failed, which whoever joins it reports: events are dropped.
    fn send(&mut self, report: ToCollector) {
        if let Err(TrySendError::Full(report)) = self.sender.try_send(report) {
            self.send_when_there_is_room(report);
        }
    }

    fn send_when_there_is_room(&mut self, report: ToCollector) {
        let before = self.clock.now();
        let _ = self.sender.send(report);
        self.blocked_sends += 1;
        self.blocked_ns += self.clock.now().nanos_since(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ConnectionRecord, SpanKind};
    use crossbeam_channel::{bounded, unbounded};

    fn event(client: u32) -> Event {
        Event::Connection(ConnectionRecord {
            client,
            kind: SpanKind::Connect,
            started_at: Timestamp::ZERO,
            finished_at: Timestamp::ZERO,
        })
    }

    #[test]
    fn full_batches_leave_at_once_and_emptied_ones_are_used_again() {
        let (sender, receiver) = unbounded();
        let (give_back, emptied) = unbounded();
        let mut recorder = Recorder::new(3, sender, emptied, Clock::manual(0));
        let returned = Vec::with_capacity(1000);
        give_back.send(returned).unwrap();
        for client in 0..BATCH_EVENTS as u32 {
            recorder.record(event(client));
        }
        let Ok(ToCollector::Batch(batch)) = receiver.try_recv() else {
            panic!("a full batch must have been sent");
        };
        assert_eq!((batch.worker, batch.events.len()), (3, BATCH_EVENTS));
        assert_eq!(recorder.events.capacity(), 1000);
    }

    #[test]
    fn a_message_follows_the_events_before_it() {
        let (sender, receiver) = unbounded();
        let (_give_back, emptied) = unbounded();
        let mut recorder = Recorder::new(0, sender, emptied, Clock::manual(0));
        recorder.record(event(1));
        recorder.advance_to(Timestamp::from_nanos(9));
        recorder.say(Level::Error, "broken".to_owned());
        let sent: Vec<ToCollector> = receiver.try_iter().collect();
        assert!(
            matches!(&sent[0], ToCollector::Batch(batch) if batch.events == [event(1)]
            && batch.complete_through == Timestamp::from_nanos(9))
        );
        assert!(matches!(&sent[1], ToCollector::Message(message) if message.text == "broken"));
    }

    #[test]
    fn a_send_that_waits_is_counted_and_arrives() {
        let (sender, receiver) = bounded(1);
        let (_give_back, emptied) = unbounded();
        let mut recorder = Recorder::new(0, sender, emptied, Clock::manual(0));
        recorder.flush();
        assert_eq!(recorder.blocked().0, 0, "the channel holds one");
        let reader = std::thread::spawn(move || receiver.iter().count());
        recorder.send_when_there_is_room(ToCollector::Message(Message {
            level: Level::Plain,
            text: String::new(),
        }));
        assert_eq!(recorder.blocked().0, 1);
        drop(recorder);
        assert_eq!(reader.join().unwrap(), 2);
    }
}
