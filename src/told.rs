//! What clients tell once in a run and otherwise only count, over all threads: errors, notices of the
//! server, the trouble that a connection pooler makes.
//!
//! A client that meets a thing again finds that out without a lock. Nothing is printed here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::event::SqlState;
use crate::protocol::ServerMessage;

/// The most kinds of errors that are told of. A server, or a script that raises its own, may go
/// through millions of SQLSTATEs; nobody reads so many lines, and each of them costs time.
pub const KINDS_TOLD_MAX: usize = 32;

/// SQLSTATEs of failed transactions that have been told of, over all threads.
#[derive(Debug, Default)]
pub struct FirstErrors(Mutex<Vec<SqlState>>);

/// What is to be told of an error that fails a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It is the first of its kind.
    First,
    /// It is that, and the last kind that is told of.
    Last,
    /// Nothing: its kind has been told of, or enough others have.
    Nothing,
}

impl FirstErrors {
    /// What is to be told of an error with this SQLSTATE. Takes a lock: each thread asks once for
    /// each SQLSTATE, and at most [`KINDS_TOLD_MAX`] times.
    pub fn note(&self, sqlstate: SqlState) -> Telling {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= KINDS_TOLD_MAX || told.contains(&sqlstate) {
            return Telling::Nothing;
        }
        told.push(sqlstate);
        match told.len() {
            KINDS_TOLD_MAX => Telling::Last,
            _ => Telling::First,
        }
    }
}

/// Kinds of notices that are told apart. A server may put anything into a notice; beyond this they are
/// only counted, together.
const KINDS_MAX: usize = 50;

/// How much of a notice's text decides its kind.
const SHAPE_BYTES_MAX: usize = 200;

/// All kinds of notices that came in a run.
#[derive(Debug, Default)]
pub struct NoticeBook {
    kinds: Mutex<Vec<Arc<NoticeKind>>>,
    others: AtomicU64,
}

/// Notices with the same SQLSTATE and a text that differs in numbers and quoted names at most.
#[derive(Debug)]
struct NoticeKind {
    sqlstate: SqlState,
    shape: Vec<u8>,
    /// The first of them.
    text: String,
    count: AtomicU64,
}

/// The kinds of notices that one client has met.
#[derive(Debug, Default)]
pub struct KnownNotices(Vec<Arc<NoticeKind>>);

impl NoticeBook {
    /// What came more often than it was told: the text of the first of each kind, and the count.
    pub fn repeated(&self) -> Vec<(String, u64)> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = kinds
            .iter()
            .map(|kind| (kind.text.clone(), kind.count.load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 1).collect()
    }

    /// Notices that were not told because there were too many kinds already.
    pub fn untold(&self) -> u64 {
        self.others.load(Ordering::Relaxed)
    }

    /// The kind that a notice is of, and whether it is the first of it; none if there are too many.
    fn kind_of(&self, notice: &ServerMessage<'_>) -> Option<(Arc<NoticeKind>, bool)> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kinds.iter().find(|kind| kind.fits(notice)) {
            return Some((Arc::clone(known), false));
        }
        if kinds.len() == KINDS_MAX {
            return None;
        }
        let kind = Arc::new(NoticeKind {
            sqlstate: notice.sqlstate(),
            shape: shape(notice.message()).collect(),
            text: notice.headline(),
            count: AtomicU64::new(0),
        });
        kinds.push(Arc::clone(&kind));
        Some((kind, true))
    }
}

impl KnownNotices {
    /// Counts a notice, and says whether it is the first of its kind in the run and is to be told.
    /// Takes a lock the first time that this client meets the kind.
    pub fn count(&mut self, notice: &ServerMessage<'_>, book: &NoticeBook) -> bool {
        if let Some(known) = self.0.iter().find(|kind| kind.fits(notice)) {
            known.count.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let Some((kind, first)) = book.kind_of(notice) else {
            book.others.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        kind.count.fetch_add(1, Ordering::Relaxed);
        self.0.push(kind);
        first
    }
}

impl NoticeKind {
    fn fits(&self, notice: &ServerMessage<'_>) -> bool {
        self.sqlstate == notice.sqlstate() && shape(notice.message()).eq(self.shape.iter().copied())
    }
}

/// The beginning of a text without what is different each time: digits, and what is in double quotes.
fn shape(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut quoted = false;
    text.iter()
        .copied()
        .filter(move |&byte| {
            quoted ^= byte == b'"';
            byte == b'"' || !(quoted || byte.is_ascii_digit())
        })
        .take(SHAPE_BYTES_MAX)
}

/// What prepared statements suffer from a pooler between us and the server.
#[derive(Debug, Default)]
pub struct Pooling {
    explained: AtomicBool,
    prepared_again: AtomicU64,
}

impl Pooling {
    /// What is the matter and what helps.
    pub const ADVICE: &str = "the server does not know the prepared statements of its own client: \
        either the script drops them (DISCARD, DEALLOCATE), or a connection pooler gives each \
        transaction another connection to the server (transaction pooling); use -M simple or \
        -M extended, pool sessions, or let the pooler keep track of prepared statements \
        (max_prepared_statements of PgBouncer 1.21 and later)";

    /// Whether an error says that a prepared statement is not known, or known already.
    pub fn is_sign(sqlstate: SqlState) -> bool {
        matches!(&sqlstate.0, b"26000" | b"42P05")
    }

    /// Whether the advice is still to be given.
    pub fn is_first(&self) -> bool {
        !self.explained.swap(true, Ordering::Relaxed)
    }

    /// A statement is prepared anew together with its execution.
    pub fn note_prepared_again(&self) {
        self.prepared_again.fetch_add(1, Ordering::Relaxed);
    }

    /// How often statements were prepared anew.
    pub fn prepared_again(&self) -> u64 {
        self.prepared_again.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(sqlstate: &str, text: &str) -> Vec<u8> {
        format!("SNOTICE\0VNOTICE\0C{sqlstate}\0M{text}\0\0").into_bytes()
    }

    #[test]
    fn notices_that_differ_in_numbers_and_names_are_of_one_kind() {
        let book = NoticeBook::default();
        let (mut first, mut second) = (KnownNotices::default(), KnownNotices::default());
        let count = |client: &mut KnownNotices, sqlstate, text| {
            let body = notice(sqlstate, text);
            client.count(&ServerMessage::parse(&body).unwrap(), &book)
        };
        assert!(count(&mut first, "00000", "table \"a\" has 7 rows"));
        assert!(!count(&mut first, "00000", "table \"b1\" has 12 rows"));
        assert!(!count(&mut second, "00000", "table \"c\" has 1 rows"));
        assert!(count(&mut second, "00000", "view \"c\" has 1 rows"));
        assert!(count(&mut second, "42P07", "table \"c\" has 1 rows"));
        let table = "NOTICE:  table \"a\" has 7 rows".to_owned();
        assert_eq!(book.repeated(), [(table, 3)]);
        assert_eq!(book.untold(), 0);
    }

    #[test]
    fn there_is_a_bound_on_kinds() {
        let book = NoticeBook::default();
        let mut client = KnownNotices::default();
        let told = (0..60).filter(|&number| {
            let body = notice("00000", &"x".repeat(number));
            client.count(&ServerMessage::parse(&body).unwrap(), &book)
        });
        assert_eq!(told.count(), KINDS_MAX);
        assert_eq!(book.untold(), 10);
        assert!(book.repeated().is_empty());
    }
}
