//! What the server still owes: one entry for each message sent that has a reply of its own.
//!
//! This keeps pipelines in step, and tells a message that belongs from one that does not. Which
//! statement an answer belongs to is the caller's knowledge.

use std::collections::VecDeque;

use postgres_protocol::message::backend;

use super::framing::COPY_BOTH_RESPONSE_TAG;

/// A reply that the server owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Everything up to ReadyForQuery.
    SimpleQuery,
    /// ParseComplete.
    Parse,
    /// BindComplete.
    Bind,
    /// RowDescription or NoData.
    Describe,
    /// Rows and a CommandComplete.
    Execute,
    /// CloseComplete.
    Close,
    /// ReadyForQuery.
    Sync,
}

/// All that the server owes, where that is what nearly every command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyOwed {
    /// The reply to a simple query.
    Query,
    /// The reply to Bind, Describe, Execute and Sync.
    Execution,
    /// Nothing, less, or more.
    Other,
}

/// The replies owed, in the order in which they will come. Its capacity stays, so a session that
/// repeats itself does not allocate.
#[derive(Debug, Default)]
pub(super) struct Replies {
    owed: VecDeque<Expected>,
    /// Events of an input are being told, and the input is not used up.
    reading: bool,
    /// How many of the replies, counted from the end, were queued meanwhile. What arrived before
    /// they were asked for cannot be they.
    unasked: usize,
    /// The server skips all that it gets before the next Sync.
    skipping: bool,
    /// Data have been copied both ways since the server was last ready. There is no second time.
    copied_both_ways: bool,
}

impl Replies {
    pub(super) fn clear(&mut self) {
        self.owed.clear();
        self.reading = false;
        self.unasked = 0;
        self.skipping = false;
        self.copied_both_ways = false;
    }

    pub(super) fn push(&mut self, expected: Expected) {
        if self.skipping && expected != Expected::Sync {
            return;
        }
        self.skipping = false;
        self.owed.push_back(expected);
        self.unasked += usize::from(self.reading);
    }

    pub(super) fn push_all(&mut self, expected: &[Expected]) {
        if self.skipping || self.reading {
            return expected.iter().for_each(|&reply| self.push(reply));
        }
        self.owed.extend(expected);
    }

    /// An event of an input is told: what is queued from now on is not answered in that input.
    pub(super) fn begin_telling(&mut self) {
        self.reading = true;
    }

    /// The input is used up: all that was queued is sent before the next one is read.
    pub(super) fn end_telling(&mut self) {
        self.reading = false;
        self.unasked = 0;
    }

    /// What the next message may belong to.
    pub(super) fn head(&self) -> Option<Expected> {
        (self.owed.len() > self.unasked).then(|| self.owed[0])
    }

    /// What is owed in all, if none of it was queued while the present input is being told.
    pub(super) fn all_owed(&self) -> ReplyOwed {
        use Expected::*;
        match self.owed.as_slices() {
            ([SimpleQuery], []) if self.unasked == 0 => ReplyOwed::Query,
            ([Bind, Describe, Execute, Sync], []) if self.unasked == 0 => ReplyOwed::Execution,
            _ => ReplyOwed::Other,
        }
    }

    /// All that was owed has come. `reading` says whether more follows in the same input.
    pub(super) fn settle(&mut self, reading: bool) {
        self.clear();
        self.reading = reading;
    }

    /// How many ReadyForQuery messages are still to come.
    pub(super) fn ready_owed(&self) -> usize {
        self.owed
            .iter()
            .filter(|expected| matches!(expected, Expected::SimpleQuery | Expected::Sync))
            .count()
    }

    /// Memory held.
    pub(super) fn held_bytes(&self) -> usize {
        self.owed.capacity() * size_of::<Expected>()
    }

    /// Notes a message that is part of a reply; false if it does not belong here.
    pub(super) fn accept(&mut self, tag: u8) -> bool {
        use Expected::*;
        let Some(head) = self.head() else {
            return false;
        };
        let (fits, completes) = match tag {
            backend::PARSE_COMPLETE_TAG => (head == Parse, true),
            backend::BIND_COMPLETE_TAG => (head == Bind, true),
            backend::CLOSE_COMPLETE_TAG => (head == Close, true),
            backend::NO_DATA_TAG => (head == Describe, true),
            backend::ROW_DESCRIPTION_TAG => {
                (matches!(head, SimpleQuery | Describe), head == Describe)
            }
            backend::COMMAND_COMPLETE_TAG | backend::EMPTY_QUERY_RESPONSE_TAG => {
                (matches!(head, SimpleQuery | Execute), head == Execute)
            }
            backend::READY_FOR_QUERY_TAG => {
                self.copied_both_ways = false;
                (matches!(head, SimpleQuery | Sync), true)
            }
            COPY_BOTH_RESPONSE_TAG => {
                let again = std::mem::replace(&mut self.copied_both_ways, true);
                (!again && matches!(head, SimpleQuery | Execute), false)
            }
            backend::DATA_ROW_TAG
            | backend::COPY_IN_RESPONSE_TAG
            | backend::COPY_OUT_RESPONSE_TAG
            | backend::COPY_DATA_TAG
            | backend::COPY_DONE_TAG => (matches!(head, SimpleQuery | Execute), false),
            _ => (false, false),
        };
        if fits && completes {
            self.owed.pop_front();
        }
        fits
    }

    /// Notes an error: the server skips everything up to the next Sync. Of a simple query nothing
    /// follows but its ReadyForQuery. Without anything owed the error came unasked.
    pub(super) fn fail(&mut self) {
        if self.head().is_none() {
            return;
        }
        while let Some(expected) = self.owed.front_mut() {
            match expected {
                Expected::Sync => break,
                Expected::SimpleQuery => {
                    *expected = Expected::Sync;
                    break;
                }
                Expected::Parse
                | Expected::Bind
                | Expected::Describe
                | Expected::Execute
                | Expected::Close => self.owed.pop_front(),
            };
        }
        self.skipping = self.owed.is_empty();
        self.unasked = self.unasked.min(self.owed.len());
    }

    /// Notes that the server has begun to read COPY data, which it does once: the refusal makes it an
    /// error. True if the session must send a Sync after its refusal.
    ///
    /// After an Execute the server reads on in the stream and ignores each Sync that it meets, so
    /// those get no reply and the refusal needs a Sync of its own. If something else follows, the
    /// server takes that for an error and resumes at the Sync after it.
    pub(super) fn copy_in(&mut self) -> bool {
        if self.head() != Some(Expected::Execute) {
            self.fail();
            return false;
        }
        self.owed.pop_front();
        while self.owed.front() == Some(&Expected::Sync) {
            self.owed.pop_front();
        }
        self.unasked = self.unasked.min(self.owed.len());
        if self.owed.is_empty() {
            self.owed.push_back(Expected::Sync);
            return true;
        }
        false
    }
}
