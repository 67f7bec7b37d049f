//! Whether a certificate was made for a host, by libpq's rules: alternative names first; the common
//! name counts where the certificate has no alternative name of the host's kind.

use std::net::IpAddr;

use super::certificate::{AlternativeName, Certificate};

/// Whether `certificate` names `host`, a name or an address in numbers.
pub(super) fn names_host(certificate: &Certificate<'_>, host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    let mut common_name_counts = true;
    for name in certificate.alternative_names() {
        let (is_hosts_kind, fits) = match name {
            AlternativeName::Dns(pattern) => (address.is_none(), name_fits(pattern, host)),
            AlternativeName::Address(bytes) => (
                address.is_some(),
                address.is_some_and(|address| address_fits(bytes, address)),
            ),
        };
        if fits {
            return true;
        }
        common_name_counts &= !is_hosts_kind;
    }
    common_name_counts
        && certificate
            .common_name()
            .is_some_and(|name| name_fits(name, host))
}

fn address_fits(bytes: &[u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => bytes == address.octets(),
        IpAddr::V6(address) => bytes == address.octets(),
    }
}

/// Names are the same but for the case of letters. A pattern `*.rest` fits one label before the
/// rest; a star anywhere else is a letter like any other.
fn name_fits(pattern: &[u8], host: &str) -> bool {
    let host = host.as_bytes();
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(rest) = pattern.strip_prefix(b"*").filter(|rest| rest.len() >= 2) else {
        return false;
    };
    let Some(label) = host
        .len()
        .checked_sub(rest.len())
        .filter(|length| *length > 0)
    else {
        return false;
    };
    rest[0] == b'.' && host[label..].eq_ignore_ascii_case(rest) && !host[..label].contains(&b'.')
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn hosts_are_named_by_libpqs_rules() {
        for (alternative, common, host, named) in [
            (&["a.example"][..], "", "a.example", true),
            (&["a.example"], "", "A.EXAMPLE", true),
            (&["a.example"], "", "b.example", false),
            (&["a.example"], "b.example", "b.example", false),
            (&["a.example", "b.example"], "", "b.example", true),
            (&["*.example"], "", "a.example", true),
            (&["*.example"], "", "a.b.example", false),
            (&["*.example"], "", ".example", false),
            (&["*.example"], "", "example", false),
            (&["a*.example"], "", "ab.example", false),
            (&[], "a.example", "a.example", true),
            (&[], "*.example", "a.example", true),
            (&[], "*", "example", false),
            (&[], "127.0.0.1", "127.0.0.1", true),
            (&["127.0.0.1"], "", "127.0.0.1", true),
            (&["127.0.0.1"], "", "127.0.0.2", false),
            (&["127.0.0.1"], "127.0.0.2", "127.0.0.2", false),
            (&["127.0.0.1"], "a.example", "a.example", true),
            (&["a.example"], "127.0.0.1", "127.0.0.1", true),
            (&["::1"], "", "0:0:0:0:0:0:0:1", true),
            (&["::1"], "", "127.0.0.1", false),
            (&[], "", "a.example", false),
        ] {
            let names: Vec<String> = alternative.iter().map(|name| (*name).to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            if !common.is_empty() {
                params.distinguished_name.push(DnType::CommonName, common);
            }
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let certificate = Certificate::parse(made.der()).unwrap();
            assert_eq!(
                names_host(&certificate, host),
                named,
                "{alternative:?} or {common:?} for {host}"
            );
        }
    }

    #[test]
    fn a_zero_byte_hides_no_other_name() {
        assert!(!name_fits(b"a.example\0.evil", "a.example"));
    }
}
