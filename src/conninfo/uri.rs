//! Reads connection URIs as libpq does: `postgresql://user:password@host:port,…/database?key=value`.
//! What the keys mean is decided elsewhere.

use super::error::SettingsError;
use super::keywords;

const PREFIXES: [&str; 2] = ["postgresql://", "postgres://"];

/// Whether a database name is a URI instead.
pub(super) fn is_uri(text: &str) -> bool {
    strip_prefix(text).is_some()
}

/// Whether it is a URI of something else, or of a misspelt scheme.
pub(super) fn is_foreign(text: &str) -> bool {
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    !is_uri(text) && scheme.is_some_and(|scheme| scheme.chars().all(of_scheme))
}

/// Keywords and values in a URI. Parts that are left out or empty do not appear.
pub(super) fn parse_uri(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let rest = strip_prefix(text).ok_or_else(|| problem("no postgresql:// at the beginning"))?;
    let mut pairs = Vec::new();
    let rest = read_user(rest, &mut pairs)?;
    let rest = read_hosts(rest, &mut pairs)?;
    refuse_cut_password(rest, &pairs)?;
    let (database, parameters) = split_once_or_all(rest, '?');
    if let Some(database) = database.strip_prefix('/') {
        push_given("dbname", database, &mut pairs)?;
    }
    for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
        let after_password = pairs.last().is_some_and(|(name, _)| name == "password");
        let is_setting = |parameter| {
            read_parameter(parameter).is_ok_and(|(name, _)| keywords::find(&name).is_ok())
        };
        if after_password && !is_setting(parameter) {
            return Err(SettingsError::AfterPassword);
        }
        pairs.push(read_parameter(parameter)?);
    }
    Ok(pairs)
}

fn strip_prefix(text: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// `user:password@`, if it is there.
fn read_user<'t>(
    text: &'t str,
    pairs: &mut Vec<(String, String)>,
) -> Result<&'t str, SettingsError> {
    let end = text.find(['@', '/']).unwrap_or(text.len());
    let Some(rest) = text[end..].strip_prefix('@') else {
        return Ok(text);
    };
    let (user, password) = split_once_or_all(&text[..end], ':');
    push_given("user", user, pairs)?;
    push_given("password", password, pairs)?;
    Ok(rest)
}

/// `host:port,host:port,…` up to the database or the parameters.
fn read_hosts<'t>(
    text: &'t str,
    pairs: &mut Vec<(String, String)>,
) -> Result<&'t str, SettingsError> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (host, after_host) = read_host(rest)?;
        let (port, after_port) = match after_host.strip_prefix(':') {
            Some(port) => port.split_at(port.find([',', '/', '?']).unwrap_or(port.len())),
            None => ("", after_host),
        };
        hosts.push(host);
        ports.push(port);
        match after_port.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                rest = after_port;
                break;
            }
        }
    }
    push_given("host", &hosts.join(","), pairs)?;
    push_given("port", &ports.join(","), pairs)?;
    Ok(rest)
}

/// A password with a sign of the URI in it is taken for something else, which a later message would
/// show. That never works, so it is told here, without it.
fn refuse_cut_password(rest: &str, pairs: &[(String, String)]) -> Result<(), SettingsError> {
    let is_cut = |(name, value): &(String, String)| match name.as_str() {
        "host" => value.find('@').is_some_and(|place| place > 0),
        "port" => rest.contains('@') && value.contains(|c: char| c != ',' && !c.is_ascii_digit()),
        _ => false,
    };
    match pairs.iter().any(is_cut) {
        true => Err(problem(
            "\"@\" where none belongs (in a password write %40 for it, %2F for \"/\" and %3A for \":\")",
        )),
        false => Ok(()),
    }
}

/// A host name, an encoded socket directory, or an IPv6 address in brackets; and what follows it.
fn read_host(text: &str) -> Result<(&str, &str), SettingsError> {
    let Some(address) = text.strip_prefix('[') else {
        return Ok(text.split_at(text.find([':', ',', '/', '?']).unwrap_or(text.len())));
    };
    let (address, rest) = address
        .split_once(']')
        .ok_or_else(|| problem("missing \"]\" after an IPv6 host address"))?;
    if address.is_empty() {
        return Err(problem("empty IPv6 host address"));
    }
    match rest.chars().next() {
        None | Some(':' | ',' | '/' | '?') => Ok((address, rest)),
        Some(other) => Err(problem(format!(
            "unexpected character \"{other}\" after an IPv6 host address"
        ))),
    }
}

/// One `key=value` of the parameters; `ssl=true` is how JDBC says `sslmode=require`.
fn read_parameter(text: &str) -> Result<(String, String), SettingsError> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| problem(format!("missing \"=\" in query parameter \"{text}\"")))?;
    if value.contains('=') {
        return Err(problem(format!("extra \"=\" in query parameter \"{key}\"")));
    }
    match (decode(key)?.as_str(), decode(value)?.as_str()) {
        ("ssl", "true") => Ok(("sslmode".to_owned(), "require".to_owned())),
        (key, value) => Ok((key.to_owned(), value.to_owned())),
    }
}

fn push_given(
    keyword: &str,
    encoded: &str,
    pairs: &mut Vec<(String, String)>,
) -> Result<(), SettingsError> {
    if !encoded.is_empty() {
        pairs.push((keyword.to_owned(), decode(encoded)?));
    }
    Ok(())
}

/// Replaces `%XX` by the byte that it stands for.
fn decode(text: &str) -> Result<String, SettingsError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let byte = tail
            .first_chunk()
            .and_then(|[high, low]| Some(hex_digit(*high)? << 4 | hex_digit(*low)?))
            .ok_or_else(|| problem("invalid percent-encoded character"))?;
        if byte == 0 {
            return Err(problem("forbidden value %00"));
        }
        bytes.push(byte);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| problem("percent-encoded text that is not UTF-8"))
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

fn split_once_or_all(text: &str, separator: char) -> (&str, &str) {
    text.split_once(separator).unwrap_or((text, ""))
}

fn problem(problem: impl Into<String>) -> SettingsError {
    SettingsError::Uri {
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uris_are_read_as_libpq_reads_them() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("postgresql://", &[]),
            ("postgres://host", &[("host", "host")]),
            ("postgresql:///db", &[("dbname", "db")]),
            ("postgresql://host/", &[("host", "host")]),
            (
                "postgresql://:5433/db",
                &[("port", "5433"), ("dbname", "db")],
            ),
            (
                "postgresql://u:p@h:1/d",
                &[
                    ("user", "u"),
                    ("password", "p"),
                    ("host", "h"),
                    ("port", "1"),
                    ("dbname", "d"),
                ],
            ),
            ("postgresql://u:@h", &[("user", "u"), ("host", "h")]),
            ("postgresql://:p@h", &[("password", "p"), ("host", "h")]),
            (
                "postgresql://u%40x:p%3aw%2F@h",
                &[("user", "u@x"), ("password", "p:w/"), ("host", "h")],
            ),
            (
                "postgresql://a:1,b,c:3/d",
                &[("host", "a,b,c"), ("port", "1,,3"), ("dbname", "d")],
            ),
            (
                "postgresql://a,b/d",
                &[("host", "a,b"), ("port", ","), ("dbname", "d")],
            ),
            (
                "postgresql://[::1]:5433/d",
                &[("host", "::1"), ("port", "5433"), ("dbname", "d")],
            ),
            (
                "postgresql://[fe80::1%25eth0],b",
                &[("host", "fe80::1%eth0,b"), ("port", ",")],
            ),
            (
                "postgresql://%2Ftmp%2Fdir/d",
                &[("host", "/tmp/dir"), ("dbname", "d")],
            ),
            (
                "postgresql:///d?host=/tmp&port=1",
                &[("dbname", "d"), ("host", "/tmp"), ("port", "1")],
            ),
            ("postgresql://h?user=u", &[("host", "h"), ("user", "u")]),
            ("postgresql://h/?user=", &[("host", "h"), ("user", "")]),
            (
                "postgresql://h/d?ssl=true",
                &[("host", "h"), ("dbname", "d"), ("sslmode", "require")],
            ),
            (
                "postgresql://h/d?options=-c%20a%3Db",
                &[("host", "h"), ("dbname", "d"), ("options", "-c a=b")],
            ),
            (
                "postgresql://h/d/e@f",
                &[("host", "h"), ("dbname", "d/e@f")],
            ),
        ];
        for (text, expected) in cases {
            let pairs = parse_uri(text).expect(text);
            let pairs: Vec<(&str, &str)> = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(&pairs, expected, "{text:?}");
        }
    }

    #[test]
    fn broken_uris_say_what_is_wrong() {
        for (text, message) in [
            (
                "postgresql://[::1",
                "missing \"]\" after an IPv6 host address in connection URI",
            ),
            (
                "postgresql://[]",
                "empty IPv6 host address in connection URI",
            ),
            (
                "postgresql://[::1]x",
                "unexpected character \"x\" after an IPv6 host address in connection URI",
            ),
            (
                "postgresql://h?user",
                "missing \"=\" in query parameter \"user\" in connection URI",
            ),
            (
                "postgresql://h?a=b=c",
                "extra \"=\" in query parameter \"a\" in connection URI",
            ),
            (
                "postgresql://h%2",
                "invalid percent-encoded character in connection URI",
            ),
            (
                "postgresql://h%zz",
                "invalid percent-encoded character in connection URI",
            ),
            (
                "postgresql://h%+1",
                "invalid percent-encoded character in connection URI",
            ),
            ("postgresql://h%00", "forbidden value %00 in connection URI"),
            (
                "postgresql://h%ff",
                "percent-encoded text that is not UTF-8 in connection URI",
            ),
        ] {
            assert_eq!(parse_uri(text).expect_err(text).to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn any_text_does_no_harm(text in "[a-zé:/?@,=&%0-9\\[\\]]*") {
            let _ = parse_uri(&format!("postgres://{text}"));
        }
    }
}
