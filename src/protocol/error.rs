//! What can go wrong between the bytes and the session, by cause.
//!
//! Errors that the server reports are not here: they are events, since a session lives on after
//! most of them.

use crate::conninfo::AttemptFailure;

/// Why a session cannot go on. Its connection is of no more use: bytes and state may have parted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A message has a length that its type cannot have.
    #[error("{message} message with impossible length {length} from the server while {state}")]
    Length {
        /// What the session was doing.
        state: &'static str,
        /// Name of the message type.
        message: &'static str,
        /// The length as sent, its own four bytes included.
        length: i32,
    },
    /// A message that may be long is longer than is taken.
    #[error(
        "{message} message of {bytes} bytes from the server while {state}: at most {allowed} are taken"
    )]
    TooLong {
        /// What the session was doing.
        state: &'static str,
        /// Name of the message type.
        message: &'static str,
        /// Length of the body.
        bytes: usize,
        /// The longest that is taken.
        allowed: usize,
    },
    /// The body of a message does not have the form that its type prescribes.
    #[error("malformed {message} message from the server while {state}: {problem}")]
    Malformed {
        /// What the session was doing.
        state: &'static str,
        /// Name of the message type.
        message: &'static str,
        /// What was wrong with it.
        problem: &'static str,
    },
    /// A byte that is no message type: the peer does not speak PostgreSQL's protocol, or a length
    /// before it was wrong.
    #[error("unknown message type 0x{tag:02x} from the server while {state}")]
    UnknownMessage {
        /// What the session was doing.
        state: &'static str,
        /// The byte in place of a message type.
        tag: u8,
    },
    /// A message of a known type at a moment when it means nothing.
    #[error("unexpected {message} message from the server while {state}")]
    Unexpected {
        /// What the session was doing.
        state: &'static str,
        /// Name of the message type.
        message: &'static str,
    },
    /// The server asks for a password and none is known. Connecting again with one may succeed.
    #[error("the server asks for a password, and none was supplied")]
    PasswordRequired,
    /// The server insists on a way of authenticating that is not supported.
    #[error("the server asks for {method} authentication, which is not supported")]
    UnsupportedAuthentication {
        /// The method, as its messages call it.
        method: String,
    },
    /// The server's way of authenticating is not one that the user allows.
    #[error("authentication method requirement \"{requirement}\" failed: {reason}")]
    AuthenticationRequirement {
        /// `require_auth`, as the user wrote it.
        requirement: String,
        /// What the server asks for instead.
        reason: String,
    },
    /// The login is to be bound to the encrypted connection (`channel_binding=require`), and cannot.
    #[error("channel binding is required, but {0}")]
    ChannelBinding(&'static str),
    /// The exchange went wrong: the server did not prove that it knows the password, or asked for
    /// unreasonable work.
    #[error("authentication failed: {0}")]
    Authentication(String),
    /// The server does not support something that the start-up packet did not ask for.
    #[error(
        "the server reports that it does not support the start-up option {0}, which was not asked for"
    )]
    UnsupportedOption(String),
    /// The server speaks another version of the protocol than what can be agreed on.
    #[error(
        "the server wants to speak protocol {major}.{minor}, which is not one of those that are allowed \
         (min_protocol_version, max_protocol_version)"
    )]
    ProtocolVersion {
        /// Its major number.
        major: u16,
        /// Its minor number.
        minor: u16,
    },
    /// Something cannot be put into a message: too long, or with a zero byte where a string ends.
    #[error("{what} cannot be sent to the server: {problem}")]
    Unsendable {
        /// What was to be sent.
        what: &'static str,
        /// Why it cannot.
        problem: String,
    },
}

impl From<ProtocolError> for AttemptFailure {
    /// What it means to an attempt to connect.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::PasswordRequired => AttemptFailure::PasswordRequired,
            other => AttemptFailure::Unacceptable(other.to_string()),
        }
    }
}
