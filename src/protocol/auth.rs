//! Proves to the server who we are: trust, cleartext password, MD5, SCRAM-SHA-256, bound to the
//! connection below (PLUS) or not.
//!
//! Whether a method is safe enough is decided in `policy`; what is not known is refused.

use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;

use crate::conninfo::{AuthenticationMethod, ChannelBindingMode};

use super::backend::{Problem, Reader};
use super::error::ProtocolError;
use super::frontend::{ChannelBinding, Startup, unsendable};
use super::policy::Policy;

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
    policy: Policy,
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
            policy: Policy::new(startup.login),
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
                self.policy.check_welcome()?;
                return Ok(true);
            }
            (3, Step::Asked) => {
                reader.finish()?;
                self.policy.admit(AuthenticationMethod::Password)?;
                self.method = "password";
                self.send_password(self.password()?.as_bytes(), out)?
            }
            (5, Step::Asked) => {
                let salt = reader.array()?;
                reader.finish()?;
                self.policy.admit(AuthenticationMethod::Md5)?;
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
            (7, _) => {
                self.policy.admit(AuthenticationMethod::Gss)?;
                return Err(unsupported("GSSAPI").into());
            }
            (9, _) => {
                self.policy.admit(AuthenticationMethod::Sspi)?;
                return Err(unsupported("SSPI").into());
            }
            (1 | 2, _) => return Err(unsupported("Kerberos").into()),
            (4, _) => return Err(unsupported("crypt").into()),
            (6, _) => return Err(unsupported("SCM credential").into()),
            (other, _) => return Err(unsupported(&format!("method {other}")).into()),
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

    fn begin_scram(&mut self, reader: Reader<'_>, out: &mut BytesMut) -> Result<Step, LoginError> {
        let offer = Offer::read(reader)?;
        if offer.is_only_oauth() {
            self.policy.admit(AuthenticationMethod::Oauth)?;
        }
        if !offer.plain && !offer.bound {
            return Err(unsupported(&format!("SASL ({})", offer.names.join(", "))).into());
        }
        self.policy.admit(AuthenticationMethod::ScramSha256)?;
        let (mechanism, binding) = self.choose_binding(&offer)?;
        self.method = "scram-sha-256";
        if mechanism == sasl::SCRAM_SHA_256_PLUS {
            self.policy.note_bound();
            self.method = "scram-sha-256 with channel binding";
        }
        let scram = Box::new(sasl::ScramSha256::new(self.password()?.as_bytes(), binding));
        frontend::sasl_initial_response(mechanism, scram.message(), out)
            .map_err(unsendable("the password"))?;
        Ok(Step::ScramFirst(scram))
    }

    /// How the exchange goes on, given what is below, what the user wants and what the server
    /// offers.
    fn choose_binding(
        &self,
        offer: &Offer,
    ) -> Result<(&'static str, sasl::ChannelBinding), ProtocolError> {
        use ChannelBindingMode::{Disable, Prefer, Require};
        let mode = self.policy.channel_binding();
        let plain = |binding, problem| match mode {
            Require => Err(ProtocolError::ChannelBinding(problem)),
            Disable | Prefer if offer.plain => Ok((sasl::SCRAM_SHA_256, binding)),
            Disable | Prefer => Err(unsupported(sasl::SCRAM_SHA_256_PLUS)),
        };
        let unbound = sasl::ChannelBinding::unsupported;
        match (&self.channel_binding, mode) {
            // The offer makes sense over an encrypted connection only: somebody between us and the
            // server talks to it over one, and to us in clear.
            (ChannelBinding::Unencrypted, Disable | Prefer) if offer.bound => {
                Err(ProtocolError::Authentication(
                    "the server offers SCRAM-SHA-256-PLUS over a connection that is not encrypted"
                        .to_owned(),
                ))
            }
            (ChannelBinding::Unencrypted, Disable | Prefer | Require) => {
                plain(unbound(), "the connection is not encrypted")
            }
            (ChannelBinding::Undefined, Disable | Prefer | Require) => plain(
                unbound(),
                "it is not defined for the server's kind of certificate",
            ),
            (ChannelBinding::TlsServerEndPoint(_), Disable) => plain(unbound(), "it is disabled"),
            (ChannelBinding::TlsServerEndPoint(hash), Prefer | Require) if offer.bound => Ok((
                sasl::SCRAM_SHA_256_PLUS,
                sasl::ChannelBinding::tls_server_end_point(hash.clone()),
            )),
            // "Unrequested" tells the server that we would have bound the exchange: a man in the
            // middle who removed the offer is found out.
            (ChannelBinding::TlsServerEndPoint(_), Prefer | Require) => plain(
                sasl::ChannelBinding::unrequested(),
                "the server did not offer a way of authenticating that supports it",
            ),
        }
    }
}

/// The mechanisms that a server offers.
#[derive(Default)]
struct Offer {
    plain: bool,
    bound: bool,
    names: Vec<String>,
}

impl Offer {
    fn read(mut reader: Reader<'_>) -> Result<Self, Problem> {
        let mut offer = Offer::default();
        loop {
            let mechanism = reader.string()?;
            if mechanism.is_empty() {
                break;
            }
            offer.plain |= mechanism == sasl::SCRAM_SHA_256.as_bytes();
            offer.bound |= mechanism == sasl::SCRAM_SHA_256_PLUS.as_bytes();
            offer
                .names
                .push(String::from_utf8_lossy(mechanism).into_owned());
        }
        reader.finish()?;
        Ok(offer)
    }

    fn is_only_oauth(&self) -> bool {
        !self.plain && !self.bound && self.names.iter().any(|name| name == "OAUTHBEARER")
    }
}

/// The library bounds the work that a server may ask for: 100,000 rounds, 24 times the default,
/// which is about 25 ms of one core. libpq has no such bound.
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

fn unsupported(method: &str) -> ProtocolError {
    let method = method.to_owned();
    ProtocolError::UnsupportedAuthentication { method }
}
