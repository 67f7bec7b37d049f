//! Whether the way to log in that a server chooses is one that the user allows (`require_auth`,
//! `channel_binding`). Looked at before anything secret is sent, and again when the server lets us in.
//!
//! Knows methods, not how they are carried out.

use crate::conninfo::{AuthenticationMethod, ChannelBindingMode, LoginSettings};

use super::error::ProtocolError;

/// What the user allows.
pub(super) struct Policy {
    settings: LoginSettings,
    /// The server has asked for something that is allowed.
    asked: bool,
    /// What was asked for is bound to the connection below.
    bound: bool,
}

impl Policy {
    pub(super) fn new(settings: &LoginSettings) -> Self {
        Policy {
            settings: settings.clone(),
            asked: false,
            bound: false,
        }
    }

    pub(super) fn channel_binding(&self) -> ChannelBindingMode {
        self.settings.channel_binding
    }

    /// The server asks for `method`.
    ///
    /// # Errors
    /// It is one that must not be used, or one that cannot be bound where that is required.
    pub(super) fn admit(&mut self, method: AuthenticationMethod) -> Result<(), ProtocolError> {
        self.check_method(method, || {
            format!("server requested {}", description(method))
        })?;
        let binds = matches!(method, AuthenticationMethod::ScramSha256);
        if self.requires_binding() && !binds {
            return Err(ProtocolError::ChannelBinding(
                "the server's way of authenticating does not support it",
            ));
        }
        self.asked = true;
        Ok(())
    }

    /// The exchange that was admitted is bound to the connection.
    pub(super) fn note_bound(&mut self) {
        self.bound = true;
    }

    /// The server lets us in.
    ///
    /// # Errors
    /// It has not asked for anything where it has to, or nothing was bound.
    pub(super) fn check_welcome(&self) -> Result<(), ProtocolError> {
        if !self.asked {
            let reason = || "server did not complete authentication".to_owned();
            self.check_method(AuthenticationMethod::None, reason)?;
        }
        if self.requires_binding() && !self.bound {
            return Err(ProtocolError::ChannelBinding(
                "the server authenticated us without it",
            ));
        }
        Ok(())
    }

    fn requires_binding(&self) -> bool {
        self.settings.channel_binding == ChannelBindingMode::Require
    }

    fn check_method(
        &self,
        method: AuthenticationMethod,
        reason: impl FnOnce() -> String,
    ) -> Result<(), ProtocolError> {
        let Some(required) = &self.settings.required else {
            return Ok(());
        };
        if required.methods.contains(&method) != required.forbidden {
            return Ok(());
        }
        Err(ProtocolError::AuthenticationRequirement {
            requirement: required.text.clone(),
            reason: reason(),
        })
    }
}

/// A method as it is told in an error.
fn description(method: AuthenticationMethod) -> &'static str {
    match method {
        AuthenticationMethod::Password => "a cleartext password",
        AuthenticationMethod::Md5 => "a hashed password",
        AuthenticationMethod::Gss => "GSSAPI authentication",
        AuthenticationMethod::Sspi => "SSPI authentication",
        AuthenticationMethod::ScramSha256 => "SCRAM-SHA-256 authentication",
        AuthenticationMethod::Oauth => "OAuth authentication",
        AuthenticationMethod::None => "no authentication",
    }
}
