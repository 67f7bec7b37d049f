//! Which file a name leads to, so that nothing is written over what is read, and no two things into one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::archive::resolved;
use crate::error::{Error, Report};

/// Which file a name leads to.
#[derive(PartialEq, Eq)]
pub(super) enum FileIdentity {
    /// One that is there: device and inode.
    Existing(u64, u64),
    /// One that is not: its directory as it really is, and its name.
    New(PathBuf),
    /// A device or a pipe, which several may write to.
    Shared,
}

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(facts) if facts.is_file() => FileIdentity::Existing(facts.dev(), facts.ino()),
            Ok(_) => FileIdentity::Shared,
            Err(_) => {
                let target = resolved(path).unwrap_or_else(|_| path.to_owned());
                let directory = target
                    .parent()
                    .filter(|parent| !parent.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new("."));
                let real = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
                FileIdentity::New(real.join(target.file_name().unwrap_or_default()))
            }
        }
    }

    /// Whether `path` leads to the same file, which only one may write to.
    pub(super) fn is_that_of(&self, path: &Path) -> bool {
        *self != FileIdentity::Shared && *self == FileIdentity::of(path)
    }
}

/// Refuses to write what is made of `inputs` over one of them or over each other; `-` is standard
/// output, which takes one thing.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn check_outputs<'p>(
    outputs: &[&Path],
    inputs: impl Iterator<Item = &'p Path>,
) -> Result<(), Error> {
    for input in inputs {
        let input = FileIdentity::of(input);
        if let Some(path) = outputs.iter().find(|path| input.is_that_of(path)) {
            return Err(refusal(format!(
                "\"{}\" is one of the files that are read, and would be replaced",
                path.display()
            )));
        }
    }
    for (place, path) in outputs.iter().enumerate() {
        let is_stdout = *path == Path::new("-");
        for other in &outputs[..place] {
            if (is_stdout && other == path) || FileIdentity::of(other).is_that_of(path) {
                return Err(same_file(other, path));
            }
        }
    }
    Ok(())
}

pub(super) fn same_file(one: &Path, other: &Path) -> Error {
    refusal(format!(
        "\"{}\" and \"{}\" would be the same file",
        one.display(),
        other.display()
    ))
}

pub(super) fn refusal(text: String) -> Error {
    Error::Usage(Report::new(text).hint("Give each file a name of its own."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_what_is_written_are_files_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("read"), "").unwrap();
        std::os::unix::fs::symlink("read", at("link")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        let null = PathBuf::from("/dev/null");
        let stdout = PathBuf::from("-");
        for (one, other, refused) in [
            (at("a"), at("b"), false),
            (at("a"), at("./a"), true),
            (at("a"), at("read"), true),
            (at("link"), at("b"), true),
            (at("dangling"), at("new"), true),
            (null.clone(), null, false),
            (stdout.clone(), at("b"), false),
            (stdout.clone(), stdout, true),
        ] {
            let inputs = [at("read"), PathBuf::from("/dev/stdin")];
            let checked = check_outputs(&[&one, &other], inputs.iter().map(PathBuf::as_path));
            assert_eq!(checked.is_err(), refused, "{one:?} {other:?}");
        }
    }
}
