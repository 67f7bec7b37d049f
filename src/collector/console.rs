//! The terminal during a run. The collector owns it, so that lines of workers, progress lines and
//! the live line never mix.

use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::event::{Level, Message};

/// Standard error during a run.
pub(super) struct Console {
    program: &'static str,
    stderr: Box<dyn Write + Send>,
    live: Option<ProgressBar>,
}

impl Console {
    /// Lines go to `stderr`; the live line, if there is one, to the process's terminal.
    pub(super) fn new(program: &'static str, stderr: Box<dyn Write + Send>, live: bool) -> Self {
        let live = live.then(|| {
            let style = ProgressStyle::with_template("{msg}")
                .expect("the template is a constant and well-formed");
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
        });
        Console {
            program,
            stderr,
            live,
        }
    }

    /// Writes one line or several. There is nobody to tell if that fails.
    pub(super) fn line(&mut self, text: &str) {
        let stderr = &mut self.stderr;
        let mut write = || {
            let _ = writeln!(stderr, "{text}").and_then(|()| stderr.flush());
        };
        match &self.live {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Writes a message, prefixed by the program's name and its level.
    pub(super) fn message(&mut self, message: &Message) {
        let (program, text) = (self.program, &message.text);
        match message.level {
            Level::Error => self.line(&format!("{program}: error: {text}")),
            Level::Detail => self.line(&format!("{program}: detail: {text}")),
            Level::Info => self.line(&format!("{program}: {text}")),
            Level::Plain => self.line(text),
        }
    }

    /// Redraws the live line.
    pub(super) fn show(&self, line: String) {
        if let Some(bar) = &self.live {
            bar.set_message(line);
            bar.tick();
        }
    }

    /// Takes the live line away.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
    }
}
