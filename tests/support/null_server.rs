//! A server that speaks PostgreSQL's protocol and does no work: every statement that asks for rows
//! gets the same row of one column. What a program spends on a transaction against it is the
//! program's own. One thread, thousands of connections, no limit but descriptors.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use mio::net::{UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);

/// Port in the name of the socket.
pub const PORT: u16 = 5432;

/// More than any reply or group of messages that a benchmark sends.
const BUFFER_BYTES: usize = 64 * 1024;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Listens on a socket in a directory.
pub struct NullServer {
    poll: Poll,
    listener: UnixListener,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
}

struct Connection {
    stream: UnixStream,
    phase: Phase,
    /// Bytes of a message that has not come whole.
    rest: Vec<u8>,
    /// Bytes that the socket did not take.
    unsent: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the start-up message.
    New,
    /// Statements are answered. Whether a transaction block is open is not tracked: all is idle.
    Started,
}

/// What to do with a connection after its bytes have been answered.
#[derive(PartialEq, Eq)]
enum Fate {
    Kept,
    Closed,
}

impl NullServer {
    /// Listens on the socket that a client given `directory` as its host looks for.
    pub fn listen(directory: &Path) -> io::Result<NullServer> {
        let poll = Poll::new()?;
        let mut listener = UnixListener::bind(socket(directory))?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(NullServer {
            poll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Answers for ever.
    pub fn serve(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(place) => self.answer(place),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let place = self.free.pop().unwrap_or(self.connections.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut stream, Token(place), interest)?;
            let connection = Some(Connection {
                stream,
                phase: Phase::New,
                rest: Vec::new(),
                unsent: Vec::new(),
            });
            match self.connections.get_mut(place) {
                Some(free) => *free = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// An error on a connection is its end, whatever it was: the client has gone.
    fn answer(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        if !matches!(connection.advance(&mut self.buffer), Ok(Fate::Kept)) {
            self.connections[place] = None;
            self.free.push(place);
        }
    }
}

impl Connection {
    fn advance(&mut self, buffer: &mut [u8]) -> io::Result<Fate> {
        self.send(&[])?;
        loop {
            let length = match self.stream.read(buffer) {
                Ok(0) => return Ok(Fate::Closed),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fate::Kept),
                Err(error) => return Err(error),
            };
            let mut out = Vec::new();
            let fate = self.take(&buffer[..length], &mut out);
            self.send(&out)?;
            if fate == Fate::Closed || length < buffer.len() {
                return Ok(fate);
            }
        }
    }

    fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Fate {
        if self.rest.is_empty() {
            let used = match self.answer_messages(input, out) {
                Some(used) => used,
                None => return Fate::Closed,
            };
            self.rest.extend_from_slice(&input[used..]);
            return Fate::Kept;
        }
        let mut whole = std::mem::take(&mut self.rest);
        whole.extend_from_slice(input);
        let Some(used) = self.answer_messages(&whole, out) else {
            return Fate::Closed;
        };
        whole.drain(..used);
        self.rest = whole;
        Fate::Kept
    }

    /// Answers all whole messages and says how many bytes they were; `None` ends the connection.
    fn answer_messages(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let mut used = 0;
        loop {
            let left = &input[used..];
            let tag_bytes = usize::from(self.phase == Phase::Started);
            let Some(length) = left.get(tag_bytes..tag_bytes + 4) else {
                return Some(used);
            };
            let length = tag_bytes + u32::from_be_bytes(length.try_into().ok()?) as usize;
            let Some(message) = left.get(..length) else {
                return Some(used);
            };
            used += length;
            match self.phase {
                Phase::New => self.start(message, out)?,
                Phase::Started => reply(message[0], &message[5..], out)?,
            }
        }
    }

    fn start(&mut self, message: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match u32::from_be_bytes(message.get(4..8)?.try_into().ok()?) {
            SSL_REQUEST | GSS_REQUEST => out.push(b'N'),
            CANCEL_REQUEST => return None,
            _ => {
                self.phase = Phase::Started;
                out.extend_from_slice(&welcome());
            }
        }
        Some(())
    }

    /// What the socket does not take is sent when the poll reports it writable.
    fn send(&mut self, out: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(out);
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The answer to one message. `None` for the client's goodbye.
fn reply(tag: u8, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match tag {
        b'Q' if asks_for_rows(body) => {
            out.extend_from_slice(ROW_DESCRIPTION);
            out.extend_from_slice(ROW_AND_COMPLETION);
            out.extend_from_slice(READY);
        }
        b'Q' => {
            out.extend_from_slice(COMPLETION);
            out.extend_from_slice(READY);
        }
        b'P' => out.extend_from_slice(b"1\0\0\0\x04"),
        b'B' => out.extend_from_slice(b"2\0\0\0\x04"),
        b'C' => out.extend_from_slice(b"3\0\0\0\x04"),
        b'D' => out.extend_from_slice(ROW_DESCRIPTION),
        b'E' => out.extend_from_slice(ROW_AND_COMPLETION),
        b'S' => out.extend_from_slice(READY),
        b'X' => return None,
        _ => {}
    }
    Some(())
}

/// Everything else, like BEGIN or SET, is only completed.
fn asks_for_rows(statement: &[u8]) -> bool {
    let word: &[u8] = statement.get(..6).unwrap_or_default();
    word.eq_ignore_ascii_case(b"select")
}

/// One column `abalance` of type int4.
const ROW_DESCRIPTION: &[u8] =
    b"T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
const ROW_AND_COMPLETION: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0";
const COMPLETION: &[u8] = b"C\0\0\0\x08SET\0";
const READY: &[u8] = b"Z\0\0\0\x05I";

/// The client is let in and may begin.
fn welcome() -> Vec<u8> {
    let mut out = b"R\0\0\0\x08\0\0\0\0".to_vec();
    for (name, value) in [
        ("server_version", "18.0"),
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("standard_conforming_strings", "on"),
        ("DateStyle", "ISO, MDY"),
        ("integer_datetimes", "on"),
    ] {
        out.push(b'S');
        let length = 4 + name.len() + value.len() + 2;
        out.extend_from_slice(&(length as u32).to_be_bytes());
        out.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    out.extend_from_slice(b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02");
    out.extend_from_slice(READY);
    out
}

/// The socket's file in `directory`.
pub fn socket(directory: &Path) -> PathBuf {
    directory.join(format!(".s.PGSQL.{PORT}"))
}
