//! What can be wrong with connection settings, by cause. A password is never part of a message.

use crate::error::{Error, Report};

use super::keywords::Origin;

/// Why no target can be made of the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A keyword that does not exist.
    #[error("invalid connection option \"{keyword}\"")]
    UnknownKeyword {
        /// As it was written.
        keyword: String,
        /// The most similar keyword that exists.
        nearest: Option<&'static str>,
    },
    /// A keyword string that breaks off or lacks something.
    #[error("{problem} in connection info string")]
    KeywordString {
        /// What is wrong with it.
        problem: String,
    },
    /// A URI that breaks the rules.
    #[error("{problem} in connection URI")]
    Uri {
        /// What is wrong with it.
        problem: String,
    },
    /// A setting exists, and pgmark cannot do what it asks for.
    #[error("{keyword} \"{value}\" ({origin}) is not supported")]
    Unsupported {
        /// The keyword.
        keyword: &'static str,
        /// The value; empty if it may be a secret.
        value: String,
        /// Where it was set.
        origin: Origin,
        /// Values that are supported, if any are.
        supported: &'static [&'static str],
    },
    /// A setting has a value that it cannot have.
    #[error("invalid {keyword} \"{value}\" ({origin})")]
    InvalidValue {
        /// The keyword.
        keyword: &'static str,
        /// The value.
        value: String,
        /// Where it was set.
        origin: Origin,
    },
    /// More or fewer ports than hosts.
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortCount {
        /// How many ports were given.
        ports: usize,
        /// How many hosts were given.
        hosts: usize,
    },
    /// A value that is not UTF-8.
    #[error("environment variable {0} is not valid UTF-8")]
    NotText(&'static str),
    /// Nobody said which role to connect as, and the system does not know who we are.
    #[error("no user name is known: {0}")]
    NoUser(String),
}

impl SettingsError {
    /// What to do about it.
    fn hint(&self) -> Option<String> {
        match self {
            SettingsError::UnknownKeyword { nearest, .. } => {
                nearest.map(|nearest| format!("Did you mean \"{nearest}\"?"))
            }
            SettingsError::Unsupported { supported: [], .. } => {
                Some("Remove the setting.".to_owned())
            }
            SettingsError::Unsupported { supported, .. } => {
                Some(format!("Supported here: {}.", supported.join(", ")))
            }
            SettingsError::NoUser(_) => Some("Name one with -U or PGUSER.".to_owned()),
            SettingsError::PortCount { .. } => {
                Some("Give one port for all hosts, or one for each.".to_owned())
            }
            SettingsError::KeywordString { .. }
            | SettingsError::Uri { .. }
            | SettingsError::InvalidValue { .. }
            | SettingsError::NotText(_) => None,
        }
    }
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        let report = Report::new(error.to_string());
        Error::Usage(match error.hint() {
            Some(hint) => report.hint(hint),
            None => report,
        })
    }
}
