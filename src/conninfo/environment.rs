//! What a target depends on besides what was typed: variables, the user, default places. Behind a
//! trait, so that tests bring their own.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::users;

/// The surroundings of the program.
pub trait Environment {
    /// Value of an environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// Name of the user whose rights the process has.
    ///
    /// # Errors
    /// Why it cannot be told.
    fn user_name(&self) -> Result<String, String>;

    /// Whether there is such a directory.
    fn has_directory(&self, path: &Path) -> bool;
}

/// The real surroundings.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn user_name(&self) -> Result<String, String> {
        let id = rustix::process::geteuid().as_raw();
        users::all()
            .into_iter()
            .find(|user| user.uid == id)
            .map(|user| user.name)
            .or_else(ask_id)
            .ok_or_else(|| format!("local user with ID {id} does not exist"))
    }

    fn has_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }
}

/// The name as the system's `id` knows it: accounts may live in a directory service.
fn ask_id() -> Option<String> {
    let output = Command::new("id").arg("-un").output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_a_user() {
        let name = ProcessEnvironment.user_name();
        assert_eq!(name.ok(), ask_id());
    }
}
