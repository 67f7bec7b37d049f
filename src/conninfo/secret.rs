//! Text that must not be seen: a password. It is shown only by whoever asks for it by name, and no
//! message repeats what may hold one.

/// A password. Its debug output hides it, and it cannot be displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the server alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret(text.to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret(text)
    }
}

/// Whether a text looks like a connection string with a password in it: one that somebody gave where
/// none is read, so that no message may repeat it.
pub fn holds_password(text: &str) -> bool {
    let names_one = || {
        let text = text.to_ascii_lowercase();
        let mut after = text.split("password").skip(1);
        after.any(|rest| rest.trim_start().starts_with('='))
    };
    let has_one = || {
        let login = text
            .split_once("://")
            .and_then(|(_, rest)| rest.rsplit_once('@'));
        login.is_some_and(|(login, _)| login.contains(':'))
    };
    names_one() || has_one()
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_asking_by_name_shows_it() {
        let secret = Secret::from("hush");
        assert_eq!(secret.reveal(), "hush");
        assert_eq!(format!("{:?}", Some(secret)), "Some(***)");
    }

    #[test]
    fn what_looks_like_a_connection_string_with_a_password_is_known() {
        for text in [
            "postgres://u:hush@h/d",
            "postgre://u:hu@sh@h",
            "mysql://u:hush@h?x=y",
            "host=h password=hush",
            "PASSWORD = 'hush'",
            "sslpassword=hush",
            "jdbc:postgresql://h/d?user=u&password=hush",
        ] {
            assert!(holds_password(text), "{text}");
        }
        for text in [
            "",
            "d",
            "password",
            "u@h:1",
            "postgres://u@h:1/d",
            "passfile=f",
            "a://b:c",
        ] {
            assert!(!holds_password(text), "{text}");
        }
    }
}
