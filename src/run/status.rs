//! How the program ends. The only place where exit statuses are made.

use crate::error::{Error, Signal};
use crate::event::ClientEnd;
use crate::result::RunResult;

/// The exit status, in words. Where several apply, the one that comes first here wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// A signal ended it: 130, 143 or 129.
    Interrupted(Signal),
    /// It could not be done at all, or our own part of it went wrong: 1.
    Failure,
    /// A client was aborted, so that the results are incomplete: 2.
    Aborted,
    /// It meets a condition of `--fail-if`: 3.
    ConditionMet,
    /// All went well: 0.
    Success,
}

impl ExitStatus {
    /// The status after an error.
    pub fn of_error(error: &Error) -> Self {
        match error {
            Error::Interrupted(signal) => ExitStatus::Interrupted(*signal),
            Error::Usage(_)
            | Error::Script(_)
            | Error::Connect(_)
            | Error::PasswordRequired(_)
            | Error::Server(_)
            | Error::Environment(_)
            | Error::Io { .. } => ExitStatus::Failure,
        }
    }

    /// The status after a run. `at_fault` says that something of our own went wrong, such as a log
    /// that did not take all rows.
    pub fn of_result(result: &RunResult, at_fault: bool) -> Self {
        if let Some(signal) = result.facts.interrupted {
            return ExitStatus::Interrupted(signal);
        }
        if at_fault {
            return ExitStatus::Failure;
        }
        if result
            .measured
            .clients
            .iter()
            .any(|client| client.end == ClientEnd::Aborted)
        {
            return ExitStatus::Aborted;
        }
        ExitStatus::Success
    }

    /// The same after something of our own went wrong, too.
    pub fn or_failure(self) -> Self {
        match self {
            ExitStatus::Interrupted(_) => self,
            ExitStatus::Failure
            | ExitStatus::Aborted
            | ExitStatus::ConditionMet
            | ExitStatus::Success => ExitStatus::Failure,
        }
    }

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Interrupted(signal) => signal.exit_code(),
            ExitStatus::Failure => 1,
            ExitStatus::Aborted => 2,
            ExitStatus::ConditionMet => 3,
            ExitStatus::Success => 0,
        }
    }
}
