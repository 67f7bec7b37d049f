//! Handshakes in memory between our sessions and the library's server: who is believed, and who is
//! not.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::testing::{Authority, Identity, KeyKind, Validity, self_signed};
use super::*;
use crate::conninfo::{ClientCertificate, Roots};

/// Files of a client, and its settings.
struct Settings {
    directory: TempDir,
    tls: TlsSettings,
}

impl Settings {
    /// Without any file.
    fn new(mode: SslMode) -> Settings {
        Settings {
            directory: tempfile::tempdir().unwrap(),
            tls: TlsSettings {
                mode,
                ..TlsSettings::disabled()
            },
        }
    }

    fn trusting(mode: SslMode, certificate: &str) -> Settings {
        let mut settings = Settings::new(mode);
        settings.tls.roots = Roots::File(settings.file("root.crt", certificate));
        settings
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn shake_hands(&self, host: &str, server: ServerConfig) -> Result<Established, TlsError> {
        let session = Connector::new(&self.tls)?.session(host)?;
        shake_hands(session, server)
    }
}

fn shake_hands(mut session: Session, server: ServerConfig) -> Result<Established, TlsError> {
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    while session.connection.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while session.connection.wants_write() {
            session.connection.write_tls(&mut bytes).unwrap();
        }
        let mut input = &bytes[..];
        while !input.is_empty() {
            server.read_tls(&mut input).unwrap();
            // What the server thinks of us is told by its alert.
            let _ = server.process_new_packets();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut input = &bytes[..];
        while !input.is_empty() {
            session.connection.read_tls(&mut input).unwrap();
            session.connection.process_new_packets()?;
        }
    }
    session.established()
}

fn server_with(
    identity: &Identity,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let (chain, key) = loaded(identity);
    showing(chain, &key, versions)
}

/// Does not look whether the key is that of the certificate, nor at what version it is of.
fn showing(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let key = aws_lc_rs::sign::any_supported_type(key).unwrap();
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shows(Arc::new(CertifiedKey::new(chain, key)))))
}

#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl rustls::server::ResolvesServerCert for Shows {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

fn server(identity: &Identity) -> ServerConfig {
    server_with(identity, rustls::ALL_VERSIONS)
}

fn loaded(identity: &Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    (
        vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()],
        PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap(),
    )
}

const VERIFYING: [SslMode; 3] = [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull];

#[test]
fn a_good_certificate_of_each_kind_is_believed_and_can_be_bound_to() {
    let authority = Authority::new("ours");
    for kind in KeyKind::ALL {
        // The library's own server cannot use such a key; a real one is tried in tests/tls.rs.
        if kind == KeyKind::RsaPss {
            continue;
        }
        let identity = authority.issue(kind, "ignored", &["db.example"], Validity::Now);
        for mode in VERIFYING {
            let settings = Settings::trusting(mode, &authority.certificate());
            for (version, name) in [
                (&rustls::version::TLS12, "TLSv1.2, ECDHE-"),
                (&rustls::version::TLS13, "TLSv1.3, TLS_AES_256_GCM_SHA384"),
            ] {
                let made = settings.shake_hands("db.example", server_with(&identity, &[version]));
                let established = made.unwrap_or_else(|error| panic!("{kind:?} {mode:?}: {error}"));
                assert!(established.description.starts_with(name), "{established:?}");
                let (chain, _) = loaded(&identity);
                assert_eq!(established.binding, end_point_binding(&chain[0]));
                assert!(established.binding.is_some());
            }
        }
    }
}

#[test]
fn what_is_wrong_with_a_certificate_matters_as_the_mode_says() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let issue = |authority: &Authority, name, validity| {
        authority.issue(KeyKind::P256, "ignored", &[name], validity)
    };
    let unknown = issue(&other, "db.example", Validity::Now);
    let wrong_name = issue(&ours, "elsewhere.example", Validity::Now);
    let expired = issue(&ours, "db.example", Validity::Over);
    for (what, identity, refused_by, words) in [
        ("unknown", &unknown, &VERIFYING[..], "(sslrootcert)"),
        ("expired", &expired, &VERIFYING[..], "expired"),
        (
            "name",
            &wrong_name,
            &[SslMode::VerifyFull],
            "elsewhere.example",
        ),
    ] {
        for mode in VERIFYING {
            let settings = Settings::trusting(mode, &ours.certificate());
            match settings.shake_hands("db.example", server(identity)) {
                Ok(_) => assert!(!refused_by.contains(&mode), "{what} {mode:?}"),
                Err(error) => {
                    assert!(refused_by.contains(&mode), "{what} {mode:?}: {error}");
                    assert!(error.to_string().contains(words), "{error}");
                }
            }
        }
        for mode in [SslMode::Allow, SslMode::Prefer, SslMode::Require] {
            let settings = Settings::new(mode);
            let made = settings.shake_hands("db.example", server(identity));
            assert!(made.is_ok(), "{what} {mode:?} without roots");
        }
    }
}

#[test]
fn certificates_made_by_hand_are_believed_as_by_libpq() {
    let authority = Authority::new("ours");
    let version_1 = authority.issue_version_1("localhost");
    let own = self_signed("rsa:2048");
    let by = |certificate: &str, mode| Settings::trusting(mode, certificate);
    for (identity, root) in [
        (&version_1, &authority.certificate()),
        (&own, &own.certificate),
    ] {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let server = || server_with(identity, &[version]);
            let full = by(root, SslMode::VerifyFull);
            full.shake_hands("localhost", server()).unwrap();
            assert!(full.shake_hands("elsewhere", server()).is_err());
            let unverified = Settings::new(SslMode::Require);
            unverified.shake_hands("elsewhere", server()).unwrap();
            let other = by(&Authority::new("ours").certificate(), SslMode::VerifyCa);
            let error = other.shake_hands("localhost", server()).unwrap_err();
            assert!(error.to_string().contains("authority"), "{error}");
        }
    }
}

/// A man in the middle can show the server's certificate, but has another key.
#[test]
fn a_server_without_the_key_of_its_certificate_is_refused_in_every_mode() {
    let authority = Authority::new("ours");
    for genuine in [
        authority.issue(KeyKind::P256, "localhost", &[], Validity::Now),
        authority.issue_version_1("localhost"),
    ] {
        let impostor = authority.issue(KeyKind::P256, "localhost", &[], Validity::Now);
        let (chain, _) = loaded(&genuine);
        let (_, key) = loaded(&impostor);
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let config = showing(chain.clone(), &key, &[version]);
            let made = Settings::new(SslMode::Require).shake_hands("localhost", config);
            let error = made.unwrap_err().to_string();
            assert!(error.contains("does not hold its key"), "{error}");
        }
    }
}

#[test]
fn revoked_certificates_are_refused() {
    let authority = Authority::new("ours");
    let identity = authority.issue(KeyKind::P256, "localhost", &[], Validity::Now);
    let (chain, _) = loaded(&identity);
    let serial = serial_number(&chain[0]);
    let mut settings = Settings::trusting(SslMode::VerifyCa, &authority.certificate());
    for (revoked, refused) in [(&[9, 9][..], false), (&serial, true)] {
        let list = authority.revoke(revoked);
        settings.tls.revocation_list = Some(settings.file("root.crl", &list));
        let made = settings.shake_hands("localhost", server(&identity));
        assert_eq!(made.is_err(), refused);
        if let Err(error) = made {
            assert!(error.to_string().contains("revoked"), "{error}");
        }
    }
    let lists = settings.directory.path().join("lists");
    std::fs::create_dir(&lists).unwrap();
    std::fs::write(lists.join("README"), "no list").unwrap();
    std::fs::write(lists.join("0123abcd.r0"), authority.revoke(&serial)).unwrap();
    settings.tls.revocation_list = None;
    settings.tls.revocation_directory = Some(lists);
    assert!(
        settings
            .shake_hands("localhost", server(&identity))
            .is_err()
    );
}

fn serial_number(certificate: &[u8]) -> Vec<u8> {
    let mut body = der::Der::new(certificate)
        .enter(der::SEQUENCE)
        .and_then(|mut outer| outer.enter(der::SEQUENCE))
        .unwrap();
    let number = body.find(|part| part.tag == der::INTEGER).unwrap();
    number.content.to_vec()
}

#[test]
fn a_server_that_has_to_ask_for_our_certificate_does_or_is_refused() {
    let authority = Authority::new("ours");
    let of_server = authority.issue(KeyKind::P256, "localhost", &[], Validity::Now);
    let ours = authority.issue(KeyKind::Rsa, "me", &[], Validity::Now);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let asking = || {
        let (chain, key) = loaded(&of_server);
        let demands =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots.clone()), provider.clone());
        ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(demands.build().unwrap())
            .with_single_cert(chain, key)
            .unwrap()
    };
    let mut settings = Settings::trusting(SslMode::VerifyCa, &authority.certificate());
    settings.tls.client_certificate = Some(ClientCertificate {
        certificate: settings.file("me.crt", &ours.certificate),
        key: settings.file("me.key", &ours.key),
    });
    settings.tls.certificate_mode = CertificateMode::Require;
    settings.shake_hands("localhost", asking()).unwrap();
    let error = settings.shake_hands("localhost", server(&of_server));
    assert!(matches!(error, Err(TlsError::CertificateNotRequested)));

    settings.tls.certificate_mode = CertificateMode::Allow;
    settings.shake_hands("localhost", asking()).unwrap();
    settings
        .shake_hands("localhost", server(&of_server))
        .unwrap();
}

#[test]
fn a_server_has_to_name_its_protocol_if_nobody_asked_it_before() {
    let identity = self_signed("ed25519");
    let mut settings = Settings::new(SslMode::Require);
    settings.tls.negotiation = SslNegotiation::Direct;
    let made = settings.shake_hands("localhost", server(&identity));
    assert!(matches!(made, Err(TlsError::NoProtocolNamed)));
    let mut naming = server(&identity);
    naming.alpn_protocols = vec![PROTOCOL.to_vec()];
    let established = settings.shake_hands("localhost", naming).unwrap();
    assert_eq!(established.binding, None, "Ed25519 has no hash to bind by");
}

#[test]
fn versions_stay_within_their_bounds() {
    let identity = self_signed("ed25519");
    for (min, max, spoken) in [
        (None, None, Some("TLSv1.3")),
        (None, Some(TlsVersion::V1_2), Some("TLSv1.2")),
        (Some(TlsVersion::V1_3), None, Some("TLSv1.3")),
        (
            Some(TlsVersion::V1_2),
            Some(TlsVersion::V1_3),
            Some("TLSv1.3"),
        ),
        (Some(TlsVersion::V1_3), Some(TlsVersion::V1_2), None),
    ] {
        let mut settings = Settings::new(SslMode::Require);
        (settings.tls.min_version, settings.tls.max_version) = (min, max);
        match (settings.shake_hands("localhost", server(&identity)), spoken) {
            (Ok(made), Some(spoken)) => assert!(made.description.starts_with(spoken)),
            (made, spoken) => {
                assert!(matches!(made, Err(TlsError::NoVersion)));
                assert_eq!(spoken, None);
            }
        }
    }
}

#[test]
fn a_hosts_name_is_sent_only_if_it_is_one_and_may_be() {
    for (host, may_be, sent) in [
        ("db.example", true, Some("db.example")),
        ("db.example", false, None),
        ("127.0.0.1", true, None),
        ("no name at all", true, None),
    ] {
        let mut settings = Settings::new(SslMode::Require);
        settings.tls.send_host_name = may_be;
        let mut session = Connector::new(&settings.tls)
            .unwrap()
            .session(host)
            .unwrap();
        let mut bytes = Vec::new();
        session.connection.write_tls(&mut bytes).unwrap();
        let mut acceptor = rustls::server::Acceptor::default();
        acceptor.read_tls(&mut &bytes[..]).unwrap();
        let hello = acceptor.accept().unwrap().unwrap();
        assert_eq!(hello.client_hello().server_name(), sent, "{host}");
    }
    let authority = Authority::new("ours");
    let settings = Settings::trusting(SslMode::VerifyFull, &authority.certificate());
    let refused = Connector::new(&settings.tls).unwrap().session("no name");
    assert!(matches!(refused, Err(TlsError::UncheckableName(_))));
}

#[test]
fn errors_of_files_name_the_file_and_what_to_do() {
    let authority = Authority::new("ours");
    let ours = authority.issue(KeyKind::P256, "me", &[], Validity::Now);
    let other = authority.issue(KeyKind::P256, "me", &[], Validity::Now);
    let base = Settings::trusting(SslMode::VerifyCa, &authority.certificate());
    let roots = |roots| TlsSettings {
        roots,
        ..base.tls.clone()
    };
    let list = |path| TlsSettings {
        revocation_list: Some(path),
        ..base.tls.clone()
    };
    let shown = |name: &str, certificate: &str, key: &str| TlsSettings {
        client_certificate: Some(ClientCertificate {
            certificate: base.file(&format!("{name}.crt"), certificate),
            key: base.file(&format!("{name}.key"), key),
        }),
        ..base.tls.clone()
    };
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let nothing_to_show = TlsSettings {
        certificate_mode: CertificateMode::Require,
        ..base.tls.clone()
    };
    for (settings, words) in [
        (
            roots(Roots::Missing("/nowhere/a.crt".into())),
            "sslrootcert=system",
        ),
        (
            roots(Roots::File("/nowhere/b.crt".into())),
            "/nowhere/b.crt",
        ),
        (
            roots(Roots::File(base.file("bad.crt", "nonsense"))),
            "bad.crt\": it holds no certificate",
        ),
        (
            list("/nowhere/crl".into()),
            "\"/nowhere/crl\": No such file",
        ),
        (
            list(base.file("empty.crl", "")),
            "empty.crl\": it holds no revocation list",
        ),
        (
            shown("a", "", &ours.key),
            "a.crt\": it holds no certificate",
        ),
        (shown("b", &ours.certificate, &other.key), "b.key"),
        (shown("c", &ours.certificate, "nonsense"), "c.key"),
        (shown("d", &ours.certificate, encrypted), "openssl pkey"),
        (nothing_to_show, "sslcert and sslkey"),
    ] {
        let error = Connector::new(&settings).unwrap_err().to_string();
        assert!(error.contains(words), "{words:?} is not in {error:?}");
    }
}
