//! Cuts the byte stream into messages. Whole messages are handed on where they lie; only a message
//! that the end of the input cuts is copied, a row only as far as it is wanted; and what nobody wants
//! is skipped by count.
//!
//! Knows lengths and types, not what a message means at this moment.

use postgres_protocol::message::backend::{self, Header};

use super::backend::OmittedValue;
use super::error::ProtocolError;
use super::sieve::{Sieve, Wanted};

/// Type byte and length.
const HEADER_BYTES: usize = 5;

/// Bound on messages that hold no user data. They are a few bytes long; libpq takes anything longer
/// for a sign that it has lost step, and so do we.
const SHORT_MESSAGE_BYTES_MAX: usize = 30_000;

/// Bound on row descriptions, errors, notices and notifications, which are taken whole. A server
/// could send 1 GiB; thousands of clients that each keep such a message would not fit into memory.
/// Nothing is reserved for a length that is only announced.
const LONG_MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A buffer that grew beyond this for one message is given back, so that thousands of mostly idle
/// clients stay small.
const SPILL_BYTES_KEPT: usize = 64 << 10;

/// Two message types that `postgres-protocol` does not name.
pub(super) const NEGOTIATE_PROTOCOL_VERSION_TAG: u8 = b'v';
pub(super) const COPY_BOTH_RESPONSE_TAG: u8 = b'W';

/// One message: its type, and where its body lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'i> {
    pub(super) tag: u8,
    place: Place<'i>,
}

#[derive(Clone, Copy, Debug)]
enum Place<'i> {
    Input(&'i [u8]),
    Spill,
    /// Nobody wants the body; it is being skipped.
    Skipped,
}

impl Frame<'_> {
    pub(super) fn is_skipped(&self) -> bool {
        matches!(self.place, Place::Skipped)
    }

    /// The protocol's name of the message type.
    pub(super) fn name(&self) -> &'static str {
        message_name(self.tag).unwrap_or("unknown")
    }
}

/// Cuts input into messages.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// The beginning of a message whose end has not arrived.
    spill: Vec<u8>,
    /// The spilled message is complete and has been handed out.
    spill_spent: bool,
    /// Bytes still to be skipped.
    skip_bytes: usize,
    /// The row that is spilled, as far as it is wanted. Rows are hardly ever cut: a session without
    /// one does not pay for it.
    sieve: Option<Box<Sieve>>,
    wanted: Wanted,
}

impl Inbox {
    pub(super) fn clear(&mut self) {
        self.spill.clear();
        self.spill.shrink_to(SPILL_BYTES_KEPT);
        self.spill_spent = false;
        self.skip_bytes = 0;
        self.sieve = None;
        self.wanted.set_rows(false);
    }

    /// Which rows and columns are wanted from now on.
    pub(super) fn wanted(&mut self) -> &mut Wanted {
        &mut self.wanted
    }

    /// The next message, or `None` when all input is used up. Rows are skipped unless they are
    /// wanted. `state` goes into errors.
    pub(super) fn next<'i>(
        &mut self,
        input: &mut &'i [u8],
        state: &'static str,
    ) -> Result<Option<Frame<'i>>, ProtocolError> {
        if self.spill_spent {
            self.spill.clear();
            self.spill.shrink_to(SPILL_BYTES_KEPT);
            self.spill_spent = false;
            self.sieve = None;
        }
        self.skip_bytes -= take(input, self.skip_bytes).len();
        if self.sieve.is_some() {
            return self.sift(input, state);
        }
        if self.spill.is_empty() && input.len() >= HEADER_BYTES {
            return self.next_in_place(input, state);
        }
        self.next_spilled(input, state)
    }

    /// Whether the input begins with a message, and no row is wanted of it.
    pub(super) fn passes_rows_over(&self) -> bool {
        self.skip_bytes == 0 && self.spill.is_empty() && !self.wanted.rows()
    }

    /// A value of the row that came out of the last [`Inbox::next`] that was too long to be kept.
    pub(super) fn omitted(&self) -> Option<OmittedValue> {
        self.sieve.as_ref()?.omitted()
    }

    /// The body of a frame that came out of the last [`Inbox::next`].
    pub(super) fn body<'s, 'i: 's>(&'s self, frame: &Frame<'i>) -> &'s [u8] {
        match frame.place {
            Place::Input(body) => body,
            Place::Spill => &self.spill[HEADER_BYTES..],
            Place::Skipped => &[],
        }
    }

    fn next_in_place<'i>(
        &mut self,
        input: &mut &'i [u8],
        state: &'static str,
    ) -> Result<Option<Frame<'i>>, ProtocolError> {
        let (tag, body_bytes) = self.read_header(input, state)?;
        if self.is_skipped(tag) {
            take(input, HEADER_BYTES);
            return Ok(Some(self.skip(tag, body_bytes, input)));
        }
        if input.len() - HEADER_BYTES >= body_bytes {
            take(input, HEADER_BYTES);
            let place = Place::Input(take(input, body_bytes));
            return Ok(Some(Frame { tag, place }));
        }
        self.next_spilled(input, state)
    }

    fn next_spilled<'i>(
        &mut self,
        input: &mut &'i [u8],
        state: &'static str,
    ) -> Result<Option<Frame<'i>>, ProtocolError> {
        let missing = HEADER_BYTES.saturating_sub(self.spill.len());
        self.spill.extend_from_slice(take(input, missing));
        if self.spill.len() < HEADER_BYTES {
            return Ok(None);
        }
        let (tag, body_bytes) = self.read_header(&self.spill, state)?;
        if self.spill.len() == HEADER_BYTES && self.is_skipped(tag) {
            self.spill.clear();
            return Ok(Some(self.skip(tag, body_bytes, input)));
        }
        if tag == backend::DATA_ROW_TAG {
            self.sieve = Some(Box::new(Sieve::new(body_bytes, HEADER_BYTES)));
            return self.sift(input, state);
        }
        let missing = HEADER_BYTES + body_bytes - self.spill.len();
        self.spill.extend_from_slice(take(input, missing));
        self.spill_spent = self.spill.len() == HEADER_BYTES + body_bytes;
        let place = Place::Spill;
        Ok(self.spill_spent.then_some(Frame { tag, place }))
    }

    /// Reads on in the row that is spilled.
    fn sift<'i>(
        &mut self,
        input: &mut &'i [u8],
        state: &'static str,
    ) -> Result<Option<Frame<'i>>, ProtocolError> {
        let Some(sieve) = &mut self.sieve else {
            return Ok(None);
        };
        let tag = backend::DATA_ROW_TAG;
        let complete = sieve.read(input, &self.wanted, &mut self.spill);
        self.spill_spent = complete.map_err(|problem| ProtocolError::Malformed {
            state,
            message: "DataRow",
            problem,
        })?;
        let place = Place::Spill;
        Ok(self.spill_spent.then_some(Frame { tag, place }))
    }

    fn skip<'i>(&mut self, tag: u8, body_bytes: usize, input: &mut &'i [u8]) -> Frame<'i> {
        self.skip_bytes = body_bytes - take(input, body_bytes).len();
        Frame {
            tag,
            place: Place::Skipped,
        }
    }

    /// Memory held for a message that has not arrived completely.
    pub(super) fn held_bytes(&self) -> usize {
        self.spill.capacity() + self.wanted.held_bytes()
    }

    /// Type and length of the body, both checked. `bytes` holds at least a header.
    fn read_header(&self, bytes: &[u8], state: &'static str) -> Result<(u8, usize), ProtocolError> {
        let tag = bytes[0];
        let Some(message) = message_name(tag) else {
            return Err(ProtocolError::UnknownMessage { state, tag });
        };
        let length = i32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let allowed = body_bytes_max(tag);
        let body_bytes = Header::parse(bytes)
            .ok()
            .flatten()
            .and_then(|header| usize::try_from(header.len() - 4).ok());
        match body_bytes {
            Some(bytes) if bytes <= allowed || self.is_skipped(tag) => Ok((tag, bytes)),
            Some(bytes) if allowed == LONG_MESSAGE_BYTES_MAX => Err(ProtocolError::TooLong {
                state,
                message,
                bytes,
                allowed,
            }),
            Some(_) | None => Err(ProtocolError::Length {
                state,
                message,
                length,
            }),
        }
    }

    fn is_skipped(&self, tag: u8) -> bool {
        match tag {
            backend::DATA_ROW_TAG | backend::ROW_DESCRIPTION_TAG => !self.wanted.rows(),
            backend::COPY_DATA_TAG => true,
            _ => false,
        }
    }
}

/// Splits off the first `count` bytes, or all if there are fewer.
pub(super) fn take<'i>(input: &mut &'i [u8], count: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    taken
}

fn body_bytes_max(tag: u8) -> usize {
    match tag {
        // What is kept of a row has a bound of its own.
        backend::DATA_ROW_TAG => i32::MAX as usize,
        backend::ROW_DESCRIPTION_TAG
        | backend::ERROR_RESPONSE_TAG
        | backend::NOTICE_RESPONSE_TAG
        | backend::NOTIFICATION_RESPONSE_TAG => LONG_MESSAGE_BYTES_MAX,
        _ => SHORT_MESSAGE_BYTES_MAX,
    }
}

/// The protocol's name of a message type, for errors.
fn message_name(tag: u8) -> Option<&'static str> {
    Some(match tag {
        backend::AUTHENTICATION_TAG => "Authentication",
        backend::BACKEND_KEY_DATA_TAG => "BackendKeyData",
        backend::BIND_COMPLETE_TAG => "BindComplete",
        backend::CLOSE_COMPLETE_TAG => "CloseComplete",
        backend::COMMAND_COMPLETE_TAG => "CommandComplete",
        backend::COPY_DATA_TAG => "CopyData",
        backend::COPY_DONE_TAG => "CopyDone",
        backend::COPY_IN_RESPONSE_TAG => "CopyInResponse",
        backend::COPY_OUT_RESPONSE_TAG => "CopyOutResponse",
        COPY_BOTH_RESPONSE_TAG => "CopyBothResponse",
        backend::DATA_ROW_TAG => "DataRow",
        backend::EMPTY_QUERY_RESPONSE_TAG => "EmptyQueryResponse",
        backend::ERROR_RESPONSE_TAG => "ErrorResponse",
        NEGOTIATE_PROTOCOL_VERSION_TAG => "NegotiateProtocolVersion",
        backend::NO_DATA_TAG => "NoData",
        backend::NOTICE_RESPONSE_TAG => "NoticeResponse",
        backend::NOTIFICATION_RESPONSE_TAG => "NotificationResponse",
        backend::PARAMETER_DESCRIPTION_TAG => "ParameterDescription",
        backend::PARAMETER_STATUS_TAG => "ParameterStatus",
        backend::PARSE_COMPLETE_TAG => "ParseComplete",
        backend::PORTAL_SUSPENDED_TAG => "PortalSuspended",
        backend::READY_FOR_QUERY_TAG => "ReadyForQuery",
        backend::ROW_DESCRIPTION_TAG => "RowDescription",
        _ => return None,
    })
}
