//! Authorities and certificates for tests: made by rcgen, or by the command `openssl` where rcgen
//! cannot make them (keys restricted to RSA-PSS, version 1, files of Ed25519 keys that OpenSSL 3.0
//! can read).

use std::path::Path;
use std::process::{Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

/// Kinds of keys that servers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Rsa,
    RsaPss,
    P256,
    P384,
    P521,
    Ed25519,
}

impl KeyKind {
    pub const ALL: [KeyKind; 6] = [
        KeyKind::Rsa,
        KeyKind::RsaPss,
        KeyKind::P256,
        KeyKind::P384,
        KeyKind::P521,
        KeyKind::Ed25519,
    ];
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    Now,
    Over,
}

/// A certificate with its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// Makes certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// An authority of this name, which holds from 2000 to 2100.
    pub fn new(name: &str) -> Authority {
        let mut params = params(name, &[], Validity::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("P-256 is known");
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).expect("it can sign itself"),
        }
    }

    /// Its certificate in PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server or client with this common name and these alternative names.
    pub fn issue(
        &self,
        kind: KeyKind,
        common_name: &str,
        names: &[&str],
        validity: Validity,
    ) -> Identity {
        let algorithm = match kind {
            KeyKind::Rsa => &rcgen::PKCS_RSA_SHA256,
            KeyKind::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            KeyKind::P521 => &rcgen::PKCS_ECDSA_P521_SHA512,
            KeyKind::Ed25519 => {
                return self.issue_by_openssl("ed25519", common_name, names, validity);
            }
            KeyKind::RsaPss => {
                let key = "rsa-pss -pkeyopt rsa_keygen_bits:2048";
                return self.issue_by_openssl(key, common_name, names, validity);
            }
        };
        let key = KeyPair::generate_for(algorithm).expect("the algorithm is known");
        let made = params(common_name, names, validity).signed_by(&key, &self.issuer);
        Identity {
            certificate: made.expect("the authority can sign").pem(),
            key: key.serialize_pem(),
        }
    }

    /// A list of revoked certificates that names this one of them.
    pub fn revoke(&self, serial: &[u8]) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("it may sign lists");
        list.pem().expect("it can be written")
    }

    /// A certificate of version 1: without extensions, as by the commands in PostgreSQL's manual.
    pub fn issue_version_1(&self, common_name: &str) -> Identity {
        let directory = self.directory();
        openssl(
            directory.path(),
            &format!(
                "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key \
                 -out request -subj /CN={common_name}"
            ),
        );
        openssl(
            directory.path(),
            "x509 -req -in request -CA ca.crt -CAkey ca.key -set_serial 7 -days 10 -out crt",
        );
        read_identity(directory.path())
    }

    fn issue_by_openssl(
        &self,
        key: &str,
        common_name: &str,
        names: &[&str],
        validity: Validity,
    ) -> Identity {
        let directory = self.directory();
        let names: Vec<String> = names.iter().map(|name| alternative_name(name)).collect();
        let extensions = match names.is_empty() {
            true => "basicConstraints=CA:FALSE".to_owned(),
            false => format!("subjectAltName={}", names.join(",")),
        };
        let settings = format!(
            "[ca]\ndefault_ca=own\n[own]\ndatabase=index\nserial=serial\nnew_certs_dir=.\n\
             default_md=sha256\npolicy=any\nx509_extensions=leaf\n[any]\ncommonName=supplied\n\
             [leaf]\n{extensions}\n"
        );
        for (file, text) in [
            ("settings", settings.as_str()),
            ("index", ""),
            ("serial", "07"),
        ] {
            std::fs::write(directory.path().join(file), text).expect("the directory is ours");
        }
        openssl(
            directory.path(),
            &format!(
                "req -new -newkey {key} -nodes -keyout key -out request -subj /CN={common_name}"
            ),
        );
        let end = match validity {
            Validity::Now => "21000101000000Z",
            Validity::Over => "20200101000000Z",
        };
        openssl(
            directory.path(),
            &format!(
                "ca -batch -notext -config settings -cert ca.crt -keyfile ca.key -in request \
                 -startdate 20000101000000Z -enddate {end} -out crt"
            ),
        );
        read_identity(directory.path())
    }

    /// A directory with the authority's certificate and key.
    fn directory(&self) -> TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let key = self.issuer.key().serialize_pem();
        for (file, text) in [("ca.crt", self.certificate()), ("ca.key", key)] {
            std::fs::write(directory.path().join(file), text).expect("the directory is ours");
        }
        directory
    }
}

/// A certificate that signed itself, as `openssl req -x509 -newkey OPTIONS` makes it.
pub fn self_signed(options: &str) -> Identity {
    let directory = tempfile::tempdir().expect("a temporary directory");
    openssl(
        directory.path(),
        &format!("req -x509 -nodes -subj /CN=localhost -keyout key -out crt -newkey {options}"),
    );
    read_identity(directory.path())
}

fn params(common_name: &str, names: &[&str], validity: Validity) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names are valid");
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = match validity {
        Validity::Now => date_time_ymd(2100, 1, 1),
        Validity::Over => date_time_ymd(2020, 1, 1),
    };
    params
}

fn alternative_name(name: &str) -> String {
    match name.parse::<std::net::IpAddr>() {
        Ok(address) => format!("IP:{address}"),
        Err(_) => format!("DNS:{name}"),
    }
}

fn read_identity(directory: &Path) -> Identity {
    let read = |file| std::fs::read_to_string(directory.join(file)).expect("openssl has made it");
    Identity {
        certificate: read("crt"),
        key: read("key"),
    }
}

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("openssl can be started: it comes with PostgreSQL's packages");
    assert!(
        output.status.success(),
        "openssl {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
