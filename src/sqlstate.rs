//! The server's codes for what went wrong.

/// A five-character SQLSTATE, all zero bytes where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
