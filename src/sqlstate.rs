//! The server's codes for what went wrong.

use serde::{Deserialize, Serialize};

/// A five-character SQLSTATE, all zero bytes where there is none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// No SQLSTATE: the error, if any, did not come from a server.
    pub const NONE: SqlState = SqlState([0; 5]);

    /// The server has no connection left to give, or the role or the database may have no more.
    pub const TOO_MANY_CONNECTIONS: SqlState = SqlState(*b"53300");

    /// The statement is not SQL.
    pub const SYNTAX_ERROR: SqlState = SqlState(*b"42601");

    /// The code as text, empty for [`SqlState::NONE`].
    pub fn as_str(&self) -> &str {
        match self.0 {
            [0, ..] => "",
            _ => std::str::from_utf8(&self.0).unwrap_or("?????"),
        }
    }
}

impl From<SqlState> for String {
    fn from(sqlstate: SqlState) -> String {
        sqlstate.as_str().to_owned()
    }
}

/// The reverse of [`SqlState::as_str`]; the error says what is no SQLSTATE.
impl TryFrom<String> for SqlState {
    type Error = String;

    fn try_from(text: String) -> Result<SqlState, String> {
        match text.as_bytes() {
            [] => Ok(SqlState::NONE),
            bytes => bytes
                .try_into()
                .map(SqlState)
                .map_err(|_| format!("{text:?} is no SQLSTATE")),
        }
    }
}
