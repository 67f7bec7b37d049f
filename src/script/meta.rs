//! What meta commands mean once they are parsed: how long to sleep, what to hand to the shell and
//! how to read its answer, which values come next. Neither sleeps nor runs nor reads anything.

use std::path::PathBuf;
use std::time::Duration;

use super::error::{EvalError, shown};
use super::value::{Value, digit_count, is_space, parse_integer, split_sign, trim_start};
use super::variables::{Slot, Variables};

/// How long a `\sleep` lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub(super) amount: Amount,
    pub(super) unit: Unit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Constant(i64),
    Variable(Slot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Unit {
    fn microseconds(self) -> u64 {
        match self {
            Unit::Microseconds => 1,
            Unit::Milliseconds => 1_000,
            Unit::Seconds => 1_000_000,
        }
    }
}

impl Sleep {
    /// How long; nothing for a negative number. Of a variable's text the leading integer counts.
    pub fn duration(&self, variables: &Variables) -> Result<Duration, EvalError> {
        let amount = match self.amount {
            Amount::Constant(amount) => amount,
            Amount::Variable(slot) => leading_integer(slot, variables)?,
        };
        let amount = u64::try_from(amount).unwrap_or(0);
        Ok(Duration::from_micros(
            amount.saturating_mul(self.unit.microseconds()),
        ))
    }
}

/// The integer at the start of a variable's text, saturated. Zero only if the text starts with a
/// digit: everything else is taken for a mistake.
fn leading_integer(slot: Slot, variables: &Variables) -> Result<i64, EvalError> {
    let text = variables.text(slot)?;
    let (negative, digits, _) = split_integer(&text);
    let saturated = if negative { i64::MIN } else { i64::MAX };
    let value = parse_integer(negative, digits).unwrap_or(saturated);
    if value == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
        return Err(EvalError::SleepValue {
            name: shown(variables.name(slot)),
            text: shown(&text),
        });
    }
    Ok(value)
}

/// Splits text into blanks with a sign (whether it is a minus), digits, and the rest.
fn split_integer(text: &[u8]) -> (bool, &[u8], &[u8]) {
    let (negative, rest) = split_sign(trim_start(text));
    let (digits, rest) = rest.split_at(digit_count(rest));
    (negative, digits, rest)
}

/// A command for the shell, before its variables are put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    pub(super) words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Literal(Vec<u8>),
    Variable(Slot),
}

/// The longest command that is handed to the shell, in bytes; pgbench's limit.
const SHELL_COMMAND_MAX: usize = 254;

impl ShellCommand {
    /// The command line, its words joined by single blanks.
    pub fn line(&self, variables: &Variables) -> Result<Vec<u8>, EvalError> {
        let mut line = Vec::new();
        for word in &self.words {
            if !line.is_empty() {
                line.push(b' ');
            }
            match word {
                Word::Literal(text) => line.extend_from_slice(text),
                Word::Variable(slot) => line.extend(variables.text(*slot)?),
            }
        }
        if line.len() > SHELL_COMMAND_MAX {
            return Err(EvalError::ShellTooLong(SHELL_COMMAND_MAX));
        }
        Ok(line)
    }
}

/// `\values`: where values come from, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// A CSV file with a header, as written; relative to the directory of the script.
    pub file: PathBuf,
    /// Which row is the next one.
    pub order: ValuesOrder,
    /// What comes after the last row.
    pub end: ValuesEnd,
    /// Stands in front of the column names.
    pub prefix: Vec<u8>,
}

/// Which row of a file is the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValuesOrder {
    /// The one after the last, counted over all clients.
    #[default]
    Sequential,
    /// Any, drawn from the client's stream.
    Random,
    /// The one after the last, each client in its own part of the file.
    Partitioned,
}

/// What comes after the last row of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValuesEnd {
    /// The first one again.
    #[default]
    Wrap,
    /// Nothing: the client is done.
    Stop,
}

/// The most bytes of its first line that a `\setshell` command is listened to; pgbench's limit.
const SHELL_ANSWER_MAX: usize = 63;

/// The value that a `\setshell` command gives by what it writes to standard output: an integer on
/// the first line, with optional white space around it. An empty line is zero.
pub fn setshell_value(output: &[u8]) -> Result<Value, EvalError> {
    if output.is_empty() {
        return Err(EvalError::SetShellNoOutput);
    }
    let line = output.split(|&byte| byte == b'\n').next().unwrap_or(output);
    let line = &line[..line.len().min(SHELL_ANSWER_MAX)];
    let not_integer = || EvalError::SetShellNotInteger(shown(line));
    if line.iter().all(|&byte| is_space(byte)) {
        return Ok(Value::Integer(0));
    }
    let (negative, digits, rest) = split_integer(line);
    if digits.is_empty() || !rest.iter().all(|&byte| is_space(byte)) {
        return Err(not_integer());
    }
    parse_integer(negative, digits)
        .map(Value::Integer)
        .ok_or_else(not_integer)
}
