//! Connections that block, for those who work beside the loop: cancellations, and proving to the
//! control connection whom it talks to.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rustls::{ClientConnection, StreamOwned};

use super::{SSL_REQUEST, handshake_failed, unreachable};
use crate::conninfo::{AttemptFailure, SslNegotiation};
use crate::tls::{Connector, Established, TlsError};

/// Encrypts a connection on which nothing has been said yet.
///
/// # Errors
/// The server does not encrypt, is not to be trusted, or has gone.
pub fn encrypt(
    mut stream: TcpStream,
    connector: &Connector,
    host: &str,
    negotiation: SslNegotiation,
) -> Result<(StreamOwned<ClientConnection, TcpStream>, Established), AttemptFailure> {
    if negotiation == SslNegotiation::Postgres && ask(&mut stream).map_err(unreachable)? != b'S' {
        return Err(AttemptFailure::NoTls);
    }
    let mut session = connector.session(host).map_err(handshake_failed)?;
    while session.connection.is_handshaking() {
        let progress = session.connection.complete_io(&mut stream);
        progress.map_err(|error| handshake_failed(TlsError::of_handshake(error)))?;
    }
    let established = session.established().map_err(handshake_failed)?;
    Ok((StreamOwned::new(session.connection, stream), established))
}

/// The server's answer to the question whether it encrypts.
fn ask(stream: &mut TcpStream) -> io::Result<u8> {
    let mut answer = [0];
    stream.write_all(&SSL_REQUEST)?;
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}
