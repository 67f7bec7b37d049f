//! Resolves connection settings that an enemy wrote, and goes through the attempts that come of
//! them. Property tests and the fuzz target share it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::{
    Addresses, AttemptFailure, Attempts, ConnectionOptions, Environment, FileFacts, ServerState,
    Target, Verdict,
};
use crate::error::Error;
use crate::sqlstate::SqlState;

/// A password that must show nowhere.
const SECRET: &str = "hush-hush-hush";

/// More than this is said of no error beyond what was given.
const WORDS_MAX: usize = 2_000;

/// Takes parts of `data`, which zero bytes end, for what stands in place of a database name, a
/// service file, a password file, a host, a port and what attempts end with.
///
/// # Panics
/// If a promise is broken: good settings have hosts, attempts come to an end, errors are told
/// briefly, and a password shows nowhere.
pub fn drive_hostile(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let mut text = || {
        parts
            .next()
            .map(|part| String::from_utf8_lossy(part).into_owned())
    };
    let database = text();
    let files = [
        ("/home/me/.pg_service.conf", text()),
        ("/home/me/.pgpass", text()),
    ];
    let options = ConnectionOptions {
        host: text(),
        port: text(),
        user: None,
        database,
        program_name: "pgmark".to_owned(),
    };
    let surroundings = Surroundings {
        files: files
            .into_iter()
            .filter_map(|(path, text)| Some((PathBuf::from(path), text?.into_bytes())))
            .collect(),
    };
    let told = match Target::resolve(&options, &surroundings) {
        Ok(target) => {
            assert!(!target.hosts.is_empty());
            let report = go_through(&target, parts.next().unwrap_or(&[]));
            format!("{options:?} {target:?} {:?} {report}", target.warnings)
        }
        Err(error) => {
            let error = Error::from(error);
            let told = format!("{error} {error:?}");
            assert!(!error.to_string().is_empty());
            assert!(told.len() <= 4 * data.len() + WORDS_MAX, "{told}");
            told
        }
    };
    let is_given = data
        .windows(SECRET.len())
        .any(|part| part == SECRET.as_bytes());
    assert!(is_given || !told.contains(SECRET), "{told}");
}

/// Fails all attempts in the ways that the bytes say, and tells of it.
fn go_through(target: &Target, ends: &[u8]) -> String {
    let addresses = Addresses::look_up(target, |name, port| match name.len() % 4 {
        0 => Err(io::ErrorKind::NotFound.into()),
        length => {
            let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
            Ok(vec![SocketAddr::new(address, port); length - 1])
        }
    });
    let draw = |bound| ends.len() % bound;
    let mut attempts = addresses.attempts(draw);
    // Three addresses, two kinds of encryption and two passes.
    let most = 12 * target.hosts.len();
    let mut ends = ends.iter().cycle();
    for _ in 0..=most {
        if attempts.current().is_none() {
            return attempts.report(target).to_string();
        }
        let end = ends.next().copied().unwrap_or(0);
        let failure = failure(end, &mut attempts);
        attempts.fail(failure);
    }
    panic!("more than {most} attempts");
}

fn failure(end: u8, attempts: &mut Attempts) -> AttemptFailure {
    let refused = |sqlstate: &[u8; 5]| AttemptFailure::Refused {
        sqlstate: SqlState(*sqlstate),
        message: "no".to_owned(),
    };
    match end % 8 {
        0 => AttemptFailure::TimedOut,
        1 => refused(b"28000"),
        2 => refused(b"57P03"),
        3 => refused(b"3D000"),
        4 => AttemptFailure::Handshake("no".to_owned()),
        5 => {
            attempts.go_on_plain();
            refused(b"28P01")
        }
        6 => match attempts.judge(ServerState::default()) {
            Verdict::Unsuitable(reason) => AttemptFailure::Unsuitable(reason),
            Verdict::Suitable | Verdict::Ask(_) => AttemptFailure::NoTls,
        },
        _ => AttemptFailure::Unreachable("no".to_owned()),
    }
}

/// A user's files and a password in a variable.
struct Surroundings {
    files: HashMap<PathBuf, Vec<u8>>,
}

impl Environment for Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "PGPASSWORD" => Some(SECRET.into()),
            _ => None,
        }
    }

    fn user_name(&self) -> Result<String, String> {
        Ok("me".to_owned())
    }

    fn has_directory(&self, _: &Path) -> bool {
        true
    }

    fn home_directory(&self) -> Option<PathBuf> {
        Some("/home/me".into())
    }

    fn file(&self, path: &Path) -> Option<FileFacts> {
        self.files.contains_key(path).then_some(FileFacts {
            is_plain: true,
            is_of_root: false,
            mode: 0o600,
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let text = self.files.get(path).cloned();
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::drive_hostile;
    use crate::conninfo::keywords::KEYWORDS;

    const WORDS: &[&str] = &[
        "postgres://",
        "postgresql://",
        "=",
        " ",
        "'",
        "\\",
        "@",
        ":",
        "/",
        "?",
        "&",
        "%",
        "%2f",
        "%00",
        "[",
        "]",
        "::1",
        ",",
        "\n",
        "\0",
        "#",
        "[s]\n",
        "service=s",
        "*",
        "*:*:*:*:p",
        "localhost",
        "/tmp",
        "127.0.0.1",
        "5432",
        "system",
        "require",
        "verify-full",
        "direct",
        "prefer-standby",
        "random",
        "!md5",
        "latest",
        "TLSv1.3",
        "auto",
        "é",
        "ssl=true",
    ];

    fn word() -> impl Strategy<Value = &'static str> {
        let names = KEYWORDS.iter().map(|keyword| keyword.name);
        proptest::sample::select(WORDS.iter().copied().chain(names).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            drive_hostile(&data);
        }

        #[test]
        fn anything_like_settings_does_no_harm(
            words in proptest::collection::vec(word(), 0..40)
        ) {
            drive_hostile(words.concat().as_bytes());
        }

        #[test]
        fn good_settings_in_any_number_do_no_harm(
            pairs in proptest::collection::vec((word(), word()), 0..8),
            ends in proptest::collection::vec(any::<u8>(), 0..8),
        ) {
            let mut data = Vec::new();
            for (keyword, value) in pairs {
                data.extend(format!("{keyword}='{}' ", value.replace(['\'', '\\'], "")).bytes());
            }
            data.extend(b"\0[s]\nport=1\0*:*:*:*:p\0a,b\0\0");
            data.extend(ends);
            drive_hostile(&data);
        }
    }
}
