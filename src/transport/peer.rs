//! Who runs the server behind a Unix-domain socket (`requirepeer`).

use std::os::fd::AsFd;

use crate::conninfo::AttemptFailure;
use crate::error::system_words;
use crate::users;

/// Checks that it is the user `required`.
///
/// # Errors
/// It is somebody else, or the system does not tell.
pub fn check(socket: &impl AsFd, required: &str) -> Result<(), AttemptFailure> {
    let peer = rustix::net::sockopt::socket_peercred(socket)
        .map_err(|error| AttemptFailure::Unreachable(system_words(&error.into())))?;
    let uid = peer.uid.as_raw();
    let user = users::all().into_iter().find(|user| user.uid == uid);
    let name = user.map_or_else(|| format!("with number {uid}"), |user| user.name);
    match name == required {
        true => Ok(()),
        false => Err(AttemptFailure::Unacceptable(format!(
            "requirepeer specifies \"{required}\", but actual peer user name is \"{name}\""
        ))),
    }
}
