//! An SQL command and the places in it where variables go. Finding `:name` is purely textual, as in
//! pgbench: quotes and comments do not protect. `:'name'` and `:"name"`, which pgbench does not know,
//! are variables outside of quotes and comments only.

use std::ops::Range;

use bytes::BufMut;

use super::Dialect;
use super::scanner::{Scanner, Token};
use super::value::Quote;
use super::variables::{Slot, TableBuilder, Variables, is_letter, is_valid_name, name_length};

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
    Variable(Use),
}

/// A use of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    slot: Slot,
    form: Form,
}

/// How the value of a variable is written into the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `:name`: as it is.
    Plain,
    /// `:'name'` or `:"name"`: between these quotes, so that it is one literal or identifier.
    Quoted(Quote),
}

impl Sql {
    /// Finds the variables in a command.
    pub(super) fn new(
        dialect: Dialect,
        text: &[u8],
        number: usize,
        table: &mut TableBuilder,
    ) -> Self {
        let quoted = match dialect {
            Dialect::Extended => quoted_uses(text),
            Dialect::Pgbench => Vec::new(),
        };
        let mut quoted = quoted.into_iter().peekable();
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
            if let Some((quote, name)) = quoted.next_if(|(_, name)| name.start == colon + 2) {
                sql.push_literal(&text[literal..colon]);
                literal = name.end + 1;
                at = literal;
                sql.push_variable(table.slot(&text[name]), Form::Quoted(quote));
            } else if text.get(at).copied().is_some_and(is_letter) {
                let end = at + name_length(&text[at..]);
                sql.push_literal(&text[literal..colon]);
                sql.push_variable(table.slot(&text[at..end]), Form::Plain);
                literal = end;
                at = end;
            } else {
                at += colons(&text[at..]);
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

    fn push_variable(&mut self, slot: Slot, form: Form) {
        self.segments.push(Segment::Variable(Use { slot, form }));
        self.parameters.push(slot);
        self.parameterized.push(b'$');
        let number = self.parameters.len();
        self.parameterized
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends the command with the values of the variables put in as text, quoted only if that was
    /// asked for. An undefined variable stays as it is written.
    pub fn append_simple(&self, variables: &Variables, out: &mut impl BufMut) {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => out.put_slice(text),
                Segment::Variable(variable) => variable.append(variables, out),
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

impl Use {
    fn append(self, variables: &Variables, out: &mut impl BufMut) {
        let name = variables.name(self.slot);
        match self.form {
            Form::Plain => {
                if !variables.append_text(self.slot, out) {
                    out.put_u8(b':');
                    out.put_slice(name);
                }
            }
            Form::Quoted(quote) => {
                if !variables.append_quoted(self.slot, quote, out) {
                    out.put_u8(b':');
                    out.put_u8(quote.byte());
                    out.put_slice(name);
                    out.put_u8(quote.byte());
                }
            }
        }
    }
}

/// The uses of quoted variables, in order, each with the place of its name.
fn quoted_uses(text: &[u8]) -> Vec<(Quote, Range<usize>)> {
    let mut uses = Vec::new();
    let mut brackets = 0_usize;
    let mut scanner = Scanner::new(text);
    while scanner.at < text.len() {
        match scanner.token() {
            Token::Byte(b'[') => brackets += 1,
            Token::Byte(b']') => brackets = brackets.saturating_sub(1),
            Token::Byte(b':') if text.get(scanner.at) == Some(&b':') => {
                scanner.at += colons(&text[scanner.at..]);
            }
            Token::Byte(b':') => {
                // Between brackets a colon and a quoted identifier are the bound of a slice.
                let found = quoted_name(text, scanner.at)
                    .filter(|(quote, _)| brackets == 0 || *quote == Quote::Literal);
                if let Some((quote, name)) = found {
                    scanner.at = name.end + 1;
                    uses.push((quote, name));
                }
            }
            Token::Byte(_) | Token::Word(_) | Token::Other => {}
        }
    }
    uses
}

/// A name and nothing else between quotes.
fn quoted_name(text: &[u8], at: usize) -> Option<(Quote, Range<usize>)> {
    let quote = match text.get(at)? {
        b'\'' => Quote::Literal,
        b'"' => Quote::Identifier,
        _ => return None,
    };
    let name = at + 1..at + 1 + name_length(&text[at + 1..]);
    let closed = text.get(name.end) == Some(&quote.byte());
    (closed && is_valid_name(&text[name.clone()])).then_some((quote, name))
}

fn colons(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte == b':').count()
}

fn find(text: &[u8], byte: u8, from: usize) -> Option<usize> {
    text[from..]
        .iter()
        .position(|&found| found == byte)
        .map(|offset| from + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::value::Value;
    use crate::script::variables::Automatic;

    const DEFINED: [(&str, &str); 4] = [
        ("x", "7"),
        ("name", "O'Hara"),
        ("path", r"a\b'c"),
        ("col", r#"my "col"#),
    ];

    /// The command as it is sent as text, and with parameters.
    fn sent(dialect: Dialect, text: &str) -> (String, String) {
        let mut table = TableBuilder::default();
        for (name, value) in DEFINED {
            table.define(name.as_bytes(), value.as_bytes());
        }
        let null = table.slot(b"null");
        let sql = Sql::new(dialect, text.as_bytes(), 0, &mut table);
        let mut variables = table.finish(dialect).initial(&Automatic {
            scale: 1,
            client_id: 0,
            default_seed: None,
            random_seed: 0,
            thread_id: 0,
        });
        variables.set(null, Value::Null).expect("a valid name");
        let mut simple = Vec::new();
        sql.append_simple(&variables, &mut simple);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&simple), text(sql.parameterized()))
    }

    #[test]
    fn quoted_variables_are_one_literal_or_identifier() {
        for (text, simple, parameterized) in [
            ("select :'x', :x", "select '7', 7", "select $1, $2"),
            ("select :'name'", "select 'O''Hara'", "select $1"),
            ("select :'path'", r"select  E'a\\b''c'", "select $1"),
            (r#"select :"col""#, r#"select "my ""col""#, "select $1"),
            (
                "select :'null', :null",
                "select NULL, NULL",
                "select $1, $2",
            ),
            ("select :'nobody'", "select :'nobody'", "select $1"),
            (
                "select array[:'x']",
                "select array['7']",
                "select array[$1]",
            ),
        ] {
            let expected = (simple.to_owned(), parameterized.to_owned());
            assert_eq!(sent(Dialect::Extended, text), expected, "{text}");
        }
    }

    #[test]
    fn what_pgbench_leaves_alone_inside_quotes_and_slices_stays() {
        for text in [
            r#"select '{"a":"x"}'"#,
            r#"select $$ :'x' :"x" $$, $t$:'x'$t$"#,
            r#"select 1 -- :'x' :"x""#,
            r#"select 1 /* :'x' :"x" */"#,
            r#"select "a:'x'""#,
            r#"select y::"x", y:::"x""#,
            r#"select (a)[1:"x"], (a)["x":"x"]"#,
            "select :'1x', :'x y', :'x",
            "select ':''x'' '",
        ] {
            assert_eq!(sent(Dialect::Extended, text).0, text);
            assert_eq!(sent(Dialect::Pgbench, text).0, text);
        }
        let text = r#"select :'x', :"x""#;
        assert_eq!(sent(Dialect::Pgbench, text).0, text);
    }

    #[test]
    fn plain_variables_are_found_everywhere() {
        for (text, simple) in [
            ("':x' -- :x", "'7' -- 7"),
            ("a[1:x]", "a[17]"),
            ("::x :1x 12:34 :::x", "::x :1x 12:34 :::x"),
            (":x:x", "77"),
            (":", ":"),
            ("x:", "x:"),
            (":nobody", ":nobody"),
            (":x", "7"),
        ] {
            for dialect in [Dialect::Extended, Dialect::Pgbench] {
                assert_eq!(sent(dialect, text).0, simple, "{text}");
            }
        }
    }
}
