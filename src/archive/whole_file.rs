//! Where a result file or a page of it goes: whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Document;
use crate::error::Error;

/// Links that are followed one after the other, as many as by Linux.
const MOST_LINKS: usize = 40;

/// A file that will be written in one step, looked at beforehand so that it is known before a run if
/// it cannot be. What was there under the name stays until the new file is complete; if none is
/// written, it stays for good.
#[derive(Debug)]
pub struct WholeFile {
    /// As the user named it.
    path: PathBuf,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    /// A file, where it really lies.
    File(PathBuf),
    /// A device or a pipe, which nothing can take the place of.
    Device(File),
}

impl WholeFile {
    /// Looks whether a file of this name can be written; a link stays one. A device or a pipe is
    /// opened as it is, which waits for the reader of a pipe.
    ///
    /// # Errors
    /// [`Error::Io`] if nothing can be written there.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let destination = match is_device(path) {
            true => open_device(path).map(Destination::Device),
            false => writable(path).map(Destination::File),
        };
        Ok(WholeFile {
            path: path.to_owned(),
            destination: destination.map_err(|source| Error::io("create", path, source))?,
        })
    }

    /// Whether writing may wait for somebody who reads.
    pub fn may_wait(&self) -> bool {
        matches!(self.destination, Destination::Device(_))
    }

    /// Writes a document.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_document(self, document: &Document) -> Result<(), Error> {
        self.fill(|writer| {
            serde_json::to_writer_pretty(&mut *writer, document)?;
            writer.write_all(b"\n")
        })
    }

    /// Writes a text.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_text(self, text: &str) -> Result<(), Error> {
        self.fill(|writer| writer.write_all(text.as_bytes()))
    }

    fn fill(
        self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let write_to = |file: &File| {
            let mut writer = BufWriter::new(file);
            write(&mut writer).and_then(|()| writer.flush())
        };
        let written = match self.destination {
            Destination::Device(file) => write_to(&file),
            Destination::File(target) => beside(&target).and_then(|file| {
                write_to(file.as_file())?;
                give_permissions(file.as_file(), &target)?;
                file.as_file().sync_all()?;
                file.persist(&target)
                    .map(drop)
                    .map_err(|failed| failed.error)
            }),
        };
        written.map_err(|source| Error::io("write", &self.path, source))
    }
}

/// Whether the name is that of something other than a file. What is below `/dev` may lead to a file
/// that somebody else is writing, such as standard output.
pub(super) fn is_device(path: &Path) -> bool {
    let is_special = |facts: fs::Metadata| !facts.is_file() && !facts.is_dir();
    path.starts_with("/dev") || path.metadata().is_ok_and(is_special)
}

/// Waits for the reader of a pipe.
pub(super) fn open_device(path: &Path) -> io::Result<File> {
    File::options().append(true).open(path)
}

/// Where a file of this name lies, once links are followed, also those that lead to no file yet.
///
/// # Errors
/// If the name can be that of no file: it is one of a directory, too long, or of links in a circle.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !ends_with_a_name(&target) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match target.symlink_metadata() {
            Ok(facts) if facts.is_symlink() => {
                target = directory(&target).join(fs::read_link(&target)?);
            }
            Ok(facts) if facts.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => return Ok(target),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// As opposed to `..`, `here/` and `here/.`.
fn ends_with_a_name(path: &Path) -> bool {
    let whole = path.as_os_str().as_encoded_bytes();
    path.file_name()
        .is_some_and(|name| whole.ends_with(name.as_encoded_bytes()))
}

fn directory(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Where the file lies, if another one can be put in its place.
pub(super) fn writable(path: &Path) -> io::Result<PathBuf> {
    let target = resolved(path)?;
    beside(&target)?;
    Ok(target)
}

/// A file in the same directory, which is gone again unless it takes the place of `target`.
fn beside(target: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".pgmark-")
        .suffix(".part")
        .tempfile_in(directory(target))
        // Its name is nothing that the user knows of.
        .map_err(|error| error.kind().into())
}

/// A temporary file is for its owner alone; a new one may be read by whoever may read new files, one
/// that replaces another by whoever could read that.
fn give_permissions(file: &File, target: &Path) -> io::Result<()> {
    if let Ok(before) = target.metadata() {
        return file.set_permissions(before.permissions());
    }
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    file.set_permissions(fs::Permissions::from_mode(0o666 & !mask.bits()))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_stays_one_and_nothing_takes_the_place_of_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("target"), "old").unwrap();
        symlink(at("target"), at("link")).unwrap();
        WholeFile::at(&at("link"))
            .unwrap()
            .write_text("new")
            .unwrap();
        assert_eq!(fs::read_to_string(at("target")).unwrap(), "new");
        assert!(at("link").symlink_metadata().unwrap().is_symlink());

        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(made.unwrap().success());
        let mut reader = File::options()
            .read(true)
            .write(true)
            .open(at("pipe"))
            .unwrap();
        WholeFile::at(&at("pipe"))
            .unwrap()
            .write_text("through")
            .unwrap();
        let mut found = [0; 7];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"through");
        assert!(WholeFile::at(directory.path()).is_err());
    }

    #[test]
    fn a_name_of_no_file_is_refused_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        symlink("circle", at("circle")).unwrap();
        symlink("directory/", at("leads_to_one")).unwrap();
        for name in [
            "new/",
            "new/.",
            "..",
            "circle",
            "leads_to_one",
            &"x".repeat(300),
        ] {
            let refused = WholeFile::at(&at(name)).expect_err(name).to_string();
            assert!(!refused.contains(".part"), "{refused}");
        }
        assert!(WholeFile::at(Path::new("")).is_err());
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_makes_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        symlink("second", at("first")).unwrap();
        symlink(at("file"), at("second")).unwrap();
        WholeFile::at(&at("first"))
            .unwrap()
            .write_text("new")
            .unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
        assert!(at("first").symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn nothing_lies_beside_the_file_while_a_run_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let waiting = WholeFile::at(&directory.path().join("run.json")).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        drop(waiting);
    }

    #[test]
    fn who_could_read_the_file_can_read_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        WholeFile::at(&path).unwrap().write_text("new").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
}
