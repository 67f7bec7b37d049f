//! libpq's connection keywords: which there are, which environment variable stands in for each, and
//! how `keyword=value …` strings are read.
//!
//! A keyword that is not supported is refused and never ignored, wherever it was set, unless its
//! value asks for nothing beyond what is done anyway.

use std::collections::BTreeMap;
use std::fmt;

use super::error::SettingsError;
use crate::spelling::nearest;

/// A connection keyword.
pub(super) struct Keyword {
    pub(super) name: &'static str,
    pub(super) variable: Option<&'static str>,
    support: Support,
}

/// What is done about a keyword.
enum Support {
    Full,
    /// These values change nothing; any other is refused.
    Only(&'static [&'static str]),
    /// Refused, and its value may be shown.
    No,
    /// Refused, and its value stays secret.
    NoSecret,
}

const fn row(name: &'static str, variable: Option<&'static str>, support: Support) -> Keyword {
    Keyword {
        name,
        variable,
        support,
    }
}

use Support::{Full, No, NoSecret, Only};

/// All keywords of libpq 18.
pub(super) const KEYWORDS: &[Keyword] = &[
    row("host", Some("PGHOST"), Full),
    row("port", Some("PGPORT"), Full),
    row("dbname", Some("PGDATABASE"), Full),
    row("user", Some("PGUSER"), Full),
    row("password", Some("PGPASSWORD"), Full),
    row("options", Some("PGOPTIONS"), Full),
    row("application_name", Some("PGAPPNAME"), Full),
    row("fallback_application_name", None, Full),
    row("connect_timeout", Some("PGCONNECT_TIMEOUT"), Full),
    row("client_encoding", Some("PGCLIENTENCODING"), Full),
    row("hostaddr", Some("PGHOSTADDR"), No),
    row("service", Some("PGSERVICE"), No),
    row("passfile", Some("PGPASSFILE"), No),
    row(
        "sslmode",
        Some("PGSSLMODE"),
        Only(&["disable", "allow", "prefer"]),
    ),
    row(
        "sslnegotiation",
        Some("PGSSLNEGOTIATION"),
        Only(&["postgres"]),
    ),
    row(
        "gssencmode",
        Some("PGGSSENCMODE"),
        Only(&["disable", "prefer"]),
    ),
    row(
        "channel_binding",
        Some("PGCHANNELBINDING"),
        Only(&["disable", "prefer"]),
    ),
    row(
        "target_session_attrs",
        Some("PGTARGETSESSIONATTRS"),
        Only(&["any"]),
    ),
    row(
        "load_balance_hosts",
        Some("PGLOADBALANCEHOSTS"),
        Only(&["disable"]),
    ),
    row(
        "min_protocol_version",
        Some("PGMINPROTOCOLVERSION"),
        Only(&["3.0"]),
    ),
    row(
        "max_protocol_version",
        Some("PGMAXPROTOCOLVERSION"),
        Only(&["3.0", "3.2", "latest"]),
    ),
    row("keepalives", None, Only(&["1"])),
    row("keepalives_idle", None, Only(&["0"])),
    row("keepalives_interval", None, Only(&["0"])),
    row("keepalives_count", None, Only(&["0"])),
    row("tcp_user_timeout", None, Only(&["0"])),
    row("replication", None, Only(&["false", "off", "no", "0"])),
    row("sslcompression", Some("PGSSLCOMPRESSION"), Only(&["0"])),
    row(
        "sslcertmode",
        Some("PGSSLCERTMODE"),
        Only(&["disable", "allow"]),
    ),
    row("sslsni", Some("PGSSLSNI"), Only(&["0", "1"])),
    row("gssdelegation", Some("PGGSSDELEGATION"), Only(&["0"])),
    row("sslcert", Some("PGSSLCERT"), No),
    row("sslkey", Some("PGSSLKEY"), No),
    row("sslpassword", None, NoSecret),
    row("sslrootcert", Some("PGSSLROOTCERT"), No),
    row("sslcrl", Some("PGSSLCRL"), No),
    row("sslcrldir", Some("PGSSLCRLDIR"), No),
    row("sslkeylogfile", None, No),
    row(
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        No,
    ),
    row(
        "ssl_max_protocol_version",
        Some("PGSSLMAXPROTOCOLVERSION"),
        No,
    ),
    row("requirepeer", Some("PGREQUIREPEER"), No),
    row("require_auth", Some("PGREQUIREAUTH"), No),
    row("krbsrvname", Some("PGKRBSRVNAME"), No),
    row("gsslib", Some("PGGSSLIB"), No),
    row("scram_client_key", None, NoSecret),
    row("scram_server_key", None, NoSecret),
    row("oauth_issuer", None, No),
    row("oauth_client_id", None, No),
    row("oauth_client_secret", None, NoSecret),
    row("oauth_scope", None, No),
];

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A connection string or URI in place of the database name.
    ConnectionString,
    /// An option of the command line.
    CommandLine,
    /// An environment variable.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::ConnectionString => f.write_str("from the connection string"),
            Origin::CommandLine => f.write_str("from the command line"),
            Origin::Variable(name) => write!(f, "from environment variable {name}"),
        }
    }
}

/// Values by keyword.
#[derive(Default)]
pub(super) struct Settings {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Settings {
    /// Sets a keyword, whatever it was before.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: String,
        origin: Origin,
    ) -> Result<(), SettingsError> {
        let keyword = find(name)?;
        self.values.insert(keyword.name, (value, origin));
        Ok(())
    }

    /// Sets a keyword unless it is set.
    pub(super) fn set_default(&mut self, keyword: &Keyword, value: String, origin: Origin) {
        self.values.entry(keyword.name).or_insert((value, origin));
    }

    /// A keyword's value and origin. Empty is as good as absent.
    pub(super) fn setting(&self, name: &'static str) -> Option<(&str, Origin)> {
        self.values
            .get(name)
            .map(|(value, origin)| (value.as_str(), *origin))
            .filter(|(value, _)| !value.is_empty())
    }

    /// A keyword's value. Empty is as good as absent.
    pub(super) fn value(&self, name: &'static str) -> Option<&str> {
        self.setting(name).map(|(value, _)| value)
    }

    /// An error for the first setting that asks for what cannot be done.
    pub(super) fn refuse_unsupported(&self) -> Result<(), SettingsError> {
        for keyword in KEYWORDS {
            let Some((value, origin)) = self.setting(keyword.name) else {
                continue;
            };
            let (shown, supported): (_, &[&str]) = match keyword.support {
                Full => continue,
                Only(harmless) if harmless.contains(&value) => continue,
                Only(harmless) => (value, harmless),
                No => (value, &[]),
                NoSecret => ("***", &[]),
            };
            return Err(SettingsError::Unsupported {
                keyword: keyword.name,
                value: shown.to_owned(),
                origin,
                supported,
            });
        }
        Ok(())
    }
}

/// Reads `keyword=value keyword='quoted value' …`; a backslash takes the next character as it is.
pub(super) fn parse_keyword_string(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let name_end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (name, after_name) = rest.split_at(name_end);
        let value = after_name
            .trim_start_matches(is_space)
            .strip_prefix('=')
            .ok_or_else(|| SettingsError::KeywordString {
                problem: format!("missing \"=\" after \"{name}\""),
            })?;
        let (value, after_value) = read_value(value.trim_start_matches(is_space))?;
        pairs.push((name.to_owned(), value));
        rest = after_value.trim_start_matches(is_space);
    }
    Ok(pairs)
}

/// One value, and what follows it.
fn read_value(text: &str) -> Result<(String, &str), SettingsError> {
    let quoted = text.starts_with('\'');
    let text = if quoted { &text[1..] } else { text };
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[place + 1..])),
            space if !quoted && is_space(space) => return Ok((value, &text[place..])),
            other => value.push(other),
        }
    }
    if quoted {
        let problem = "unterminated quoted string".to_owned();
        return Err(SettingsError::KeywordString { problem });
    }
    Ok((value, ""))
}

/// White space as C's `isspace` sees it in the C locale.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn find(name: &str) -> Result<&'static Keyword, SettingsError> {
    KEYWORDS
        .iter()
        .find(|keyword| keyword.name == name)
        .ok_or_else(|| SettingsError::UnknownKeyword {
            keyword: name.to_owned(),
            nearest: nearest(name.as_bytes(), KEYWORDS.iter().map(|keyword| keyword.name)),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keyword_strings_are_read_as_libpq_reads_them() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("", &[]),
            ("  \t\n", &[]),
            ("host=a", &[("host", "a")]),
            ("host = a  port= 1", &[("host", "a"), ("port", "1")]),
            ("host=", &[("host", "")]),
            ("host= port=1", &[("host", "port=1")]),
            ("host='' port=1", &[("host", ""), ("port", "1")]),
            ("password='a b\\'c\\\\d'", &[("password", "a b'c\\d")]),
            ("password=a\\ b\\'c", &[("password", "a b'c")]),
            ("password=a'b", &[("password", "a'b")]),
            ("password=ends\\", &[("password", "ends")]),
            ("host='a'port=1", &[("host", "a"), ("port", "1")]),
            ("user=é\x0bdbname=ü", &[("user", "é"), ("dbname", "ü")]),
            ("host=a host=b", &[("host", "a"), ("host", "b")]),
            ("options='-c a=b'", &[("options", "-c a=b")]),
        ];
        for (text, expected) in cases {
            let pairs = parse_keyword_string(text).expect(text);
            let pairs: Vec<(&str, &str)> = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(&pairs, expected, "{text:?}");
        }
    }

    #[test]
    fn broken_keyword_strings_say_what_is_missing() {
        for (text, message) in [
            (
                "host",
                "missing \"=\" after \"host\" in connection info string",
            ),
            (
                "host a=b",
                "missing \"=\" after \"host\" in connection info string",
            ),
            (
                "host='a",
                "unterminated quoted string in connection info string",
            ),
            (
                "host='a\\'",
                "unterminated quoted string in connection info string",
            ),
        ] {
            let error = parse_keyword_string(text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn unknown_keywords_get_the_nearest_name() {
        let error = find("sslmod").err();
        let expected = SettingsError::UnknownKeyword {
            keyword: "sslmod".to_owned(),
            nearest: Some("sslmode"),
        };
        assert_eq!(error, Some(expected));
    }

    #[test]
    fn no_keyword_and_no_variable_stands_twice() {
        let mut names: Vec<&str> = KEYWORDS.iter().map(|keyword| keyword.name).collect();
        names.extend(KEYWORDS.iter().filter_map(|keyword| keyword.variable));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    proptest! {
        #[test]
        fn any_value_survives_quoting(value in "\\PC*") {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            let pairs = parse_keyword_string(&format!("password='{quoted}' port=1")).unwrap();
            prop_assert_eq!(&pairs[0].1, &value);
            prop_assert_eq!(&pairs[1].1, "1");
        }

        #[test]
        fn any_text_does_no_harm(text in "[a-z='\\\\ é]*") {
            let _ = parse_keyword_string(&text);
        }
    }
}
