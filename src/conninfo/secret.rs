//! Text that must not be seen: a password. It is shown only by whoever asks for it by name.

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
}
