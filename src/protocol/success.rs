//! Recognises whole replies that say only that all went well. Almost every reply of a benchmark is such,
//! and looking at each of its messages by itself would be most of the work of a session.
//!
//! Whatever is not as expected to the last byte is no success: it is left to those who look closer.

use postgres_protocol::message::backend as tags;

use super::TransactionStatus;

/// A reply that was recognised.
pub(super) struct Success<'i> {
    /// How many results were complete in it.
    pub(super) results: usize,
    /// Whether a block is open now.
    pub(super) status: TransactionStatus,
    /// The input after it.
    pub(super) rest: &'i [u8],
}

/// One execution of a prepared statement: BindComplete, its description, rows, its completion, and
/// ReadyForQuery.
pub(super) fn of_execution(input: &[u8]) -> Option<Success<'_>> {
    let (tags::BIND_COMPLETE_TAG, [], rest) = message(input)? else {
        return None;
    };
    let rest = match message(rest)? {
        (tags::ROW_DESCRIPTION_TAG, _, rest) | (tags::NO_DATA_TAG, [], rest) => rest,
        _ => return None,
    };
    let rest = result(rest)?;
    ready(rest, 1)
}

/// A simple query: its results and ReadyForQuery.
pub(super) fn of_query(input: &[u8]) -> Option<Success<'_>> {
    let mut rest = input;
    let mut results = 0;
    while *rest.first()? != tags::READY_FOR_QUERY_TAG {
        if let (tags::ROW_DESCRIPTION_TAG, _, after) = message(rest)? {
            rest = after;
        }
        rest = result(rest)?;
        results += 1;
    }
    ready(rest, results)
}

/// Rows up to their completion.
fn result(mut input: &[u8]) -> Option<&[u8]> {
    loop {
        match message(input)? {
            (tags::DATA_ROW_TAG, _, rest) => input = rest,
            (tags::COMMAND_COMPLETE_TAG, [text @ .., 0], rest) if !text.contains(&0) => {
                return Some(rest);
            }
            _ => return None,
        }
    }
}

fn ready(input: &[u8], results: usize) -> Option<Success<'_>> {
    let (tags::READY_FOR_QUERY_TAG, body, rest) = message(input)? else {
        return None;
    };
    Some(Success {
        results,
        status: TransactionStatus::parse(body)?,
        rest,
    })
}

/// Type, body and what follows of the first message, if it lies whole in `input`.
fn message(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([tag, length @ ..], rest) = input.split_first_chunk::<5>()?;
    let body_bytes = u32::from_be_bytes(*length).checked_sub(4)?;
    let (body, rest) = rest.split_at_checked(body_bytes as usize)?;
    Some((*tag, body, rest))
}
