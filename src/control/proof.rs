//! What the driver cannot be told to check, checked before it connects: who runs the server behind
//! a socket (`requirepeer`), and how it lets us in (`require_auth`). Our own session logs in, by the
//! same rules as the clients', and leaves again.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::conninfo::{AttemptFailure, Endpoint, Target};
use crate::error::system_words;
use crate::protocol::{ChannelBinding, Event, ServerMessage, Session, Startup};
use crate::tls::Connector;
use crate::transport::{Security, blocking, peer, unix_address};

/// One read takes this much; what a server says while somebody logs in is seldom more.
const READ_BYTES: usize = 8 << 10;

/// A connection that blocks.
trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// Whether `target` asks for something that the driver does not check.
pub(super) fn is_needed(target: &Target) -> bool {
    target.login.required.is_some() || target.login.required_peer.is_some()
}

/// Logs in at `endpoint`, encrypted by `connector` if there is one.
pub(super) fn log_in(
    target: &Target,
    host: usize,
    endpoint: &Endpoint,
    connector: Option<&Connector>,
) -> Result<(), AttemptFailure> {
    let mut binding = ChannelBinding::Unencrypted;
    let mut stream: Box<dyn Stream> = match endpoint {
        Endpoint::Unix(path) => Box::new(open_unix(path, target.login.required_peer.as_deref())?),
        Endpoint::Tcp { host, address } => {
            let stream = TcpStream::connect(address).map_err(unreachable)?;
            match connector {
                None => Box::new(stream),
                Some(connector) => {
                    let (stream, established) =
                        blocking::encrypt(stream, connector, host, target.tls.negotiation)?;
                    binding = Security::Encrypted(established).channel_binding();
                    Box::new(stream)
                }
            }
        }
    };
    let mut session = Session::new();
    let startup = Startup {
        channel_binding: binding,
        ..Startup::of(target, host)
    };
    session.start(&startup)?;
    exchange(&mut session, &mut *stream)?;
    // The server has let us in, so it knows what to make of a connection that just ends.
    session.terminate();
    let _ = flush(&mut session, &mut *stream);
    Ok(())
}

/// Speaks until the server is ready, or refuses.
fn exchange(session: &mut Session, stream: &mut dyn Stream) -> Result<(), AttemptFailure> {
    let mut buffer = [0; READ_BYTES];
    loop {
        flush(session, stream).map_err(unreachable)?;
        let count = stream.read(&mut buffer).map_err(unreachable)?;
        if count == 0 {
            let told = "server closed the connection unexpectedly";
            return Err(AttemptFailure::Unreachable(told.to_owned()));
        }
        let mut input = &buffer[..count];
        while let Some(event) = session.advance(&mut input)? {
            // Nothing else decides whether we are let in.
            if let Event::Error(message) = event {
                return Err(refused(&message));
            }
            if event == Event::Started {
                return Ok(());
            }
        }
    }
}

fn flush(session: &mut Session, stream: &mut dyn Stream) -> io::Result<()> {
    stream.write_all(session.output())?;
    session.consume_output(session.output().len());
    stream.flush()
}

fn open_unix(path: &Path, required_peer: Option<&str>) -> Result<UnixStream, AttemptFailure> {
    let address = unix_address(path).map_err(unreachable)?;
    let stream = UnixStream::connect_addr(&address).map_err(unreachable)?;
    if let Some(required) = required_peer {
        peer::check(&stream, required)?;
    }
    Ok(stream)
}

fn refused(message: &ServerMessage<'_>) -> AttemptFailure {
    AttemptFailure::Refused {
        sqlstate: message.sqlstate(),
        message: message.to_string(),
    }
}

fn unreachable(error: io::Error) -> AttemptFailure {
    AttemptFailure::Unreachable(system_words(&error))
}
