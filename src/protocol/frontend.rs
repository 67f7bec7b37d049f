//! Writes the messages that we send, straight into the output buffer and the way libpq writes them,
//! so that a server has the same work. Knows nothing of when they may be sent.

use std::ffi::CStr;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;

use crate::conninfo::{LoginSettings, ProtocolVersion, Secret, Target};

use super::error::ProtocolError;

/// What a client tells the server about itself when it connects.
#[derive(Clone, PartialEq, Eq)]
pub struct Startup<'a> {
    /// Role to connect as.
    pub user: &'a str,
    /// Database to connect to.
    pub database: &'a str,
    /// Command-line options for the server process.
    pub options: Option<&'a str>,
    /// What `pg_stat_activity` shows; not sent if empty.
    pub application_name: &'a str,
    /// Only sent if given: the server's choice stands otherwise.
    pub client_encoding: Option<&'a str>,
    /// Password, if one is known. An empty one counts as none.
    pub password: Option<&'a str>,
    /// What a SCRAM exchange can be bound to in the connection below.
    pub channel_binding: ChannelBinding,
    /// Which ways of authenticating will do.
    pub login: &'a LoginSettings,
    /// The newest version of the protocol that is asked for.
    pub max_protocol: ProtocolVersion,
    /// The oldest version that will do.
    pub min_protocol: ProtocolVersion,
}

impl<'a> Startup<'a> {
    /// What `target` says for the host at this place of its list, over a plain connection.
    pub fn of(target: &'a Target, host: usize) -> Self {
        Startup {
            user: &target.user,
            database: &target.database,
            options: target.options.as_deref(),
            application_name: &target.application_name,
            client_encoding: None,
            password: target.password_for(host).map(Secret::reveal),
            channel_binding: ChannelBinding::Unencrypted,
            login: &target.login,
            max_protocol: target.max_protocol,
            min_protocol: target.min_protocol,
        }
    }
}

impl std::fmt::Debug for Startup<'_> {
    /// Who connects to what; a password never reaches a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Startup")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// What a SCRAM exchange can be bound to in the connection below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Nothing: the connection is not encrypted.
    #[default]
    Unencrypted,
    /// Nothing: it is encrypted, but RFC 5929 defines no hash for the server's kind of certificate
    /// (Ed25519).
    Undefined,
    /// The hash of the server's certificate, as RFC 5929 defines `tls-server-end-point`.
    TlsServerEndPoint(Vec<u8>),
}

/// The length of a parameter that is NULL, which has no bytes.
const NULL_LENGTH: [u8; 4] = (-1_i32).to_be_bytes();

pub(super) fn startup(startup: &Startup<'_>, out: &mut BytesMut) -> Result<(), ProtocolError> {
    let parameters = [
        ("user", Some(startup.user)),
        ("database", Some(startup.database)),
        ("options", startup.options),
        ("application_name", Some(startup.application_name)),
        ("client_encoding", startup.client_encoding),
    ];
    let given = parameters
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    let start = out.len();
    frontend::startup_message(given, out).map_err(unsendable("a connection setting"))?;
    // Behind the length stands the version, which is always 3.0 as it was written.
    out[start + 4..start + 8].copy_from_slice(&version_number(startup.max_protocol).to_be_bytes());
    Ok(())
}

/// A version as it is sent: major number in the upper half, minor number in the lower.
pub(super) fn version_number(version: ProtocolVersion) -> u32 {
    match version {
        ProtocolVersion::V3_0 => 3 << 16,
        ProtocolVersion::V3_2 => 3 << 16 | 2,
    }
}

/// Query, its text written by `write`.
pub(super) fn query(
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut),
) -> Result<(), ProtocolError> {
    framed(b'Q', out, |out| {
        write(out);
        out.put_u8(0);
    })
}

/// Parse of a statement whose parameter types the server shall infer.
pub(super) fn parse(
    name: &CStr,
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut),
) -> Result<(), ProtocolError> {
    framed(b'P', out, |out| {
        out.put_slice(name.to_bytes_with_nul());
        write(out);
        out.put_u8(0);
        out.put_i16(0);
    })
}

/// Bind to the unnamed portal, Describe and Execute it: parameters and results as text.
pub(super) fn bind_and_execute(
    statement: &CStr,
    parameters: usize,
    mut write: impl FnMut(usize, &mut BytesMut) -> bool,
    out: &mut BytesMut,
) -> Result<(), ProtocolError> {
    /// Results as text, then Describe and Execute of the unnamed portal without a limit.
    const TAIL: &[u8] = b"\0\x01\0\0D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";
    /// How much of that belongs to Bind.
    const RESULT_FORMATS_BYTES: usize = 4;
    let what = "a parameter";
    let count = u16::try_from(parameters).map_err(unsendable(what))?;
    let start = out.len();
    // Type, length, the name of the portal.
    out.extend_from_slice(b"B\0\0\0\0\0");
    out.extend_from_slice(statement.to_bytes_with_nul());
    // No formats: all parameters are text.
    let [high, low] = count.to_be_bytes();
    out.extend_from_slice(&[0, 0, high, low]);
    for index in 0..parameters {
        let place = out.len();
        out.extend_from_slice(&NULL_LENGTH);
        if write(index, out) {
            let length = out.len() - place - NULL_LENGTH.len();
            let length = i32::try_from(length).map_err(unsendable(what))?;
            out[place..place + NULL_LENGTH.len()].copy_from_slice(&length.to_be_bytes());
        }
    }
    let length = out.len() - start - 1 + RESULT_FORMATS_BYTES;
    let length = i32::try_from(length).map_err(unsendable(what))?;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(TAIL);
    Ok(())
}

/// Close of a prepared statement.
pub(super) fn close_statement(name: &CStr, out: &mut BytesMut) {
    framed(b'C', out, |out| {
        out.put_u8(b'S');
        out.put_slice(name.to_bytes_with_nul());
    })
    .expect("a name is shorter than a message can be");
}

/// CancelRequest, to be sent on a connection of its own.
pub(super) fn cancel_request(process_id: i32, secret: &[u8]) -> Vec<u8> {
    const CANCEL_REQUEST_CODE: i32 = 80_877_102;
    let length = i32::try_from(12 + secret.len()).expect("a secret has at most 256 bytes");
    let mut message = Vec::with_capacity(12 + secret.len());
    message.put_i32(length);
    message.put_i32(CANCEL_REQUEST_CODE);
    message.put_i32(process_id);
    message.put_slice(secret);
    message
}

/// Makes an error of `postgres-protocol` ours.
pub(super) fn unsendable<E: std::fmt::Display>(
    what: &'static str,
) -> impl FnOnce(E) -> ProtocolError {
    move |error| ProtocolError::Unsendable {
        what,
        problem: error.to_string(),
    }
}

/// Writes type and length around a body.
fn framed(
    tag: u8,
    out: &mut BytesMut,
    write_body: impl FnOnce(&mut BytesMut),
) -> Result<(), ProtocolError> {
    let start = out.len();
    out.put_u8(tag);
    out.put_i32(0);
    write_body(out);
    let length = i32::try_from(out.len() - start - 1).map_err(unsendable("a statement"))?;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
