//! The tokens of expressions, and the white space of meta commands.

use std::ops::Range;

use super::Dialect;
use super::error::{Problem, shown};
use super::value::{digit_count, parse_double, parse_integer};
use super::variables::{is_letter, is_name_byte, name_length};

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Integer(i64),
    /// 9223372036854775808, which is a number only behind a unary minus.
    IntegerMinimum,
    Double(f64),
    Variable(&'a [u8]),
    /// Text between single quotes, those inside still doubled.
    Text(&'a [u8]),
    /// A word that is no keyword.
    Name(&'a [u8]),
    Keyword(Keyword),
    Symbol(Symbol),
    /// The end of the command.
    End,
}

/// A reserved word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
    True,
    False,
    Null,
}

const KEYWORDS: [(&str, Keyword); 14] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("is", Keyword::Is),
    ("isnull", Keyword::IsNull),
    ("notnull", Keyword::NotNull),
    ("case", Keyword::Case),
    ("when", Keyword::When),
    ("then", Keyword::Then),
    ("else", Keyword::Else),
    ("end", Keyword::End),
    ("true", Keyword::True),
    ("false", Keyword::False),
    ("null", Keyword::Null),
];

/// Punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Ampersand,
    Bar,
    Concatenate,
    Hash,
    ShiftLeft,
    ShiftRight,
    Tilde,
    Open,
    Close,
    Comma,
}

/// Longer ones before those that they begin with. The first one is an extension.
const SYMBOLS: [(&[u8], Symbol); 22] = [
    (b"||", Symbol::Concatenate),
    (b"<=", Symbol::LessOrEqual),
    (b"<>", Symbol::NotEqual),
    (b"<<", Symbol::ShiftLeft),
    (b"<", Symbol::Less),
    (b">=", Symbol::GreaterOrEqual),
    (b">>", Symbol::ShiftRight),
    (b">", Symbol::Greater),
    (b"!=", Symbol::NotEqual),
    (b"=", Symbol::Equal),
    (b"+", Symbol::Plus),
    (b"-", Symbol::Minus),
    (b"*", Symbol::Star),
    (b"/", Symbol::Slash),
    (b"%", Symbol::Percent),
    (b"&", Symbol::Ampersand),
    (b"|", Symbol::Bar),
    (b"#", Symbol::Hash),
    (b"~", Symbol::Tilde),
    (b"(", Symbol::Open),
    (b")", Symbol::Close),
    (b",", Symbol::Comma),
];

/// Something wrong inside of a meta command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub problem: Problem,
    /// Where the caret goes: a byte offset from the backslash.
    pub caret: Option<usize>,
}

/// Reads tokens from the text of a meta command.
pub(super) struct Tokens<'a> {
    dialect: Dialect,
    text: &'a [u8],
    at: usize,
    /// Whether a line feed follows the text.
    terminated: bool,
    /// The place of the last token.
    span: Range<usize>,
}

impl<'a> Tokens<'a> {
    /// Begins to read at an offset.
    pub fn new(dialect: Dialect, text: &'a [u8], at: usize, terminated: bool) -> Self {
        Tokens {
            dialect,
            text,
            at,
            terminated,
            span: at..at,
        }
    }

    /// The language that is read.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token<'a>, Fault> {
        self.at = skip_blanks(self.text, self.at);
        let rest = &self.text[self.at..];
        let (token, length) = match rest {
            [] => (Ok(Token::End), 0),
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => number(rest),
            [b':', byte, ..] if is_name_byte(*byte) => {
                let length = 1 + name_length(&rest[1..]);
                (Ok(Token::Variable(&rest[1..length])), length)
            }
            [byte, ..] if is_letter(*byte) => {
                let length = name_length(rest);
                (Ok(word(&rest[..length])), length)
            }
            [b'\'', ..] if self.dialect == Dialect::Extended => text(rest),
            _ => symbol(self.dialect, rest),
        };
        self.span = self.at..self.at + length;
        self.at += length;
        token.map_err(|problem| self.fault(problem))
    }

    /// The last token as it is written; none at the end.
    pub fn found(&self) -> Option<String> {
        (!self.span.is_empty()).then(|| shown(&self.text[self.span.clone()]))
    }

    /// A fault in the last token: the caret goes under its last byte. The line feed counts as a byte
    /// of the end, the end of the script does not.
    pub fn fault(&self, problem: Problem) -> Fault {
        let past_end = self.span.is_empty() && self.terminated;
        let caret = if past_end {
            self.text.len()
        } else {
            self.span.end.saturating_sub(1)
        };
        Fault {
            problem,
            caret: Some(caret),
        }
    }
}

fn word(word: &[u8]) -> Token<'_> {
    KEYWORDS
        .iter()
        .find(|(keyword, _)| keyword.as_bytes().eq_ignore_ascii_case(word))
        .map_or(Token::Name(word), |&(_, keyword)| Token::Keyword(keyword))
}

fn symbol<'a>(dialect: Dialect, text: &[u8]) -> (Result<Token<'a>, Problem>, usize) {
    let symbols = match dialect {
        Dialect::Extended => &SYMBOLS[..],
        Dialect::Pgbench => &SYMBOLS[1..],
    };
    match symbols.iter().find(|(symbol, _)| text.starts_with(symbol)) {
        Some(&(spelling, symbol)) => (Ok(Token::Symbol(symbol)), spelling.len()),
        None => (Err(Problem::BadCharacter(shown(&text[..1]))), 1),
    }
}

/// A single quote up to the next one that is not doubled.
fn text(text: &[u8]) -> (Result<Token<'_>, Problem>, usize) {
    let mut end = 1;
    while let Some(byte) = text.get(end) {
        let doubled = text.get(end + 1) == Some(&b'\'');
        match byte {
            b'\'' if !doubled => return (Ok(Token::Text(&text[1..end])), end + 1),
            b'\'' => end += 2,
            _ => end += 1,
        }
    }
    (Err(Problem::UnterminatedText), text.len())
}

/// Digits, or digits with a point, an exponent, or both.
fn number<'a>(text: &[u8]) -> (Result<Token<'a>, Problem>, usize) {
    let integral = digit_count(text);
    let mut length = integral;
    if text.get(length) == Some(&b'.') {
        length += 1 + digit_count(&text[length + 1..]);
    }
    if let Some(b'e' | b'E') = text.get(length) {
        let signed = matches!(text.get(length + 1), Some(b'+' | b'-'));
        let exponent = length + 1 + usize::from(signed);
        match digit_count(text.get(exponent..).unwrap_or_default()) {
            0 => {}
            count => length = exponent + count,
        }
    }
    let literal = &text[..length];
    let token = if length == integral {
        integer(literal)
    } else {
        parse_double(literal)
            .map(Token::Double)
            .ok_or_else(|| Problem::DoubleLiteral(shown(literal)))
    };
    (token, length)
}

fn integer<'a>(digits: &[u8]) -> Result<Token<'a>, Problem> {
    if digits == b"9223372036854775808" {
        return Ok(Token::IntegerMinimum);
    }
    parse_integer(false, digits)
        .map(Token::Integer)
        .ok_or_else(|| Problem::IntegerLiteral(shown(digits)))
}

/// The end of the white space that begins at an offset. A backslash right before the end of a line
/// continues it, and is white space.
pub(super) fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    loop {
        match blank_length(&text[at..]) {
            0 => return at,
            length => at += length,
        }
    }
}

/// The word that begins at an offset, up to the next white space; empty at the end.
pub(super) fn word_at(text: &[u8], start: usize) -> Range<usize> {
    let mut end = start;
    while end < text.len() && blank_length(&text[end..]) == 0 {
        end += 1;
    }
    start..end
}

fn blank_length(text: &[u8]) -> usize {
    match text {
        [b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c', ..] => 1,
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
        let mut tokens = Tokens::new(Dialect::Pgbench, text.as_bytes(), 0, true);
        let mut read = Vec::new();
        loop {
            match tokens.next()? {
                Token::End => return Ok(read),
                token => read.push(token),
            }
        }
    }

    #[test]
    fn numbers_take_what_belongs_to_them() {
        for (text, expected) in [
            ("007", vec![Token::Integer(7)]),
            ("1.", vec![Token::Double(1.0)]),
            (".5", vec![Token::Double(0.5)]),
            ("1.e2", vec![Token::Double(100.0)]),
            ("1e", vec![Token::Integer(1), Token::Name(b"e")]),
            (
                "1e+",
                vec![
                    Token::Integer(1),
                    Token::Name(b"e"),
                    Token::Symbol(Symbol::Plus),
                ],
            ),
            ("1..2", vec![Token::Double(1.0), Token::Double(0.2)]),
            ("9223372036854775808", vec![Token::IntegerMinimum]),
        ] {
            assert_eq!(tokens(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn text_is_a_token_of_the_extended_dialect() {
        let read = |text: &'static str| {
            let mut tokens = Tokens::new(Dialect::Extended, text.as_bytes(), 0, true);
            tokens.next().map_err(|fault| fault.problem.code())
        };
        assert_eq!(read("'a''b' || 'c'"), Ok(Token::Text(b"a''b")));
        assert_eq!(read("''"), Ok(Token::Text(b"")));
        assert_eq!(read("'a''"), Err("unterminated-text"));
        assert_eq!(read("||"), Ok(Token::Symbol(Symbol::Concatenate)));
    }

    #[test]
    fn faults_point_at_the_last_byte_of_the_token() {
        for (text, code, caret) in [
            ("1 ^", "bad-char", 2),
            ("1 !", "bad-char", 2),
            (".", "bad-char", 0),
            (": x", "bad-char", 0),
            ("'x'", "bad-char", 0),
            ("\\x", "bad-char", 0),
            ("99999999999999999999", "int-literal-range", 19),
            ("1 1e999", "double-literal-range", 6),
            ("09223372036854775808", "int-literal-range", 19),
        ] {
            let fault = tokens(text).expect_err(text);
            assert_eq!(
                (fault.problem.code(), fault.caret),
                (code, Some(caret)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_backslash_before_the_end_of_a_line_is_white_space() {
        assert_eq!(
            tokens("a\\\n\\\r\n :b"),
            Ok(vec![Token::Name(b"a"), Token::Variable(b"b")])
        );
    }
}
