//! A row about something that one client did, in the CSV files that have such rows.

use super::LogContext;
use super::text::{Cells, MomentText, script_cells, signed_micros};
use crate::event::{Outcome, Phase};
use crate::plan::LogTime;
use crate::stats::ErrorKind;
use crate::time::{Clock, Timestamp};

/// The cells of a row and what they are made from.
pub(super) struct Row {
    pub(super) cells: Cells,
    pub(super) window_begins: Timestamp,
    scripts: Vec<Vec<u8>>,
    clock: Clock,
    moment: MomentText,
}

impl Row {
    pub(super) fn new(time: LogTime, context: &LogContext) -> Self {
        Row {
            cells: Cells::default(),
            window_begins: Timestamp::ZERO,
            scripts: script_cells(&context.script_names),
            clock: context.clock.clone(),
            moment: MomentText::new(time),
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.cells.text(text.as_bytes());
    }

    pub(super) fn script(&mut self, index: u8) {
        let name = self.scripts.get(usize::from(index));
        self.cells.text(name.map_or(b"", Vec::as_slice));
    }

    pub(super) fn since_begin(&mut self, moment: Timestamp) {
        let nanos = moment.signed_nanos_since(self.window_begins);
        self.cells.integer(signed_micros(nanos));
    }

    /// `SQLSTATE 40001`: with the word before it no spreadsheet takes it for a number.
    pub(super) fn error(&mut self, error: Option<ErrorKind>) {
        match error {
            None => self.text(""),
            Some(ErrorKind::SqlState(sqlstate)) => {
                let mut text = *b"SQLSTATE .....";
                text[9..].copy_from_slice(&sqlstate.0);
                self.cells.text(&text);
            }
            Some(word) => self.text(word.name()),
        }
    }

    /// The cell of [`moment_column`], if there is one.
    pub(super) fn moment(&mut self, moment: Timestamp) {
        let unix_micros = signed_micros(self.clock.unix_ns(moment));
        self.moment.push(unix_micros, &mut self.cells);
    }
}

/// The name of the last column, if there is one.
pub(super) fn moment_column(time: LogTime) -> Option<&'static str> {
    match time {
        LogTime::Utc => Some("completed_utc"),
        LogTime::Local => Some("completed_local"),
        LogTime::Epoch => Some("completed_epoch_us"),
        LogTime::None => None,
    }
}

/// The word for the end of a transaction.
pub(super) fn status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Processed => "ok",
        Outcome::Failed => "failed",
        Outcome::Skipped => "skipped",
        Outcome::Aborted(_) => "aborted",
    }
}

/// The word for a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Ramp => "ramp",
        Phase::Warmup => "warmup",
        Phase::Run => "run",
    }
}
