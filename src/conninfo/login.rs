//! Settings about the login: what the server may ask for, and which version of the protocol.

use super::error::SettingsError;
use super::keywords::Settings;
use super::target::{
    AuthenticationMethod, ChannelBindingMode, LoginSettings, ProtocolVersion,
    RequiredAuthentication,
};

pub(super) fn login_settings(settings: &Settings) -> Result<LoginSettings, SettingsError> {
    refuse_gss(settings)?;
    Ok(LoginSettings {
        channel_binding: settings.choice(
            "channel_binding",
            &[
                ("disable", ChannelBindingMode::Disable),
                ("prefer", ChannelBindingMode::Prefer),
                ("require", ChannelBindingMode::Require),
            ],
            ChannelBindingMode::default(),
        )?,
        required: settings
            .value("require_auth")
            .map(|text| required_authentication(text, settings))
            .transpose()?,
        required_peer: settings.value("requirepeer").map(str::to_owned),
    })
}

/// Encryption by GSSAPI is not done, so that preferring it changes nothing.
fn refuse_gss(settings: &Settings) -> Result<(), SettingsError> {
    let choices = [("disable", true), ("prefer", true), ("require", false)];
    match settings.choice("gssencmode", &choices, true)? {
        true => Ok(()),
        false => Err(settings.unsupported("gssencmode", "Supported here: disable, prefer.")),
    }
}

/// Names separated by commas, either all or none of them with `!` before it, and none twice.
fn required_authentication(
    text: &str,
    settings: &Settings,
) -> Result<RequiredAuthentication, SettingsError> {
    let forbidden = text.starts_with('!');
    let mut methods = Vec::new();
    for written in text.split(',') {
        let complain = |problem| {
            Err(SettingsError::RequireAuth {
                method: written.to_owned(),
                problem,
            })
        };
        let name = written.strip_prefix('!');
        if name.is_some() != forbidden {
            return complain(match forbidden {
                true => "cannot be mixed with negative methods",
                false => "is negative and cannot be mixed with others",
            });
        }
        let name = name.unwrap_or(written);
        let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) else {
            let names = METHODS.map(|(name, _)| name);
            return Err(settings.invalid("require_auth", &names));
        };
        if methods.contains(method) {
            return complain("is specified more than once");
        }
        methods.push(*method);
    }
    Ok(RequiredAuthentication {
        text: text.to_owned(),
        methods,
        forbidden,
    })
}

const METHODS: [(&str, AuthenticationMethod); 7] = [
    ("password", AuthenticationMethod::Password),
    ("md5", AuthenticationMethod::Md5),
    ("gss", AuthenticationMethod::Gss),
    ("sspi", AuthenticationMethod::Sspi),
    ("scram-sha-256", AuthenticationMethod::ScramSha256),
    ("oauth", AuthenticationMethod::Oauth),
    ("none", AuthenticationMethod::None),
];

/// The oldest and the newest version of the protocol that will do.
pub(super) fn protocol_versions(
    settings: &Settings,
) -> Result<(ProtocolVersion, ProtocolVersion), SettingsError> {
    let choices = [
        ("3.0", ProtocolVersion::V3_0),
        ("3.2", ProtocolVersion::V3_2),
        ("latest", ProtocolVersion::V3_2),
    ];
    let oldest = settings.choice("min_protocol_version", &choices, ProtocolVersion::V3_0)?;
    // Who needs a newer version asks for it by that.
    let newest = settings.choice("max_protocol_version", &choices, oldest)?;
    if oldest > newest {
        let problem = "min_protocol_version is greater than max_protocol_version";
        return Err(SettingsError::Conflict(problem.to_owned()));
    }
    Ok((oldest, newest))
}
