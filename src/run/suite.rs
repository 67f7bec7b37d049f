//! Where the file lies that Makefiles of suites include.

use std::path::{Path, PathBuf};

use crate::error::{Error, Report};

/// Places of it, seen from the directory of the program: after an installation, and in a source tree
/// (`target/release`).
const PLACES: [&str; 2] = ["../share/pgmark/suite.mk", "../../scripts/suite/suite.mk"];

/// Its path, in a line.
///
/// # Errors
/// [`Error::Environment`] if it is nowhere.
pub(super) fn makefile() -> Result<String, Error> {
    let program = std::env::current_exe().map_err(|source| {
        Error::Environment(Report::new(format!(
            "cannot tell where this program lies: {source}"
        )))
    })?;
    // A link to the program lies elsewhere than its files.
    let program = program.canonicalize().unwrap_or(program);
    let directory = program.parent().unwrap_or(Path::new("."));
    let found = PLACES
        .iter()
        .filter_map(|place| directory.join(place).canonicalize().ok())
        .next();
    found
        .map(|path: PathBuf| format!("{}\n", path.display()))
        .ok_or_else(|| {
            Error::Environment(
                Report::new(format!(
                    "there is no suite.mk beside \"{}\"",
                    program.display()
                ))
                .hint("\"make install\" puts it below the same prefix, into share/pgmark."),
            )
        })
}
