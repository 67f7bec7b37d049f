//! Connects, and asks the user for the password that the server wants and that nobody has supplied.
//!
//! The terminal is asked, not standard input, which may be a script.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::conninfo::{Secret, Target};
use crate::console::Console;
use crate::control::Connection;
use crate::error::{Error, Report};

use super::Signals;

const TERMINAL: &str = "/dev/tty";

const PROMPT: &[u8] = b"Password: ";

/// Connects as [`Signals::connecting`] does. A password that the server wants and that is not known
/// is asked for, once; what is typed becomes the target's, so that no other connection lacks it.
///
/// # Errors
/// [`Error::PasswordRequired`] if there is no terminal or nothing is typed; [`Error::Interrupted`];
/// those of connecting and of reading.
pub(super) fn connect(
    target: &mut Target,
    signals: &Signals,
    console: &Console,
) -> Result<Connection, Error> {
    let refusal = match signals.connecting(target, console) {
        Err(Error::PasswordRequired(refusal)) => refusal,
        outcome => return outcome,
    };
    let Some(password) = ask(signals)? else {
        return Err(Error::PasswordRequired(refusal));
    };
    target.password = Some(password);
    signals.connecting(target, console)
}

/// What the user types, if there is a user who types something.
fn ask(signals: &Signals) -> Result<Option<Secret>, Error> {
    let Ok(terminal) = File::options().read(true).write(true).open(TERMINAL) else {
        return Ok(None);
    };
    let failed = |error| Error::io("read", Path::new(TERMINAL), error);
    let reader = terminal.try_clone().map_err(failed)?;
    let mut silence = Silence::begin(terminal).map_err(failed)?;
    silence.terminal.write_all(PROMPT).map_err(failed)?;
    let line = signals.beside(None, move || read_line(reader))?;
    drop(silence);
    let line = line.expect("there is no bound").map_err(failed)?;
    let typed = String::from_utf8(line).map_err(|_| not_text())?;
    Ok(Some(typed)
        .filter(|typed| !typed.is_empty())
        .map(Secret::from))
}

/// One line, without its end.
fn read_line(terminal: File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(terminal).read_until(b'\n', &mut line)?;
    while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        line.pop();
    }
    Ok(line)
}

/// The words that the library has for it would show the bytes.
fn not_text() -> Error {
    Error::Environment(Report::new(
        "the password that was typed is not valid UTF-8",
    ))
}

/// A terminal that does not show what is typed, for as long as this lives. Also when a signal ends
/// the waiting, the user's shell gets it back as it was.
struct Silence {
    terminal: File,
    before: Termios,
}

impl Silence {
    fn begin(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Silence { terminal, before })
    }
}

impl Drop for Silence {
    /// Half a password that nobody has read must not become the shell's input: it is discarded. A
    /// terminal that is gone needs nothing.
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
        // The user's own line end was not shown either.
        let _ = self.terminal.write_all(b"\n");
    }
}
