//! Under which name the program was called. The name decides which options there are and what the
//! output looks like, never how anything is measured.

use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Whom the program takes itself for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Itself, with all that it can do.
    #[default]
    Pgmark,
    /// pgbench, called through a link of that name: its options and its output, nothing of ours.
    Pgbench,
}

impl Program {
    /// By the file name in `argv0`, the first argument of the process.
    pub fn called(argv0: &OsStr) -> Self {
        match Path::new(argv0).file_name() {
            Some(name) if name == Program::Pgbench.name() => Program::Pgbench,
            Some(_) | None => Program::Pgmark,
        }
    }

    /// The name that it goes by in messages and to the server.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Pgmark => "pgmark",
            Program::Pgbench => "pgbench",
        }
    }

    /// The version of pgbench that it behaves like.
    pub const PGBENCH_VERSION: &'static str = "18.0";
}

/// Which pgmark it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// It was built without optimisation, and would measure itself.
    pub debug: bool,
}

impl Build {
    /// This one.
    pub fn own() -> Self {
        Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            debug: cfg!(debug_assertions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_decides() {
        for (argv0, expected) in [
            ("pgbench", Program::Pgbench),
            ("/usr/local/bin/pgbench", Program::Pgbench),
            ("./pgbench", Program::Pgbench),
            ("pgmark", Program::Pgmark),
            ("/opt/pgbench/pgmark", Program::Pgmark),
            ("pgbench-18", Program::Pgmark),
            ("", Program::Pgmark),
        ] {
            assert_eq!(Program::called(OsStr::new(argv0)), expected, "{argv0:?}");
        }
    }
}
