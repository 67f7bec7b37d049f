//! Settings about encryption: which files there are to verify with and to show, and what they may
//! look like. Reads none of them; only looks whether they are there.

use std::path::PathBuf;

use super::environment::Environment;
use super::error::SettingsError;
use super::hosts::has_nameless_address;
use super::keywords::Settings;
use super::target::{
    CertificateMode, ClientCertificate, Roots, SslMode, SslNegotiation, TlsSettings, TlsVersion,
    Warning,
};
use super::{Host, HostName};

/// The settings, and what the user should know about them. Files matter only if there is a host
/// to which a connection could be encrypted.
pub(super) fn tls_settings(
    settings: &Settings,
    hosts: &[Host],
    environment: &dyn Environment,
    warnings: &mut Vec<Warning>,
) -> Result<TlsSettings, SettingsError> {
    let mode = mode(settings, environment)?;
    let negotiation = negotiation(settings, mode)?;
    let certificate_mode = certificate_mode(settings)?;
    let (min_version, max_version) = versions(settings)?;
    let send_host_name = settings.choice("sslsni", &[("0", false), ("1", true)], true)?;
    let files = Files {
        settings,
        environment,
    };
    let encrypts = mode != SslMode::Disable && hosts.iter().any(is_over_network);
    let roots = files.roots();
    if encrypts {
        refuse_unverifiable(mode, &roots, settings)?;
    }
    let shows_certificate = encrypts && certificate_mode != CertificateMode::Disable;
    let client_certificate = match shows_certificate {
        true => files.client_certificate(mode, warnings)?,
        false => None,
    };
    Ok(TlsSettings {
        mode,
        negotiation,
        revocation_list: files.revocation_list(warnings),
        revocation_directory: settings.value("sslcrldir").map(PathBuf::from),
        roots,
        client_certificate,
        certificate_mode,
        send_host_name,
        min_version,
        max_version,
    })
}

/// `sslmode`. Trusting all authorities that the system knows is worth nothing without the name, so
/// that it makes the strictest mode the default and the only one.
fn mode(settings: &Settings, environment: &dyn Environment) -> Result<SslMode, SettingsError> {
    let by_system = settings.value("sslrootcert") == Some("system");
    let by_variable = environment
        .variable("PGREQUIRESSL")
        .is_some_and(|value| value.as_encoded_bytes().starts_with(b"1"));
    let default = match (by_variable, by_system) {
        (true, _) => SslMode::Require,
        (false, true) => SslMode::VerifyFull,
        (false, false) => SslMode::Prefer,
    };
    let modes = [
        ("disable", SslMode::Disable),
        ("allow", SslMode::Allow),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];
    let mode = settings.choice("sslmode", &modes, default)?;
    match by_system && mode != SslMode::VerifyFull {
        true => Err(too_weak(settings, "sslrootcert=system", "\"verify-full\"")),
        false => Ok(mode),
    }
}

fn negotiation(settings: &Settings, mode: SslMode) -> Result<SslNegotiation, SettingsError> {
    let choices = [
        ("postgres", SslNegotiation::Postgres),
        ("direct", SslNegotiation::Direct),
    ];
    let negotiation = settings.choice("sslnegotiation", &choices, SslNegotiation::default())?;
    match negotiation == SslNegotiation::Direct && mode < SslMode::Require {
        true => Err(too_weak(
            settings,
            "sslnegotiation=direct",
            "\"require\", \"verify-ca\", or \"verify-full\"",
        )),
        false => Ok(negotiation),
    }
}

fn too_weak(settings: &Settings, with: &str, needed: &str) -> SettingsError {
    let mode = settings.value("sslmode").unwrap_or("prefer");
    SettingsError::Conflict(format!(
        "weak sslmode \"{mode}\" may not be used with {with} (use {needed})"
    ))
}

fn certificate_mode(settings: &Settings) -> Result<CertificateMode, SettingsError> {
    let choices = [
        ("disable", CertificateMode::Disable),
        ("allow", CertificateMode::Allow),
        ("require", CertificateMode::Require),
    ];
    settings.choice("sslcertmode", &choices, CertificateMode::default())
}

/// Bounds on the version of TLS. Older ones than 1.2 are not spoken: they will do as lower bounds.
fn versions(
    settings: &Settings,
) -> Result<(Option<TlsVersion>, Option<TlsVersion>), SettingsError> {
    let oldest = version_number(settings, "ssl_min_protocol_version")?;
    let newest = version_number(settings, "ssl_max_protocol_version")?;
    if let Some((oldest, newest)) = oldest.zip(newest)
        && oldest > newest
    {
        let problem = "invalid SSL protocol version range";
        return Err(SettingsError::Conflict(problem.to_owned()));
    }
    if newest.is_some_and(|newest| newest < 2) {
        let hint = "Supported here: TLSv1.2, TLSv1.3.";
        return Err(settings.unsupported("ssl_max_protocol_version", hint));
    }
    let version = |number| match number {
        3 => TlsVersion::V1_3,
        _ => TlsVersion::V1_2,
    };
    Ok((oldest.map(version), newest.map(version)))
}

/// The number behind the dot.
fn version_number(settings: &Settings, keyword: &'static str) -> Result<Option<u8>, SettingsError> {
    let names = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
    let Some(text) = settings.value(keyword) else {
        return Ok(None);
    };
    (0_u8..)
        .zip(names)
        .find(|(_, name)| name.eq_ignore_ascii_case(text))
        .map(|(number, _)| Some(number))
        .ok_or_else(|| settings.invalid(keyword, &names))
}

/// A mode that verifies needs authorities, and the strictest one names.
fn refuse_unverifiable(
    mode: SslMode,
    roots: &Roots,
    settings: &Settings,
) -> Result<(), SettingsError> {
    if let (SslMode::VerifyCa | SslMode::VerifyFull, Roots::Missing(path)) = (mode, roots) {
        return Err(SettingsError::NoRoots(path.clone()));
    }
    if mode == SslMode::VerifyFull && has_nameless_address(settings) {
        let problem = "host name must be specified for a verified SSL connection";
        return Err(SettingsError::Conflict(problem.to_owned()));
    }
    Ok(())
}

fn is_over_network(host: &Host) -> bool {
    match &host.name {
        HostName::SocketDirectory(_) => host.address.is_some(),
        HostName::Network(_) => true,
    }
}

/// Looks for files: those that were named, else those in the user's own directory.
struct Files<'a> {
    settings: &'a Settings,
    environment: &'a dyn Environment,
}

impl Files<'_> {
    /// Where a file is to be.
    fn path(&self, keyword: &'static str, default: &str) -> PathBuf {
        match self.settings.value(keyword) {
            Some(path) => PathBuf::from(path),
            None => self
                .environment
                .home_directory()
                .unwrap_or_default()
                .join(".postgresql")
                .join(default),
        }
    }

    fn roots(&self) -> Roots {
        if self.settings.value("sslrootcert") == Some("system") {
            return Roots::System;
        }
        let path = self.path("sslrootcert", "root.crt");
        match self.environment.file(&path) {
            Some(_) => Roots::File(path),
            None => Roots::Missing(path),
        }
    }

    /// As in libpq a list that is not there is none, but one that was named should be there.
    fn revocation_list(&self, warnings: &mut Vec<Warning>) -> Option<PathBuf> {
        let named = self.settings.value("sslcrl").is_some();
        if !named && self.settings.value("sslcrldir").is_some() {
            return None;
        }
        let path = self.path("sslcrl", "root.crl");
        if self.environment.file(&path).is_some() {
            return Some(path);
        }
        if named {
            warnings.push(Warning::NoRevocationList(path));
        }
        None
    }

    /// The certificate if there is one; then its key has to be there too, and be the user's secret.
    /// Where encryption is not required, an unfit key is a reason to show none.
    fn client_certificate(
        &self,
        mode: SslMode,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<ClientCertificate>, SettingsError> {
        let certificate = self.path("sslcert", "postgresql.crt");
        if self.environment.file(&certificate).is_none() {
            return Ok(None);
        }
        let key = self.path("sslkey", "postgresql.key");
        match self.key_problem(&key) {
            None => Ok(Some(ClientCertificate { certificate, key })),
            Some(problem) if mode >= SslMode::Require => {
                Err(SettingsError::ClientKey { path: key, problem })
            }
            Some(problem) => {
                warnings.push(Warning::ClientKey { path: key, problem });
                Ok(None)
            }
        }
    }

    fn key_problem(&self, key: &std::path::Path) -> Option<&'static str> {
        let Some(facts) = self.environment.file(key) else {
            return Some("is not there, but the certificate that belongs to it is");
        };
        if !facts.is_plain {
            return Some("is not a regular file");
        }
        let excess = match facts.is_of_root {
            true => 0o037,
            false => 0o077,
        };
        (facts.mode & excess != 0).then_some(
            "has group or world access; it must have permissions u=rw (0600) or less if owned by \
             the current user, or u=rw,g=r (0640) or less if owned by root",
        )
    }
}
