//! Proves to the server who we are: trust, cleartext password, MD5, SCRAM-SHA-256.
//!
//! Decides nothing about whether a method is safe enough; refuses what it does not know.

use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;

use super::backend::{Problem, Reader};
use super::error::ProtocolError;
use super::frontend::{ChannelBinding, Startup, unsendable};

/// Where an authentication exchange stands.
///
/// The server asks once; a password is one answer, SCRAM takes two. After SCRAM the server's "ok"
/// only counts if it has proved before that it knows the password too.
enum Step {
    Asked,
    PasswordSent,
    ScramFirst(Box<sasl::ScramSha256>),
    ScramFinal(Box<sasl::ScramSha256>),
    ScramVerified,
}

/// One authentication exchange.
pub(super) struct Login {
    user: String,
    password: Option<String>,
    channel_binding: ChannelBinding,
    step: Step,
    method: &'static str,
}

/// Why an exchange stops.
pub(super) enum LoginError {
    /// The message has not the form that it should have.
    Malformed(Problem),
    /// The message comes at the wrong moment.
    Unexpected,
    /// Anything else.
    Failed(ProtocolError),
}

impl From<Problem> for LoginError {
    fn from(problem: Problem) -> Self {
        LoginError::Malformed(problem)
    }
}

impl From<ProtocolError> for LoginError {
    fn from(error: ProtocolError) -> Self {
        LoginError::Failed(error)
    }
}

impl Login {
    pub(super) fn new(startup: &Startup<'_>) -> Self {
        Login {
            user: startup.user.to_owned(),
            password: startup
                .password
                .filter(|password| !password.is_empty())
                .map(str::to_owned),
            channel_binding: startup.channel_binding.clone(),
            step: Step::Asked,
            method: "trust",
        }
    }

    /// What the server has asked for so far, in the words of `pg_hba.conf`. Methods that ask for
    /// nothing (peer, ident, cert) look like trust from here.
    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    /// Answers an Authentication message; true when the server is satisfied.
    pub(super) fn answer(&mut self, body: &[u8], out: &mut BytesMut) -> Result<bool, LoginError> {
        let mut reader = Reader::new(body);
        let code = reader.i32()?;
        let step = std::mem::replace(&mut self.step, Step::PasswordSent);
        self.step = match (code, step) {
            (0, Step::Asked | Step::PasswordSent | Step::ScramVerified) => {
                reader.finish()?;
                return Ok(true);
            }
            (3, Step::Asked) => {
                reader.finish()?;
                self.method = "password";
                self.send_password(self.password()?.as_bytes(), out)?
            }
            (5, Step::Asked) => {
                let salt = reader.array()?;
                reader.finish()?;
                self.method = "md5";
                let hash = md5_hash(self.user.as_bytes(), self.password()?.as_bytes(), salt);
                self.send_password(hash.as_bytes(), out)?
            }
            (10, Step::Asked) => self.begin_scram(reader, out)?,
            (11, Step::ScramFirst(scram)) => continue_scram(scram, reader.remaining(), out)?,
            (12, Step::ScramFinal(mut scram)) => {
                scram.finish(reader.remaining()).map_err(scram_failed)?;
                Step::ScramVerified
            }
            (0 | 3 | 5 | 10 | 11 | 12, _) => return Err(LoginError::Unexpected),
            (unsupported, _) => return Err(unsupported_method(unsupported).into()),
        };
        Ok(false)
    }

    fn password(&self) -> Result<&str, ProtocolError> {
        self.password
            .as_deref()
            .ok_or(ProtocolError::PasswordRequired)
    }

    fn send_password(&self, password: &[u8], out: &mut BytesMut) -> Result<Step, ProtocolError> {
        frontend::password_message(password, out).map_err(unsendable("the password"))?;
        Ok(Step::PasswordSent)
    }

    fn begin_scram(
        &mut self,
        mut reader: Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<Step, LoginError> {
        let (mut plain, mut bound, mut offered) = (false, false, Vec::new());
        loop {
            let mechanism = reader.string()?;
            if mechanism.is_empty() {
                break;
            }
            plain |= mechanism == sasl::SCRAM_SHA_256.as_bytes();
            bound |= mechanism == sasl::SCRAM_SHA_256_PLUS.as_bytes();
            offered.push(String::from_utf8_lossy(mechanism).into_owned());
        }
        reader.finish()?;
        // Over TLS "unrequested" tells the server that we would have bound the exchange: a man in
        // the middle who removed the offer is found out.
        let (mechanism, binding) = match &self.channel_binding {
            ChannelBinding::TlsServerEndPoint(hash) if bound => (
                sasl::SCRAM_SHA_256_PLUS,
                sasl::ChannelBinding::tls_server_end_point(hash.clone()),
            ),
            ChannelBinding::TlsServerEndPoint(_) if plain => {
                (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unrequested())
            }
            ChannelBinding::Unsupported if plain => {
                (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unsupported())
            }
            ChannelBinding::TlsServerEndPoint(_) | ChannelBinding::Unsupported => {
                let method = format!("SASL ({})", offered.join(", "));
                return Err(ProtocolError::UnsupportedAuthentication { method }.into());
            }
        };
        self.method = "scram-sha-256";
        let scram = Box::new(sasl::ScramSha256::new(self.password()?.as_bytes(), binding));
        frontend::sasl_initial_response(mechanism, scram.message(), out)
            .map_err(unsendable("the password"))?;
        Ok(Step::ScramFirst(scram))
    }
}

/// The library bounds the work that a server may ask for: 100,000 rounds, 24 times the default.
fn continue_scram(
    mut scram: Box<sasl::ScramSha256>,
    challenge: &[u8],
    out: &mut BytesMut,
) -> Result<Step, ProtocolError> {
    scram.update(challenge).map_err(scram_failed)?;
    frontend::sasl_response(scram.message(), out).map_err(unsendable("the password"))?;
    Ok(Step::ScramFinal(scram))
}

fn scram_failed(error: std::io::Error) -> ProtocolError {
    ProtocolError::Authentication(error.to_string())
}

fn unsupported_method(code: i32) -> ProtocolError {
    let method = match code {
        2 => "Kerberos 5".to_owned(),
        6 => "SCM credential".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("method {other}"),
    };
    ProtocolError::UnsupportedAuthentication { method }
}
