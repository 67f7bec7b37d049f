//! Settings of a connection that are understood and that no client heeds yet. Such a setting is
//! refused and never ignored: somebody counts on it. Whoever makes connections heed one takes its
//! line away.

use crate::conninfo::{ChannelBindingMode, SessionAttributes, SslMode, Target};
use crate::error::{Error, Report};

/// Refuses a target that asks for more than connections do.
pub(super) fn refuse(target: &Target) -> Result<(), Error> {
    let login = &target.login;
    let unheeded = [
        ("sslmode", target.tls.mode >= SslMode::Require),
        (
            "channel_binding",
            login.channel_binding == ChannelBindingMode::Require,
        ),
        ("require_auth", login.required.is_some()),
        ("requirepeer", login.required_peer.is_some()),
        (
            "target_session_attrs",
            target.session_attributes != SessionAttributes::Any,
        ),
    ];
    match unheeded.iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((keyword, _)) => Err(Error::Usage(
            Report::new(format!("this value of {keyword} is not supported yet"))
                .hint("Remove the setting, or use its default."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_asks_for_more_is_refused() {
        let plain = || Target::plain(Vec::new(), "me", "d");
        assert!(refuse(&plain()).is_ok());
        let mut strict = plain();
        strict.tls.mode = SslMode::Require;
        let mut choosy = plain();
        choosy.session_attributes = SessionAttributes::Primary;
        let mut bound = plain();
        bound.login.channel_binding = ChannelBindingMode::Require;
        for (target, keyword) in [
            (strict, "sslmode"),
            (choosy, "target_session_attrs"),
            (bound, "channel_binding"),
        ] {
            let message = refuse(&target).map_err(|error| error.to_string());
            let expected = format!("this value of {keyword} is not supported yet");
            assert_eq!(message, Err(expected));
        }
    }
}
