//! What encrypts a connection, in the words of OpenSSL, which psql shows and users know.

use rustls::{CipherSuite, ClientConnection, ProtocolVersion};

/// Protocol and cipher: `TLSv1.3, TLS_AES_256_GCM_SHA384`.
pub(super) fn describe(connection: &ClientConnection) -> String {
    let protocol = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        Some(_) | None => "an unknown version of TLS",
    };
    let suite = connection.negotiated_cipher_suite();
    let cipher = suite.map_or("an unknown cipher", |suite| name(suite.suite()));
    format!("{protocol}, {cipher}")
}

/// All that the library can negotiate. A test holds this list against its own.
fn name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            "ECDHE-ECDSA-CHACHA20-POLY1305"
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        // The list of the library's constants is open: it also names what nobody here speaks.
        _ => "an unknown cipher",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_that_can_be_negotiated_has_a_name() {
        for suite in rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES {
            assert!(!name(suite.suite()).contains("unknown"), "{suite:?}");
        }
    }
}
