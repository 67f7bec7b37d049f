//! Why a connection could not be encrypted as it was asked for.

use std::path::{Path, PathBuf};

use rustls::CertificateError;

/// Why there is no encrypted connection. Each says which file or which server, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The mode wants certificates to be checked, and there is nothing to check them with.
    #[error(
        "root certificate file \"{}\" does not exist: provide the file, use the system's trusted \
         roots with sslrootcert=system, or change sslmode to disable server certificate verification",
        .0.display()
    )]
    NoRoots(PathBuf),
    /// A file of the settings could not be read.
    #[error("could not read {what} \"{}\": {reason}", path.display())]
    Unreadable {
        /// Which of the settings, as in "certificate file".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said of it.
        reason: String,
    },
    /// A file of the settings does not hold what it should.
    #[error("could not use {what} \"{}\": {reason}", path.display())]
    Unusable {
        /// Which of the settings, as in "certificate file".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system has no certificates of authorities.
    #[error(
        "no trusted roots of the system were found{0}: install the package ca-certificates or give a \
         file with sslrootcert"
    )]
    NoSystemRoots(String),
    /// `sslcertmode=require` without a certificate.
    #[error("sslcertmode=require needs a client certificate: give it with sslcert and sslkey")]
    NoClientCertificate,
    /// The bounds on the version exclude one another.
    #[error("ssl_min_protocol_version is above ssl_max_protocol_version")]
    NoVersion,
    /// The name of the host cannot stand in a certificate.
    #[error("sslmode=verify-full cannot check the host name \"{0}\", which is not a valid one")]
    UncheckableName(String),
    /// The handshake failed, or the connection later.
    #[error("SSL error: {}", words(.0))]
    Library(#[from] rustls::Error),
    /// The connection ended in the middle of the handshake.
    #[error("SSL error: {}", crate::error::system_words(.0))]
    Lost(std::io::Error),
    /// `sslcertmode=require`, and the server did not want to see a certificate.
    #[error("server did not request an SSL certificate, but sslcertmode=require is set")]
    CertificateNotRequested,
    /// `sslnegotiation=direct`, and the server did not say that it speaks PostgreSQL.
    #[error(
        "direct SSL connection was established without the server naming its protocol (ALPN): it is \
         older than PostgreSQL 17, or not PostgreSQL"
    )]
    NoProtocolNamed,
}

impl TlsError {
    /// What went wrong in a handshake over a stream, where the library's errors come wrapped.
    pub(crate) fn of_handshake(error: std::io::Error) -> Self {
        let of_library = error.get_ref().and_then(|inner| inner.downcast_ref());
        match of_library {
            Some(error) => TlsError::Library(rustls::Error::clone(error)),
            None => TlsError::Lost(error),
        }
    }

    pub(super) fn unreadable(what: &'static str, path: &Path, error: &std::io::Error) -> Self {
        TlsError::Unreadable {
            what,
            path: path.to_owned(),
            reason: crate::error::system_words(error),
        }
    }

    pub(super) fn unusable(what: &'static str, path: &Path, reason: impl ToString) -> Self {
        TlsError::Unusable {
            what,
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// The library's words, with a remedy where it has only a name for what is wrong.
fn words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return error.to_string();
    };
    let reason = match reason {
        CertificateError::UnknownIssuer => {
            "it comes from an authority that is not in the root certificate file (sslrootcert)"
                .to_owned()
        }
        CertificateError::UnknownRevocationStatus => {
            "no revocation list tells about its authority (sslcrl, sslcrldir)".to_owned()
        }
        CertificateError::BadSignature => {
            "the server does not hold its key, or the signature was damaged".to_owned()
        }
        CertificateError::BadEncoding => "it is malformed".to_owned(),
        CertificateError::Revoked => "it was revoked".to_owned(),
        CertificateError::Expired => "it has expired".to_owned(),
        CertificateError::NotValidYet => "it is not valid yet".to_owned(),
        // The library's own words say enough of the others.
        other => other.to_string(),
    };
    format!("the server's certificate is refused: {reason}")
}
