//! What can be wrong with connection settings, by cause. A password is never part of a message.

use std::path::PathBuf;

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
    /// A whole connection string with a password, where a part of one belongs.
    #[error("{keyword} ({origin}) is a whole connection string")]
    Misplaced {
        /// The keyword of that part.
        keyword: &'static str,
        /// Where it was set.
        origin: Origin,
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
        /// What to do instead.
        hint: String,
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
        /// Values that it can have, if they are few; else empty.
        valid: String,
    },
    /// A word behind a password that is no keyword. It may be a part of the password.
    #[error("what follows the password is no connection option")]
    AfterPassword,
    /// Settings that are good, but not together.
    #[error("{0}")]
    Conflict(String),
    /// A method in `require_auth` that contradicts the others.
    #[error("require_auth method \"{method}\" {problem}")]
    RequireAuth {
        /// As it was written.
        method: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No service file describes the service.
    #[error("definition of service \"{service}\" not found")]
    UnknownService {
        /// Its name.
        service: String,
        /// Files in which it was looked for.
        files: Vec<PathBuf>,
    },
    /// A service file that is named cannot be read.
    #[error("could not read service file \"{}\": {problem}", path.display())]
    UnreadableServiceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A line of a service file that breaks the rules.
    #[error("{problem} in service file \"{}\", line {line}", path.display())]
    ServiceFile {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificates are to be checked, and there is nothing to check them against.
    #[error("root certificate file \"{}\" does not exist", .0.display())]
    NoRoots(PathBuf),
    /// The key of the client's certificate cannot be used.
    #[error("private key file \"{}\" {problem}", path.display())]
    ClientKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More or fewer addresses than hosts.
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    AddressCount {
        /// How many addresses were given.
        addresses: usize,
        /// How many hosts were given.
        hosts: usize,
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
            SettingsError::Misplaced { .. } => Some(
                "It belongs in the place of the database's name (-d), and a URI begins with \
                 postgresql:// or postgres://."
                    .to_owned(),
            ),
            SettingsError::Unsupported { hint, .. } => Some(hint.clone()),
            SettingsError::InvalidValue { valid, .. } if !valid.is_empty() => {
                Some(format!("It is one of: {valid}."))
            }
            SettingsError::AfterPassword => Some(
                "A password with blanks is put in single quotes: password='…'. In a URI it has \
                     %26 for \"&\"."
                    .to_owned(),
            ),
            SettingsError::UnknownService { files, .. } => {
                let files: Vec<_> = files
                    .iter()
                    .map(|file| file.display().to_string())
                    .collect();
                Some(match files.is_empty() {
                    true => "There is no service file; name one with PGSERVICEFILE.".to_owned(),
                    false => format!("Looked for it in {}.", files.join(" and ")),
                })
            }
            SettingsError::NoRoots(_) => Some(
                "Provide the file, use the system's trusted roots with sslrootcert=system, or an \
                 sslmode that verifies nothing."
                    .to_owned(),
            ),
            SettingsError::AddressCount { .. } => {
                Some("Give one address for each host; an empty one is looked up.".to_owned())
            }
            SettingsError::NoUser(_) => Some("Name one with -U or PGUSER.".to_owned()),
            SettingsError::PortCount { .. } => {
                Some("Give one port for all hosts, or one for each.".to_owned())
            }
            SettingsError::KeywordString { .. }
            | SettingsError::Uri { .. }
            | SettingsError::InvalidValue { .. }
            | SettingsError::Conflict(_)
            | SettingsError::RequireAuth { .. }
            | SettingsError::UnreadableServiceFile { .. }
            | SettingsError::ServiceFile { .. }
            | SettingsError::ClientKey { .. }
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
