//! Password files: lines `host:port:database:user:password`. Finds the password for a host; a file
//! that others may read is not used.

use std::path::Path;

use super::Secret;
use super::environment::Environment;
use super::target::Warning;

/// A login that a password is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'a> {
    /// As the user wrote it, but `localhost` for the default socket directory.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// What is in the file, or why it is passed over. A file that is not there is as good as empty.
pub(super) fn read(path: &Path, environment: &dyn Environment) -> Result<String, Warning> {
    let Some(facts) = environment.file(path) else {
        return Ok(String::new());
    };
    let warning = |problem| Warning::PasswordFile {
        path: path.to_owned(),
        problem,
    };
    if !facts.is_plain {
        return Err(warning("is not a plain file and is not used"));
    }
    if facts.mode & 0o077 != 0 {
        return Err(warning(
            "has group or world access and is not used; permissions should be u=rw (0600) or less",
        ));
    }
    let text = environment
        .read(path)
        .map_err(|_| warning("could not be read"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The password in the first line that fits. An empty one is as good as none.
pub(super) fn find(text: &str, login: &Login<'_>) -> Option<Secret> {
    let password = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| password_in(line, login))?;
    (!password.is_empty()).then(|| Secret::from(password))
}

fn password_in(line: &str, login: &Login<'_>) -> Option<String> {
    let port = login.port.to_string();
    let mut rest = line;
    for wanted in [login.host, &port, login.database, login.user] {
        rest = match rest.strip_prefix("*:") {
            Some(rest) => rest,
            None => {
                let (field, after) = read_field(rest);
                after.filter(|_| field == wanted)?
            }
        };
    }
    Some(read_field(rest).0)
}

/// A field without its escapes, and what follows its colon if there is one. A backslash takes the
/// next character as it is.
fn read_field(text: &str) -> (String, Option<&str>) {
    let mut field = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            ':' => return (field, Some(&text[place + 1..])),
            '\\' => field.push(characters.next().map_or('\\', |(_, escaped)| escaped)),
            other => field.push(other),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: Login<'_> = Login {
        host: "h:1",
        port: 5432,
        database: "d\\b",
        user: "u",
    };

    #[test]
    fn the_first_line_that_fits_gives_the_password() {
        let cases = [
            ("", None),
            ("*:*:*:*:p", Some("p")),
            ("h\\:1:5432:d\\\\b:u:p", Some("p")),
            ("h:1:5432:d\\\\b:u:p", None),
            ("#*:*:*:*:no\n*:*:*:*:p\r\n", Some("p")),
            ("*:1:*:*:no\n*:5432:*:*:p\n*:*:*:*:late", Some("p")),
            ("*:*:*:U:no", None),
            ("*:*:*:*:p\\:w\\\\d\\x:more", Some("p:w\\dx")),
            ("*:*:*:*:ends\\", Some("ends\\")),
            ("*:*:*:*:", None),
            ("*:*:*:*: p ", Some(" p ")),
            ("*:*:*:*", None),
            ("**:*:*:*:p", None),
            (" *:*:*:*:p", None),
            ("*:*:*:uu:p\n*:*:*::p", None),
        ];
        for (text, expected) in cases {
            let found = find(text, &LOGIN);
            assert_eq!(found.as_ref().map(Secret::reveal), expected, "{text:?}");
        }
    }
}
