//! What a target depends on besides what was typed: variables, the user, default places. Behind a
//! trait, so that tests bring their own.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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

    /// The user's own directory, where settings of libpq lie by default.
    fn home_directory(&self) -> Option<PathBuf> {
        None
    }

    /// What the system says about a file, links followed; `None` if there is none.
    fn file(&self, path: &Path) -> Option<FileFacts> {
        let _ = path;
        None
    }

    /// What is in a file.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let _ = path;
        Err(io::ErrorKind::NotFound.into())
    }
}

/// What decides whether a file with secrets may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// It is a file with contents: no directory, no device, no pipe.
    pub is_plain: bool,
    /// Whether it belongs to the superuser.
    pub is_of_root: bool,
    /// Its permission bits, at most 0o7777.
    pub mode: u32,
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

    /// `HOME` goes before what the system knows, as in libpq since 15.
    fn home_directory(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
    }

    fn file(&self, path: &Path) -> Option<FileFacts> {
        let facts = std::fs::metadata(path).ok()?;
        Some(FileFacts {
            is_plain: facts.is_file(),
            is_of_root: facts.uid() == 0,
            mode: facts.mode() & 0o7777,
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
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
