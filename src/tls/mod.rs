//! Encryption as libpq's settings ask for it: who is believed, what is shown, which versions are
//! spoken. Shared by clients and the control connection. Opens no sockets; moving bytes is the
//! transport's business.

mod binding;
mod certificate;
mod cipher;
mod der;
mod error;
mod files;
mod names;
#[cfg(test)]
#[path = "../../tests/support/certificates.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod verifier;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, SignatureScheme, SupportedProtocolVersion};

pub use binding::end_point_binding;
pub use error::TlsError;

use crate::conninfo::{CertificateMode, SslMode, SslNegotiation, TlsSettings, TlsVersion};
use verifier::Verifier;

/// The protocol that we say we speak inside (ALPN). Servers from PostgreSQL 17 on want it where the
/// handshake begins at once.
const PROTOCOL: &[u8] = b"postgresql";

/// Plaintext that a session holds back until it can be encrypted or sent; a writer that wants more is
/// told to come again. Four records of the greatest size keep a socket busy.
const SESSION_BUFFER_BYTES: usize = 64 << 10;

/// Makes encrypted sessions. Reads its files once and is shared by all who connect.
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
    /// Asks for the certificate to be asked for.
    must_be_asked: bool,
    /// The handshake begins at once.
    is_direct: bool,
    checks_names: bool,
}

/// One connection's encryption.
#[derive(Debug)]
pub struct Session {
    /// Turns bytes into records and back. [`Session::established`] has to be asked once its handshake
    /// is over, and before anything is said.
    pub connection: ClientConnection,
    terms: Terms,
}

/// What has to have happened by the end of a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Whether the server asked for a certificate, where it has to.
    asked: Option<Arc<AtomicBool>>,
    must_name_protocol: bool,
}

/// What a handshake has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// What SCRAM can bind to, as in [`end_point_binding`].
    pub binding: Option<Vec<u8>>,
    /// Protocol and cipher as psql names them: `TLSv1.3, TLS_AES_256_GCM_SHA384`.
    pub description: String,
}

impl Connector {
    /// Reads the files that `settings` name.
    ///
    /// # Errors
    /// One of them is missing, unreadable, or not what it should be; or the settings contradict one
    /// another.
    pub fn new(settings: &TlsSettings) -> Result<Connector, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let checks_names = settings.mode == SslMode::VerifyFull;
        let verifier = Verifier {
            authorities: files::authorities(settings, &provider)?,
            names_matter: checks_names,
            algorithms: provider.signature_verification_algorithms,
        };
        let identity = files::identity(settings, &provider)?;
        let versions = versions(settings.min_version, settings.max_version)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(Identity(identity)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.enable_sni = settings.send_host_name;
        // As libpq: each connection proves itself anew, and sessions share no lock.
        config.resumption = Resumption::disabled();
        Ok(Connector {
            config: Arc::new(config),
            must_be_asked: settings.certificate_mode == CertificateMode::Require,
            is_direct: settings.negotiation == SslNegotiation::Direct,
            checks_names,
        })
    }

    /// A session with `host`, a name or an address in numbers, whose handshake is to begin.
    ///
    /// # Errors
    /// The certificate has to be made for the host, and no certificate can be made for such a name.
    pub fn session(&self, host: &str) -> Result<Session, TlsError> {
        let (config, name, terms) = self.parts(host)?;
        let mut connection = ClientConnection::new(config, name)?;
        connection.set_buffer_limit(Some(SESSION_BUFFER_BYTES));
        Ok(Session { connection, terms })
    }

    /// What a session is made of, for those who make it themselves.
    pub(crate) fn parts(
        &self,
        host: &str,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>, Terms), TlsError> {
        let name = match ServerName::try_from(host.to_owned()) {
            Ok(name) => name,
            Err(_) if self.checks_names => return Err(TlsError::UncheckableName(host.to_owned())),
            // An address is neither sent nor, here, looked at.
            Err(_) => ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        };
        let mut config = self.config.clone();
        let mut asked = None;
        if self.must_be_asked {
            let of_this_session = Arc::<AtomicBool>::default();
            let config = Arc::make_mut(&mut config);
            config.client_auth_cert_resolver = Arc::new(Watched {
                identity: config.client_auth_cert_resolver.clone(),
                asked: of_this_session.clone(),
            });
            asked = Some(of_this_session);
        }
        let terms = Terms {
            asked,
            must_name_protocol: self.is_direct,
        };
        Ok((config, name, terms))
    }
}

impl Session {
    /// What the handshake has led to. Allocates: asked once a connection.
    ///
    /// # Errors
    /// The server did not do what the settings ask of it: the connection is to be given up.
    pub fn established(&self) -> Result<Established, TlsError> {
        self.terms.check(&self.connection)
    }
}

impl Terms {
    /// As [`Session::established`].
    pub(crate) fn check(&self, connection: &ClientConnection) -> Result<Established, TlsError> {
        if let Some(asked) = &self.asked
            && !asked.load(Ordering::Relaxed)
        {
            return Err(TlsError::CertificateNotRequested);
        }
        if self.must_name_protocol && connection.alpn_protocol() != Some(PROTOCOL) {
            return Err(TlsError::NoProtocolNamed);
        }
        let shown = connection.peer_certificates();
        let certificate = shown.and_then(|chain| chain.first());
        Ok(Established {
            binding: certificate.and_then(|certificate| end_point_binding(certificate)),
            description: cipher::describe(connection),
        })
    }
}

/// From the older to the newer bound.
fn versions(
    min: Option<TlsVersion>,
    max: Option<TlsVersion>,
) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let allowed: Vec<_> = [
        (TlsVersion::V1_2, &rustls::version::TLS12),
        (TlsVersion::V1_3, &rustls::version::TLS13),
    ]
    .into_iter()
    .filter(|(version, _)| min.is_none_or(|min| *version >= min))
    .filter(|(version, _)| max.is_none_or(|max| *version <= max))
    .map(|(_, known)| known)
    .collect();
    match allowed.is_empty() {
        true => Err(TlsError::NoVersion),
        false => Ok(allowed),
    }
}

/// What is shown to a server that asks who we are, whichever authorities it names: libpq does not
/// look at them either.
#[derive(Debug)]
struct Identity(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Notes whether a server asked.
#[derive(Debug)]
struct Watched {
    identity: Arc<dyn ResolvesClientCert>,
    asked: Arc<AtomicBool>,
}

impl ResolvesClientCert for Watched {
    fn resolve(
        &self,
        authorities: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.identity.resolve(authorities, schemes)
    }

    fn has_certs(&self) -> bool {
        self.identity.has_certs()
    }
}
