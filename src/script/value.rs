//! Values of expressions: their coercions, their text form, and the guess of a value from text.
//! Knows nothing of variables or functions.

use std::io::Write;
use std::sync::Arc;

use bytes::BufMut;

use super::error::{EvalError, Type};

/// What an expression yields and a variable holds.
// A discriminant as wide as what follows it: a narrow one makes the compiler move the rest at odd
// offsets, and the processor then waits for the store of a number before it can be loaded again.
#[derive(Clone, Debug, PartialEq)]
#[repr(u64)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// 64 bits, signed.
    Integer(i64),
    /// IEEE double precision.
    Double(f64),
    /// Bytes of any encoding.
    Text(Arc<[u8]>),
}

impl Value {
    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Boolean(_) => Type::Boolean,
            Value::Integer(_) => Type::Integer,
            Value::Double(_) => Type::Double,
            Value::Text(_) => Type::Text,
        }
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// As an integer; a double is rounded half to even, and must then fit.
    #[inline]
    pub fn integer(&self) -> Result<i64, EvalError> {
        match self {
            Value::Integer(integer) => Ok(*integer),
            Value::Double(double) => double_to_integer(*double),
            Value::Null | Value::Boolean(_) | Value::Text(_) => Err(self.not(Type::Integer)),
        }
    }

    /// As a double.
    #[inline]
    pub fn double(&self) -> Result<f64, EvalError> {
        match self {
            Value::Integer(integer) => Ok(*integer as f64),
            Value::Double(double) => Ok(*double),
            Value::Null | Value::Boolean(_) | Value::Text(_) => Err(self.not(Type::Double)),
        }
    }

    /// As an operand of AND, OR, NOT: only a boolean will do.
    pub fn boolean(&self) -> Result<bool, EvalError> {
        match self {
            Value::Boolean(boolean) => Ok(*boolean),
            Value::Null | Value::Integer(_) | Value::Double(_) | Value::Text(_) => {
                Err(self.not(Type::Boolean))
            }
        }
    }

    /// As a condition: null is false, a number is true unless it is zero.
    pub fn truth(&self) -> Result<bool, EvalError> {
        match self {
            Value::Null => Ok(false),
            Value::Boolean(boolean) => Ok(*boolean),
            Value::Integer(integer) => Ok(*integer != 0),
            Value::Double(double) => Ok(*double != 0.0),
            Value::Text(_) => Err(self.not(Type::Boolean)),
        }
    }

    fn not(&self, to: Type) -> EvalError {
        let from = self.kind();
        EvalError::Coerce { from, to }
    }

    /// Appends the text form, as it is substituted into SQL and shown to the shell.
    pub fn append_text(&self, out: &mut impl BufMut) {
        match self {
            Value::Null => out.put_slice(b"NULL"),
            Value::Boolean(true) => out.put_slice(b"true"),
            Value::Boolean(false) => out.put_slice(b"false"),
            Value::Integer(integer) => {
                out.put_slice(itoa::Buffer::new().format(*integer).as_bytes());
            }
            Value::Double(double) => append_double(*double, out),
            Value::Text(text) => out.put_slice(text),
        }
    }
}

/// What makes a value one token of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    /// Single quotes.
    Literal,
    /// Double quotes.
    Identifier,
}

impl Quote {
    pub fn byte(self) -> u8 {
        match self {
            Quote::Literal => b'\'',
            Quote::Identifier => b'"',
        }
    }

    /// Appends text between these quotes. A literal with a backslash is marked as one with escapes,
    /// so that it means the same whatever `standard_conforming_strings` is.
    pub fn append(self, text: &[u8], out: &mut impl BufMut) {
        let escapes = self == Quote::Literal && text.contains(&b'\\');
        if escapes {
            out.put_slice(b" E");
        }
        out.put_u8(self.byte());
        for &byte in text {
            if byte == self.byte() || (escapes && byte == b'\\') {
                out.put_u8(byte);
            }
            out.put_u8(byte);
        }
        out.put_u8(self.byte());
    }
}

#[inline]
fn double_to_integer(double: f64) -> Result<i64, EvalError> {
    // Both limits are powers of two, so they are exact; 2^63 itself no longer fits.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let rounded = double.round_ties_even();
    if (-LIMIT..LIMIT).contains(&rounded) {
        Ok(rounded as i64)
    } else {
        Err(EvalError::DoubleToInteger(double))
    }
}

/// Significant digits of a double's text form.
const DIGITS: usize = 15;

/// Appends a double as C's `%.15g` writes it, with the words that PostgreSQL uses for infinities.
fn append_double(double: f64, out: &mut impl BufMut) {
    if double.is_nan() {
        return out.put_slice(b"NaN");
    }
    if double.is_infinite() {
        let word: &[u8] = if double > 0.0 {
            b"Infinity"
        } else {
            b"-Infinity"
        };
        return out.put_slice(word);
    }
    if double.is_sign_negative() {
        out.put_u8(b'-');
    }
    let (digits, exponent) = significant_digits(double.abs());
    let used = DIGITS
        - digits
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'0')
            .count();
    let digits = &digits[..used.max(1)];
    match exponent {
        0..15 => append_fixed(digits, exponent.unsigned_abs() as usize + 1, out),
        -4..0 => {
            out.put_slice(b"0.");
            out.put_bytes(b'0', exponent.unsigned_abs() as usize - 1);
            out.put_slice(digits);
        }
        _ => append_exponential(digits, exponent, out),
    }
}

/// The first fifteen significant digits, correctly rounded, and the decimal exponent of the first.
fn significant_digits(magnitude: f64) -> ([u8; DIGITS], i32) {
    // "d.dddddddddddddde-308" has 21 bytes.
    let mut buffer = [0_u8; 32];
    let mut cursor = &mut buffer[..];
    write!(cursor, "{magnitude:.*e}", DIGITS - 1)
        .expect("the buffer is long enough for any double");
    let unused = cursor.len();
    let text = &buffer[..buffer.len() - unused];
    let mut digits = [b'0'; DIGITS];
    digits[0] = text[0];
    digits[1..].copy_from_slice(&text[2..=DIGITS]);
    let exponent = std::str::from_utf8(&text[DIGITS + 2..])
        .ok()
        .and_then(|text| text.parse().ok())
        .expect("the exponent is a small integer");
    (digits, exponent)
}

fn append_fixed(digits: &[u8], integral: usize, out: &mut impl BufMut) {
    if digits.len() <= integral {
        out.put_slice(digits);
        out.put_bytes(b'0', integral - digits.len());
    } else {
        out.put_slice(&digits[..integral]);
        out.put_u8(b'.');
        out.put_slice(&digits[integral..]);
    }
}

fn append_exponential(digits: &[u8], exponent: i32, out: &mut impl BufMut) {
    append_fixed(digits, 1, out);
    out.put_slice(if exponent < 0 { b"e-" } else { b"e+" });
    let magnitude = exponent.unsigned_abs();
    if magnitude < 10 {
        out.put_u8(b'0');
    }
    out.put_slice(itoa::Buffer::new().format(magnitude).as_bytes());
}

/// Why text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoValue {
    /// There is no text.
    Empty,
    /// It is an integer beyond 64 bits.
    IntegerRange,
    /// It is nothing known, or a double that is too large or too small.
    Unknown,
}

/// The value that text from outside (a definition, a column) stands for; the first rule that fits.
pub(super) fn guess(text: &[u8]) -> Result<Value, NoValue> {
    if text.is_empty() {
        Err(NoValue::Empty)
    } else if text.eq_ignore_ascii_case(b"null") {
        Ok(Value::Null)
    } else if let Some(boolean) = guess_boolean(text) {
        Ok(Value::Boolean(boolean))
    } else if let Some(integer) = guess_integer(text) {
        integer.map(Value::Integer)
    } else {
        parse_double(trim_start(text))
            .map(Value::Double)
            .ok_or(NoValue::Unknown)
    }
}

/// Any beginning of true, yes, false, no; and on, of, off, but not the o that they share.
fn guess_boolean(text: &[u8]) -> Option<bool> {
    let begins = |word: &[u8]| {
        word.get(..text.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    if begins(b"true") || begins(b"yes") || text.eq_ignore_ascii_case(b"on") {
        Some(true)
    } else if begins(b"false") || begins(b"no") || (text.len() > 1 && begins(b"off")) {
        Some(false)
    } else {
        None
    }
}

/// Blanks, a sign, digits and nothing else. Looks like an integer without any digit, too, and is
/// refused then.
fn guess_integer(text: &[u8]) -> Option<Result<i64, NoValue>> {
    let (negative, digits) = split_sign(trim_start(text));
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.is_empty() {
        return Some(Err(NoValue::Unknown));
    }
    Some(parse_integer(negative, digits).ok_or(NoValue::IntegerRange))
}

/// Decimal digits as a 64-bit integer; none if they do not fit. `digits` must be all digits.
pub(super) fn parse_integer(negative: bool, digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |value, &digit| {
        let digit = i64::from(digit - b'0');
        let shifted = value.checked_mul(10)?;
        if negative {
            shifted.checked_sub(digit)
        } else {
            shifted.checked_add(digit)
        }
    })
}

/// A double as C's `strtod` reads it, if that takes the whole text and loses nothing but precision.
pub(super) fn parse_double(text: &[u8]) -> Option<f64> {
    let (negative, unsigned) = split_sign(text);
    let magnitude = match unsigned {
        [b'0', b'x' | b'X', hexadecimal @ ..] => parse_hexadecimal(hexadecimal)?,
        [b'0'..=b'9' | b'.', ..] => parse_decimal(unsigned)?,
        _ => parse_word(unsigned)?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_word(text: &[u8]) -> Option<f64> {
    if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
        Some(f64::INFINITY)
    } else if text.eq_ignore_ascii_case(b"nan") {
        Some(f64::NAN)
    } else {
        None
    }
}

fn parse_decimal(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next()?;
    let zero = !mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    in_range(value, zero)
}

/// Mantissa digits with an optional point, then optionally `p` and a binary exponent.
fn parse_hexadecimal(text: &[u8]) -> Option<f64> {
    let split = text.iter().position(|byte| matches!(byte, b'p' | b'P'));
    let (mantissa, exponent) = match split {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut parts = mantissa.splitn(2, |&byte| byte == b'.');
    let integral = parts.next().unwrap_or_default();
    let fraction = parts.next().unwrap_or_default();
    if integral.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut bits: u64 = 0;
    let mut scale: i64 = 0;
    for &byte in integral.iter().chain(fraction) {
        let digit = u64::from(char::from(byte).to_digit(16)?);
        if bits >> 59 == 0 {
            bits = bits << 4 | digit;
        } else {
            // The lowest bit stands for all that follow, so that the sum rounds correctly.
            bits |= u64::from(digit != 0);
            scale += 4;
        }
    }
    scale -= 4 * i64::try_from(fraction.len()).ok()?;
    let zero = bits == 0;
    in_range(scale_by_power_of_two(bits as f64, exponent + scale), zero)
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Far beyond what a double holds, and yet safe to add to.
    const LIMIT: i64 = 1 << 40;
    let limit = if negative { -LIMIT } else { LIMIT };
    let parsed = parse_integer(negative, digits).unwrap_or(limit);
    Some(parsed.clamp(-LIMIT, LIMIT))
}

fn scale_by_power_of_two(mut value: f64, exponent: i64) -> f64 {
    // In steps that are powers of two themselves, hence exact while the value stays normal.
    let mut left = exponent.clamp(-5000, 5000) as i32;
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        value *= 2.0_f64.powi(step);
        left -= step;
    }
    value
}

/// Refuses what overflowed, underflowed or lost precision below the smallest normal double.
fn in_range(value: f64, zero: bool) -> Option<f64> {
    (zero || value.is_normal()).then_some(value)
}

/// Whether a minus stands at the beginning, and what follows it or a plus.
pub(super) fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// What follows the white space at the beginning: C's idea of it, which has one character more than
/// Rust's.
pub(super) fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_space(byte)).count();
    &text[blanks..]
}

/// How many digits stand at the beginning.
pub(super) fn digit_count(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Blank, tab, line feed, vertical tab, form feed, carriage return.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value) -> String {
        let mut out = Vec::new();
        value.append_text(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn doubles_are_written_as_c_writes_them() {
        for (double, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (0.1 + 0.2, "0.3"),
            (123_456_789.123_456_79, "123456789.123457"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (999_999_999_999_999.9, "1e+15"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (1e100, "1e+100"),
            (f64::MAX, "1.79769313486232e+308"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(text(Value::Double(double)), expected);
        }
    }

    #[test]
    fn text_is_guessed_by_the_first_rule_that_fits() {
        for (given, expected) in [
            ("NULL", Ok(Value::Null)),
            ("t", Ok(Value::Boolean(true))),
            ("tRu", Ok(Value::Boolean(true))),
            ("y", Ok(Value::Boolean(true))),
            ("on", Ok(Value::Boolean(true))),
            ("of", Ok(Value::Boolean(false))),
            ("off", Ok(Value::Boolean(false))),
            ("n", Ok(Value::Boolean(false))),
            ("o", Err(NoValue::Unknown)),
            ("", Err(NoValue::Empty)),
            ("0", Ok(Value::Integer(0))),
            (" -12", Ok(Value::Integer(-12))),
            ("-9223372036854775808", Ok(Value::Integer(i64::MIN))),
            ("9223372036854775808", Err(NoValue::IntegerRange)),
            ("-", Err(NoValue::Unknown)),
            ("1 ", Err(NoValue::Unknown)),
            ("1e3", Ok(Value::Double(1000.0))),
            ("\u{b} .5", Ok(Value::Double(0.5))),
            (".", Err(NoValue::Unknown)),
            ("0x1F", Ok(Value::Double(31.0))),
            ("-0x.8p1", Ok(Value::Double(-1.0))),
            ("0x", Err(NoValue::Unknown)),
            ("0x1p-2000", Err(NoValue::Unknown)),
            ("0x1p99999999999999999999", Err(NoValue::Unknown)),
            ("0e999", Ok(Value::Double(0.0))),
            ("1e400", Err(NoValue::Unknown)),
            ("1e-320", Err(NoValue::Unknown)),
            ("-Infinity", Ok(Value::Double(f64::NEG_INFINITY))),
            ("infin", Err(NoValue::Unknown)),
        ] {
            assert_eq!(guess(given.as_bytes()), expected, "{given:?}");
        }
        assert!(matches!(guess(b"-nan"), Ok(Value::Double(nan)) if nan.is_nan()));
    }

    #[test]
    fn doubles_round_half_to_even_and_must_fit() {
        for (double, expected) in [
            (0.5, Some(0)),
            (1.5, Some(2)),
            (-2.5, Some(-2)),
            (-9_223_372_036_854_775_808.0, Some(i64::MIN)),
            (9_223_372_036_854_775_808.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(Value::Double(double).integer().ok(), expected, "{double}");
        }
    }
}
