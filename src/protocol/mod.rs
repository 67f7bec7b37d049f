//! One client's conversation with a PostgreSQL server: bytes in, bytes and events out.
//!
//! A [`Session`] owns no socket, reads no clock and knows no script; it can be driven from a byte
//! array. It keeps client and server in step, bounds everything that the server decides, and
//! allocates nothing in steady state: whole messages are read where they lie in the input, only one
//! that the end of the input cuts is copied, and rows that nobody wants are skipped by count.

mod auth;
mod backend;
mod error;
mod excerpt;
mod framing;
mod frontend;
mod hostile;
mod policy;
#[cfg(test)]
mod recordings;
mod replies;
#[cfg(test)]
mod scram_server;
mod sieve;
mod success;
#[cfg(test)]
mod tests;

use std::ffi::CStr;

use bytes::{Buf, BytesMut};
use postgres_protocol::message::{backend as tags, frontend as encode};

use crate::conninfo::ProtocolVersion;

use auth::{Login, LoginError};
use backend::{Problem, Reader};
use framing::{Frame, Inbox};
use replies::{Expected, Replies, ReplyOwed};

pub use backend::{DataRow, OmittedValue, RowDescription, ServerMessage, Shown};
pub use error::ProtocolError;
pub use frontend::{ChannelBinding, Startup};
pub use hostile::drive_hostile;
pub use sieve::ROW_BYTES_MAX;

/// One client's side of a connection.
///
/// Call [`Session::start`] once the connection below is there, hand everything that arrives to
/// [`Session::advance`], and send what [`Session::output`] holds. After the connection has ended,
/// `start` begins the next one with the same buffers.
#[derive(Default)]
pub struct Session {
    stage: Stage,
    inbox: Inbox,
    output: BytesMut,
    replies: Replies,
    status: TransactionStatus,
    /// What was asked for, or what the server made of it.
    version: ProtocolVersion,
    version_min: ProtocolVersion,
    server: Server,
}

/// How far a connection has come: the server first asks who we are, then tells its settings and the
/// cancel key, then answers statements.
#[derive(Default)]
enum Stage {
    #[default]
    Unstarted,
    LoggingIn(Box<Login>),
    LoggedIn,
    Running,
    /// The server refused the connection; what else it sends is of no interest.
    Refused,
}

/// What the server told about itself.
#[derive(Default)]
struct Server {
    authentication: Option<&'static str>,
    process_id: Option<i32>,
    cancel_secret: Vec<u8>,
}

/// Lengths of a cancel key: 4 bytes up to protocol 3.0, at most 256 from 3.2 on.
const CANCEL_SECRET_BYTES: std::ops::RangeInclusive<usize> = 4..=256;

/// Bound on the memory that a server can make a session take: one long message or what is wanted of
/// one row, in a buffer that doubles when it grows; and the header of each of 65,535 columns. What the caller itself queues comes on top.
pub const SESSION_BYTES_MAX: usize = 2 * (ROW_BYTES_MAX + (512 << 10));

/// Whether a transaction block is open on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    /// No.
    #[default]
    Idle,
    /// Yes.
    InBlock,
    /// Yes, and it accepts nothing but its end.
    InFailedBlock,
}

impl TransactionStatus {
    /// As ReadyForQuery tells it.
    fn parse(body: &[u8]) -> Option<Self> {
        match body {
            b"I" => Some(TransactionStatus::Idle),
            b"T" => Some(TransactionStatus::InBlock),
            b"E" => Some(TransactionStatus::InFailedBlock),
            _ => None,
        }
    }
}

/// Something that the server said. Borrows from the input, or from the session where a message was
/// cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The connection is ready for its first statement.
    Started,
    /// A simple query or a Sync has been answered completely.
    Ready(TransactionStatus),
    /// Rows will follow, if there are any. Only if rows are wanted.
    RowDescription(RowDescription<'a>),
    /// A row. Only if rows are wanted.
    DataRow(DataRow<'a>),
    /// A statement has ended well; its tag, as in `UPDATE 1` or `COMMIT`.
    CommandComplete(&'a [u8]),
    /// The text held no statement.
    EmptyQuery,
    /// A statement failed, or (while starting) the server refuses the connection, or (while idle)
    /// it ends it.
    Error(ServerMessage<'a>),
    /// The server has something to say.
    Notice(ServerMessage<'a>),
    /// A setting of the session is now this.
    ParameterStatus {
        /// Name of the setting.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Another session notified us.
    Notification {
        /// Process of the other session.
        process_id: i32,
        /// Channel that we listen on.
        channel: &'a [u8],
        /// What it sent.
        payload: &'a [u8],
    },
    /// A statement is a COPY to or from the client. The session refuses to send data and drops what
    /// arrives; an error or the command's completion follows.
    CopyStarted(CopyDirection),
    /// A statement was parsed.
    ParseComplete,
    /// Parameters were bound.
    BindComplete,
    /// A prepared statement was forgotten.
    CloseComplete,
    /// The statement described gives no rows.
    NoData,
}

/// Which way the data of a COPY flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    /// To the server.
    In,
    /// To the client.
    Out,
    /// Both ways (replication).
    Both,
}

impl Session {
    /// A session that is not connected.
    pub fn new() -> Self {
        Session::default()
    }

    /// Begins a connection: forgets the one before and queues the start-up packet.
    ///
    /// # Errors
    /// A setting holds a zero byte.
    pub fn start(&mut self, startup: &Startup<'_>) -> Result<(), ProtocolError> {
        self.reset();
        self.queue(&[], |out| frontend::startup(startup, out))?;
        self.version = startup.max_protocol;
        self.version_min = startup.min_protocol;
        self.stage = Stage::LoggingIn(Box::new(Login::new(startup)));
        Ok(())
    }

    /// Forgets the connection, and keeps the buffers for the next one.
    pub fn reset(&mut self) {
        self.stage = Stage::Unstarted;
        self.inbox.clear();
        self.output.clear();
        self.replies.clear();
        self.status = TransactionStatus::Idle;
        self.server.process_id = None;
    }

    /// The next event in what arrived, or `None` when the input is used up; call it until then, and
    /// send the output before the next input is read: nothing that is queued while events of an
    /// input are handled is taken to be answered in the same input.
    ///
    /// # Errors
    /// The bytes make no sense, or the server asks for something that cannot be given. The session
    /// can only be started anew then.
    pub fn advance<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'s>>, ProtocolError> {
        loop {
            if matches!(self.stage, Stage::Refused) {
                *input = &[];
            }
            let state = self.state();
            let Some(frame) = self.inbox.next(input, state)? else {
                self.replies.end_telling();
                return Ok(None);
            };
            match self.react(&frame, state)? {
                Reaction::Quiet => {}
                Reaction::Tell => {
                    self.replies.begin_telling();
                    return self.event(&frame, state).map(Some);
                }
                Reaction::TellStarted => {
                    self.replies.begin_telling();
                    return Ok(Some(Event::Started));
                }
            }
        }
    }

    /// Takes the whole reply to one execution, or to one simple query, if the input begins with it, all
    /// went well, and nobody wants its rows: the same as if its messages had come out of
    /// [`Session::advance`] one by one, at a fraction of the work. Gives the number of results. `None`
    /// leaves everything as it was.
    pub fn take_success(&mut self, input: &mut &[u8]) -> Option<usize> {
        if !matches!(self.stage, Stage::Running) || !self.inbox.passes_rows_over() {
            return None;
        }
        let reply = match self.replies.all_owed() {
            ReplyOwed::Query => success::of_query(input),
            ReplyOwed::Execution => success::of_execution(input),
            ReplyOwed::Other => None,
        }?;
        self.replies.settle(!reply.rest.is_empty());
        self.status = reply.status;
        *input = reply.rest;
        Some(reply.results)
    }

    /// Whether rows and their descriptions are handed out from now on, with all columns. Off at the
    /// start: they are skipped then.
    pub fn want_rows(&mut self, wanted: bool) {
        self.inbox.wanted().set_rows(wanted);
    }

    /// Which columns of the rows are wanted, from the left, up to the next [`Session::want_rows`].
    /// Values of others are skipped where the row does not lie in the input as a whole. At most
    /// [`ROW_BYTES_MAX`] of a row are kept: values beyond that are left out, which the row tells.
    pub fn want_columns(&mut self, wanted: impl IntoIterator<Item = bool>) {
        self.inbox.wanted().set_columns(wanted);
    }

    /// Queues a simple query, its text written by `write`.
    ///
    /// # Errors
    /// The text is longer than a message can be.
    pub fn simple_query(&mut self, write: impl FnOnce(&mut BytesMut)) -> Result<(), ProtocolError> {
        self.queue(&[Expected::SimpleQuery], |out| frontend::query(out, write))
    }

    /// Queues the parsing of a statement under a name, empty for the unnamed one. Types of
    /// parameters are the server's to infer. Needs a [`Session::sync`] sooner or later.
    ///
    /// # Errors
    /// The text is longer than a message can be.
    pub fn parse(
        &mut self,
        name: &CStr,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<(), ProtocolError> {
        self.queue(&[Expected::Parse], |out| frontend::parse(name, out, write))
    }

    /// Queues the execution of a parsed statement (Bind, Describe, Execute) with so many parameters.
    /// `write` appends the text of the one with an index, or says `false` and appends nothing if it
    /// is NULL. Needs a [`Session::sync`] sooner or later.
    ///
    /// # Errors
    /// A parameter is longer than a message can be, or there are more than 65535.
    pub fn execute(
        &mut self,
        name: &CStr,
        parameters: usize,
        write: impl FnMut(usize, &mut BytesMut) -> bool,
    ) -> Result<(), ProtocolError> {
        let replies = [Expected::Bind, Expected::Describe, Expected::Execute];
        self.queue(&replies, |out| {
            frontend::bind_and_execute(name, parameters, write, out)
        })
    }

    /// Queues the forgetting of a prepared statement. Needs a [`Session::sync`] sooner or later.
    pub fn close_statement(&mut self, name: &CStr) {
        frontend::close_statement(name, &mut self.output);
        self.replies.push(Expected::Close);
    }

    /// Queues a Sync: the end of an implicit transaction, and the place where the server resumes
    /// after an error.
    pub fn sync(&mut self) {
        encode::sync(&mut self.output);
        self.replies.push(Expected::Sync);
    }

    /// Queues the goodbye, after which the connection may be closed.
    pub fn terminate(&mut self) {
        encode::terminate(&mut self.output);
    }

    /// The packet that cancels what this session is doing, for a connection of its own; `None`
    /// while the server has not told a key.
    pub fn cancel_request(&self) -> Option<Vec<u8>> {
        let process_id = self.server.process_id?;
        Some(frontend::cancel_request(
            process_id,
            &self.server.cancel_secret,
        ))
    }

    /// How the server authenticated us, in the words of `pg_hba.conf`; `None` until it has. Methods
    /// that ask for nothing (peer, ident, cert) look like `trust`.
    pub fn authentication(&self) -> Option<&'static str> {
        self.server.authentication
    }

    /// The version of the protocol that is spoken.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.version
    }

    /// Process that serves this session, where the server told it.
    pub fn process_id(&self) -> Option<i32> {
        self.server.process_id
    }

    /// Bytes to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Notes that the first `count` bytes of the output have been sent.
    ///
    /// # Panics
    /// If the output is shorter than that.
    pub fn consume_output(&mut self, count: usize) {
        // An empty buffer begins anew; one that only moves on has to be made room in, time and again.
        match count == self.output.len() {
            true => self.output.clear(),
            false => self.output.advance(count),
        }
    }

    /// Whether a transaction block is open, as of the last time the server was ready.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.status
    }

    /// How many [`Event::Ready`] are still to come.
    pub fn ready_owed(&self) -> usize {
        self.replies.ready_owed()
    }

    /// The server has let us in and is ready for statements or working on one.
    pub fn is_started(&self) -> bool {
        matches!(self.stage, Stage::Running)
    }

    /// Writes messages that will be replied to. If they cannot be written nothing of them stays.
    fn queue(
        &mut self,
        replies: &[Expected],
        write: impl FnOnce(&mut BytesMut) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let start = self.output.len();
        let written = write(&mut self.output);
        match written {
            Ok(()) => self.replies.push_all(replies),
            Err(_) => self.output.truncate(start),
        }
        written
    }

    /// Memory held for what came from the server and what is to be sent to it.
    fn held_bytes(&self) -> usize {
        self.inbox.held_bytes()
            + self.output.capacity()
            + self.replies.held_bytes()
            + self.server.cancel_secret.capacity()
    }

    /// What the session is doing, to complete "while …".
    fn state(&self) -> &'static str {
        match (&self.stage, self.replies.head()) {
            (Stage::Unstarted, _) => "not connected",
            (Stage::LoggingIn(_), _) => "authenticating",
            (Stage::LoggedIn, _) => "starting up",
            (Stage::Refused, _) => "being refused",
            (Stage::Running, None) => "idle",
            (Stage::Running, Some(Expected::SimpleQuery)) => {
                "waiting for the result of a statement"
            }
            (Stage::Running, Some(Expected::Parse)) => "waiting for ParseComplete",
            (Stage::Running, Some(Expected::Bind)) => "waiting for BindComplete",
            (Stage::Running, Some(Expected::Describe)) => "waiting for the description of a result",
            (Stage::Running, Some(Expected::Execute)) => "waiting for the result of a statement",
            (Stage::Running, Some(Expected::Close)) => "waiting for CloseComplete",
            (Stage::Running, Some(Expected::Sync)) => "waiting for ReadyForQuery",
        }
    }

    /// Does what a message demands of the session itself. `state` is what the session was doing
    /// when it came, for errors.
    fn react(&mut self, frame: &Frame<'_>, state: &'static str) -> Result<Reaction, ProtocolError> {
        match (frame.tag, &self.stage) {
            (_, Stage::Unstarted | Stage::Refused) => Err(unexpected(frame, state)),
            (tags::NOTICE_RESPONSE_TAG, _) => Ok(Reaction::Tell),
            (tags::ERROR_RESPONSE_TAG, Stage::LoggingIn(_) | Stage::LoggedIn) => {
                self.stage = Stage::Refused;
                Ok(Reaction::Tell)
            }
            (tags::AUTHENTICATION_TAG, Stage::LoggingIn(_)) => self.log_in(frame, state),
            (framing::NEGOTIATE_PROTOCOL_VERSION_TAG, Stage::LoggingIn(_)) => {
                self.negotiate(frame, state)
            }
            (tags::PARAMETER_STATUS_TAG, Stage::LoggedIn | Stage::Running) => Ok(Reaction::Tell),
            (tags::BACKEND_KEY_DATA_TAG, Stage::LoggedIn) => self.keep_cancel_key(frame, state),
            (tags::READY_FOR_QUERY_TAG, Stage::LoggedIn) => {
                self.become_ready(frame, state)?;
                self.stage = Stage::Running;
                Ok(Reaction::TellStarted)
            }
            (_, Stage::LoggingIn(_) | Stage::LoggedIn) => Err(unexpected(frame, state)),
            (_, Stage::Running) => self.react_running(frame, state),
        }
    }

    fn react_running(
        &mut self,
        frame: &Frame<'_>,
        state: &'static str,
    ) -> Result<Reaction, ProtocolError> {
        match frame.tag {
            tags::NOTIFICATION_RESPONSE_TAG => return Ok(Reaction::Tell),
            tags::ERROR_RESPONSE_TAG => {
                self.replies.fail();
                return Ok(Reaction::Tell);
            }
            _ => {}
        }
        if !self.replies.accept(frame.tag) {
            return Err(unexpected(frame, state));
        }
        match frame.tag {
            tags::READY_FOR_QUERY_TAG => self.become_ready(frame, state)?,
            tags::COPY_IN_RESPONSE_TAG => self.refuse_copy()?,
            framing::COPY_BOTH_RESPONSE_TAG => encode::copy_done(&mut self.output),
            tags::COPY_DONE_TAG => return Ok(Reaction::Quiet),
            _ if frame.is_skipped() => return Ok(Reaction::Quiet),
            _ => {}
        }
        Ok(Reaction::Tell)
    }

    fn log_in(
        &mut self,
        frame: &Frame<'_>,
        state: &'static str,
    ) -> Result<Reaction, ProtocolError> {
        let Stage::LoggingIn(login) = &mut self.stage else {
            return Err(unexpected(frame, state));
        };
        match login.answer(self.inbox.body(frame), &mut self.output) {
            Ok(false) => {}
            Ok(true) => {
                self.server.authentication = Some(login.method());
                self.stage = Stage::LoggedIn;
            }
            Err(LoginError::Malformed(problem)) => return Err(malformed(frame, state, problem)),
            Err(LoginError::Unexpected) => return Err(unexpected(frame, state)),
            Err(LoginError::Failed(error)) => return Err(error),
        }
        Ok(Reaction::Quiet)
    }

    /// The server speaks an older version than we asked for. We ask for no options, so that none
    /// can be refused.
    fn negotiate(
        &mut self,
        frame: &Frame<'_>,
        state: &'static str,
    ) -> Result<Reaction, ProtocolError> {
        let read = |body| {
            let mut reader = Reader::new(body);
            let version = reader.u32()?;
            match reader.u32()? {
                0 => reader.finish().map(|()| (version, None)),
                _ => reader.string().map(|option| (version, Some(option))),
            }
        };
        let (version, option) =
            read(self.inbox.body(frame)).map_err(|problem| malformed(frame, state, problem))?;
        if let Some(option) = option {
            let option = String::from_utf8_lossy(option).into_owned();
            return Err(ProtocolError::UnsupportedOption(option));
        }
        let known = [ProtocolVersion::V3_0, ProtocolVersion::V3_2];
        let agreed = known.into_iter().find(|&known| {
            (self.version_min..=self.version).contains(&known)
                && frontend::version_number(known) == version
        });
        self.version = agreed.ok_or(ProtocolError::ProtocolVersion {
            major: (version >> 16) as u16,
            minor: (version & 0xffff) as u16,
        })?;
        Ok(Reaction::Quiet)
    }

    fn keep_cancel_key(
        &mut self,
        frame: &Frame<'_>,
        state: &'static str,
    ) -> Result<Reaction, ProtocolError> {
        let mut reader = Reader::new(self.inbox.body(frame));
        let process_id = reader
            .i32()
            .map_err(|problem| malformed(frame, state, problem))?;
        let secret = reader.remaining();
        if !CANCEL_SECRET_BYTES.contains(&secret.len()) {
            let problem = "its key has not 4 to 256 bytes";
            return Err(malformed(frame, state, problem));
        }
        self.server.process_id = Some(process_id);
        self.server.cancel_secret.clear();
        self.server.cancel_secret.extend_from_slice(secret);
        Ok(Reaction::Quiet)
    }

    fn become_ready(
        &mut self,
        frame: &Frame<'_>,
        state: &'static str,
    ) -> Result<(), ProtocolError> {
        let status = TransactionStatus::parse(self.inbox.body(frame));
        let problem = "its transaction status is none of I, T, E";
        self.status = status.ok_or_else(|| malformed(frame, state, problem))?;
        Ok(())
    }

    fn refuse_copy(&mut self) -> Result<(), ProtocolError> {
        encode::copy_fail("COPY from the client is not supported", &mut self.output)
            .map_err(frontend::unsendable("the refusal of COPY"))?;
        if self.replies.copy_in() {
            encode::sync(&mut self.output);
        }
        Ok(())
    }

    /// The event that a message is. `state` as in [`Session::react`].
    fn event<'s, 'i: 's>(
        &'s self,
        frame: &Frame<'i>,
        state: &'static str,
    ) -> Result<Event<'s>, ProtocolError> {
        let body = self.inbox.body(frame);
        let event = match frame.tag {
            tags::DATA_ROW_TAG => {
                DataRow::parse(body).map(|row| Event::DataRow(row.without(self.inbox.omitted())))
            }
            tags::COMMAND_COMPLETE_TAG => read_text(body).map(Event::CommandComplete),
            tags::READY_FOR_QUERY_TAG => Ok(Event::Ready(self.status)),
            tags::ROW_DESCRIPTION_TAG => RowDescription::parse(body).map(Event::RowDescription),
            tags::ERROR_RESPONSE_TAG => ServerMessage::parse(body).map(Event::Error),
            tags::NOTICE_RESPONSE_TAG => ServerMessage::parse(body).map(Event::Notice),
            tags::PARAMETER_STATUS_TAG => {
                read_parameter(body).map(|(name, value)| Event::ParameterStatus { name, value })
            }
            tags::NOTIFICATION_RESPONSE_TAG => read_notification(body),
            tags::EMPTY_QUERY_RESPONSE_TAG => read_nothing(body).map(|()| Event::EmptyQuery),
            tags::PARSE_COMPLETE_TAG => read_nothing(body).map(|()| Event::ParseComplete),
            tags::BIND_COMPLETE_TAG => read_nothing(body).map(|()| Event::BindComplete),
            tags::CLOSE_COMPLETE_TAG => read_nothing(body).map(|()| Event::CloseComplete),
            tags::NO_DATA_TAG => read_nothing(body).map(|()| Event::NoData),
            tags::COPY_IN_RESPONSE_TAG => Ok(Event::CopyStarted(CopyDirection::In)),
            tags::COPY_OUT_RESPONSE_TAG => Ok(Event::CopyStarted(CopyDirection::Out)),
            framing::COPY_BOTH_RESPONSE_TAG => Ok(Event::CopyStarted(CopyDirection::Both)),
            _ => return Err(unexpected(frame, state)),
        };
        event.map_err(|problem| malformed(frame, state, problem))
    }
}

/// What a message means to the session's caller.
enum Reaction {
    Quiet,
    Tell,
    TellStarted,
}

impl std::fmt::Debug for Session {
    /// What it is doing, and nothing of what it carries.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("state", &self.state())
            .field("status", &self.status)
            .field("replies", &self.replies)
            .finish_non_exhaustive()
    }
}

fn read_nothing(body: &[u8]) -> Result<(), Problem> {
    Reader::new(body).finish()
}

fn read_text(body: &[u8]) -> Result<&[u8], Problem> {
    let mut reader = Reader::new(body);
    let text = reader.string()?;
    reader.finish()?;
    Ok(text)
}

fn read_parameter(body: &[u8]) -> Result<(&[u8], &[u8]), Problem> {
    let mut reader = Reader::new(body);
    let parameter = (reader.string()?, reader.string()?);
    reader.finish()?;
    Ok(parameter)
}

fn read_notification(body: &[u8]) -> Result<Event<'_>, Problem> {
    let mut reader = Reader::new(body);
    let event = Event::Notification {
        process_id: reader.i32()?,
        channel: reader.string()?,
        payload: reader.string()?,
    };
    reader.finish()?;
    Ok(event)
}

fn malformed(frame: &Frame<'_>, state: &'static str, problem: Problem) -> ProtocolError {
    ProtocolError::Malformed {
        state,
        message: frame.name(),
        problem,
    }
}

fn unexpected(frame: &Frame<'_>, state: &'static str) -> ProtocolError {
    ProtocolError::Unexpected {
        state,
        message: frame.name(),
    }
}
