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
