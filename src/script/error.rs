//! What can be wrong with a script: [`ScriptError`] before anything connects, [`EvalError`] while
//! a client runs. Each variant is one class with a stable code; the text says what happened, where,
//! and what was expected. Prints nothing.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::error::{Error, Report};
use crate::random::SpanError;

/// All errors found in the scripts and definitions of a run, told together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptErrors(pub Vec<ScriptError>);

impl fmt::Display for ScriptErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptErrors {}

impl From<ScriptErrors> for Error {
    fn from(errors: ScriptErrors) -> Self {
        Error::Script(Report::new(errors.to_string()))
    }
}

/// One error in a script, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Display name of the script; none for what belongs to no script (a definition).
    pub source: Option<String>,
    /// Line of the command's first byte, from 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: Problem,
    /// Name of the meta command as it was written, without its backslash.
    pub command: Option<String>,
    /// The source text to show.
    pub excerpt: Option<Excerpt>,
}

/// Source text of a meta command, and the place of the error in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// From the backslash to the end of the command, continuation lines included.
    pub text: Vec<u8>,
    /// Byte offset into `text` that the caret points at; may be one past the end.
    pub caret: Option<usize>,
}

/// What can be wrong with a script before it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A script without any command.
    #[error("no command found in the script")]
    EmptyScript,
    /// More scripts than are allowed.
    #[error("too many scripts, at most {0} are allowed")]
    TooManyScripts(usize),
    /// The weights of all scripts are zero.
    #[error("the weights of all scripts are zero, so that none could be chosen")]
    ZeroWeight,
    /// A definition without name or value.
    #[error("invalid variable definition: \"{0}\"; expected NAME=VALUE with neither part empty")]
    BadDefine(String),
    /// UTF-8 text that begins with a byte-order mark, which the server takes for part of a word.
    #[error("the script begins with a byte-order mark (bytes EF BB BF)")]
    ByteOrderMark,
    /// A defined name that cannot be a variable.
    #[error("invalid variable name: \"{name}\" (in \"{definition}\")")]
    BadVariableName {
        /// The name.
        name: String,
        /// All of the definition.
        definition: String,
    },
    /// Expression grammar.
    #[error("syntax error{}", found(.0))]
    Syntax(Unexpected),
    /// A byte that begins no token of an expression.
    #[error("unexpected character ({0})")]
    BadCharacter(String),
    /// A text literal without its closing quote.
    #[error("text without its closing quote")]
    UnterminatedText,
    /// No function has this name.
    #[error("unknown function ({name})")]
    UnknownFunction {
        /// As written.
        name: String,
        /// A function with a similar name.
        nearest: Option<&'static str>,
    },
    /// A function called with a number of arguments that it does not take.
    #[error("wrong number of arguments ({function})")]
    ArgumentCount {
        /// Its name.
        function: &'static str,
        /// What it takes.
        arity: String,
    },
    /// An integer literal beyond 64 bits.
    #[error("integer literal is out of range ({0})")]
    IntegerLiteral(String),
    /// A double literal that is too large or too small.
    #[error("double literal is out of range ({0})")]
    DoubleLiteral(String),
    /// Parentheses, operators or CASE inside each other beyond the parser's bound.
    #[error("expression nests deeper than {0} levels")]
    NestedTooDeeply(usize),
    /// A meta command lacks a word.
    #[error("missing {0}")]
    MissingArgument(&'static str),
    /// A meta command has more words than it takes.
    #[error("too many arguments, at most {0} allowed")]
    TooManyArguments(usize),
    /// A meta command that takes no words has some.
    #[error("unexpected argument ({0})")]
    UnexpectedArgument(String),
    /// No meta command has this name.
    #[error("unknown command")]
    UnknownCommand {
        /// A command with a similar name.
        nearest: Option<&'static str>,
        /// What to write in place of a command that psql or an old pgbench has.
        instead: Option<&'static str>,
    },
    /// One of psql's settings, which `\set` in a script does not make.
    #[error("{0} is a setting of psql")]
    PsqlSetting(&'static str),
    /// The time of a `\sleep` is not an integer.
    #[error("sleep time is not an integer ({0})")]
    SleepNotInteger(String),
    /// The unit of a `\sleep` is unknown.
    #[error("unknown unit of time ({0}; a whole number and us, ms or s are wanted)")]
    SleepUnit(String),
    /// An option of `\values` that there is not, or that has another value.
    #[error("unknown option ({0})")]
    ValuesOption(String),
    /// `\gset` or `\aset` not directly behind an SQL command.
    #[error("it must follow an SQL command, and only once")]
    GsetWithoutSql,
    /// Conditional commands that do not fit together.
    #[error("{structure} (command {command})")]
    Structure {
        /// In which way.
        structure: Structure,
        /// The number of the command within its script, from 1.
        command: usize,
    },
    /// Too many variables in an SQL command that is sent with parameters.
    #[error("SQL command uses {found} variables, at most {allowed} can be bound")]
    TooManyParameters {
        /// Uses of variables in the command.
        found: usize,
        /// The limit.
        allowed: usize,
    },
    /// A script with so many errors that the rest of it was not looked at.
    #[error("too many errors, the rest of the script was not read")]
    TooManyErrors,
}

/// A token where another was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The token as written; none at the end of the command.
    pub found: Option<String>,
    /// What could have stood there.
    pub expected: &'static str,
}

/// How blocks can be ill-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Structure {
    /// `\if` without `\endif`.
    #[error("\\if without matching \\endif")]
    IfUnclosed,
    /// `\elif` outside of any `\if`.
    #[error("\\elif without matching \\if")]
    ElifWithoutIf,
    /// `\else` outside of any `\if`.
    #[error("\\else without matching \\if")]
    ElseWithoutIf,
    /// `\endif` outside of any `\if`.
    #[error("\\endif without matching \\if")]
    EndifWithoutIf,
    /// `\elif` after the `\else` of the same `\if`.
    #[error("\\elif after \\else")]
    ElifAfterElse,
    /// A second `\else`.
    #[error("\\else after \\else")]
    ElseAfterElse,
    /// `\untimed` without `\enduntimed`.
    #[error("\\untimed without matching \\enduntimed")]
    UntimedUnclosed,
    /// `\enduntimed` outside of any `\untimed`.
    #[error("\\enduntimed without matching \\untimed")]
    EndUntimedWithoutUntimed,
    /// `\untimed` inside of `\untimed`.
    #[error("\\untimed inside of \\untimed")]
    UntimedNested,
    /// A pipeline is open where an untimed block begins or ends.
    #[error("\\untimed and \\enduntimed must not stand inside of a pipeline")]
    UntimedInPipeline,
    /// A block that begins in another one and ends outside of it.
    #[error("\\untimed and \\if must not cross: the one that begins later has to end first")]
    Crossing,
}

impl Structure {
    /// The stable code of this class.
    pub fn code(self) -> &'static str {
        match self {
            Structure::IfUnclosed => "if-unclosed",
            Structure::ElifWithoutIf => "elif-without-if",
            Structure::ElseWithoutIf => "else-without-if",
            Structure::EndifWithoutIf => "endif-without-if",
            Structure::ElifAfterElse => "elif-after-else",
            Structure::ElseAfterElse => "else-after-else",
            Structure::UntimedUnclosed => "untimed-unclosed",
            Structure::EndUntimedWithoutUntimed => "enduntimed-without-untimed",
            Structure::UntimedNested => "untimed-nested",
            Structure::UntimedInPipeline => "untimed-in-pipeline",
            Structure::Crossing => "blocks-cross",
        }
    }
}

impl Problem {
    /// The stable code of this class.
    pub fn code(&self) -> &'static str {
        match self {
            Problem::EmptyScript => "empty-script",
            Problem::ByteOrderMark => "byte-order-mark",
            Problem::PsqlSetting(_) => "psql-setting",
            Problem::TooManyScripts(_) => "too-many-scripts",
            Problem::ZeroWeight => "zero-weight",
            Problem::BadDefine(_) => "bad-define",
            Problem::BadVariableName { .. } => "bad-var-name",
            Problem::Syntax(_) => "syntax",
            Problem::BadCharacter(_) => "bad-char",
            Problem::UnterminatedText => "unterminated-text",
            Problem::UnknownFunction { .. } => "unknown-function",
            Problem::ArgumentCount { .. } => "arg-count",
            Problem::IntegerLiteral(_) => "int-literal-range",
            Problem::DoubleLiteral(_) => "double-literal-range",
            Problem::NestedTooDeeply(_) => "nested-too-deeply",
            Problem::MissingArgument(_) => "missing-arg",
            Problem::TooManyArguments(_) => "too-many-args",
            Problem::UnexpectedArgument(_) => "unexpected-arg",
            Problem::UnknownCommand { .. } => "unknown-command",
            Problem::SleepNotInteger(_) => "sleep-not-int",
            Problem::SleepUnit(_) => "sleep-unit",
            Problem::ValuesOption(_) => "values-option",
            Problem::GsetWithoutSql => "gset-without-sql",
            Problem::Structure { structure, .. } => structure.code(),
            Problem::TooManyParameters { .. } => "too-many-params",
            Problem::TooManyErrors => "too-many-errors",
        }
    }

    /// What to write instead, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Problem::Syntax(unexpected) => Some(format!("expected {}", unexpected.expected)),
            Problem::UnknownCommand {
                instead: Some(instead),
                ..
            } => Some((*instead).to_owned()),
            Problem::UnknownFunction { nearest, .. } | Problem::UnknownCommand { nearest, .. } => {
                nearest.map(|name| format!("did you mean \"{name}\"?"))
            }
            Problem::ByteOrderMark => Some("save it without one".to_owned()),
            Problem::PsqlSetting(_) => {
                Some("leave the line out, a script has no such settings".to_owned())
            }
            Problem::ArgumentCount { arity, .. } => Some(format!("it takes {arity}")),
            Problem::SleepUnit(_) => Some("expected us, ms or s".to_owned()),
            Problem::ValuesOption(_) => Some(
                "expected order=sequential, order=random, order=partitioned, end=wrap, end=stop or \
                 prefix=NAME"
                    .to_owned(),
            ),
            Problem::EmptyScript
            | Problem::TooManyScripts(_)
            | Problem::ZeroWeight
            | Problem::BadDefine(_)
            | Problem::BadVariableName { .. }
            | Problem::BadCharacter(_)
            | Problem::UnterminatedText
            | Problem::IntegerLiteral(_)
            | Problem::DoubleLiteral(_)
            | Problem::NestedTooDeeply(_)
            | Problem::MissingArgument(_)
            | Problem::TooManyArguments(_)
            | Problem::UnexpectedArgument(_)
            | Problem::SleepNotInteger(_)
            | Problem::GsetWithoutSql
            | Problem::Structure { .. }
            | Problem::TooManyParameters { .. }
            | Problem::TooManyErrors => None,
        }
    }
}

fn found(unexpected: &Unexpected) -> String {
    match &unexpected.found {
        Some(token) => format!(" ({token})"),
        None => ", unexpected end of line".to_owned(),
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            f.write_str(source)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.problem)?;
        match (&self.problem, &self.command) {
            (_, None) => {}
            (Problem::UnknownCommand { .. }, Some(command)) => write!(f, " \"{command}\"")?,
            (_, Some(command)) => write!(f, " in command \"{command}\"")?,
        }
        let hint = self.problem.hint();
        match &self.excerpt {
            Some(excerpt) => excerpt.write(f, hint.as_deref()),
            None => match hint {
                Some(hint) => write!(f, ": {hint}"),
                None => Ok(()),
            },
        }
    }
}

impl Excerpt {
    /// Writes the source text, and under the line that holds the error the caret with its marker.
    fn write(&self, f: &mut fmt::Formatter<'_>, hint: Option<&str>) -> fmt::Result {
        let marker = hint.unwrap_or("error found here");
        let mut start = 0;
        let mut caret = self.caret;
        for line in self.text.split(|&byte| byte == b'\n') {
            let end = start + line.len();
            let offset = caret.filter(|&offset| offset <= end);
            let (shown, column) = around(line, offset.map_or(0, |offset| offset - start));
            write!(f, "\n{shown}")?;
            if offset.is_some() {
                // A width in the format is 16 bits wide, and a column may be more.
                write!(f, "\n{}^ {marker}", " ".repeat(column))?;
                caret = None;
            }
            start = end + 1;
        }
        if self.caret.is_none()
            && let Some(hint) = hint
        {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

/// A longer line is shown around the error only: nobody finds a mark below many screens of text.
const LINE_BYTES_MAX: usize = 1000;

/// What is shown of a line, and the column of the byte at `offset` in it.
fn around(line: &[u8], offset: usize) -> (String, usize) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let first = offset
        .saturating_sub(LINE_BYTES_MAX / 2)
        .min(line.len().saturating_sub(LINE_BYTES_MAX));
    let last = line.len().min(first + LINE_BYTES_MAX);
    let (before, after) = (dots(first > 0), dots(last < line.len()));
    let shown = format!("{before}{}{after}", shown_whole(&line[first..last]));
    (shown, before.len() + offset - first)
}

fn dots(cut: bool) -> &'static str {
    if cut { "..." } else { "" }
}

/// Why a command failed while a client ran it; the client aborts. Says what went wrong; the one who
/// ran the command adds client, script and command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// A variable that has no value yet, where one is needed.
    #[error("undefined variable \"{0}\"")]
    UndefinedVariable(String),
    /// A variable set from text that is neither a number, nor a boolean, nor null.
    #[error("variable \"{name}\" has a value that is no number or boolean: \"{text}\"")]
    BadVariableValue {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A variable set from text that looks like an integer but does not fit into 64 bits.
    #[error("variable \"{name}\" has an integer that is out of range: \"{text}\"")]
    VariableIntegerRange {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A variable set from empty text (or from a NULL of the server).
    #[error("variable \"{0}\" is empty")]
    EmptyVariable(String),
    /// A name that cannot be a variable.
    #[error("invalid variable name: \"{0}\"")]
    BadVariableName(String),
    /// A result of integer arithmetic beyond 64 bits.
    #[error("integer {0} is out of range")]
    Overflow(Arithmetic),
    /// Integer division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A double that no 64-bit integer comes near to.
    #[error("double {0} is out of range for an integer")]
    DoubleToInteger(f64),
    /// A value of one type where another is needed.
    #[error("cannot use {from} as {to}")]
    Coerce {
        /// What it is.
        from: Type,
        /// What it should be.
        to: Type,
    },
    /// More arguments than any function takes.
    #[error("too many arguments: at most {0} can be given")]
    TooManyArguments(usize),
    /// The bounds of a random function.
    #[error("{0}")]
    Span(SpanError),
    /// The parameter of a random function.
    #[error("parameter of {function} must be {limits}, not {value}")]
    RandomParameter {
        /// The function.
        function: Distribution,
        /// What is allowed.
        limits: &'static str,
        /// What was given.
        value: f64,
    },
    /// A text that would become too long.
    #[error("text would be longer than {0} bytes")]
    TextTooLong(usize),
    /// A negative length or count of characters.
    #[error("number of characters must not be negative: {0}")]
    NegativeLength(i64),
    /// An alphabet without any character.
    #[error("the alphabet of random_text is empty")]
    EmptyAlphabet,
    /// The size of a permutation.
    #[error("the size of a permutation must be positive, not {0}")]
    PermuteSize(i64),
    /// The variable that says how long to sleep.
    #[error("variable \"{name}\" is no number to sleep for: \"{text}\"")]
    SleepValue {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A shell command with its arguments is too long.
    #[error("shell command is longer than {0} bytes")]
    ShellTooLong(usize),
    /// The command of a `\setshell` printed nothing.
    #[error("shell command printed nothing, expected an integer")]
    SetShellNoOutput,
    /// The command of a `\setshell` printed something that is no integer.
    #[error("shell command printed \"{0}\", expected an integer")]
    SetShellNotInteger(String),
}

/// The integer operation that overflowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Addition,
    /// `-`
    Subtraction,
    /// `*`
    Multiplication,
    /// `/`
    Division,
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arithmetic::Addition => "sum",
            Arithmetic::Subtraction => "difference",
            Arithmetic::Multiplication => "product",
            Arithmetic::Division => "quotient",
        })
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Null has a type of its own.
    Null,
    /// True or false.
    Boolean,
    /// 64 bits, signed.
    Integer,
    /// IEEE double precision.
    Double,
    /// Bytes.
    Text,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Null => "null",
            Type::Boolean => "a boolean",
            Type::Integer => "an integer",
            Type::Double => "a double",
            Type::Text => "text",
        })
    }
}

/// A random function with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `random_exponential`
    Exponential,
    /// `random_gaussian`
    Gaussian,
    /// `random_zipfian`
    Zipfian,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Exponential => "random_exponential",
            Distribution::Gaussian => "random_gaussian",
            Distribution::Zipfian => "random_zipfian",
        })
    }
}

impl EvalError {
    /// The stable code of this class.
    pub fn code(&self) -> &'static str {
        match self {
            EvalError::UndefinedVariable(_) => "undefined-var",
            EvalError::BadVariableValue { .. } => "bad-var-value",
            EvalError::VariableIntegerRange { .. } => "var-int-range",
            EvalError::EmptyVariable(_) => "empty-var-value",
            EvalError::BadVariableName(_) => "bad-var-name",
            EvalError::Overflow(Arithmetic::Addition) => "int-overflow-add",
            EvalError::Overflow(Arithmetic::Subtraction) => "int-overflow-sub",
            EvalError::Overflow(Arithmetic::Multiplication) => "int-overflow-mul",
            EvalError::Overflow(Arithmetic::Division) => "int-overflow-div",
            EvalError::DivisionByZero => "div-by-zero",
            EvalError::DoubleToInteger(_) => "double-to-int-range",
            EvalError::Coerce { from, to } => coercion_code(*from, *to),
            EvalError::TooManyArguments(_) => "too-many-fn-args",
            EvalError::Span(SpanError::Empty(..)) => "random-empty-range",
            EvalError::Span(SpanError::TooLarge(..)) => "random-range-too-large",
            EvalError::RandomParameter { function, .. } => match function {
                Distribution::Exponential => "exponential-param",
                Distribution::Gaussian => "gaussian-param",
                Distribution::Zipfian => "zipfian-param",
            },
            EvalError::TextTooLong(_) => "text-too-long",
            EvalError::NegativeLength(_) => "negative-length",
            EvalError::EmptyAlphabet => "empty-alphabet",
            EvalError::PermuteSize(_) => "permute-size",
            EvalError::SleepValue { .. } => "sleep-bad-value",
            EvalError::ShellTooLong(_) => "shell-too-long",
            EvalError::SetShellNoOutput => "setshell-no-output",
            EvalError::SetShellNotInteger(_) => "setshell-not-int",
        }
    }
}

/// A table of the codes, so that they can be `&'static str`. Nothing is ever coerced to null, and
/// everything can be coerced to text.
fn coercion_code(from: Type, to: Type) -> &'static str {
    match (from, to) {
        (Type::Null, Type::Boolean) => "coerce-null-to-boolean",
        (Type::Null, Type::Integer) => "coerce-null-to-int",
        (Type::Null, Type::Double) => "coerce-null-to-double",
        (Type::Boolean, Type::Integer) => "coerce-boolean-to-int",
        (Type::Boolean, Type::Double) => "coerce-boolean-to-double",
        (Type::Integer, Type::Boolean) => "coerce-int-to-boolean",
        (Type::Double, Type::Boolean) => "coerce-double-to-boolean",
        (Type::Text, Type::Boolean) => "coerce-text-to-boolean",
        (Type::Text, Type::Integer) => "coerce-text-to-int",
        (Type::Text, Type::Double) => "coerce-text-to-double",
        (
            Type::Null | Type::Boolean | Type::Integer | Type::Double | Type::Text,
            Type::Null | Type::Boolean | Type::Integer | Type::Double | Type::Text,
        ) => "coerce",
    }
}

/// A longer word or value is cut in messages, which are to be read.
const WORD_BYTES_MAX: usize = 200;

/// Bytes of a script as text for a message; what is not UTF-8 is shown as a replacement character.
pub(super) fn shown(bytes: &[u8]) -> String {
    let kept = bytes.len().min(WORD_BYTES_MAX);
    format!(
        "{}{}",
        shown_whole(&bytes[..kept]),
        dots(kept < bytes.len())
    )
}

fn shown_whole(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
