//! Errors of the program as a whole, by cause. Each says what happened, where, and what to do.
//!
//! Formatting them for a terminal is not done here; see `console`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sqlstate::SqlState;

/// Why the program could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for something that cannot be: unknown option, bad value, conflict.
    #[error("{0}")]
    Usage(Report),
    /// A script does not parse. One or more faults, each already told in full.
    #[error("{0}")]
    Script(Report),
    /// No connection could be made.
    #[error("{0}")]
    Connect(Report),
    /// No connection could be made because the server asks for a password, and none is known.
    /// Connecting again with one may succeed.
    #[error("{0}")]
    PasswordRequired(Report),
    /// The server refused a statement of pgmark's own (initialisation, vacuum, detection).
    #[error("{0}")]
    Server(Report),
    /// The machine lacks something: server binaries, descriptors, an unprivileged user.
    #[error("{0}")]
    Environment(Report),
    /// A file could not be read or written.
    #[error("could not {action} \"{}\": {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `create`, as in "could not read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A stop signal arrived before there was anything to report.
    #[error("interrupted")]
    Interrupted(Signal),
}

/// What is told to the user: one sentence, and where there is more to say, detail and a remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What happened and where.
    pub message: String,
    /// More about it: the failing statement, the attempts made.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The server's code for it, where it has one.
    pub sqlstate: SqlState,
}

impl Report {
    /// A report of one sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Report {
            message: message.into(),
            ..Report::default()
        }
    }

    /// Adds the detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error {
    /// An I/O error on `path`; `action` completes "could not …".
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// The system refuses a thread.
    pub fn no_thread(source: &std::io::Error) -> Self {
        Error::Environment(
            Report::new(format!("could not create a thread: {source}")).hint("Reduce --jobs."),
        )
    }

    /// Detail and hint, where the error has them.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Error::Usage(report)
            | Error::Script(report)
            | Error::Connect(report)
            | Error::PasswordRequired(report)
            | Error::Server(report)
            | Error::Environment(report) => Some(report),
            Error::Io { .. } | Error::Interrupted(_) => None,
        }
    }
}

/// What the system says of `error`, without the number that the standard library adds.
pub fn system_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let number = error
        .raw_os_error()
        .map(|code| format!(" (os error {code})"));
    match number.and_then(|number| text.strip_suffix(&number)) {
        Some(words) => words.to_owned(),
        None => text,
    }
}

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`.
    Terminate,
    /// The terminal went away.
    Hangup,
}

impl Signal {
    /// The exit status that a shell shows for it.
    pub fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
            Signal::Hangup => 129,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_system_speaks_in_words() {
        for (error, words) in [
            (io::Error::from_raw_os_error(2), "No such file or directory"),
            (io::Error::other("odd (os error 2)"), "odd (os error 2)"),
            (io::ErrorKind::WriteZero.into(), "write zero"),
        ] {
            assert_eq!(system_words(&error), words);
        }
    }
}
