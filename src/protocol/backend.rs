//! Bodies of the server's messages as views into the bytes received. A view is checked once, when
//! it is made; reading it afterwards cannot fail and does not allocate.

use std::fmt::Write as _;

use crate::event::SqlState;
use crate::printable::is_steering;

use super::excerpt::excerpt;

/// What is wrong with a body.
pub(super) type Problem = &'static str;

/// Reads a message body from front to back.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Reader { rest: body }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or("it ends too early")?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Problem> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(super) fn string(&mut self) -> Result<&'a [u8], Problem> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or("a string has no end")?;
        let string = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(string)
    }

    pub(super) fn remaining(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn finish(self) -> Result<(), Problem> {
        match self.rest {
            [] => Ok(()),
            [..] => Err("it is longer than its contents"),
        }
    }
}

/// The columns of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowDescription<'a> {
    columns: u16,
    body: &'a [u8],
}

impl<'a> RowDescription<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = Reader::new(body);
        let columns = reader.u16()?;
        let body = reader.rest;
        for _ in 0..columns {
            Self::read_column(&mut reader)?;
        }
        reader.finish()?;
        Ok(RowDescription { columns, body })
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    /// The columns' names in the client encoding, from left to right.
    pub fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.body);
        std::iter::from_fn(move || Self::read_column(&mut reader).ok())
    }

    /// Name; then table, column number, type, type's size, modifier and format, 18 bytes in all.
    fn read_column(reader: &mut Reader<'a>) -> Result<&'a [u8], Problem> {
        let name = reader.string()?;
        reader.bytes(18)?;
        Ok(name)
    }
}

/// One row of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRow<'a> {
    columns: u16,
    body: &'a [u8],
    omitted: Option<OmittedValue>,
}

/// A value that is too long to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OmittedValue {
    /// Number of its column, from 0.
    pub column: usize,
    /// Its length.
    pub bytes: usize,
}

impl<'a> DataRow<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = Reader::new(body);
        let columns = reader.u16()?;
        let body = reader.rest;
        for _ in 0..columns {
            Self::read_value(&mut reader)?;
        }
        reader.finish()?;
        Ok(DataRow {
            columns,
            body,
            omitted: None,
        })
    }

    /// The same row, of which a value has been left out.
    pub(super) fn without(self, omitted: Option<OmittedValue>) -> Self {
        DataRow { omitted, ..self }
    }

    /// How many values there are.
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    /// The first of the wanted values that were left out, because the row is longer than what is
    /// kept of one. They look like NULL.
    pub fn omitted(&self) -> Option<OmittedValue> {
        self.omitted
    }

    /// The values as text in the client encoding, from left to right; `None` for NULL, and perhaps in
    /// a column that is not wanted.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut reader = Reader::new(self.body);
        std::iter::from_fn(move || Self::read_value(&mut reader).ok())
    }

    fn read_value(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Problem> {
        match reader.i32()? {
            -1 => Ok(None),
            length => {
                let length =
                    usize::try_from(length).map_err(|_| "a value has a negative length")?;
                reader.bytes(length).map(Some)
            }
        }
    }
}

/// An error or a notice of the server. Texts are in the client encoding, whatever that is: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMessage<'a> {
    fields: &'a [u8],
}

impl<'a> ServerMessage<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        let mut reader = Reader::new(body);
        while reader.u8()? != 0 {
            reader.string()?;
        }
        reader.finish()?;
        Ok(ServerMessage { fields: body })
    }

    /// A field by the byte that identifies it in the protocol.
    pub fn field(&self, kind: u8) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.fields);
        loop {
            let found = reader.u8().ok().filter(|&found| found != 0)?;
            let value = reader.string().ok()?;
            if found == kind {
                return Some(value);
            }
        }
    }

    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE`, `DEBUG`, `INFO` or `LOG`, never translated
    /// by servers from 9.6 on.
    pub fn severity(&self) -> &'a [u8] {
        self.field(b'V').or_else(|| self.field(b'S')).unwrap_or(b"")
    }

    /// The server closes the connection after this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity(), b"FATAL" | b"PANIC")
    }

    /// The SQLSTATE; [`SqlState::NONE`] if the server sent none or one that is not five letters
    /// and digits.
    pub fn sqlstate(&self) -> SqlState {
        self.field(b'C')
            .and_then(|code| <[u8; 5]>::try_from(code).ok())
            .filter(|code| code.iter().all(u8::is_ascii_alphanumeric))
            .map_or(SqlState::NONE, SqlState)
    }

    /// The primary message, one line.
    pub fn message(&self) -> &'a [u8] {
        self.field(b'M').unwrap_or(b"")
    }

    /// More about the problem.
    pub fn detail(&self) -> Option<&'a [u8]> {
        self.field(b'D')
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'a [u8]> {
        self.field(b'H')
    }

    /// Where in the statement, in characters from 1.
    pub fn position(&self) -> Option<usize> {
        std::str::from_utf8(self.field(b'P')?).ok()?.parse().ok()
    }
}

impl<'a> ServerMessage<'a> {
    /// Severity and primary message, without what else belongs to it.
    pub fn headline(&self) -> String {
        // A message without any fields is not what the protocol prescribes, but it is an error.
        let severity = match self.field(b'S').unwrap_or_else(|| self.severity()) {
            b"" => b"ERROR",
            severity => severity,
        };
        let primary = match self.message() {
            b"" => b"the server gave no message",
            primary => primary,
        };
        format!("{}:  {}", Shown(severity), Shown(primary))
    }

    /// The message as libpq prints it, with the line of the statement that it points at.
    pub fn with_statement(self, statement: &'a [u8]) -> impl std::fmt::Display + use<'a> {
        Explained {
            message: self,
            statement: Some(statement),
        }
    }
}

impl std::fmt::Display for ServerMessage<'_> {
    /// As libpq prints it: the message, and a line each for detail, hint, internal query and
    /// context. Bytes that are not UTF-8, as other client encodings have them, are shown as `\xe9`. No
    /// newline at the end.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let explained = Explained {
            message: *self,
            statement: None,
        };
        explained.fmt(f)
    }
}

/// A message and, if it is known, the statement that it is about.
struct Explained<'a> {
    message: ServerMessage<'a>,
    statement: Option<&'a [u8]>,
}

impl std::fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Explained { message, statement } = self;
        f.write_str(&message.headline())?;
        if let Some(position) = message.position() {
            match statement.and_then(|statement| excerpt(statement, position)) {
                Some(lines) => write!(f, "\n{lines}")?,
                None => write!(f, " at character {position}")?,
            }
        }
        for (kind, label) in [(b'D', "DETAIL"), (b'H', "HINT"), (b'q', "QUERY")] {
            if let Some(value) = message.field(kind) {
                write!(f, "\n{label}:  {}", Shown(value))?;
            }
        }
        // libpq shows the context of errors and leaves out that of notices.
        match (message.severity(), message.field(b'W')) {
            (b"ERROR" | b"FATAL" | b"PANIC", Some(context)) => {
                write!(f, "\nCONTEXT:  {}", Shown(context))
            }
            (_, Some(_) | None) => Ok(()),
        }
    }
}

/// Text of a server in whatever encoding, so that nothing of it is lost and none of it is an order to
/// a terminal: what is no UTF-8, and control characters but for tabs and new lines, as `\xe9`.
pub struct Shown<'a>(pub &'a [u8]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                match is_steering(letter) {
                    true => write!(f, "\\x{:02x}", u32::from(letter))?,
                    false => f.write_char(letter)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}
