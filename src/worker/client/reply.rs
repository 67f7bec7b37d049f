//! What the server answers to the command under way, as far as the client cares: errors, counts,
//! and the row that becomes variables.

use crate::event::SqlState;
use crate::protocol::{DataRow, OmittedValue, ROW_BYTES_MAX, RowDescription};
use crate::script::{Capture, CapturedRows, EvalError, Slot, Variables};
use crate::told::Pooling;

/// What has been answered to the command under way so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Results that are complete.
    results: u32,
    /// How often the server was ready for the next command.
    readies: u32,
    /// Indices of the commands that were sent together, each answered by a result or by the server
    /// being ready; empty if there is one alone.
    sent: Vec<usize>,
    error: Option<ReplyError>,
    /// The statement that is answered was found on the server, and its parameters bound.
    bound: bool,
    copied: Option<Copied>,
    /// What becomes variables; there once a result has been captured. Most scripts capture none.
    captured: Option<Box<Captured>>,
}

/// Results that become variables.
#[derive(Debug, Default)]
struct Captured {
    /// Rows of the result that is coming in, and of the last one that is complete.
    rows: u64,
    last_rows: u64,
    row: Row,
    /// What went wrong with a result that was stored when it came.
    problem: Option<String>,
    /// By number of the SQL command: the variables that its columns become. Names are looked up
    /// only when the columns are others than the time before.
    columns: Vec<Columns>,
}

/// An error that the server answered with.
#[derive(Debug, Default)]
pub(super) struct ReplyError {
    pub(super) sqlstate: SqlState,
    /// Which of the commands that were sent together it is an error of.
    pub(super) command: Option<usize>,
    /// As libpq shows it; empty for one that nobody is told of.
    pub(super) text: String,
    /// Number of the result that it came instead of, from 0.
    pub(super) result: u32,
}

/// A command wants to copy data to or from the client, which no script can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    /// Which of the commands that were sent together it is.
    pub(super) command: Option<usize>,
}

impl Copied {
    pub(super) const PROBLEM: &str = "COPY to or from the client is not supported in a script";
}

/// A row that is kept until its result is complete. Its buffers stay.
#[derive(Debug, Default)]
struct Row {
    text: Vec<u8>,
    /// Where each value ends in the text. NULL is empty, as in pgbench.
    ends: Vec<usize>,
    /// A value that is too long to be kept.
    omitted: Option<OmittedValue>,
}

/// A buffer that grew beyond this for one row is given back with the next.
const ROW_BYTES_KEPT: usize = 64 << 10;

/// Column names of a result and the variables they stand for.
#[derive(Debug, Default)]
struct Columns {
    /// Each name is followed by a zero byte.
    names: Vec<u8>,
    /// A name that no script mentions has no slot: its value matters to nobody.
    slots: Vec<Option<Slot>>,
    /// A name that no variable can have.
    problem: Option<EvalError>,
}

impl Reply {
    /// A new command is sent.
    pub(super) fn clear(&mut self) {
        self.results = 0;
        self.readies = 0;
        self.sent.clear();
        self.error = None;
        self.bound = false;
        self.copied = None;
        if let Some(captured) = &mut self.captured {
            captured.clear();
        }
    }

    /// The command with this index was sent along with others.
    pub(super) fn note_sent(&mut self, command: usize) {
        self.sent.push(command);
    }

    /// The server is ready, and more is to come.
    pub(super) fn note_ready(&mut self) {
        self.readies += 1;
    }

    /// The first error is the cause of those that follow it. `text` makes what is told of it, and is
    /// given the command that it is an error of, if several were sent.
    pub(super) fn note_error(
        &mut self,
        sqlstate: SqlState,
        text: impl FnOnce(Option<usize>) -> String,
    ) {
        if self.error.is_some() {
            return;
        }
        let command = self.command_to_be_answered();
        self.error = Some(ReplyError {
            sqlstate,
            command,
            text: text(command),
            result: self.results,
        });
    }

    /// The server has found the statement that it is to execute.
    pub(super) fn note_bound(&mut self) {
        self.bound = true;
    }

    /// The server has lost a prepared statement, or has one that it should not have.
    pub(super) fn is_about_preparing(&self) -> bool {
        let sqlstate = self.error.as_ref().map(|error| error.sqlstate);
        !self.bound && sqlstate.is_some_and(Pooling::is_sign)
    }

    /// Data are to be copied. The session refuses that by itself.
    pub(super) fn note_copy(&mut self) {
        let command = self.command_to_be_answered();
        self.copied.get_or_insert(Copied { command });
    }

    /// The first command that wanted to copy data, if one did.
    pub(super) fn copied(&self) -> Option<Copied> {
        self.copied
    }

    /// The command that is answered now, if several were sent.
    fn command_to_be_answered(&self) -> Option<usize> {
        let answered = self.results + self.readies;
        self.sent.get(answered as usize).copied()
    }

    pub(super) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// The error, with the count of results alone where there was none.
    pub(super) fn take_error(&mut self) -> ReplyError {
        let result = self.results;
        self.error.take().unwrap_or_else(|| ReplyError {
            result,
            ..ReplyError::default()
        })
    }

    /// Why a connection was lost: what the server said before it went, or else `reason`. It ends one
    /// that sends commands where it waits for data to copy.
    pub(super) fn take_last_words(&mut self, reason: &str) -> ReplyError {
        let mut error = self.take_error();
        if error.text.is_empty() {
            reason.clone_into(&mut error.text);
        }
        if self.copied.is_some() {
            error.text = format!("{}: {}", Copied::PROBLEM, error.text);
        }
        error
    }

    /// The columns of a result of the SQL command `number`, of which those are wanted that become
    /// variables.
    pub(super) fn note_columns<'r>(
        &'r mut self,
        number: usize,
        capture: &Capture,
        description: &RowDescription<'_>,
        variables: &Variables,
    ) -> impl Iterator<Item = bool> + use<'r> {
        let captured = self.captured.get_or_insert_default();
        if captured.columns.len() <= number {
            captured.columns.resize_with(number + 1, Columns::default);
        }
        let columns = &mut captured.columns[number];
        columns.learn(&capture.prefix, description, variables);
        columns.slots.iter().map(Option::is_some)
    }

    /// A row of a result that is captured.
    pub(super) fn note_row(&mut self, number: usize, capture: &Capture, row: &DataRow<'_>) {
        let captured = self.captured.get_or_insert_default();
        captured.rows += 1;
        let columns = captured.columns.get(number);
        let slots = columns.map_or(&[][..], |columns| &columns.slots);
        match capture.rows {
            // More than one row is an error, told by the count.
            CapturedRows::TheOnly if captured.rows > 1 => {}
            CapturedRows::TheOnly | CapturedRows::LastOfEach => captured.row.keep(row, slots),
        }
    }

    /// A result is complete.
    pub(super) fn note_complete(&mut self) {
        self.results += 1;
        self.bound = false;
        if let Some(captured) = &mut self.captured {
            captured.last_rows = std::mem::take(&mut captured.rows);
        }
    }

    /// Sets variables from the result that has just been completed, where each result counts
    /// (`\aset`). What is wrong with it is told when all results are there.
    pub(super) fn store_each(
        &mut self,
        number: usize,
        capture: &Capture,
        variables: &mut Variables,
    ) {
        let Some(captured) = &mut self.captured else {
            return;
        };
        let stored = match capture.rows {
            CapturedRows::LastOfEach if captured.last_rows > 0 => captured.store(number, variables),
            CapturedRows::LastOfEach | CapturedRows::TheOnly => Ok(()),
        };
        if let Err(problem) = stored {
            captured.problem.get_or_insert(problem);
        }
    }

    /// All results are there: sets variables from the last one where only that counts (`\gset`).
    ///
    /// # Errors
    /// It has not exactly one row, or a column of it, or of one that was stored before, has a name
    /// that no variable can have or a value that is too long.
    pub(super) fn store_last(
        &mut self,
        number: usize,
        capture: &Capture,
        variables: &mut Variables,
    ) -> Result<(), String> {
        let captured = self.captured.get_or_insert_default();
        match (capture.rows, captured.last_rows) {
            (CapturedRows::LastOfEach, _) => match captured.problem.take() {
                Some(problem) => Err(problem),
                None => Ok(()),
            },
            (CapturedRows::TheOnly, 1) => captured.store(number, variables),
            (CapturedRows::TheOnly, rows) => Err(format!("\\gset expected one row, got {rows}")),
        }
    }
}

impl Captured {
    fn clear(&mut self) {
        self.rows = 0;
        self.last_rows = 0;
        self.problem = None;
    }

    fn store(&self, number: usize, variables: &mut Variables) -> Result<(), String> {
        let Some(columns) = self.columns.get(number) else {
            return Ok(());
        };
        if let Some(problem) = &columns.problem {
            return Err(problem.to_string());
        }
        if let Some(omitted) = self.row.omitted {
            return Err(columns.tell_omitted(omitted));
        }
        for (slot, value) in columns.slots.iter().zip(self.row.values()) {
            if let Some(slot) = slot {
                variables
                    .set_text(*slot, value)
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

impl Columns {
    fn learn(&mut self, prefix: &[u8], description: &RowDescription<'_>, variables: &Variables) {
        let known = self.names.split_inclusive(|&byte| byte == 0);
        let same = description.columns() == self.slots.len()
            && known
                .zip(description.names())
                .all(|(known, name)| &known[..known.len() - 1] == name);
        if same && self.problem.is_none() {
            return;
        }
        *self = Columns::default();
        for name in description.names() {
            self.names.extend_from_slice(name);
            self.names.push(0);
            match variables.resolve(&[prefix, name].concat()) {
                Ok(slot) => self.slots.push(slot),
                Err(problem) => {
                    self.slots.push(None);
                    self.problem.get_or_insert(problem);
                }
            }
        }
    }
}

impl Columns {
    fn tell_omitted(&self, omitted: OmittedValue) -> String {
        let mut names = self.names.split(|&byte| byte == 0);
        let name = names.nth(omitted.column).unwrap_or_default();
        format!(
            "column \"{}\" has a value of {} bytes, which is too long for a variable: at most {} \
             MiB of a row can be kept",
            String::from_utf8_lossy(name),
            omitted.bytes,
            ROW_BYTES_MAX >> 20
        )
    }
}

impl Row {
    /// Keeps the values of the columns that have a slot.
    fn keep(&mut self, row: &DataRow<'_>, slots: &[Option<Slot>]) {
        self.text.clear();
        self.text.shrink_to(ROW_BYTES_KEPT);
        self.ends.clear();
        self.omitted = row.omitted();
        for (value, slot) in row.values().zip(slots) {
            if slot.is_some() {
                self.text.extend_from_slice(value.unwrap_or_default());
            }
            self.ends.push(self.text.len());
        }
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, &end)| &self.text[start..end])
    }
}
