//! Splits the text of a script into SQL commands and meta commands, as psql's lexer does. Works on
//! bytes in one pass and never fails: what SQL means is the server's business.

use super::scanner::{Scanner, Token};
use super::variables::name_length;

/// A piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// An SQL command as it will be sent, and the line of its first byte.
    Sql { text: Vec<u8>, line: u64 },
    /// A meta command from its backslash up to, not including, the line feed that ends it.
    Meta {
        text: &'a [u8],
        /// Of the backslash, from 1.
        line: u64,
        /// Whether a line feed ends it; else it is the end of the script.
        terminated: bool,
    },
}

/// Reads the pieces of a script.
pub(super) struct Splitter<'a> {
    text: &'a [u8],
    scanner: Scanner<'a>,
    lines: LineCounter<'a>,
    // What is open survives a meta command, as in psql: a semicolon inside of a parenthesis that was
    // opened before the meta command still does not split.
    parentheses: usize,
    body: RoutineBody,
}

impl<'a> Splitter<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Splitter {
            text,
            scanner: Scanner::new(text),
            lines: LineCounter::new(text),
            parentheses: 0,
            body: RoutineBody::default(),
        }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.scanner.byte(offset)
    }

    /// Reads on to the end of an SQL command; none if there was nothing to send.
    fn sql(&mut self) -> Option<Piece<'a>> {
        let mut sql = Vec::new();
        let mut begin = None;
        while let Some(byte) = self.byte(0) {
            let start = self.scanner.at;
            match byte {
                b'\\' => match self.byte(1) {
                    Some(escaped @ (b';' | b':')) => {
                        begin.get_or_insert(start);
                        sql.push(escaped);
                        self.scanner.at += 2;
                        if escaped == b';' && self.parentheses == 0 {
                            self.body.restart();
                        }
                        continue;
                    }
                    _ => break,
                },
                b';' if self.parentheses == 0 && !self.body.is_open() => {
                    begin.get_or_insert(start);
                    sql.push(b';');
                    self.scanner.at += 1;
                    self.body.restart();
                    break;
                }
                b':' if self.variable_test() => {
                    begin.get_or_insert(start);
                    sql.extend_from_slice(b"FALSE");
                    continue;
                }
                _ => self.token(),
            }
            let dropped = sql.is_empty() && is_dropped(&self.text[start..self.scanner.at]);
            if !dropped {
                begin.get_or_insert(start);
                sql.extend_from_slice(&self.text[start..self.scanner.at]);
            }
        }
        let line = self.lines.line_of(begin?);
        Some(Piece::Sql { text: sql, line })
    }

    /// Moves behind the token that begins here, and keeps track of what it opens or closes.
    fn token(&mut self) {
        match self.scanner.token() {
            Token::Byte(b'(') => self.parentheses += 1,
            Token::Byte(b')') => self.parentheses = self.parentheses.saturating_sub(1),
            Token::Word(word) if self.parentheses == 0 => self.body.word(word),
            Token::Byte(_) | Token::Word(_) | Token::Other => {}
        }
    }

    /// Moves behind `:{?name}` if it stands here.
    fn variable_test(&mut self) -> bool {
        let Some(rest) = self.text[self.scanner.at..].strip_prefix(b":{?") else {
            return false;
        };
        let name = name_length(rest);
        let found = name > 0 && rest.get(name) == Some(&b'}');
        if found {
            self.scanner.at += name + 4;
        }
        found
    }

    /// The meta command that begins at the backslash here.
    fn meta(&mut self) -> Piece<'a> {
        let start = self.scanner.at;
        let line = self.lines.line_of(start);
        let mut end = start + 1;
        let terminated = loop {
            match self.text.get(end) {
                Some(b'\n') if !continues(&self.text[start + 1..end]) => break true,
                Some(_) => end += 1,
                None => break false,
            }
        };
        // The line feed stays, as white space before what follows.
        self.scanner.at = end;
        Piece::Meta {
            text: &self.text[start..end],
            line,
            terminated,
        }
    }
}

/// Whether a line of a meta command goes on behind its line feed.
fn continues(line: &[u8]) -> bool {
    line.ends_with(b"\\") || line.ends_with(b"\\\r")
}

/// White space and line comments, which are not sent in front of a command.
fn is_dropped(token: &[u8]) -> bool {
    token.starts_with(b"--") || token.iter().all(|&byte| super::value::is_space(byte))
}

impl<'a> Iterator for Splitter<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        while self.scanner.at < self.text.len() {
            if let Some(sql) = self.sql() {
                return Some(sql);
            }
            if self.byte(0) == Some(b'\\') {
                return Some(self.meta());
            }
        }
        None
    }
}

/// Finds out whether a semicolon belongs to the body of a routine: between BEGIN and END of a
/// command that starts with CREATE [OR REPLACE] FUNCTION or PROCEDURE.
#[derive(Debug, Default)]
struct RoutineBody {
    start: CommandStart,
    depth: usize,
}

/// How far the first words of a command read like the start of a routine's definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CommandStart {
    #[default]
    Nothing,
    Create,
    CreateOr,
    CreateOrReplace,
    Routine,
    Other,
}

impl RoutineBody {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn restart(&mut self) {
        if !self.is_open() {
            self.start = CommandStart::Nothing;
        }
    }

    fn word(&mut self, word: &[u8]) {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        let routine = is("function") || is("procedure");
        self.start = match self.start {
            CommandStart::Nothing if is("create") => CommandStart::Create,
            CommandStart::Create if is("or") => CommandStart::CreateOr,
            CommandStart::CreateOr if is("replace") => CommandStart::CreateOrReplace,
            CommandStart::Create | CommandStart::CreateOrReplace if routine => {
                CommandStart::Routine
            }
            CommandStart::Routine => {
                self.body_word(is("begin"), is("case"), is("end"));
                CommandStart::Routine
            }
            CommandStart::Nothing
            | CommandStart::Create
            | CommandStart::CreateOr
            | CommandStart::CreateOrReplace
            | CommandStart::Other => CommandStart::Other,
        };
    }

    fn body_word(&mut self, begin: bool, case: bool, end: bool) {
        if begin || (case && self.is_open()) {
            self.depth += 1;
        } else if end {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

/// Counts lines up to places that only move forward, so that all of it takes linear time.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn new(text: &'a [u8]) -> Self {
        LineCounter {
            text,
            at: 0,
            line: 1,
        }
    }

    fn line_of(&mut self, place: usize) -> u64 {
        let passed = &self.text[self.at..place];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.at = place;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces in short: `LINE:TEXT`, where the text of a meta command begins with its backslash.
    fn split(text: &str) -> Vec<String> {
        Splitter::new(text.as_bytes())
            .map(|piece| {
                let (text, line) = match &piece {
                    Piece::Sql { text, line } => (&text[..], line),
                    Piece::Meta { text, line, .. } => (*text, line),
                };
                format!("{line}:{}", String::from_utf8_lossy(text))
            })
            .collect()
    }

    #[test]
    fn semicolons_split_only_where_they_end_a_command() {
        for (text, expected) in [
            ("select 1; select 2", vec!["1:select 1;", "1:select 2"]),
            ("\n-- c\n a;\n\nb;", vec!["3:a;", "5:b;"]),
            ("'a;''b;' ; c", vec!["1:'a;''b;' ;", "1:c"]),
            (r"'a\'; b", vec!["1:'a\\';", "1:b"]),
            (r"e'a\'; b'; c", vec![r"1:e'a\'; b';", "1:c"]),
            ("E'a''\\';' ;c", vec!["1:E'a''\\';' ;", "1:c"]),
            ("E'a'\n'\\';' ;c", vec!["1:E'a'\n'\\';' ;", "2:c"]),
            ("E'a' -- x\n'\\';' ;c", vec!["1:E'a' -- x\n'\\';' ;", "2:c"]),
            ("E'a' '\\';' ;c", vec![r"1:E'a' '\';", "1:' ;c"]),
            ("xe'\\'; b", vec!["1:xe'\\';", "1:b"]),
            ("1e'\\'; b", vec!["1:1e'\\';", "1:b"]),
            (r#""a;""b\" ; c"#, vec![r#"1:"a;""b\" ;"#, "1:c"]),
            ("$$a;$x$;$$ ; c", vec!["1:$$a;$x$;$$ ;", "1:c"]),
            ("$x$a;$$;$xx$;$x$ ; c", vec!["1:$x$a;$$;$xx$;$x$ ;", "1:c"]),
            ("$1$; a$$; b$$;", vec!["1:$1$;", "1:a$$;", "1:b$$;"]),
            ("/* /* ; */ ; */ a; b", vec!["1:/* /* ; */ ; */ a;", "1:b"]),
            ("a -- ;\n; b", vec!["1:a -- ;\n;", "2:b"]),
            ("(a; (b;); c); d", vec!["1:(a; (b;); c);", "1:d"]),
            (") ; a", vec!["1:) ;", "1:a"]),
            (r"a \; b; c", vec!["1:a ; b;", "1:c"]),
            (r"a\:b :{?x} :{?} c", vec!["1:a:b FALSE :{?} c"]),
            ("'open; ", vec!["1:'open; "]),
            ("/* open", vec!["1:/* open"]),
            ("\u{feff}a;", vec!["1:\u{feff}a;"]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }

    #[test]
    fn bodies_of_routines_are_not_split() {
        for (text, count) in [
            ("create function f() begin a; b; end; c", 2),
            (
                "CREATE OR REPLACE PROCEDURE f() BEGIN a; case x; end; b; END; c",
                2,
            ),
            ("create function f() case a; end; b", 3),
            ("create table f (begin a); begin; b", 3),
            ("create or function f() begin a; b; end; c", 4),
            (r"create function f() begin \; a; end; begin; b", 3),
            (r"create function f() \; begin; b", 2),
            ("function f() begin a; end; c", 3),
            ("create function f(begin int); a", 2),
        ] {
            assert_eq!(split(text).len(), count, "{text}");
        }
    }

    #[test]
    fn meta_commands_take_the_rest_of_the_line() {
        for (text, expected) in [
            ("\\set x 1\nselect", vec!["1:\\set x 1", "2:select"]),
            ("a \\gset\nb", vec!["1:a ", "1:\\gset", "2:b"]),
            ("\\set x \\\n 1\nb", vec!["1:\\set x \\\n 1", "3:b"]),
            ("\\set x \\\r\n 1\r\nb", vec!["1:\\set x \\\r\n 1\r", "3:b"]),
            ("\\set x \\ \nb", vec!["1:\\set x \\ ", "2:b"]),
            ("\\\n\\\r\nb", vec!["1:\\", "2:\\\r", "3:b"]),
            (
                "(a; \\x\nb;) ; c;",
                vec!["1:(a; ", "1:\\x", "2:b;) ;", "2:c;"],
            ),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }

    /// What may be left out in front of a piece.
    fn skip_dropped(mut text: &[u8]) -> &[u8] {
        loop {
            text = match text {
                [byte, rest @ ..] if super::super::value::is_space(*byte) => rest,
                [b'-', b'-', ..] => {
                    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    &text[end.unwrap_or(text.len())..]
                }
                _ => return text,
            };
        }
    }

    proptest! {
        #[test]
        fn pieces_join_to_the_text(
            parts in proptest::collection::vec(prop_oneof![
                Just("'"), Just("e'"), Just("\""), Just("$$"), Just("$a$"), Just("/*"), Just("*/"),
                Just("--"), Just("\n"), Just("\r\n"), Just(" "), Just(";"), Just("("), Just(")"),
                Just("create function f "), Just("begin "), Just("end "), Just("case "),
                Just("\\set x"), Just("\\ "), Just("\\"), Just("é"), Just("1"), Just("x"),
            ], 0..40)
        ) {
            // These two are replaced while splitting.
            let text = parts.concat().replace("\\;", "").replace("\\:", "");
            let mut rest = text.as_bytes();
            for piece in Splitter::new(text.as_bytes()) {
                rest = skip_dropped(rest);
                let found = match &piece {
                    Piece::Sql { text, .. } => &text[..],
                    Piece::Meta { text, .. } => *text,
                };
                prop_assert!(!found.is_empty());
                prop_assert!(rest.starts_with(found), "{piece:?} is not next in {text:?}");
                rest = &rest[found.len()..];
            }
            prop_assert!(skip_dropped(rest).is_empty(), "left over in {text:?}");
        }
    }
}
