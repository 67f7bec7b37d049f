//! `client_encoding=auto`: the server's name for the encoding that the locale uses.

use super::environment::Environment;

/// Names of encodings in locales, in small letters and digits alone, with the server's names.
const ENCODINGS: [(&str, &str); 23] = [
    ("utf8", "UTF8"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88595", "ISO_8859_5"),
    ("iso88596", "ISO_8859_6"),
    ("iso88597", "ISO_8859_7"),
    ("iso88598", "ISO_8859_8"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("koi8r", "KOI8R"),
    ("koi8u", "KOI8U"),
    ("cp1251", "WIN1251"),
    ("cp1255", "WIN1255"),
    ("euckr", "EUC_KR"),
    ("eucjp", "EUC_JP"),
    ("gb18030", "GB18030"),
    ("big5", "BIG5"),
];

/// The encoding of the locale; `None` if the server has no name for it or it is not known.
pub(super) fn of_locale(environment: &dyn Environment) -> Option<&'static str> {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| environment.variable(name))
        .find(|value| !value.is_empty())
        .map_or_else(
            || "C".to_owned(),
            |value| value.to_string_lossy().into_owned(),
        );
    if locale == "C" || locale == "POSIX" {
        return Some("SQL_ASCII");
    }
    let (_, encoding) = locale.split_once('.')?;
    let encoding = encoding.split('@').next()?.to_ascii_lowercase();
    let plain: String = encoding
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    ENCODINGS
        .iter()
        .find(|(name, _)| *name == plain)
        .map(|(_, server)| *server)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;

    struct Locale(&'static [(&'static str, &'static str)]);

    impl Environment for Locale {
        fn variable(&self, name: &str) -> Option<OsString> {
            let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
            Some(value.into())
        }

        fn user_name(&self) -> Result<String, String> {
            Err("nobody asks".to_owned())
        }

        fn has_directory(&self, _: &Path) -> bool {
            false
        }
    }

    #[test]
    fn the_locale_names_the_encoding() {
        for (variables, expected) in [
            (&[][..], Some("SQL_ASCII")),
            (&[("LANG", "POSIX")], Some("SQL_ASCII")),
            (&[("LANG", "de_DE.UTF-8")], Some("UTF8")),
            (
                &[("LANG", "C.utf8"), ("LC_CTYPE", "de_DE.ISO-8859-15@euro")],
                Some("LATIN9"),
            ),
            (&[("LC_ALL", ""), ("LANG", "ja_JP.eucJP")], Some("EUC_JP")),
            (
                &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")],
                Some("SQL_ASCII"),
            ),
            (&[("LANG", "de_DE")], None),
            (&[("LANG", "x.unheard-of")], None),
        ] {
            assert_eq!(of_locale(&Locale(variables)), expected, "{variables:?}");
        }
    }
}
