//! Reads what the settings name: authorities, revocation lists, the client's certificate and key.
//! Errors name the file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::error::TlsError;
use super::verifier::Authorities;
use crate::conninfo::{CertificateMode, ClientCertificate, Roots, SslMode, TlsSettings};

const ROOTS: &str = "root certificate file";
const CERTIFICATE: &str = "certificate file";
const KEY: &str = "private key file";
const REVOCATION_LIST: &str = "certificate revocation list";

/// A certificate is longer than this only by mistake, and 64 MiB hold all authorities of the world:
/// a device or a wrong file must not fill the memory.
const LONGEST_FILE: u64 = 64 << 20;

/// Those who vouch for servers; `None` where the mode leaves that open and none are known.
pub(super) fn authorities(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Authorities>, TlsError> {
    let given = match &settings.roots {
        Roots::System => system_roots()?,
        Roots::Missing(path) => return without_roots(settings.mode, path),
        Roots::File(path) => match read(ROOTS, path)? {
            Some(text) => certificates(ROOTS, path, &text)?,
            None => return without_roots(settings.mode, path),
        },
    };
    let lists = revocation_lists(settings)?;
    let mut authorities = Authorities {
        revoke: !lists.is_empty(),
        chains: None,
        given,
    };
    let usable = usable_roots(settings, &authorities.given)?;
    if !usable.is_empty() {
        let chains = WebPkiServerVerifier::builder_with_provider(usable.into(), provider.clone())
            .with_crls(lists)
            .enforce_revocation_expiration()
            .build();
        let path = revocation_path(settings);
        authorities.chains =
            Some(chains.map_err(|error| TlsError::unusable(REVOCATION_LIST, path, error))?);
    }
    Ok(Some(authorities))
}

/// libpq checks a certificate in every mode if it has something to check it with, and insists only in
/// those that are named for it.
fn without_roots(mode: SslMode, path: &Path) -> Result<Option<Authorities>, TlsError> {
    match mode {
        SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => Ok(None),
        SslMode::VerifyCa | SslMode::VerifyFull => Err(TlsError::NoRoots(path.to_owned())),
    }
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        let reasons = match reasons.is_empty() {
            true => String::new(),
            false => format!(" ({})", reasons.join("; ")),
        };
        return Err(TlsError::NoSystemRoots(reasons));
    }
    Ok(found.certs)
}

/// Authorities whose own time is over vouch for nobody, as with libpq; the library would not look.
fn usable_roots(
    settings: &TlsSettings,
    given: &[CertificateDer<'static>],
) -> Result<RootCertStore, TlsError> {
    let now_s = UnixTime::now().as_secs();
    let mut usable = RootCertStore::empty();
    for root in given {
        let in_time = |root: Certificate<'_>| root.validity_s.contains(&now_s);
        if !Certificate::parse(root).is_some_and(in_time) {
            continue;
        }
        match (usable.add(root.clone()), &settings.roots) {
            (Err(error), Roots::File(path)) => return Err(TlsError::unusable(ROOTS, path, error)),
            // The system's bundle may hold what this library does not know; the rest is of use.
            (Ok(()), _) | (Err(_), Roots::System | Roots::Missing(_)) => {}
        }
    }
    Ok(usable)
}

fn revocation_lists(
    settings: &TlsSettings,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut paths: Vec<PathBuf> = settings.revocation_list.clone().into_iter().collect();
    if let Some(directory) = &settings.revocation_directory {
        paths.extend(lists_in(directory)?);
    }
    let mut lists = Vec::new();
    for path in paths {
        let text = read_existing(REVOCATION_LIST, &path)?;
        let before = lists.len();
        for list in CertificateRevocationListDer::pem_slice_iter(&text) {
            lists.push(list.map_err(|error| TlsError::unusable(REVOCATION_LIST, &path, error))?);
        }
        if lists.len() == before {
            let reason = "it holds no revocation list in PEM form";
            return Err(TlsError::unusable(REVOCATION_LIST, &path, reason));
        }
    }
    Ok(lists)
}

/// The lists of a directory are named as `openssl rehash` names them: eight digits, `.r`, a number.
fn lists_in(directory: &Path) -> Result<Vec<PathBuf>, TlsError> {
    let unreadable = |error| TlsError::unreadable("directory", directory, &error);
    let mut lists = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let kind = path.extension().and_then(|extension| extension.to_str());
        let number = kind.and_then(|kind| kind.strip_prefix('r'));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            lists.push(path);
        }
    }
    lists.sort();
    Ok(lists)
}

/// Where the lists come from, for an error about one of them.
fn revocation_path(settings: &TlsSettings) -> &Path {
    settings
        .revocation_list
        .as_deref()
        .or(settings.revocation_directory.as_deref())
        .unwrap_or(Path::new(""))
}

/// What the client shows if it is asked who it is. As with libpq, a certificate that is not there is
/// none, but one that is there needs its key.
pub(super) fn identity(
    settings: &TlsSettings,
    provider: &CryptoProvider,
) -> Result<Option<Arc<CertifiedKey>>, TlsError> {
    let shown = match settings.certificate_mode {
        CertificateMode::Disable => None,
        CertificateMode::Allow | CertificateMode::Require => settings.client_certificate.as_ref(),
    };
    let identity = match shown {
        Some(shown) => read_identity(shown, provider)?,
        None => None,
    };
    match (settings.certificate_mode, &identity) {
        (CertificateMode::Require, None) => Err(TlsError::NoClientCertificate),
        (CertificateMode::Require, Some(_))
        | (CertificateMode::Allow | CertificateMode::Disable, _) => Ok(identity),
    }
}

fn read_identity(
    shown: &ClientCertificate,
    provider: &CryptoProvider,
) -> Result<Option<Arc<CertifiedKey>>, TlsError> {
    let Some(text) = read(CERTIFICATE, &shown.certificate)? else {
        return Ok(None);
    };
    let chain = certificates(CERTIFICATE, &shown.certificate, &text)?;
    let text = read_existing(KEY, &shown.key)?;
    let unusable = |reason: String| TlsError::unusable(KEY, &shown.key, reason);
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let is_encrypted = String::from_utf8_lossy(&text).contains("ENCRYPTED");
        unusable(match is_encrypted {
            true => "encrypted keys are not supported; decrypt it with \"openssl pkey\"".to_owned(),
            false => error.to_string(),
        })
    })?;
    let identity = CertifiedKey::from_der(chain, key, provider);
    identity
        .map(|identity| Some(Arc::new(identity)))
        .map_err(|error| unusable(error.to_string()))
}

fn certificates(
    what: &'static str,
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::unusable(what, path, error))?;
    match certificates.is_empty() {
        true => Err(TlsError::unusable(
            what,
            path,
            "it holds no certificate in PEM form",
        )),
        false => Ok(certificates),
    }
}

/// The file's bytes; `None` if it is not there.
fn read(what: &'static str, path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    let bounded = fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, LONGEST_FILE), &mut bytes)?;
        Ok(bytes)
    });
    match bounded {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TlsError::unreadable(what, path, &error)),
    }
}

fn read_existing(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let missing = || TlsError::unreadable(what, path, &io::Error::from_raw_os_error(2));
    read(what, path)?.ok_or_else(missing)
}
