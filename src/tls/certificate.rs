//! The parts of an X.509 certificate that libpq looks at, of version 1 too, which the library's own
//! parser refuses. Decides nothing about trust.

use super::der::{
    self, Der, Element, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET,
    UTC_TIME,
};

/// A certificate, with slices of its encoding.
pub(super) struct Certificate<'a> {
    /// What the signature was made over.
    pub signed: &'a [u8],
    /// Whether it can have extensions; what has none is mostly of version 1.
    pub is_version_1: bool,
    pub issuer: &'a [u8],
    /// Seconds since 1970 from which on, and up to which, it holds.
    pub validity_s: std::ops::RangeInclusive<u64>,
    pub subject: &'a [u8],
    pub key: PublicKey<'a>,
    /// The identifier of the algorithm and its parameters, without the sequence around them.
    pub signature_algorithm: &'a [u8],
    pub signature: &'a [u8],
    alternative_names: Vec<AlternativeName<'a>>,
}

/// A public key as certificates hold it.
#[derive(Clone, Copy)]
pub(super) struct PublicKey<'a> {
    /// The identifier of the algorithm and its parameters, without the sequence around them.
    pub algorithm: &'a [u8],
    pub bits: &'a [u8],
}

/// An entry of the extension that names the subject. Those of other kinds are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlternativeName<'a> {
    Dns(&'a [u8]),
    /// 4 or 16 bytes.
    Address(&'a [u8]),
}

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];

impl<'a> Certificate<'a> {
    /// `None` if it is malformed.
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Der::new(der).enter(SEQUENCE)?;
        let signed = outer.expect(SEQUENCE)?;
        let signature_algorithm = outer.expect(SEQUENCE)?.content;
        let signature = outer.bytes_of_bit_string()?;

        let mut body = Der::new(signed.content);
        let version = match body.enter(der::numbered(0)) {
            Some(mut version) => version.expect(INTEGER)?.content,
            None => &[0],
        };
        body.expect(INTEGER)?;
        body.expect(SEQUENCE)?;
        let issuer = body.expect(SEQUENCE)?.content;
        let mut validity = body.enter(SEQUENCE)?;
        let (from_s, to_s) = (seconds(validity.next()?)?, seconds(validity.next()?)?);
        let subject = body.expect(SEQUENCE)?.content;
        let mut key = body.enter(SEQUENCE)?;
        let key = PublicKey {
            algorithm: key.expect(SEQUENCE)?.content,
            bits: key.bytes_of_bit_string()?,
        };
        Some(Certificate {
            signed: signed.whole,
            is_version_1: version == [0],
            issuer,
            validity_s: from_s..=to_s,
            subject,
            key,
            signature_algorithm,
            signature,
            alternative_names: match body.find(|part| part.tag == der::numbered(3)) {
                Some(extensions) => alternative_names(extensions.content)?,
                None => Vec::new(),
            },
        })
    }

    /// The first common name of the subject.
    pub fn common_name(&self) -> Option<&'a [u8]> {
        Der::new(self.subject)
            .filter(|set| set.tag == SET)
            .find_map(|set| {
                let mut attribute = Der::new(set.content).enter(SEQUENCE)?;
                let kind = attribute.expect(OBJECT_IDENTIFIER)?.content;
                let value = attribute.next()?.content;
                (kind == COMMON_NAME).then_some(value)
            })
    }

    /// DNS names and addresses that the subject also has.
    pub fn alternative_names(&self) -> &[AlternativeName<'a>] {
        &self.alternative_names
    }
}

fn alternative_names(extensions: &[u8]) -> Option<Vec<AlternativeName<'_>>> {
    for extension in Der::new(extensions).enter(SEQUENCE)? {
        let mut parts = Der::new(extension.content);
        if parts.expect(OBJECT_IDENTIFIER)?.content == SUBJECT_ALTERNATIVE_NAME {
            // Between them may stand whether it is critical.
            let value = parts.find(|part| part.tag == OCTET_STRING)?;
            let names = Der::new(value.content).enter(SEQUENCE)?;
            return Some(names.filter_map(alternative_name).collect());
        }
    }
    Some(Vec::new())
}

fn alternative_name(element: Element<'_>) -> Option<AlternativeName<'_>> {
    match element.tag {
        0x82 => Some(AlternativeName::Dns(element.content)),
        0x87 => Some(AlternativeName::Address(element.content)),
        _ => None,
    }
}

/// Seconds since 1970 of `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`; what lies before is 0.
fn seconds(time: Element<'_>) -> Option<u64> {
    let text = std::str::from_utf8(time.content).ok()?.strip_suffix('Z')?;
    let (year, rest) = text.split_at_checked(match time.tag {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    })?;
    let year: i64 = year.parse().ok()?;
    let year = match time.tag {
        UTC_TIME if year < 50 => 2000 + year,
        UTC_TIME => 1900 + year,
        _ => year,
    };
    if rest.len() != 10 || !rest.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let pair = |place: usize| rest[2 * place..2 * place + 2].parse::<i64>().ok();
    let days = days_since_1970(year, pair(0)?, pair(1)?);
    let seconds = ((days * 24 + pair(2)?) * 60 + pair(3)?) * 60 + pair(4)?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Of a date of the Gregorian calendar. The year is taken to begin in March, so that the day that
/// leap years have more is the last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month {
        ..=2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days_before_the_month = (153 * month + 2) / 5;
    year * 365 + leap_days + days_before_the_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn its_parts_are_found() {
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.subject_alt_names.extend([
            SanType::Rfc822Name("me@a.example".try_into().unwrap()),
            SanType::IpAddress("127.0.0.1".parse().unwrap()),
        ]);
        params
            .distinguished_name
            .push(DnType::CommonName, "the name");
        params.not_before = rcgen::date_time_ymd(1999, 12, 31);
        params.not_after = rcgen::date_time_ymd(2052, 2, 29);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();

        let certificate = Certificate::parse(made.der()).unwrap();
        assert!(!certificate.is_version_1);
        assert_eq!(certificate.issuer, certificate.subject);
        assert_eq!(certificate.common_name(), Some(&b"the name"[..]));
        assert_eq!(
            certificate.alternative_names(),
            [
                AlternativeName::Dns(b"a.example"),
                AlternativeName::Address(&[127, 0, 0, 1]),
            ]
        );
        assert_eq!(certificate.validity_s, 946_598_400..=2_592_777_600);
        assert_eq!(certificate.key.bits, key.public_key_raw());
    }

    #[test]
    fn times_are_read_as_both_kinds_write_them() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "490101000001Z", Some(2_493_072_001)),
            (UTC_TIME, "500101000000Z", Some(0)),
            (GENERALIZED_TIME, "20000229235959Z", Some(951_868_799)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "00010101000000Z", Some(0)),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "700101000000+0100", None),
            (GENERALIZED_TIME, "2000022923595é", None),
            (INTEGER, "700101000000Z", None),
        ] {
            let content = text.as_bytes();
            let element = Element {
                tag,
                content,
                whole: content,
            };
            assert_eq!(seconds(element), expected, "{text}");
        }
    }

    #[test]
    fn a_cut_or_garbled_certificate_is_refused_without_a_panic() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let der = made.cert.der().to_vec();
        for end in 0..der.len() {
            assert!(Certificate::parse(&der[..end]).is_none(), "cut at {end}");
        }
        for place in 0..der.len() {
            let mut garbled = der.clone();
            garbled[place] ^= 0xff;
            // Many bytes may be anything; that nothing panics is what matters.
            if let Some(certificate) = Certificate::parse(&garbled) {
                certificate.common_name();
            }
        }
    }
}
