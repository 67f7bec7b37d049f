//! Whether a server is believed: its chain, its name and its signature of the handshake, as far as
//! `sslmode` asks. The signature is checked in every mode, else channel binding would protect
//! nothing.
//!
//! Chains are the library's business. What it refuses and libpq takes is decided here: certificates
//! of version 1, as `openssl x509 -req` makes them, and the server's own certificate given as the
//! authority, as `openssl req -x509` makes it. Names follow libpq, signatures work for keys that are
//! restricted to RSA-PSS too.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::certificate::{AlternativeName, Certificate, PublicKey};
use super::names::names_host;

/// What servers' certificates and signatures are checked with.
#[derive(Debug)]
pub(super) struct Verifier {
    /// Without, any certificate will do.
    pub authorities: Option<Authorities>,
    /// Whether the certificate must have been made for the host.
    pub names_matter: bool,
    pub algorithms: WebPkiSupportedAlgorithms,
}

/// Those who vouch for servers.
#[derive(Debug)]
pub(super) struct Authorities {
    /// All as they were given, also those that the library cannot use.
    pub given: Vec<CertificateDer<'static>>,
    /// The library's view of them and of what they revoked; `None` if none of them is valid now.
    pub chains: Option<Arc<WebPkiServerVerifier>>,
    /// Whether there are lists of what they revoked.
    pub revoke: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = parse(end_entity)?;
        if let Some(authorities) = &self.authorities {
            let subject = Subject {
                der: end_entity,
                certificate: &certificate,
                server_name,
                now,
            };
            authorities.vouch_for(&subject, intermediates, self.algorithms)?;
        }
        if self.names_matter && !names_host(&certificate, &server_name.to_str()) {
            return Err(made_for_others(&certificate, server_name));
        }
        Ok(ServerCertVerified::assertion())
    }

    /// In TLS 1.2 a scheme does not say which curve it is for.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        end_entity: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let candidates = self.candidates(signature.scheme);
        verify_handshake(message, end_entity, signature, candidates)
    }

    /// In TLS 1.3 a scheme names one curve, which stands first, and the old padding of RSA is only
    /// for certificates.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        end_entity: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let candidates = match signature.scheme {
            SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512 => &[],
            scheme => self.candidates(scheme),
        };
        let first = &candidates[..candidates.len().min(1)];
        verify_handshake(message, end_entity, signature, first)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.algorithms.supported_schemes();
        schemes.extend(PSS_OF_PSS_KEYS.map(|(scheme, _)| scheme));
        schemes
    }
}

/// RFC 8446, section 4.2.3: `rsa_pss_pss_*`, for keys restricted to RSA-PSS, which the library has no
/// names for, and the schemes by which it knows the same arithmetic.
const PSS_OF_PSS_KEYS: [(SignatureScheme, SignatureScheme); 3] = [
    (
        SignatureScheme::Unknown(0x0809),
        SignatureScheme::RSA_PSS_SHA256,
    ),
    (
        SignatureScheme::Unknown(0x080a),
        SignatureScheme::RSA_PSS_SHA384,
    ),
    (
        SignatureScheme::Unknown(0x080b),
        SignatureScheme::RSA_PSS_SHA512,
    ),
];

/// The algorithm identifier of keys restricted to RSA-PSS, 1.2.840.113549.1.1.10; parameters may
/// follow.
const RSA_PSS_KEY: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];

type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

impl Verifier {
    /// The algorithms that a scheme may stand for.
    fn candidates(&self, scheme: SignatureScheme) -> Algorithms {
        let known_as = PSS_OF_PSS_KEYS
            .into_iter()
            .find_map(|(of_pss_key, known_as)| (of_pss_key == scheme).then_some(known_as))
            .unwrap_or(scheme);
        let mut mapping = self.algorithms.mapping.iter();
        mapping
            .find_map(|(scheme, algorithms)| (*scheme == known_as).then_some(*algorithms))
            .unwrap_or(&[])
    }
}

fn verify_handshake(
    message: &[u8],
    end_entity: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    candidates: Algorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = parse(end_entity)?.key;
    let wants_pss_key = PSS_OF_PSS_KEYS
        .iter()
        .any(|(scheme, _)| *scheme == signature.scheme);
    let algorithm = candidates.iter().find(|algorithm| match wants_pss_key {
        true => key.algorithm.starts_with(RSA_PSS_KEY),
        false => is_of(**algorithm, key),
    });
    algorithm
        .and_then(|algorithm| {
            let verified = algorithm.verify_signature(key.bits, message, signature.signature());
            verified.ok()
        })
        .map(|()| HandshakeSignatureValid::assertion())
        .ok_or(Error::InvalidCertificate(CertificateError::BadSignature))
}

fn is_of(algorithm: &dyn SignatureVerificationAlgorithm, key: PublicKey<'_>) -> bool {
    algorithm.public_key_alg_id().as_ref() == key.algorithm
}

/// Who has to be vouched for, and when.
struct Subject<'a> {
    der: &'a CertificateDer<'a>,
    certificate: &'a Certificate<'a>,
    server_name: &'a ServerName<'a>,
    now: UnixTime,
}

impl Authorities {
    fn vouch_for(
        &self,
        subject: &Subject<'_>,
        intermediates: &[CertificateDer<'_>],
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let is_self_issued = subject.certificate.issuer == subject.certificate.subject;
        let is_one_itself = is_self_issued && self.given.iter().any(|given| given == subject.der);
        if is_one_itself || subject.certificate.is_version_1 {
            if self.revoke {
                return Err(CertificateError::UnknownRevocationStatus.into());
            }
            check_validity(subject.certificate, subject.now)?;
            return match is_one_itself || self.have_signed(subject, algorithms) {
                true => Ok(()),
                false => Err(CertificateError::UnknownIssuer.into()),
            };
        }
        let Some(chains) = &self.chains else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let verified = chains.verify_server_cert(
            subject.der,
            intermediates,
            subject.server_name,
            &[],
            subject.now,
        );
        match verified {
            // The name comes last there; whether and how it matters is decided by our own rules.
            Ok(_)
            | Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            // The library would rather say that an authority should not be a server.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if is_self_issued => {
                Err(CertificateError::UnknownIssuer.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether one of them signed the subject itself, without anyone in between.
    fn have_signed(&self, subject: &Subject<'_>, algorithms: WebPkiSupportedAlgorithms) -> bool {
        let signed = subject.certificate;
        self.given
            .iter()
            .filter_map(|given| Certificate::parse(given))
            .filter(|authority| authority.subject == signed.issuer)
            .filter(|authority| authority.validity_s.contains(&subject.now.as_secs()))
            .any(|authority| {
                algorithms.all.iter().any(|algorithm| {
                    algorithm.signature_alg_id().as_ref() == signed.signature_algorithm
                        && is_of(*algorithm, authority.key)
                        && algorithm
                            .verify_signature(authority.key.bits, signed.signed, signed.signature)
                            .is_ok()
                })
            })
    }
}

fn check_validity(certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let validity_s = &certificate.validity_s;
    if now.as_secs() < *validity_s.start() {
        Err(CertificateError::NotValidYet.into())
    } else if now.as_secs() > *validity_s.end() {
        Err(CertificateError::Expired.into())
    } else {
        Ok(())
    }
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<Certificate<'a>, Error> {
    Certificate::parse(der).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))
}

fn made_for_others(certificate: &Certificate<'_>, server_name: &ServerName<'_>) -> Error {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let mut presented: Vec<String> = certificate
        .alternative_names()
        .iter()
        .map(|name| match name {
            AlternativeName::Dns(name) => text(name),
            AlternativeName::Address(bytes) => address_text(bytes),
        })
        .collect();
    if presented.is_empty() {
        presented.extend(certificate.common_name().map(text));
    }
    CertificateError::NotValidForNameContext {
        expected: server_name.to_owned(),
        presented,
    }
    .into()
}

fn address_text(bytes: &[u8]) -> String {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return std::net::Ipv4Addr::from(v4).to_string();
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(v6) => std::net::Ipv6Addr::from(v6).to_string(),
        Err(_) => "an address of an unknown kind".to_owned(),
    }
}
