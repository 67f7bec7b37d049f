//! How often each kind of error ended a transaction.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::{Abort, Outcome, SqlState, TransactionRecord};

/// Kinds that are told apart. A server has some 260 SQLSTATEs, and a script may raise others; what
/// comes on top of so many is counted together, so that no server can fill the memory.
const MOST_KINDS: usize = 1_000;

/// Kinds that are shown; a line has to end somewhere.
const SHOWN_KINDS: usize = 12;

/// What ended a transaction that was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ErrorKind {
    /// An error of the server with this SQLSTATE.
    SqlState(SqlState),
    /// An error of the server without one.
    Server,
    /// An error found by pgmark itself.
    Client,
    /// The connection was lost.
    ConnectionLost,
    /// Cancelled by us.
    Interrupted,
    /// One of too many kinds.
    Further,
}

impl ErrorKind {
    /// What ended this transaction, if an error did.
    pub fn of(record: &TransactionRecord) -> Option<ErrorKind> {
        ErrorKind::of_outcome(record.outcome, record.sqlstate)
    }

    /// What ended a transaction in this way, if an error did.
    pub fn of_outcome(outcome: Outcome, sqlstate: SqlState) -> Option<ErrorKind> {
        match outcome {
            Outcome::Processed | Outcome::Skipped => None,
            Outcome::Failed | Outcome::Aborted(Abort::Server) => Some(match sqlstate {
                SqlState::NONE => ErrorKind::Server,
                sqlstate => ErrorKind::SqlState(sqlstate),
            }),
            Outcome::Aborted(Abort::Client) => Some(ErrorKind::Client),
            Outcome::Aborted(Abort::ConnectionLost | Abort::ConnectionLostInCommit) => {
                Some(ErrorKind::ConnectionLost)
            }
            Outcome::Aborted(Abort::Interrupted) => Some(ErrorKind::Interrupted),
        }
    }

    /// The SQLSTATE, or a word.
    pub fn name(&self) -> &str {
        match self {
            ErrorKind::SqlState(sqlstate) => sqlstate.as_str(),
            ErrorKind::Server => "server_error",
            ErrorKind::Client => "client_error",
            ErrorKind::ConnectionLost => "connection_lost",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Further => "further",
        }
    }
}

impl From<ErrorKind> for String {
    fn from(kind: ErrorKind) -> String {
        kind.name().to_owned()
    }
}

/// The reverse of [`ErrorKind::name`].
impl TryFrom<String> for ErrorKind {
    type Error = String;

    fn try_from(name: String) -> Result<ErrorKind, String> {
        let words = [
            ErrorKind::Server,
            ErrorKind::Client,
            ErrorKind::ConnectionLost,
            ErrorKind::Interrupted,
            ErrorKind::Further,
        ];
        match words.into_iter().find(|word| word.name() == name) {
            Some(word) => Ok(word),
            None => SqlState::try_from(name).map(ErrorKind::SqlState),
        }
    }
}

/// Errors by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors(BTreeMap<ErrorKind, u64>);

impl Errors {
    /// Each kind that there was with its number, the most frequent first, further ones last.
    pub fn by_number(&self) -> Vec<(ErrorKind, u64)> {
        let mut kinds: Vec<_> = self.0.iter().map(|(&kind, &count)| (kind, count)).collect();
        // The sort is stable: kinds of the same number stay in their order.
        kinds.sort_by_key(|&(kind, count)| (kind == ErrorKind::Further, Reverse(count)));
        kinds
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn add(&mut self, kind: ErrorKind, count: u64) {
        let known = self.0.len() < MOST_KINDS || self.0.contains_key(&kind);
        let kind = if known { kind } else { ErrorKind::Further };
        *self.0.entry(kind).or_default() += count;
    }

    pub(super) fn merge(&mut self, other: &Errors) {
        for (&kind, &count) in &other.0 {
            self.add(kind, count);
        }
    }
}

/// `40001 x8, 40P01 x2, connection_lost x1`, and `further x17` behind the dozenth.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.by_number();
        let (shown, others) = kinds.split_at(kinds.len().min(SHOWN_KINDS));
        let further = others.iter().map(|(_, count)| count).sum::<u64>();
        let further = (further > 0).then_some((ErrorKind::Further, further));
        for (index, (kind, count)) in shown.iter().chain(&further).enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} x{count}", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::testing::processed;
    use crate::time::Timestamp;

    #[test]
    fn each_kind_has_its_name_and_the_most_frequent_is_first() {
        let record = |outcome, sqlstate| TransactionRecord {
            outcome,
            sqlstate,
            ..processed(Timestamp::ZERO, Timestamp::ZERO)
        };
        let mut errors = Errors::default();
        for (outcome, sqlstate) in [
            (Outcome::Processed, SqlState::NONE),
            (Outcome::Skipped, SqlState::NONE),
            (Outcome::Failed, SqlState(*b"40001")),
            (Outcome::Failed, SqlState(*b"40P01")),
            (Outcome::Aborted(Abort::Server), SqlState(*b"40P01")),
            (Outcome::Aborted(Abort::Server), SqlState::NONE),
            (Outcome::Aborted(Abort::Client), SqlState::NONE),
            (Outcome::Aborted(Abort::ConnectionLost), SqlState(*b"57P01")),
            (
                Outcome::Aborted(Abort::ConnectionLostInCommit),
                SqlState::NONE,
            ),
            (Outcome::Aborted(Abort::ConnectionLost), SqlState::NONE),
            (Outcome::Aborted(Abort::Interrupted), SqlState::NONE),
        ] {
            if let Some(kind) = ErrorKind::of(&record(outcome, sqlstate)) {
                errors.add(kind, 1);
            }
        }
        assert_eq!(
            errors.to_string(),
            "connection_lost x3, 40P01 x2, 40001 x1, server_error x1, client_error x1, interrupted x1"
        );
        assert_eq!(errors.total(), 9);
    }

    #[test]
    fn a_server_of_ever_new_errors_fills_no_memory_and_none_is_lost() {
        let mut errors = Errors::default();
        for number in 0..5_000 {
            let mut code = *b"00000";
            let digits = format!("{number:05}");
            code.copy_from_slice(digits.as_bytes());
            errors.add(ErrorKind::SqlState(SqlState(code)), 1);
        }
        assert_eq!(errors.0.len(), MOST_KINDS + 1);
        assert_eq!(errors.0[&ErrorKind::Further], 4_000);
        let mut merged = errors.clone();
        merged.merge(&errors);
        assert_eq!(merged.total(), 10_000);
        let shown = merged.to_string();
        assert!(shown.starts_with("00000 x2, 00001 x2, "), "{shown}");
        assert!(shown.ends_with(", 00011 x2, further x9976"), "{shown}");
    }
}
