//! Where the PostgreSQL server binaries are: in the directory given, else in PATH, else where
//! distributions install them. Looks at directories only; starts nothing.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Report};

/// What a directory must hold to be of use.
const NEEDED: [&str; 2] = ["initdb", "postgres"];

/// The directory of the server binaries: `given` if there is one, else the first in `path` (as
/// in the environment variable PATH), else the newest below `root`, which is `/` but in tests.
///
/// # Errors
/// [`Error::Environment`] that says what to install.
pub fn find(given: Option<&Path>, path: Option<&OsStr>, root: &Path) -> Result<PathBuf, Error> {
    if let Some(directory) = given {
        return if is_complete(directory) {
            Ok(directory.to_owned())
        } else {
            Err(missing(format!(
                "no PostgreSQL server binaries (initdb, postgres) in \"{}\"",
                directory.display()
            )))
        };
    }
    let in_path = path.into_iter().flat_map(std::env::split_paths);
    in_path
        .chain(installed(root))
        .find(|directory| is_complete(directory))
        .ok_or_else(|| {
            missing("no PostgreSQL server binaries (initdb, postgres) were found".to_owned())
        })
}

/// The first file called `name` in `path`.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

fn is_complete(directory: &Path) -> bool {
    NEEDED.iter().all(|name| directory.join(name).is_file())
}

/// Directories that distributions and `make install` use, newest version first.
fn installed(root: &Path) -> Vec<PathBuf> {
    let debian = children(&root.join("usr/lib/postgresql"), "");
    let red_hat = children(&root.join("usr"), "pgsql-");
    let mut versions: Vec<(Vec<u32>, PathBuf)> = debian.into_iter().chain(red_hat).collect();
    versions.sort_by(|(a, _), (b, _)| b.cmp(a));
    versions
        .into_iter()
        .map(|(_, directory)| directory.join("bin"))
        .chain([root.join("usr/local/pgsql/bin")])
        .collect()
}

/// The children of `parent` whose names are `prefix` and a version number.
fn children(parent: &Path, prefix: &str) -> Vec<(Vec<u32>, PathBuf)> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = version(name.to_str()?.strip_prefix(prefix)?)?;
            Some((version, entry.path()))
        })
        .collect()
}

/// `16` or `9.6` as numbers that compare.
fn version(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

fn missing(message: String) -> Error {
    Error::Environment(Report::new(message).hint(
        "Install the server (Debian, Ubuntu: apt-get install postgresql; \
         Fedora: dnf install postgresql-server), or name the directory with --bindir.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        for name in NEEDED {
            fs::write(directory.join(name), "").unwrap();
        }
    }

    #[test]
    fn a_given_directory_wins_then_path_then_the_newest_version() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let find_in =
            |given: Option<&Path>, path: &Path| find(given, Some(path.as_os_str()), root.path());

        assert!(find_in(None, &at("bin")).is_err());
        install(&at("usr/local/pgsql/bin"));
        assert_eq!(
            find_in(None, &at("bin")).unwrap(),
            at("usr/local/pgsql/bin")
        );
        install(&at("usr/lib/postgresql/9.6/bin"));
        install(&at("usr/lib/postgresql/15/bin"));
        install(&at("usr/pgsql-16/bin"));
        assert_eq!(find_in(None, &at("bin")).unwrap(), at("usr/pgsql-16/bin"));
        fs::create_dir_all(at("usr/lib/postgresql/18/bin")).unwrap();
        fs::write(at("usr/lib/postgresql/18/bin/psql"), "").unwrap();
        assert_eq!(find_in(None, &at("bin")).unwrap(), at("usr/pgsql-16/bin"));
        install(&at("bin"));
        assert_eq!(find_in(None, &at("bin")).unwrap(), at("bin"));
        let given = at("usr/lib/postgresql/15/bin");
        assert_eq!(find_in(Some(&given), &at("bin")).unwrap(), given);
    }

    #[test]
    fn what_is_missing_is_told_with_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let error = find(Some(root.path()), None, root.path()).unwrap_err();
        assert!(error.to_string().contains(&*root.path().to_string_lossy()));
        let hint = error.report().unwrap().hint.clone().unwrap();
        assert!(hint.contains("apt-get install postgresql"), "{hint}");
    }

    #[test]
    fn programs_are_looked_up_in_path() {
        let root = tempfile::tempdir().unwrap();
        install(root.path());
        let path = Some(root.path().as_os_str());
        assert_eq!(
            find_program("initdb", path),
            Some(root.path().join("initdb"))
        );
        assert_eq!(find_program("absent", path), None);
        assert_eq!(find_program("initdb", None), None);
    }
}
