//! The channel binding `tls-server-end-point` of RFC 5929, section 4.1: a hash of the server's
//! certificate, by which SCRAM finds out whether somebody sits in between.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::certificate::Certificate;
use super::der::{self, Der, OBJECT_IDENTIFIER, SEQUENCE};

/// The binding of a connection to a server that showed `certificate_der`. The hash is the one that
/// the certificate's signature was made with, or SHA-256 in place of MD5 and SHA-1; `None` where
/// there is no such single hash, as with Ed25519.
pub fn end_point_binding(certificate_der: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::parse(certificate_der)?;
    Some(match hash_of(certificate.signature_algorithm)? {
        Hash::Sha224 => Sha224::digest(certificate_der).to_vec(),
        Hash::Sha256 => Sha256::digest(certificate_der).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate_der).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate_der).to_vec(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// 1.2.840.113549.1.1, PKCS #1.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
/// 1.2.840.10045.4, signatures of ANSI X9.62.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
/// 2.16.840.1.101.3.4.2, hashes of NIST.
const NIST_HASH: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
/// 1.3.14.3.2.26.
const SHA_1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];

/// The hash of a signature algorithm, given with its parameters.
fn hash_of(algorithm: &[u8]) -> Option<Hash> {
    let mut parts = Der::new(algorithm);
    let identifier = parts.expect(OBJECT_IDENTIFIER)?.content;
    if let Some(number) = identifier.strip_prefix(RSA) {
        return match number {
            // MD5 and SHA-1.
            [4 | 5] => Some(Hash::Sha256),
            [10] => hash_of_pss(parts.enter(SEQUENCE)?),
            [11] => Some(Hash::Sha256),
            [12] => Some(Hash::Sha384),
            [13] => Some(Hash::Sha512),
            [14] => Some(Hash::Sha224),
            _ => None,
        };
    }
    match identifier.strip_prefix(ECDSA)? {
        // SHA-1.
        [1] => Some(Hash::Sha256),
        [3, 1] => Some(Hash::Sha224),
        [3, 2] => Some(Hash::Sha256),
        [3, 3] => Some(Hash::Sha384),
        [3, 4] => Some(Hash::Sha512),
        _ => None,
    }
}

/// RFC 4055, section 3.1: the hash is a parameter; SHA-1 where it is left out.
fn hash_of_pss(mut parameters: Der<'_>) -> Option<Hash> {
    let Some(mut hash) = parameters.enter(der::numbered(0)) else {
        return Some(Hash::Sha256);
    };
    let identifier = hash.enter(SEQUENCE)?.expect(OBJECT_IDENTIFIER)?.content;
    if identifier == SHA_1 {
        return Some(Hash::Sha256);
    }
    match identifier.strip_prefix(NIST_HASH)? {
        [1] => Some(Hash::Sha256),
        [2] => Some(Hash::Sha384),
        [3] => Some(Hash::Sha512),
        [4] => Some(Hash::Sha224),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::self_signed;
    use rustls::pki_types::{CertificateDer, pem::PemObject};

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let pss = |hash| format!("rsa:2048 -{hash} -sigopt rsa_padding_mode:pss");
        for (options, hash) in [
            ("rsa:2048 -md5", Some(Hash::Sha256)),
            ("rsa:2048 -sha1", Some(Hash::Sha256)),
            ("rsa:2048 -sha224", Some(Hash::Sha224)),
            ("rsa:2048 -sha256", Some(Hash::Sha256)),
            ("rsa:2048 -sha384", Some(Hash::Sha384)),
            ("rsa:2048 -sha512", Some(Hash::Sha512)),
            (&pss("sha1"), Some(Hash::Sha256)),
            (&pss("sha256"), Some(Hash::Sha256)),
            (&pss("sha384"), Some(Hash::Sha384)),
            (&pss("sha512"), Some(Hash::Sha512)),
            (
                "ec -pkeyopt ec_paramgen_curve:P-256 -sha1",
                Some(Hash::Sha256),
            ),
            (
                "ec -pkeyopt ec_paramgen_curve:P-256 -sha384",
                Some(Hash::Sha384),
            ),
            (
                "ec -pkeyopt ec_paramgen_curve:P-521 -sha512",
                Some(Hash::Sha512),
            ),
            ("ed25519", None),
        ] {
            let made = self_signed(options).certificate;
            let der = CertificateDer::from_pem_slice(made.as_bytes()).unwrap();
            let certificate = Certificate::parse(&der).unwrap();
            assert_eq!(hash_of(certificate.signature_algorithm), hash, "{options}");
            let binding = end_point_binding(&der);
            assert_eq!(binding.is_some(), hash.is_some(), "{options}");
            if hash == Some(Hash::Sha512) {
                assert_eq!(binding.unwrap(), Sha512::digest(&der).to_vec());
            }
        }
    }

    #[test]
    fn what_is_no_certificate_binds_nothing() {
        assert_eq!(end_point_binding(b""), None);
        assert_eq!(end_point_binding(&[SEQUENCE, 0]), None);
    }
}
