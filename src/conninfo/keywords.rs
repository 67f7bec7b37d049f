//! libpq's connection keywords: which there are, which environment variable stands in for each, and
//! how `keyword=value …` strings are read.
//!
//! A keyword that is not supported is refused and never ignored, wherever it was set, unless its
//! value asks for nothing beyond what is done anyway.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::error::SettingsError;
use super::secret::holds_password;
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
    /// Refused, and its value may be shown; what to do instead.
    No(&'static str),
    /// Refused, and its value stays secret; what to do instead.
    NoSecret(&'static str),
}

const fn row(name: &'static str, variable: Option<&'static str>, support: Support) -> Keyword {
    Keyword {
        name,
        variable,
        support,
    }
}

use Support::{Full, No, NoSecret, Only};

const NO_GSS: &str = "Kerberos (GSSAPI) is not supported; remove the setting.";
const NO_OAUTH: &str = "OAuth is not supported; remove the setting.";

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
    row("hostaddr", Some("PGHOSTADDR"), Full),
    row("service", Some("PGSERVICE"), Full),
    row("passfile", Some("PGPASSFILE"), Full),
    row("sslmode", Some("PGSSLMODE"), Full),
    row("sslnegotiation", Some("PGSSLNEGOTIATION"), Full),
    row("gssencmode", Some("PGGSSENCMODE"), Full),
    row("channel_binding", Some("PGCHANNELBINDING"), Full),
    row("target_session_attrs", Some("PGTARGETSESSIONATTRS"), Full),
    row("load_balance_hosts", Some("PGLOADBALANCEHOSTS"), Full),
    row("min_protocol_version", Some("PGMINPROTOCOLVERSION"), Full),
    row("max_protocol_version", Some("PGMAXPROTOCOLVERSION"), Full),
    row("keepalives", None, Full),
    row("keepalives_idle", None, Full),
    row("keepalives_interval", None, Full),
    row("keepalives_count", None, Full),
    row("tcp_user_timeout", None, Full),
    row("replication", None, Only(&["false", "off", "no", "0"])),
    row(
        "sslcompression",
        Some("PGSSLCOMPRESSION"),
        Only(&["0", "1"]),
    ),
    row("sslcertmode", Some("PGSSLCERTMODE"), Full),
    row("sslsni", Some("PGSSLSNI"), Full),
    row("sslcert", Some("PGSSLCERT"), Full),
    row("sslkey", Some("PGSSLKEY"), Full),
    row(
        "sslpassword",
        None,
        NoSecret(
            "Encrypted client keys are not supported; decrypt the key, say with openssl pkey.",
        ),
    ),
    row("sslrootcert", Some("PGSSLROOTCERT"), Full),
    row("sslcrl", Some("PGSSLCRL"), Full),
    row("sslcrldir", Some("PGSSLCRLDIR"), Full),
    row(
        "sslkeylogfile",
        None,
        No("Session keys are never written to a file; remove the setting."),
    ),
    row(
        "ssl_min_protocol_version",
        Some("PGSSLMINPROTOCOLVERSION"),
        Full,
    ),
    row(
        "ssl_max_protocol_version",
        Some("PGSSLMAXPROTOCOLVERSION"),
        Full,
    ),
    row("requirepeer", Some("PGREQUIREPEER"), Full),
    row("require_auth", Some("PGREQUIREAUTH"), Full),
    row("gssdelegation", Some("PGGSSDELEGATION"), Only(&["0"])),
    row("krbsrvname", Some("PGKRBSRVNAME"), No(NO_GSS)),
    row("gsslib", Some("PGGSSLIB"), No(NO_GSS)),
    row(
        "scram_client_key",
        None,
        NoSecret("Give the password instead."),
    ),
    row(
        "scram_server_key",
        None,
        NoSecret("Give the password instead."),
    ),
    row("oauth_issuer", None, No(NO_OAUTH)),
    row("oauth_client_id", None, No(NO_OAUTH)),
    row("oauth_client_secret", None, NoSecret(NO_OAUTH)),
    row("oauth_scope", None, No(NO_OAUTH)),
];

/// What `sslmode` was in old versions of libpq; translated where connection strings are read.
pub(super) const OLD_TLS_SWITCH: &str = "requiressl";

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A connection string or URI in place of the database name.
    ConnectionString,
    /// An option of the command line.
    CommandLine,
    /// A line of a service file.
    ServiceFile {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::ConnectionString => f.write_str("from the connection string"),
            Origin::CommandLine => f.write_str("from the command line"),
            Origin::ServiceFile { path, line } => {
                write!(f, "from service file \"{}\", line {line}", path.display())
            }
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

    /// Sets a keyword unless it is set, be it to nothing.
    pub(super) fn set_default(&mut self, keyword: &Keyword, value: String, origin: Origin) {
        self.values.entry(keyword.name).or_insert((value, origin));
    }

    /// A keyword's value and origin, also if the value is empty.
    pub(super) fn given(&self, name: &'static str) -> Option<(&str, &Origin)> {
        self.values
            .get(name)
            .map(|(value, origin)| (value.as_str(), origin))
    }

    /// A keyword's value and origin, where empty is as good as absent.
    pub(super) fn setting(&self, name: &'static str) -> Option<(&str, &Origin)> {
        self.given(name).filter(|(value, _)| !value.is_empty())
    }

    /// A keyword's value, where empty is as good as absent.
    pub(super) fn value(&self, name: &'static str) -> Option<&str> {
        self.setting(name).map(|(value, _)| value)
    }

    /// What one of a few words means; `default` if nothing was given.
    pub(super) fn choice<T: Clone>(
        &self,
        name: &'static str,
        choices: &[(&'static str, T)],
        default: T,
    ) -> Result<T, SettingsError> {
        let Some((value, _)) = self.given(name) else {
            return Ok(default);
        };
        choices
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, meaning)| meaning.clone())
            .ok_or_else(|| {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                self.invalid(name, &words)
            })
    }

    /// A whole number in the range of C's `int`, white space around it allowed.
    pub(super) fn integer(&self, name: &'static str) -> Result<Option<i32>, SettingsError> {
        self.given(name)
            .map(|(value, _)| {
                let number = value.trim_matches(is_space).parse();
                number.map_err(|_| self.invalid(name, &[]))
            })
            .transpose()
    }

    /// The error that an element of a keyword's list cannot be what it is.
    pub(super) fn invalid_element(&self, name: &'static str, element: &str) -> SettingsError {
        let (_, origin) = self.given(name).unwrap_or(("", &Origin::CommandLine));
        SettingsError::InvalidValue {
            keyword: name,
            value: element.to_owned(),
            origin: origin.clone(),
            valid: String::new(),
        }
    }

    /// The error that a keyword has a value that it cannot have.
    pub(super) fn invalid(&self, name: &'static str, valid: &[&str]) -> SettingsError {
        let (value, origin) = self.given(name).unwrap_or(("", &Origin::CommandLine));
        SettingsError::InvalidValue {
            keyword: name,
            value: value.to_owned(),
            origin: origin.clone(),
            valid: valid.join(", "),
        }
    }

    /// The error that a keyword has a value that libpq would take.
    pub(super) fn unsupported(&self, name: &'static str, hint: impl Into<String>) -> SettingsError {
        let (value, origin) = self.given(name).unwrap_or(("", &Origin::CommandLine));
        SettingsError::Unsupported {
            keyword: name,
            value: value.to_owned(),
            origin: origin.clone(),
            hint: hint.into(),
        }
    }

    /// An error for a setting that says where to connect as whom, if it looks as if a password were
    /// in it: messages of ours and of the server would show it.
    pub(super) fn refuse_misplaced(&self) -> Result<(), SettingsError> {
        for keyword in ["host", "port", "user", "dbname"] {
            if let Some((value, origin)) = self.setting(keyword)
                && holds_password(value)
            {
                return Err(SettingsError::Misplaced {
                    keyword,
                    origin: origin.clone(),
                });
            }
        }
        Ok(())
    }

    /// An error for the first setting that asks for what cannot be done.
    pub(super) fn refuse_unsupported(&self) -> Result<(), SettingsError> {
        for keyword in KEYWORDS {
            let Some((value, origin)) = self.setting(keyword.name) else {
                continue;
            };
            let (value, hint) = match keyword.support {
                Full => continue,
                Only(harmless) if harmless.contains(&value) => continue,
                Only(harmless) => (value, format!("Supported here: {}.", harmless.join(", "))),
                No(hint) => (value, hint.to_owned()),
                NoSecret(hint) => ("***", hint.to_owned()),
            };
            return Err(SettingsError::Unsupported {
                keyword: keyword.name,
                value: value.to_owned(),
                origin: origin.clone(),
                hint,
            });
        }
        Ok(())
    }
}

/// Reads `keyword=value keyword='quoted value' …`; a backslash takes the next character as it is.
///
/// What stands behind a password and is no setting may be a part of it that should have been
/// quoted: then it is not told.
pub(super) fn parse_keyword_string(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let name_end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (name, after_name) = rest.split_at(name_end);
        let after_password = pairs.last().is_some_and(|(name, _)| name == "password");
        if after_password && name != OLD_TLS_SWITCH && find(name).is_err() {
            return Err(SettingsError::AfterPassword);
        }
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
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

pub(super) fn find(name: &str) -> Result<&'static Keyword, SettingsError> {
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
            (
                "password=two words",
                "what follows the password is no connection option",
            ),
            (
                "password=two wor=ds",
                "what follows the password is no connection option",
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
