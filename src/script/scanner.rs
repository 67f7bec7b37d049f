//! Finds the tokens of SQL as far as it takes to know what is quoted: strings, identifiers, dollar
//! quotes, comments, words. Works on bytes; what is left open ends with the text.

use super::variables::{is_letter, is_name_byte, name_length};

/// A token that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword or an identifier without quotes.
    Word(&'a [u8]),
    /// A byte that stands for itself.
    Byte(u8),
    /// Something quoted, a comment or a number.
    Other,
}

/// Walks over the tokens of SQL.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    /// Where it stands; may be moved.
    pub at: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Scanner { text, at: 0 }
    }

    /// The byte so far ahead.
    pub fn byte(&self, offset: usize) -> Option<u8> {
        self.text.get(self.at + offset).copied()
    }

    /// Moves behind the token that begins here. There must be one: the text must not be at its end.
    pub fn token(&mut self) -> Token<'a> {
        let byte = self.text[self.at];
        match (byte, self.byte(1)) {
            (b'-', Some(b'-')) => self.skip_line_comment(),
            (b'/', Some(b'*')) => self.skip_block_comment(),
            (b'\'' | b'"', _) => self.skip_quoted(byte),
            (b'e' | b'E', Some(b'\'')) => self.skip_escape_string(),
            (b'$', _) => return self.dollar(),
            _ if is_letter(byte) => return Token::Word(self.word()),
            _ if byte.is_ascii_digit() => self.skip_number(),
            _ => {
                self.at += 1;
                return Token::Byte(byte);
            }
        }
        Token::Other
    }

    fn skip_while(&mut self, keep: impl Fn(u8) -> bool) {
        self.at += self.text[self.at..]
            .iter()
            .take_while(|&&byte| keep(byte))
            .count();
    }

    fn skip_line_comment(&mut self) {
        self.skip_while(|byte| !matches!(byte, b'\n' | b'\r'));
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.byte(0) {
            match (byte, self.byte(1)) {
                (b'/', Some(b'*')) => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', Some(b'/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Up to the next quote. A doubled quote needs no care: it ends one string and begins another.
    fn skip_quoted(&mut self, quote: u8) {
        self.at += 1;
        self.skip_while(|byte| byte != quote);
        self.skip_one();
    }

    fn skip_one(&mut self) {
        self.at = (self.at + 1).min(self.text.len());
    }

    /// A string in which a backslash escapes the next byte, with its continuations, which would
    /// be read wrongly as strings of their own.
    fn skip_escape_string(&mut self) {
        self.at += 1;
        loop {
            self.skip_one();
            while let Some(byte) = self.byte(0) {
                match byte {
                    b'\'' => break,
                    b'\\' => self.skip_one(),
                    _ => {}
                }
                self.skip_one();
            }
            self.skip_one();
            if self.byte(0) == Some(b'\'') {
                continue;
            }
            match self.continuation() {
                Some(quote) => self.at = quote,
                None => return,
            }
        }
    }

    /// The place of the quote with which a string goes on after white space that has a newline.
    fn continuation(&self) -> Option<usize> {
        let mut ahead = self.at;
        let mut newline = false;
        loop {
            match self.text.get(ahead)? {
                b'\'' if newline => return Some(ahead),
                b'\n' | b'\r' => {
                    newline = true;
                    ahead += 1;
                }
                b' ' | b'\t' | b'\x0b' | b'\x0c' => ahead += 1,
                b'-' if self.text.get(ahead + 1) == Some(&b'-') => {
                    ahead += self.text[ahead..]
                        .iter()
                        .take_while(|byte| !matches!(byte, b'\n' | b'\r'))
                        .count();
                }
                _ => return None,
            }
        }
    }

    /// A dollar quote up to its end, or a dollar sign that begins none.
    fn dollar(&mut self) -> Token<'a> {
        let rest = &self.text[self.at..];
        let tag_length = name_length(&rest[1..]);
        let begins =
            rest.get(1 + tag_length) == Some(&b'$') && (tag_length == 0 || is_letter(rest[1]));
        if !begins {
            self.at += 1;
            return Token::Byte(b'$');
        }
        let quote = &rest[..tag_length + 2];
        let mut end = quote.len();
        loop {
            let Some(dollar) = rest[end..].iter().position(|&byte| byte == b'$') else {
                self.at = self.text.len();
                return Token::Other;
            };
            end += dollar;
            if rest[end..].starts_with(quote) {
                self.at += end + quote.len();
                return Token::Other;
            }
            end += 1;
        }
    }

    fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        self.skip_while(|byte| is_name_byte(byte) || byte == b'$');
        &self.text[start..self.at]
    }

    /// Digits with the letters glued to them, which are neither words nor the start of a string. A
    /// dollar sign ends it.
    fn skip_number(&mut self) {
        self.skip_while(is_name_byte);
    }
}
