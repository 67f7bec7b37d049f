//! An SQL command and the places in it where variables go. Finding them is purely textual, as in
//! pgbench: quotes and comments do not protect.

use bytes::BufMut;

use super::variables::{Slot, TableBuilder, Variables, is_letter, is_name_byte};

/// An SQL command.
#[derive(Clone, Debug)]
pub struct Sql {
    /// Its number over all SQL commands of all scripts, from 0; names the prepared statement.
    pub number: usize,
    /// Where its result goes.
    pub capture: Option<Capture>,
    commits: bool,
    segments: Vec<Segment>,
    parameterized: Vec<u8>,
    parameters: Vec<Slot>,
}

/// Result columns become variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Which rows of which results.
    pub rows: CapturedRows,
    /// Stands in front of the column names.
    pub prefix: Vec<u8>,
}

impl Capture {
    /// The meta command that asks for it.
    pub fn command(&self) -> &'static str {
        match self.rows {
            CapturedRows::TheOnly => "\\gset",
            CapturedRows::LastOfEach => "\\aset",
        }
    }
}

/// Which rows a [`Capture`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturedRows {
    /// `\gset`: the only row of the last result; anything else is an error.
    TheOnly,
    /// `\aset`: the last row of each result that has rows.
    LastOfEach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Vec<u8>),
    Variable(Slot),
}

impl Sql {
    /// Finds the variables in a command.
    pub(super) fn new(text: &[u8], number: usize, table: &mut TableBuilder) -> Self {
        let mut sql = Sql {
            number,
            capture: None,
            commits: text.split(|&byte| byte == b';').any(begins_with_commit),
            segments: Vec::new(),
            parameterized: Vec::with_capacity(text.len()),
            parameters: Vec::new(),
        };
        let mut literal = 0;
        let mut at = 0;
        while let Some(colon) = find(text, b':', at) {
            at = colon + 1;
            if text.get(at).copied().is_some_and(is_letter) {
                let end = at + name_length(&text[at..]);
                sql.push_literal(&text[literal..colon]);
                sql.push_variable(table.slot(&text[at..end]));
                literal = end;
                at = end;
            } else {
                at += text[at..].iter().take_while(|&&byte| byte == b':').count();
            }
        }
        sql.push_literal(&text[literal..]);
        sql
    }

    fn push_literal(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.segments.push(Segment::Literal(text.to_vec()));
            self.parameterized.extend_from_slice(text);
        }
    }

    fn push_variable(&mut self, slot: Slot) {
        self.segments.push(Segment::Variable(slot));
        self.parameters.push(slot);
        self.parameterized.push(b'$');
        let number = self.parameters.len();
        self.parameterized
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends the command with the values of the variables put in as text, unquoted. An undefined
    /// variable stays as it is written.
    pub fn append_simple(&self, variables: &Variables, out: &mut impl BufMut) {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => out.put_slice(text),
                Segment::Variable(slot) => {
                    if !variables.append_text(*slot, out) {
                        out.put_u8(b':');
                        out.put_slice(variables.name(*slot));
                    }
                }
            }
        }
    }

    /// Whether it commits a transaction block: if the connection is lost before the answer comes,
    /// nobody knows whether it did.
    pub fn commits(&self) -> bool {
        self.commits
    }

    /// The command with `$1`, `$2`, … in place of the variables, one number for each use.
    pub fn parameterized(&self) -> &[u8] {
        &self.parameterized
    }

    /// The variables to bind to `$1`, `$2`, …; see [`Variables::append_parameter`].
    pub fn parameters(&self) -> &[Slot] {
        &self.parameters
    }
}

/// COMMIT or END as the first word. A semicolon inside of a literal may split it wrongly; then a
/// command that looks like one is taken for one, which errs on the safe side.
fn begins_with_commit(statement: &[u8]) -> bool {
    let word: Vec<u8> = statement
        .trim_ascii_start()
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .map(u8::to_ascii_lowercase)
        .collect();
    matches!(&word[..], b"commit" | b"end")
}

fn find(text: &[u8], byte: u8, from: usize) -> Option<usize> {
    text[from..]
        .iter()
        .position(|&found| found == byte)
        .map(|offset| from + offset)
}

fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| is_name_byte(byte)).count()
}
