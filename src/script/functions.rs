//! The functions and operators of expressions. [`FUNCTIONS`] is the one list of what can be called
//! by name: parser, error messages and help read it. A new function is a row there.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::error::{Arithmetic, Distribution, EvalError};
use super::expression::EvalContext;
use super::value::Value;
use super::{Dialect, text};
use crate::random::{self, Generator, Span};

/// A function or an operator.
#[derive(Debug)]
pub struct Function {
    /// Lower case; the name in a script may be written in any case.
    pub name: &'static str,
    /// What it takes.
    pub arity: Arity,
    /// What it gives, in one line.
    pub summary: &'static str,
    /// Whether only [`Dialect::Extended`] knows it.
    pub extension: bool,
    pub(super) nulls: Nulls,
    pub(super) text: TextArguments,
    pub(super) eval: Eval,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// This many.
    Exactly(usize),
    /// This many or more.
    AtLeast(usize),
    /// At least this many, at most that many.
    Between(usize, usize),
    /// This many, and a seed that is the variable `default_seed` if it is left out.
    AndSeed(usize),
}

impl Arity {
    /// Whether a call with this many arguments is allowed.
    pub fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(exact) => count == exact,
            Arity::AtLeast(least) => count >= least,
            Arity::Between(least, most) => (least..=most).contains(&count),
            Arity::AndSeed(least) => count == least || count == least + 1,
        }
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arity::Exactly(0) => f.write_str("no arguments"),
            Arity::Exactly(1) => f.write_str("1 argument"),
            Arity::Exactly(exact) => write!(f, "{exact} arguments"),
            Arity::AtLeast(least) => write!(f, "{least} or more arguments"),
            Arity::Between(least, most) => write!(f, "{least} to {most} arguments"),
            Arity::AndSeed(least) => write!(f, "{least} or {} arguments", least + 1),
        }
    }
}

/// Which arguments are text, or may be. A variable set from text is read as text there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextArguments {
    None,
    /// Those at these indices.
    At(&'static [usize]),
    /// All of them or none.
    Alike,
}

/// What happens when an argument is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    /// The result is null, whatever the other arguments are.
    GiveNull,
    /// The function sees it.
    AreArguments,
}

/// The code of a function. It is called with as many arguments as its arity allows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Eval {
    /// Depends on its arguments alone, so that it can be evaluated while parsing.
    Pure(fn(&[Value]) -> Result<Value, EvalError>),
    /// Draws random numbers or writes messages.
    InContext(fn(&mut EvalContext<'_>, &[Value]) -> Result<Value, EvalError>),
}

const fn pure(
    name: &'static str,
    arity: Arity,
    summary: &'static str,
    eval: fn(&[Value]) -> Result<Value, EvalError>,
) -> Function {
    Function {
        name,
        arity,
        summary,
        extension: false,
        nulls: Nulls::GiveNull,
        text: TextArguments::None,
        eval: Eval::Pure(eval),
    }
}

const fn in_context(
    name: &'static str,
    arity: Arity,
    summary: &'static str,
    eval: fn(&mut EvalContext<'_>, &[Value]) -> Result<Value, EvalError>,
) -> Function {
    Function {
        name,
        arity,
        summary,
        extension: false,
        nulls: Nulls::GiveNull,
        text: TextArguments::None,
        eval: Eval::InContext(eval),
    }
}

/// Not in pgbench.
const fn extension(text: TextArguments, function: Function) -> Function {
    Function {
        extension: true,
        text,
        ..function
    }
}

/// Takes numbers, or text if all arguments are.
const fn alike(function: Function) -> Function {
    Function {
        text: TextArguments::Alike,
        ..function
    }
}

/// Everything that can be called by name, in alphabetical order.
pub static FUNCTIONS: &[Function] = &[
    pure("abs", Arity::Exactly(1), "absolute value", abs),
    Function {
        nulls: Nulls::AreArguments,
        ..in_context(
            "debug",
            Arity::Exactly(1),
            "its argument, which it also writes to standard error",
            debug,
        )
    },
    pure(
        "double",
        Arity::Exactly(1),
        "number as a double",
        |values| values[0].double().map(Value::Double),
    ),
    pure("exp", Arity::Exactly(1), "e to the power of x", |values| {
        Ok(Value::Double(values[0].double()?.exp()))
    }),
    alike(pure(
        "greatest",
        Arity::AtLeast(1),
        "largest of the numbers, or of the texts",
        |values| extreme(values, Ordering::is_gt, |a, b| a > b),
    )),
    pure(
        "hash",
        Arity::AndSeed(1),
        "the same as hash_murmur2",
        |values| hash(values, random::hash_murmur2),
    ),
    pure(
        "hash_fnv1a",
        Arity::AndSeed(1),
        "FNV-1a hash of an integer",
        |values| hash(values, random::hash_fnv1a),
    ),
    pure(
        "hash_murmur2",
        Arity::AndSeed(1),
        "MurmurHash2 of an integer",
        |values| hash(values, random::hash_murmur2),
    ),
    pure(
        "int",
        Arity::Exactly(1),
        "number as an integer, halves rounded to even",
        |values| values[0].integer().map(Value::Integer),
    ),
    alike(pure(
        "least",
        Arity::AtLeast(1),
        "smallest of the numbers, or of the texts",
        |values| extreme(values, Ordering::is_lt, |a, b| a < b),
    )),
    extension(
        TextArguments::At(&[0]),
        pure(
            "length",
            Arity::Exactly(1),
            "number of characters",
            text::length,
        ),
    ),
    pure("ln", Arity::Exactly(1), "natural logarithm", |values| {
        Ok(Value::Double(values[0].double()?.ln()))
    }),
    extension(
        TextArguments::At(&[0, 2]),
        pure(
            "lpad",
            Arity::Between(2, 3),
            "text filled up from the left to a length, with blanks or a third argument",
            text::lpad,
        ),
    ),
    extension(
        TextArguments::At(&[0]),
        pure(
            "md5",
            Arity::Exactly(1),
            "MD5 hash in hexadecimal",
            text::md5,
        ),
    ),
    pure("mod", Arity::Exactly(2), "integer remainder", remainder),
    pure(
        "permute",
        Arity::AndSeed(2),
        "place of i in a random permutation of 0 to size - 1",
        permute,
    ),
    pure("pi", Arity::Exactly(0), "the number π", |_| {
        Ok(Value::Double(std::f64::consts::PI))
    }),
    pure("pow", Arity::Exactly(2), "x to the power of y", power),
    pure("power", Arity::Exactly(2), "the same as pow", power),
    in_context(
        "random",
        Arity::Exactly(2),
        "uniform random integer between two bounds",
        |context, values| {
            let span = span(values)?;
            Ok(Value::Integer(context.generator.uniform(span)))
        },
    ),
    Function {
        nulls: Nulls::AreArguments,
        ..extension(
            TextArguments::Alike,
            in_context(
                "random_element",
                Arity::AtLeast(1),
                "one of the arguments",
                text::random_element,
            ),
        )
    },
    in_context(
        "random_exponential",
        Arity::Exactly(3),
        "exponential random integer between two bounds",
        |context, values| draw(context, values, &EXPONENTIAL, Generator::exponential),
    ),
    in_context(
        "random_gaussian",
        Arity::Exactly(3),
        "normal random integer between two bounds",
        |context, values| draw(context, values, &GAUSSIAN, Generator::gaussian),
    ),
    extension(
        TextArguments::At(&[1]),
        in_context(
            "random_text",
            Arity::Between(1, 2),
            "random text of a length, from an alphabet or of lower-case letters and digits",
            text::random_text,
        ),
    ),
    extension(
        TextArguments::None,
        in_context(
            "random_uuid",
            Arity::Exactly(0),
            "random UUID (version 4)",
            text::random_uuid,
        ),
    ),
    in_context(
        "random_zipfian",
        Arity::Exactly(3),
        "zipfian random integer between two bounds",
        |context, values| draw(context, values, &ZIPFIAN, Generator::zipfian),
    ),
    pure("sqrt", Arity::Exactly(1), "square root", |values| {
        Ok(Value::Double(values[0].double()?.sqrt()))
    }),
    extension(
        TextArguments::At(&[0]),
        pure(
            "substr",
            Arity::Between(2, 3),
            "characters from a position (from 1), so many or all",
            text::substr,
        ),
    ),
    extension(
        TextArguments::At(&[0]),
        pure("text", Arity::Exactly(1), "value as text", text::to_text),
    ),
    extension(
        TextArguments::None,
        in_context(
            "uuid_v7",
            Arity::Exactly(0),
            "UUID of the current time (version 7)",
            text::uuid_v7,
        ),
    ),
];

/// The functions that a dialect knows.
pub(super) fn known(dialect: Dialect) -> impl Iterator<Item = &'static Function> {
    FUNCTIONS
        .iter()
        .filter(move |function| dialect == Dialect::Extended || !function.extension)
}

/// The function of a name written in any case.
pub(super) fn find(name: &[u8], dialect: Dialect) -> Option<&'static Function> {
    known(dialect).find(|function| function.name.as_bytes().eq_ignore_ascii_case(name))
}

const fn operator(
    symbol: &'static str,
    summary: &'static str,
    eval: fn(&[Value]) -> Result<Value, EvalError>,
) -> Function {
    pure(symbol, Arity::Exactly(2), summary, eval)
}

pub(super) static ADD: Function = operator("+", "sum", |values| {
    arithmetic(values, Arithmetic::Addition, i64::checked_add, |a, b| a + b)
});
pub(super) static SUBTRACT: Function = operator("-", "difference", |values| {
    arithmetic(values, Arithmetic::Subtraction, i64::checked_sub, |a, b| {
        a - b
    })
});
pub(super) static MULTIPLY: Function = operator("*", "product", |values| {
    arithmetic(
        values,
        Arithmetic::Multiplication,
        i64::checked_mul,
        |a, b| a * b,
    )
});
pub(super) static DIVIDE: Function = operator("/", "quotient", divide);
pub(super) static REMAINDER: Function = operator("%", "integer remainder", remainder);
pub(super) static LESS: Function = alike(operator("<", "less than", |values| {
    compare(values, Ordering::is_lt, |a, b| a < b)
}));
pub(super) static LESS_OR_EQUAL: Function = alike(operator("<=", "at most", |values| {
    compare(values, Ordering::is_le, |a, b| a <= b)
}));
pub(super) static EQUAL: Function = alike(operator("=", "equal to", |values| {
    compare(values, Ordering::is_eq, |a, b| a == b)
}));
pub(super) static NOT_EQUAL: Function = alike(operator("<>", "not equal to", |values| {
    compare(values, Ordering::is_ne, |a, b| a != b)
}));
pub(super) static CONCATENATE: Function = extension(
    TextArguments::At(&[0, 1]),
    operator("||", "texts joined", text::concatenate),
);
pub(super) static BIT_OR: Function =
    operator("|", "bitwise or", |values| bits(values, |a, b| a | b));
pub(super) static BIT_XOR: Function = operator("#", "bitwise exclusive or", |values| {
    bits(values, |a, b| a ^ b)
});
pub(super) static BIT_AND: Function =
    operator("&", "bitwise and", |values| bits(values, |a, b| a & b));
pub(super) static SHIFT_LEFT: Function = operator("<<", "bits shifted to the left", |values| {
    bits(values, |a, count| a.wrapping_shl(shift_count(count)))
});
pub(super) static SHIFT_RIGHT: Function = operator(">>", "bits shifted to the right", |values| {
    bits(values, |a, count| a.wrapping_shr(shift_count(count)))
});
pub(super) static NOT: Function = pure("not", Arity::Exactly(1), "negation", |values| {
    Ok(Value::Boolean(!values[0].boolean()?))
});

/// Doubles if either operand is one, else both must be integers.
#[inline]
fn arithmetic(
    values: &[Value],
    operation: Arithmetic,
    integers: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
) -> Result<Value, EvalError> {
    if any_double(values) {
        let result = doubles(values[0].double()?, values[1].double()?);
        return Ok(Value::Double(result));
    }
    integers(values[0].integer()?, values[1].integer()?)
        .map(Value::Integer)
        .ok_or(EvalError::Overflow(operation))
}

fn divide(values: &[Value]) -> Result<Value, EvalError> {
    if !any_double(values) && values[0].integer().is_ok() && values[1].integer()? == 0 {
        return Err(EvalError::DivisionByZero);
    }
    arithmetic(values, Arithmetic::Division, i64::checked_div, |a, b| a / b)
}

/// Of integers always: doubles are rounded first.
fn remainder(values: &[Value]) -> Result<Value, EvalError> {
    let (dividend, divisor) = (values[0].integer()?, values[1].integer()?);
    if divisor == 0 {
        return Err(EvalError::DivisionByZero);
    }
    Ok(Value::Integer(dividend.wrapping_rem(divisor)))
}

/// Compares texts byte by byte, doubles if either operand is one, else both must be integers.
#[inline]
fn compare(
    values: &[Value],
    holds: fn(Ordering) -> bool,
    doubles: fn(&f64, &f64) -> bool,
) -> Result<Value, EvalError> {
    let holds = if let [Value::Text(left), Value::Text(right)] = values {
        holds(left.cmp(right))
    } else if any_double(values) {
        doubles(&values[0].double()?, &values[1].double()?)
    } else {
        holds(values[0].integer()?.cmp(&values[1].integer()?))
    };
    Ok(Value::Boolean(holds))
}

fn bits(values: &[Value], operation: fn(i64, i64) -> i64) -> Result<Value, EvalError> {
    let result = operation(values[0].integer()?, values[1].integer()?);
    Ok(Value::Integer(result))
}

/// Shift counts are taken modulo 64, as the processor does.
fn shift_count(count: i64) -> u32 {
    (count & 63) as u32
}

fn any_double(values: &[Value]) -> bool {
    values.iter().any(|value| matches!(value, Value::Double(_)))
}

fn abs(values: &[Value]) -> Result<Value, EvalError> {
    match &values[0] {
        Value::Double(double) => Ok(Value::Double(double.abs())),
        value @ (Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::Text(_)) => {
            Ok(Value::Integer(value.integer()?.wrapping_abs()))
        }
    }
}

fn power(values: &[Value]) -> Result<Value, EvalError> {
    let (base, exponent) = (values[0].double()?, values[1].double()?);
    Ok(Value::Double(base.powf(exponent)))
}

/// The last of the values that no earlier one beats: of texts, doubles if any is one, else integers.
/// With NaN, which beats nothing and is beaten by nothing, the later one wins.
fn extreme(
    values: &[Value],
    beats: fn(Ordering) -> bool,
    doubles: fn(f64, f64) -> bool,
) -> Result<Value, EvalError> {
    if let [Value::Text(first), rest @ ..] = values
        && rest.iter().all(|value| matches!(value, Value::Text(_)))
    {
        let mut best = first;
        for value in rest {
            if let Value::Text(next) = value
                && !beats(best.cmp(next))
            {
                best = next;
            }
        }
        return Ok(Value::Text(Arc::clone(best)));
    }
    if any_double(values) {
        let mut best = values[0].double()?;
        for value in &values[1..] {
            let next = value.double()?;
            best = if doubles(best, next) { best } else { next };
        }
        return Ok(Value::Double(best));
    }
    let mut best = values[0].integer()?;
    for value in &values[1..] {
        let next = value.integer()?;
        best = if beats(best.cmp(&next)) { best } else { next };
    }
    Ok(Value::Integer(best))
}

fn hash(values: &[Value], hash: fn(i64, i64) -> i64) -> Result<Value, EvalError> {
    let (value, seed) = (values[0].integer()?, values[1].integer()?);
    Ok(Value::Integer(hash(value, seed)))
}

fn permute(values: &[Value]) -> Result<Value, EvalError> {
    let (index, size) = (values[0].integer()?, values[1].integer()?);
    let seed = values[2].integer()?;
    if size <= 0 {
        return Err(EvalError::PermuteSize(size));
    }
    Ok(Value::Integer(random::permute(index, size, seed)))
}

#[inline]
fn span(values: &[Value]) -> Result<Span, EvalError> {
    Span::new(values[0].integer()?, values[1].integer()?).map_err(EvalError::Span)
}

/// A number between two bounds, from a distribution with a parameter.
fn draw(
    context: &mut EvalContext<'_>,
    values: &[Value],
    limits: &ParameterLimits,
    draw: fn(&mut Generator, Span, f64) -> i64,
) -> Result<Value, EvalError> {
    let span = span(values)?;
    let parameter = parameter(&values[2], limits)?;
    Ok(Value::Integer(draw(context.generator, span, parameter)))
}

/// What the parameter of a distribution may be. NaN is never allowed: no draw would be accepted.
struct ParameterLimits {
    function: Distribution,
    limits: &'static str,
    allowed: fn(f64) -> bool,
}

const EXPONENTIAL: ParameterLimits = ParameterLimits {
    function: Distribution::Exponential,
    limits: "greater than 0",
    allowed: |value| value > 0.0,
};
const GAUSSIAN: ParameterLimits = ParameterLimits {
    function: Distribution::Gaussian,
    limits: "at least 2.0",
    allowed: |value| value >= 2.0,
};
const ZIPFIAN: ParameterLimits = ParameterLimits {
    function: Distribution::Zipfian,
    limits: "between 1.001 and 1000",
    allowed: |value| (1.001..=1000.0).contains(&value),
};

fn parameter(value: &Value, limits: &ParameterLimits) -> Result<f64, EvalError> {
    let value = value.double()?;
    if (limits.allowed)(value) {
        Ok(value)
    } else {
        Err(EvalError::RandomParameter {
            function: limits.function,
            limits: limits.limits,
            value,
        })
    }
}

fn debug(context: &mut EvalContext<'_>, values: &[Value]) -> Result<Value, EvalError> {
    let value = &values[0];
    let (script, command) = (context.place.script, context.place.command + 1);
    let mut line = format!("debug(script={script},command={command}): ").into_bytes();
    line.extend_from_slice(match value {
        Value::Null => b"null",
        Value::Boolean(_) => b"boolean ",
        Value::Integer(_) => b"int ",
        Value::Double(_) => b"double ",
        Value::Text(_) => b"text ",
    });
    if !value.is_null() {
        value.append_text(&mut line);
    }
    (context.messages)(&line);
    Ok(value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_described() {
        assert!(FUNCTIONS.is_sorted_by_key(|function| function.name));
        for function in FUNCTIONS {
            assert!(
                function
                    .name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            );
            assert!(!function.summary.is_empty() && !function.summary.ends_with('.'));
            let upper = function.name.to_ascii_uppercase();
            assert!(
                find(upper.as_bytes(), Dialect::Extended)
                    .is_some_and(|found| found.name == function.name)
            );
        }
    }

    #[test]
    fn every_function_is_in_the_readme() {
        let readme = include_str!("../../README.md");
        for function in FUNCTIONS {
            let (name, arity, summary) = (function.name, function.arity, function.summary);
            let since = if function.extension { "new" } else { "" };
            let row = format!("| `{name}` | {arity} | {summary} | {since} |\n");
            assert!(readme.contains(&row), "not in the README: {row}");
        }
        let rows = readme.lines().filter(|line| line.contains(" argument"));
        let rows = rows.filter(|line| line.starts_with("| `")).count();
        assert_eq!(
            rows,
            FUNCTIONS.len(),
            "the README has functions that are none"
        );
    }

    #[test]
    fn shift_counts_wrap_at_64() {
        for (count, expected) in [(0, 0), (64, 0), (65, 1), (-1, 63), (i64::MIN, 0)] {
            assert_eq!(shift_count(count), expected);
        }
    }
}
