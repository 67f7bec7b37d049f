//! One connection of the initialisation. Begins no statement once a stop was ordered, and keeps
//! with each failure the statement that failed. Decides nothing about what follows from it.

use std::sync::atomic::{AtomicBool, Ordering};

use postgres::{Client, SimpleQueryMessage};

use crate::control::server_message;
use crate::error::{Error, Report};

/// Why a statement did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// A stop was ordered before it began or while it ran.
    Stopped,
    /// The server refused it.
    Statement {
        /// What was sent, or its beginning.
        statement: String,
        /// What the server said.
        error: postgres::Error,
    },
    /// It could not even be sent: no connection, no thread.
    Other(Error),
}

impl Failure {
    /// `statement` was refused with `error`.
    pub fn of(statement: &str, error: postgres::Error) -> Self {
        Failure::Statement {
            statement: statement.to_owned(),
            error,
        }
    }

    /// The SQLSTATE, where the server gave one.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Failure::Statement { error, .. } => error.code().map(postgres::error::SqlState::code),
            Failure::Stopped | Failure::Other(_) => None,
        }
    }

    /// The failure as the user is told it.
    pub fn into_error(self) -> Error {
        match self {
            Failure::Stopped => {
                Error::Server(Report::new("initialization was stopped before its end"))
            }
            Failure::Statement { statement, error } => Error::Server(
                Report::new(format!("query failed: {}", server_message(&error)))
                    .detail(format!("Query was: {statement}")),
            ),
            Failure::Other(error) => error,
        }
    }
}

/// When to begin nothing more.
#[derive(Clone, Copy)]
pub struct Stop<'a> {
    /// The user does not want to go on.
    pub ordered: &'a AtomicBool,
    /// Another connection of the same work has failed.
    pub failed_elsewhere: Option<&'a AtomicBool>,
}

impl Stop<'_> {
    /// Fails once a stop was ordered.
    pub fn check(&self) -> Result<(), Failure> {
        let elsewhere = self
            .failed_elsewhere
            .is_some_and(|flag| flag.load(Ordering::Relaxed));
        if elsewhere || self.ordered.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        Ok(())
    }
}

/// A row of an answer as text; NULL is `None`.
pub type TextRow = Vec<Option<String>>;

/// A connection and when to stop using it.
pub struct Session<'a> {
    /// The connection.
    pub client: &'a mut Client,
    /// When to stop.
    pub stop: Stop<'a>,
}

impl Session<'_> {
    /// Executes `statements` one after the other, each by itself.
    pub fn execute_all<S: AsRef<str>>(&mut self, statements: &[S]) -> Result<(), Failure> {
        statements
            .iter()
            .try_for_each(|statement| self.execute(statement.as_ref()))
    }

    /// Executes one statement.
    pub fn execute(&mut self, statement: &str) -> Result<(), Failure> {
        self.execute_as(statement, statement)
    }

    /// Executes a statement so long that a failure shows only `shown` of it.
    pub fn execute_as(&mut self, statement: &str, shown: &str) -> Result<(), Failure> {
        self.stop.check()?;
        self.client
            .batch_execute(statement)
            .map_err(|error| Failure::of(shown, error))
    }

    /// Does `work` in a transaction, which is undone if it fails.
    pub fn in_transaction(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.execute("begin")?;
        let outcome = work(self).and_then(|()| self.execute("commit"));
        if outcome.is_err() {
            self.try_to("rollback");
        }
        outcome
    }

    /// Tidies up after a failure, also after a stop, and says whether that worked; a further failure
    /// is not worth telling.
    pub fn try_to(&mut self, statement: &str) -> bool {
        self.client.batch_execute(statement).is_ok()
    }

    /// The answer to `question`.
    pub fn rows(&mut self, question: &str) -> Result<Vec<TextRow>, Failure> {
        self.stop.check()?;
        let messages = self
            .client
            .simple_query(question)
            .map_err(|error| Failure::of(question, error))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let fields = 0..row.len();
                Some(fields.map(|i| row.get(i).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The server's version as a number, 150018 for 15.18.
    pub fn server_version(&mut self) -> Result<u32, Failure> {
        let rows = self.rows("show server_version_num")?;
        let answer = rows.into_iter().flatten().flatten().next();
        // A server that does not say is taken for an old one.
        Ok(answer.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// The answer to a question of one boolean; no row means no.
    pub fn is_true(&mut self, question: &str) -> Result<bool, Failure> {
        let rows = self.rows(question)?;
        Ok(rows
            .first()
            .and_then(|row| row.first())
            .is_some_and(|answer| answer.as_deref() == Some("t")))
    }
}
