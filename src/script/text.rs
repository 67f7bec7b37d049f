//! The functions on text. Text is bytes; what counts characters takes it for UTF-8, and every byte
//! that cannot continue a character for the start of one.

use std::borrow::Cow;
use std::sync::Arc;

use md5::{Digest, Md5};

use super::error::EvalError;
use super::expression::EvalContext;
use super::value::Value;

/// The longest text that an expression makes, in bytes. Scripts run in a loop, and a variable that
/// is appended to itself would soon take all memory.
const LENGTH_MAX: usize = 16 << 20;

/// What `random_text` draws from when no alphabet is given.
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The text form of a value.
fn text(value: &Value) -> Cow<'_, [u8]> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::Double(_) => {
            let mut text = Vec::new();
            value.append_text(&mut text);
            Cow::Owned(text)
        }
    }
}

fn value(text: &[u8]) -> Value {
    Value::Text(Arc::from(text))
}

fn check_length(length: usize) -> Result<usize, EvalError> {
    if length > LENGTH_MAX {
        return Err(EvalError::TextTooLong(LENGTH_MAX));
    }
    Ok(length)
}

/// A number of characters that an argument gives.
fn count(value: &Value) -> Result<usize, EvalError> {
    let count = value.integer()?;
    let count = usize::try_from(count).map_err(|_| EvalError::NegativeLength(count))?;
    check_length(count)
}

fn begins_character(byte: u8) -> bool {
    !matches!(byte, 0x80..=0xbf)
}

fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunk_by(|_, &next| !begins_character(next))
}

fn character_count(text: &[u8]) -> usize {
    characters(text).count()
}

/// The first `count` characters, and the rest.
fn split_at(text: &[u8], count: usize) -> (&[u8], &[u8]) {
    let end = characters(text).take(count).map(<[u8]>::len).sum();
    text.split_at(end)
}

pub(super) fn to_text(values: &[Value]) -> Result<Value, EvalError> {
    Ok(value(&text(&values[0])))
}

pub(super) fn concatenate(values: &[Value]) -> Result<Value, EvalError> {
    let (left, right) = (text(&values[0]), text(&values[1]));
    check_length(left.len() + right.len())?;
    Ok(value(&[left, right].concat()))
}

pub(super) fn length(values: &[Value]) -> Result<Value, EvalError> {
    let count = character_count(&text(&values[0]));
    Ok(Value::Integer(count.cast_signed() as i64))
}

/// The characters from a position on (from 1), so many or all. Positions before the first count, but
/// there is nothing at them.
pub(super) fn substr(values: &[Value]) -> Result<Value, EvalError> {
    let text = text(&values[0]);
    let first = values[1].integer()?;
    let end = match values.get(2) {
        Some(value) => {
            let count = value.integer()?;
            if count < 0 {
                return Err(EvalError::NegativeLength(count));
            }
            first.saturating_add(count)
        }
        None => i64::MAX,
    };
    let first = first.max(1);
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let taken = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    let (_, rest) = split_at(&text, skipped);
    Ok(value(split_at(rest, taken).0))
}

/// Exactly so many characters: filled up from the left, or cut at the right.
pub(super) fn lpad(values: &[Value]) -> Result<Value, EvalError> {
    let text = text(&values[0]);
    let length = values[1].integer()?.max(0);
    let length = check_length(usize::try_from(length).unwrap_or(usize::MAX))?;
    let fill = values.get(2).map_or(Cow::Borrowed(&b" "[..]), self::text);
    let missing = length.saturating_sub(character_count(&text));
    if missing == 0 {
        return Ok(value(split_at(&text, length).0));
    }
    let fill: Vec<&[u8]> = characters(&fill).collect();
    let mut padded: Vec<u8> = Vec::new();
    for character in fill.iter().cycle().take(missing) {
        padded.extend_from_slice(character);
    }
    padded.extend_from_slice(&text);
    check_length(padded.len())?;
    Ok(value(&padded))
}

pub(super) fn md5(values: &[Value]) -> Result<Value, EvalError> {
    let digest = Md5::digest(text(&values[0]));
    let mut hex = Vec::new();
    append_hex(&digest, &mut hex);
    Ok(value(&hex))
}

fn append_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// One draw (with rejection) for each character.
pub(super) fn random_text(
    context: &mut EvalContext<'_>,
    values: &[Value],
) -> Result<Value, EvalError> {
    let length = count(&values[0])?;
    let alphabet = values.get(1).map_or(Cow::Borrowed(ALPHABET), text);
    let alphabet: Vec<&[u8]> = characters(&alphabet).collect();
    if alphabet.is_empty() {
        return Err(EvalError::EmptyAlphabet);
    }
    let mut drawn = Vec::with_capacity(length);
    for _ in 0..length {
        drawn.extend_from_slice(alphabet[draw_index(context, alphabet.len())]);
    }
    check_length(drawn.len())?;
    Ok(value(&drawn))
}

/// One draw (with rejection), none for a single value.
pub(super) fn random_element(
    context: &mut EvalContext<'_>,
    values: &[Value],
) -> Result<Value, EvalError> {
    let index = draw_index(context, values.len());
    Ok(values[index].clone())
}

fn draw_index(context: &mut EvalContext<'_>, count: usize) -> usize {
    // The result is below `count`, hence it fits.
    context.generator.range(0, count as u64 - 1) as usize
}

/// A UUID of version 4. Two draws.
pub(super) fn random_uuid(
    context: &mut EvalContext<'_>,
    _values: &[Value],
) -> Result<Value, EvalError> {
    let high = context.generator.next_u64();
    let low = context.generator.next_u64();
    Ok(uuid(4, high, low))
}

/// A UUID of version 7: 48 bits of milliseconds since 1970, the rest random. Two draws.
pub(super) fn uuid_v7(
    context: &mut EvalContext<'_>,
    _values: &[Value],
) -> Result<Value, EvalError> {
    let milliseconds = context.unix_time_us / 1000;
    let high = (milliseconds << 16) | (context.generator.next_u64() & 0xffff);
    let low = context.generator.next_u64();
    Ok(uuid(7, high, low))
}

/// Sets the bits of version and variant (RFC 9562), and writes it in groups of 8, 4, 4, 4 and 12.
fn uuid(version: u64, high: u64, low: u64) -> Value {
    let high = (high & !0xf000) | (version << 12);
    let low = (low & (u64::MAX >> 2)) | (1 << 63);
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mut text = Vec::with_capacity(36);
    let mut start = 0;
    for end in [4, 6, 8, 10, 16] {
        if start > 0 {
            text.push(b'-');
        }
        append_hex(&bytes[start..end], &mut text);
        start = end;
    }
    value(&text)
}

#[cfg(test)]
mod tests {
    use crate::script::grammar::tests::value_with;

    /// The value of an expression as text, or the code of its error.
    fn shown(text: &str) -> String {
        let defined = [
            ("five", "5"),
            ("norway", "no"),
            ("name", "O'Hara"),
            ("zeros", "007"),
        ];
        match value_with(text, &defined) {
            Ok(value) => {
                let mut out = Vec::new();
                value.append_text(&mut out);
                String::from_utf8(out).expect("the cases are UTF-8")
            }
            Err(error) => error.code().to_owned(),
        }
    }

    #[test]
    fn functions_of_text_give_what_those_of_postgresql_give() {
        for (text, expected) in [
            ("'it''s'", "it's"),
            ("''", ""),
            ("'a' || 1 + 2 || null", "NULL"),
            ("'a' || 1 + 2 || true", "a3true"),
            ("text(1.50)", "1.5"),
            ("length('héllo')", "5"),
            ("length('')", "0"),
            ("substr('héllo', 2, 3)", "éll"),
            ("substr('hello', -1, 3)", "h"),
            ("substr('hello', 3)", "llo"),
            ("substr('hello', 9)", ""),
            (
                "substr('hello', 9223372036854775807, 9223372036854775807)",
                "",
            ),
            ("substr('hello', 1, -1)", "negative-length"),
            ("lpad(7, 3, '0')", "007"),
            ("lpad('hello', 3)", "hel"),
            ("lpad('é', 4, 'xy')", "xyxé"),
            ("lpad('a', 5, '')", "a"),
            ("lpad('a', -1)", ""),
            ("lpad('a', 9223372036854775807)", "text-too-long"),
            ("md5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
            ("greatest('a', 'b', 'ab')", "b"),
            ("least('b', 'a')", "a"),
            (
                "'a' < 'b' and 'b' > 'a' and 'a' <> 'b' and not 'a' = 'b'",
                "true",
            ),
            ("case when 'a' = 'a' then 'yes' else 1 end", "yes"),
            ("'a' = 1", "coerce-text-to-int"),
            ("'a' + 1", "coerce-text-to-int"),
            ("not 'a'", "coerce-text-to-boolean"),
            ("case when 'a' then 1 end", "coerce-text-to-boolean"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_set_from_text_is_text_where_text_is_wanted() {
        for (text, expected) in [
            (":zeros", "7"),
            (":zeros || ''", "007"),
            ("length(:zeros)", "3"),
            (":zeros = '007'", "true"),
            (":zeros = 7", "true"),
            (":norway = 'no'", "true"),
            ("'no' = :norway", "true"),
            (":name = 'O''Hara'", "true"),
            (":name > :norway", "false"),
            (":name = :name", "true"),
            ("greatest(:five, '4')", "5"),
            ("greatest(:five, 4)", "5"),
            (":name", "bad-var-value"),
            (":name = 1", "bad-var-value"),
            (":name + 1", "bad-var-value"),
            ("case when :name then 1 end", "bad-var-value"),
            (":nobody = 'x'", "undefined-var"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn random_text_comes_from_the_stream() {
        // The generator of these tests has seed 0; each draw is the top bits of its next output.
        let text = shown("random_text(20)");
        assert_eq!(text.len(), 20);
        assert!(text.bytes().all(|byte| super::ALPHABET.contains(&byte)));
        assert_eq!(shown("random_text(20)"), text);
        assert_eq!(shown("length(random_text(3, 'äö'))"), "3");
        assert_eq!(shown("random_text(3, 'x')"), "xxx");
        assert_eq!(shown("random_text(0)"), "");
        assert_eq!(shown("random_text(1, '')"), "empty-alphabet");
        assert_eq!(shown("random_text(-1)"), "negative-length");
        assert_eq!(shown("random_text(1000000000)"), "text-too-long");
        assert_eq!(shown("random_element('only')"), "only");
        assert!(["a", "b"].contains(&shown("random_element('a', 'b')").as_str()));
    }

    #[test]
    fn uuids_have_their_version_and_variant() {
        let random = shown("random_uuid()");
        assert_eq!(random.len(), 36);
        assert_eq!(&random[14..15], "4");
        assert!("89ab".contains(&random[19..20]), "{random}");
        // 1,700,000,000,123 ms is 18bcfe5687b in hexadecimal.
        let timed = shown("uuid_v7()");
        assert!(timed.starts_with("018bcfe5-687b-7"), "{timed}");
        assert!("89ab".contains(&timed[19..20]), "{timed}");
    }
}
