//! The control plane's standard error: errors, warnings, notices and what is being done now.
//!
//! During a run the collector owns that stream; before and after it nothing but this module
//! writes there. Lines never mix, a closed stream is no error, and nothing goes to stdout.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::program::Program;

/// A handle on the stream. Clones write to the same one.
#[derive(Clone)]
pub struct Console {
    shared: Arc<Mutex<Stream>>,
    program: Program,
    terminal: bool,
}

struct Stream {
    out: Box<dyn Write + Send>,
    /// A text without its line end was the last thing written.
    line_open: bool,
}

impl Console {
    /// Standard error of the process, whose messages begin with the program's name.
    pub fn stderr(program: Program) -> Self {
        let stderr = io::stderr();
        let terminal = stderr.is_terminal();
        Console {
            program,
            terminal,
            ..Console::to(Box::new(stderr))
        }
    }

    /// Any other writer; it is taken to be no terminal, and the program for pgmark.
    pub fn to(out: Box<dyn Write + Send>) -> Self {
        Console {
            shared: Arc::new(Mutex::new(Stream {
                out,
                line_open: false,
            })),
            program: Program::Pgmark,
            terminal: false,
        }
    }

    /// The stream itself, for whoever owns it during a run.
    pub fn stream(&self) -> impl Write + Send + 'static {
        Raw(self.clone())
    }

    /// The name that the program was called by.
    pub fn program(&self) -> Program {
        self.program
    }

    /// Whether somebody looks at it, so that a line may be redrawn.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Prints the error with its detail and hint, each line named as such.
    pub fn report(&self, error: &Error) {
        self.error(&error.to_string());
        if let Some(report) = error.report() {
            if let Some(detail) = &report.detail {
                self.detail(detail);
            }
            if let Some(hint) = &report.hint {
                self.hint(hint);
            }
        }
    }

    /// `pgmark: error: …`
    pub fn error(&self, text: &str) {
        self.message("error: ", text);
    }

    /// `pgmark: detail: …`, below an error or a warning.
    pub fn detail(&self, text: &str) {
        self.message("detail: ", text);
    }

    /// `pgmark: hint: …`, below an error or a warning.
    pub fn hint(&self, text: &str) {
        self.message("hint: ", text);
    }

    /// `pgmark: warning: …`
    pub fn warning(&self, text: &str) {
        self.message("warning: ", text);
    }

    /// `pgmark: …`: good to know, nothing is wrong.
    pub fn notice(&self, text: &str) {
        self.message("", text);
    }

    fn message(&self, level: &str, text: &str) {
        self.line(&format!("{}: {level}{text}", self.program.name()));
    }

    /// A whole line as it is.
    pub fn line(&self, text: &str) {
        let mut stream = self.lock();
        let before = if stream.line_open { "\n" } else { "" };
        stream.write(&format!("{before}{text}\n"));
        stream.line_open = false;
    }

    /// The beginning of a line, shown at once; [`Console::end_line`] completes it, and any other
    /// line that comes in between breaks it first.
    pub fn begin_line(&self, text: &str) {
        let mut stream = self.lock();
        stream.write(text);
        stream.line_open = true;
    }

    /// The rest of a line that was begun.
    pub fn end_line(&self, text: &str) {
        let mut stream = self.lock();
        stream.write(&format!("{text}\n"));
        stream.line_open = false;
    }

    /// A panic elsewhere while the lock was held leaves at worst half a line.
    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes as they are.
struct Raw(Console);

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().out.flush()
    }
}

impl Stream {
    /// Nobody is left to tell that standard error is closed, so failures are ignored.
    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Report;

    /// A console that writes into memory, and what it wrote.
    pub(crate) fn recorded() -> (Console, Recording) {
        let recording = Recording::default();
        (Console::to(Box::new(recording.clone())), recording)
    }

    #[derive(Clone, Default)]
    pub(crate) struct Recording(Arc<Mutex<Vec<u8>>>);

    impl Recording {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Recording {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_is_told_with_its_detail_and_hint() {
        let (console, recording) = recorded();
        console.report(&Error::Server(
            Report::new("it failed").detail("here").hint("do this"),
        ));
        assert_eq!(
            recording.text(),
            "pgmark: error: it failed\npgmark: detail: here\npgmark: hint: do this\n"
        );
    }

    #[test]
    fn a_line_that_was_begun_is_completed_or_broken_by_another() {
        let (console, recording) = recorded();
        console.begin_line("starting...");
        console.end_line("end.");
        console.begin_line("starting...");
        console.warning("no table");
        console.end_line("end.");
        assert_eq!(
            recording.text(),
            "starting...end.\nstarting...\npgmark: warning: no table\nend.\n"
        );
    }
}
