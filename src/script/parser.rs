//! Parses one script: the pieces of its text become commands, meta commands by the rules of each.
//! Goes on after an error, so that all errors of a script are told together.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::error::{Excerpt, Problem, ScriptError, shown};
use super::grammar;
use super::meta::{Amount, ShellCommand, Sleep, Unit, Values, ValuesEnd, ValuesOrder, Word};
use super::splitter::{Piece, Splitter};
use super::sql::{Capture, CapturedRows, Sql};
use super::token::{Fault, Tokens, skip_blanks, word_at};
use super::value::{digit_count, parse_integer, split_sign};
use super::variables::TableBuilder;
use super::{Command, CommandKind, Dialect, blocks};
use crate::spelling::nearest;

/// The most errors that are told of one script; whoever has more has one cause to find first.
const ERRORS_MAX: usize = 20;

/// The most words behind the name of a meta command; pgbench's limit.
const WORDS_MAX: usize = 255;

/// The name of a meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Aset,
    Elif,
    Else,
    Endif,
    EndPipeline,
    EndUntimed,
    Gset,
    If,
    Set,
    SetShell,
    Shell,
    Sleep,
    StartPipeline,
    SyncPipeline,
    Untimed,
    Values,
}

/// The last ones are extensions.
const NAMES: [(&str, Name); 16] = [
    ("aset", Name::Aset),
    ("elif", Name::Elif),
    ("else", Name::Else),
    ("endif", Name::Endif),
    ("endpipeline", Name::EndPipeline),
    ("gset", Name::Gset),
    ("if", Name::If),
    ("set", Name::Set),
    ("setshell", Name::SetShell),
    ("shell", Name::Shell),
    ("sleep", Name::Sleep),
    ("startpipeline", Name::StartPipeline),
    ("syncpipeline", Name::SyncPipeline),
    ("enduntimed", Name::EndUntimed),
    ("untimed", Name::Untimed),
    ("values", Name::Values),
];

/// How many of them pgbench knows.
const NAMES_OF_PGBENCH: usize = 13;

/// Commands of psql, and one that pgbench had before 10, with what to write instead.
const FOREIGN: [(&str, &str); 6] = [
    ("setrandom", "write \\set NAME random(LOWER, UPPER)"),
    (
        "echo",
        "a script prints nothing; \\set x debug(:NAME) shows a value",
    ),
    (
        "warn",
        "a script prints nothing; \\set x debug(:NAME) shows a value",
    ),
    ("g", "end the SQL command with ; instead"),
    ("i", "give each file with an -f of its own"),
    ("include", "give each file with an -f of its own"),
];

/// Settings of psql that are words as a rule, so that no expression can be meant.
const PSQL_SETTINGS: [&str; 6] = [
    "AUTOCOMMIT",
    "ECHO",
    "ON_ERROR_ROLLBACK",
    "ON_ERROR_STOP",
    "QUIET",
    "VERBOSITY",
];

/// What UTF-8 text of some editors begins with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads one script.
pub(super) struct Parser<'p> {
    dialect: Dialect,
    source: &'p str,
    table: &'p mut TableBuilder,
    /// Counts the SQL commands of all scripts.
    sql_number: &'p mut usize,
    commands: Vec<Command>,
    errors: Vec<ScriptError>,
}

impl<'p> Parser<'p> {
    /// Begins with the script that errors will call `source`. `sql_number` counts on over all
    /// scripts.
    pub fn new(
        dialect: Dialect,
        source: &'p str,
        table: &'p mut TableBuilder,
        sql_number: &'p mut usize,
    ) -> Self {
        Parser {
            dialect,
            source,
            table,
            sql_number,
            commands: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The commands of the script, or all that is wrong with it.
    pub fn parse(mut self, mut text: &[u8]) -> Result<Vec<Command>, Vec<ScriptError>> {
        if self.dialect == Dialect::Extended
            && let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK)
        {
            let error = self.scripts_error(Problem::ByteOrderMark, Some(1));
            self.errors.push(error);
            text = rest;
        }
        for piece in Splitter::new(text) {
            if self.errors.len() == ERRORS_MAX {
                self.give_up();
                break;
            }
            match piece {
                Piece::Sql { text, line } => self.sql(text, line),
                Piece::Meta {
                    text,
                    line,
                    terminated,
                } => self.meta(text, line, terminated),
            }
        }
        self.finish()
    }

    fn sql(&mut self, text: Vec<u8>, line: u64) {
        let sql = Sql::new(self.dialect, &text, *self.sql_number, self.table);
        *self.sql_number += 1;
        let kind = CommandKind::Sql(sql);
        self.commands.push(Command { line, text, kind });
    }

    fn meta(&mut self, text: &[u8], line: u64, terminated: bool) {
        let name = word_at(text, skip_blanks(text, 1));
        if name.is_empty() {
            return;
        }
        let line_end = name.end;
        let written = &text[name];
        let arguments = Arguments {
            text,
            start: line_end,
            terminated,
            dialect: self.dialect,
        };
        match self.meta_command(written, &arguments) {
            Ok(Some(kind)) => {
                let text = text.to_vec();
                self.commands.push(Command { line, text, kind });
            }
            Ok(None) => {}
            Err(fault) => self.fault(fault, text, line, written),
        }
    }

    fn fault(&mut self, fault: Fault, text: &[u8], line: u64, name: &[u8]) {
        self.errors.push(ScriptError {
            source: Some(self.source.to_owned()),
            line: Some(line),
            problem: fault.problem,
            command: Some(shown(name)),
            excerpt: Some(Excerpt {
                text: text.trim_ascii_end().to_vec(),
                caret: fault.caret,
            }),
        });
    }

    /// What a meta command does; none for one that only changes the command before it.
    fn meta_command(
        &mut self,
        written: &[u8],
        arguments: &Arguments<'_>,
    ) -> Result<Option<CommandKind>, Fault> {
        let names = match self.dialect {
            Dialect::Extended => &NAMES[..],
            Dialect::Pgbench => &NAMES[..NAMES_OF_PGBENCH],
        };
        let name = names
            .iter()
            .find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(written))
            .map(|&(_, name)| name)
            .ok_or_else(|| Fault {
                problem: Problem::UnknownCommand {
                    nearest: nearest(written, names.iter().map(|&(name, _)| name)),
                    instead: FOREIGN
                        .iter()
                        .find(|(name, _)| name.as_bytes() == written)
                        .map(|&(_, instead)| instead),
                },
                caret: None,
            })?;
        // Targets of jumps are filled in when all commands are there.
        let otherwise = 0;
        let end = 0;
        Ok(Some(match name {
            Name::Gset => {
                self.capture(CapturedRows::TheOnly, arguments)?;
                return Ok(None);
            }
            Name::Aset => {
                self.capture(CapturedRows::LastOfEach, arguments)?;
                return Ok(None);
            }
            Name::Set => self.set(arguments)?,
            Name::If => CommandKind::If {
                condition: grammar::parse(arguments.tokens(), self.table)?,
                otherwise,
            },
            Name::Elif => CommandKind::Elif {
                condition: grammar::parse(arguments.tokens(), self.table)?,
                otherwise,
                end,
            },
            Name::Else => arguments.nothing(CommandKind::Else { end })?,
            Name::Endif => arguments.nothing(CommandKind::Endif)?,
            Name::Sleep => CommandKind::Sleep(self.sleep(arguments)?),
            Name::Shell => self.shell(arguments)?,
            Name::SetShell => self.set_shell(arguments)?,
            Name::Values => CommandKind::Values(values(arguments)?),
            Name::Untimed => arguments.nothing(CommandKind::Untimed)?,
            Name::EndUntimed => arguments.nothing(CommandKind::EndUntimed)?,
            Name::StartPipeline => arguments.nothing(CommandKind::StartPipeline)?,
            Name::SyncPipeline => arguments.nothing(CommandKind::SyncPipeline)?,
            Name::EndPipeline => arguments.nothing(CommandKind::EndPipeline)?,
        }))
    }

    /// `\set NAME EXPRESSION`
    fn set(&mut self, arguments: &Arguments<'_>) -> Result<CommandKind, Fault> {
        let name = word_at(arguments.text, skip_blanks(arguments.text, arguments.start));
        if name.is_empty() {
            return Err(missing("variable name"));
        }
        let written = &arguments.text[name.clone()];
        let expression = grammar::parse(arguments.tokens_from(name.end), self.table);
        let expression = expression.map_err(|fault| psql_setting(written, fault))?;
        Ok(CommandKind::Set {
            variable: self.table.assigned_slot(&arguments.text[name]),
            expression,
        })
    }

    /// `\gset [PREFIX]`, `\aset [PREFIX]`
    fn capture(&mut self, rows: CapturedRows, arguments: &Arguments<'_>) -> Result<(), Fault> {
        let words = arguments.words(1)?;
        let prefix = words.first().map_or(&[][..], |word| word.text).to_vec();
        if let Some(Command {
            kind: CommandKind::Sql(sql),
            ..
        }) = self.commands.last_mut()
            && sql.capture.is_none()
        {
            sql.capture = Some(Capture { rows, prefix });
            return Ok(());
        }
        Err(Fault {
            problem: Problem::GsetWithoutSql,
            caret: None,
        })
    }

    /// `\sleep NUMBER [UNIT]`, the two of which may be one word. A sign alone is zero.
    fn sleep(&mut self, arguments: &Arguments<'_>) -> Result<Sleep, Fault> {
        let words = arguments.words(2)?;
        let Some(&number) = words.first() else {
            return Err(missing("number"));
        };
        if let Some(name) = number.text.strip_prefix(b":") {
            return Ok(Sleep {
                amount: Amount::Variable(self.table.slot(name)),
                unit: words.get(1).map_or(Ok(Unit::Seconds), sleep_unit)?,
            });
        }
        let (negative, unsigned) = split_sign(number.text);
        let (digits, glued) = unsigned.split_at(digit_count(unsigned));
        if !glued.is_empty() && (digits.is_empty() || words.len() > 1) {
            return Err(Fault {
                problem: Problem::SleepNotInteger(shown(number.text)),
                caret: Some(number.offset),
            });
        }
        let glued = (!glued.is_empty()).then_some(Argument {
            offset: number.offset + number.text.len() - glued.len(),
            text: glued,
        });
        let unit = glued.as_ref().or(words.get(1));
        let saturated = if negative { i64::MIN } else { i64::MAX };
        Ok(Sleep {
            amount: Amount::Constant(parse_integer(negative, digits).unwrap_or(saturated)),
            unit: unit.map_or(Ok(Unit::Seconds), sleep_unit)?,
        })
    }

    /// `\shell COMMAND…`
    fn shell(&mut self, arguments: &Arguments<'_>) -> Result<CommandKind, Fault> {
        let words = arguments.words(WORDS_MAX)?;
        if words.is_empty() {
            return Err(missing("command"));
        }
        Ok(CommandKind::Shell(self.shell_command(&words)))
    }

    /// `\setshell NAME COMMAND…`
    fn set_shell(&mut self, arguments: &Arguments<'_>) -> Result<CommandKind, Fault> {
        let words = arguments.words(WORDS_MAX)?;
        match &words[..] {
            [] => Err(missing("variable name")),
            [_] => Err(missing("command")),
            [name, command @ ..] => Ok(CommandKind::SetShell {
                variable: self.table.assigned_slot(name.text),
                command: self.shell_command(command),
            }),
        }
    }

    fn shell_command(&mut self, words: &[Argument<'_>]) -> ShellCommand {
        let words = words
            .iter()
            .map(|word| match word.text {
                [b':', rest @ ..] if rest.starts_with(b":") => Word::Literal(rest.to_vec()),
                [b':', name @ ..] => Word::Variable(self.table.slot(name)),
                text => Word::Literal(text.to_vec()),
            })
            .collect();
        ShellCommand { words }
    }

    fn give_up(&mut self) {
        self.errors
            .push(self.scripts_error(Problem::TooManyErrors, None));
    }

    fn finish(mut self) -> Result<Vec<Command>, Vec<ScriptError>> {
        if self.errors.is_empty() {
            let problem = if self.commands.is_empty() {
                Some((Problem::EmptyScript, None))
            } else {
                blocks::resolve(&mut self.commands).err()
            };
            let Some((problem, line)) = problem else {
                return Ok(self.commands);
            };
            self.errors.push(self.scripts_error(problem, line));
        }
        Err(self.errors)
    }

    fn scripts_error(&self, problem: Problem, line: Option<u64>) -> ScriptError {
        ScriptError {
            source: Some(self.source.to_owned()),
            line,
            problem,
            command: None,
            excerpt: None,
        }
    }
}

/// What follows the name of a meta command.
struct Arguments<'a> {
    /// The whole command, since carets count from its backslash.
    text: &'a [u8],
    start: usize,
    terminated: bool,
    dialect: Dialect,
}

#[derive(Clone, Copy)]
struct Argument<'a> {
    offset: usize,
    text: &'a [u8],
}

impl<'a> Arguments<'a> {
    fn tokens(&self) -> Tokens<'a> {
        self.tokens_from(self.start)
    }

    fn tokens_from(&self, start: usize) -> Tokens<'a> {
        Tokens::new(self.dialect, self.text, start, self.terminated)
    }

    /// The words; an error if there are more than `allowed`.
    fn words(&self, allowed: usize) -> Result<Vec<Argument<'a>>, Fault> {
        let mut words = Vec::new();
        let mut at = self.start;
        loop {
            let word = word_at(self.text, skip_blanks(self.text, at));
            if word.is_empty() {
                return Ok(words);
            }
            if words.len() == allowed {
                return Err(Fault {
                    problem: Problem::TooManyArguments(allowed),
                    caret: Some(word.start),
                });
            }
            at = word.end;
            words.push(Argument {
                offset: word.start,
                text: &self.text[word],
            });
        }
    }

    /// Makes sure that there are no words.
    fn nothing(&self, kind: CommandKind) -> Result<CommandKind, Fault> {
        let word = word_at(self.text, skip_blanks(self.text, self.start));
        if word.is_empty() {
            return Ok(kind);
        }
        Err(Fault {
            problem: Problem::UnexpectedArgument(shown(&self.text[word])),
            caret: None,
        })
    }
}

/// `\values FILE [order=…] [end=…] [prefix=…]`
fn values(arguments: &Arguments<'_>) -> Result<Values, Fault> {
    let words = arguments.words(WORDS_MAX)?;
    let [file, options @ ..] = &words[..] else {
        return Err(missing("file name"));
    };
    let mut values = Values {
        file: PathBuf::from(OsStr::from_bytes(file.text)),
        order: ValuesOrder::default(),
        end: ValuesEnd::default(),
        prefix: Vec::new(),
    };
    for option in options {
        match option.text {
            b"order=sequential" => values.order = ValuesOrder::Sequential,
            b"order=random" => values.order = ValuesOrder::Random,
            b"order=partitioned" => values.order = ValuesOrder::Partitioned,
            b"end=wrap" => values.end = ValuesEnd::Wrap,
            b"end=stop" => values.end = ValuesEnd::Stop,
            text => {
                let prefix = text.strip_prefix(b"prefix=").ok_or_else(|| Fault {
                    problem: Problem::ValuesOption(shown(text)),
                    caret: Some(option.offset),
                })?;
                values.prefix = prefix.to_vec();
            }
        }
    }
    Ok(values)
}

/// What is wrong with the value of a variable, unless the name says that no variable was meant.
fn psql_setting(name: &[u8], fault: Fault) -> Fault {
    match PSQL_SETTINGS
        .iter()
        .find(|setting| setting.as_bytes() == name)
    {
        Some(setting) => Fault {
            problem: Problem::PsqlSetting(setting),
            caret: None,
        },
        None => fault,
    }
}

fn missing(what: &'static str) -> Fault {
    Fault {
        problem: Problem::MissingArgument(what),
        caret: None,
    }
}

fn sleep_unit(word: &Argument<'_>) -> Result<Unit, Fault> {
    let is = |unit: &str| word.text.eq_ignore_ascii_case(unit.as_bytes());
    if is("us") {
        Ok(Unit::Microseconds)
    } else if is("ms") {
        Ok(Unit::Milliseconds)
    } else if is("s") {
        Ok(Unit::Seconds)
    } else {
        Err(Fault {
            problem: Problem::SleepUnit(shown(word.text)),
            caret: Some(word.offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<ScriptError> {
        let mut table = TableBuilder::default();
        Parser::new(Dialect::Pgbench, "s.sql", &mut table, &mut 0)
            .parse(text.as_bytes())
            .err()
            .unwrap_or_default()
    }

    fn code(text: &str) -> Option<&'static str> {
        errors(text).first().map(|error| error.problem.code())
    }

    #[test]
    fn errors_show_the_source_and_point_at_the_fault() {
        for (text, expected) in [
            (
                "select 1;\n  \\set x random(1, 2 3)\n",
                "s.sql:2: syntax error (3) in command \"set\"\n\
                 \\set x random(1, 2 3)\n\
                 \u{20}                  ^ expected an operator, a comma or )",
            ),
            (
                "\\set x randm(1, 2)\n",
                "s.sql:1: unknown function (randm) in command \"set\"\n\
                 \\set x randm(1, 2)\n\
                 \u{20}          ^ did you mean \"random\"?",
            ),
            (
                "\\SET x 1 +\n",
                "s.sql:1: syntax error, unexpected end of line in command \"SET\"\n\
                 \\SET x 1 +\n\
                 \u{20}         ^ expected a value",
            ),
            (
                "\\set x 1 +",
                "s.sql:1: syntax error, unexpected end of line in command \"set\"\n\
                 \\set x 1 +\n\
                 \u{20}        ^ expected a value",
            ),
            (
                "\\set x 1 + \\\n  2 + \\\n  ; 5\n",
                "s.sql:1: unexpected character (;) in command \"set\"\n\
                 \\set x 1 + \\\n  2 + \\\n  ; 5\n\
                 \u{20} ^ error found here",
            ),
            (
                "\\set x random(1, 2, 3) -- c\n",
                "s.sql:1: wrong number of arguments (random) in command \"set\"\n\
                 \\set x random(1, 2, 3) -- c\n\
                 \u{20}                    ^ it takes 2 arguments",
            ),
            (
                "\\sleep 10 fortnights\n",
                "s.sql:1: unknown unit of time (fortnights; a whole number and us, ms or s are wanted) in command \"sleep\"\n\
                 \\sleep 10 fortnights\n\
                 \u{20}         ^ expected us, ms or s",
            ),
            (
                "\\sett x 1\n",
                "s.sql:1: unknown command \"sett\"\n\
                 \\sett x 1\n\
                 did you mean \"set\"?",
            ),
            (
                "\\set\n",
                "s.sql:1: missing variable name in command \"set\"\n\\set",
            ),
            (
                "\\if 1\nselect 1;\n",
                "s.sql:1: \\if without matching \\endif (command 3)",
            ),
            (
                "\\setrandom x 1 2\n",
                "s.sql:1: unknown command \"setrandom\"\n\\setrandom x 1 2\n\
                 write \\set NAME random(LOWER, UPPER)",
            ),
            (
                "\\set ON_ERROR_STOP on\n",
                "s.sql:1: ON_ERROR_STOP is a setting of psql in command \"set\"\n\
                 \\set ON_ERROR_STOP on\nleave the line out, a script has no such settings",
            ),
            (
                "select 1 \\gset\n\\endif\n",
                "s.sql:2: \\endif without matching \\if (command 2)",
            ),
            ("-- nothing\n", "s.sql: no command found in the script"),
        ] {
            let errors = errors(text);
            assert_eq!(errors.len(), 1, "{text:?}: {errors:?}");
            let shown = errors[0].to_string();
            assert_eq!(shown, expected, "\n{shown}\n\n{expected}");
        }
    }

    #[test]
    fn of_a_very_long_line_the_part_around_the_fault_is_shown() {
        for blanks in [990, 70_000, 1_000_000] {
            let text = format!("\\set x{}^{}\n", " ".repeat(blanks), " 1".repeat(blanks));
            let shown = errors(&text)[0].to_string();
            let lines: Vec<&str> = shown.lines().collect();
            assert_eq!(lines.len(), 3, "{blanks}");
            assert!(lines[1].len() <= 1010, "{blanks}");
            assert_eq!(lines[1].find('^'), lines[2].find('^'), "{blanks}");
        }
    }

    #[test]
    fn all_errors_of_a_script_are_told_up_to_a_bound() {
        let codes = |text: &str| -> Vec<_> {
            errors(text)
                .iter()
                .map(|error| error.problem.code())
                .collect()
        };
        assert_eq!(
            codes("\\foo\nselect 1;\n\\set x 1 2\n\\sleep\n\\endif\n"),
            ["unknown-command", "syntax", "missing-arg"]
        );
        let many = codes(&"\\foo\n".repeat(1000));
        assert_eq!(many.len(), ERRORS_MAX + 1);
        assert_eq!(many.last(), Some(&"too-many-errors"));
    }

    #[test]
    fn meta_commands_are_checked() {
        for (text, expected) in [
            ("\\sleep 1\n", None),
            ("\\sleep 1ms\n", None),
            ("\\sleep -1 MS\n", None),
            ("\\sleep :x\n", None),
            ("\\sleep :x ns\n", Some("sleep-unit")),
            ("\\sleep +\n", None),
            ("\\sleep +ms\n", Some("sleep-not-int")),
            ("\\sleep 1 2 3\n", Some("too-many-args")),
            ("\\gset\n", Some("gset-without-sql")),
            ("select 1 \\gset a b\n", Some("too-many-args")),
            ("select 1; -- c\n\\gset a\n", None),
            (
                "select 1; /* c */\\gset\n\\gset\n",
                Some("gset-without-sql"),
            ),
            ("\\setshell x\n", Some("missing-arg")),
            ("\\shell\n", Some("missing-arg")),
            ("\\endpipeline x\n", Some("unexpected-arg")),
            (
                "\\if 1\n\\if 2\n\\else\n\\endif\n\\elif 0\n\\else\n\\endif\n",
                None,
            ),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
        let words = |count| format!("\\shell{}\n", " w".repeat(count));
        assert_eq!(code(&words(WORDS_MAX)), None);
        assert_eq!(code(&words(WORDS_MAX + 1)), Some("too-many-args"));
    }

    #[test]
    fn extensions_are_commands_of_the_extended_dialect() {
        for (text, expected) in [
            ("\\values a.csv order=random end=stop prefix=p_\n", None),
            ("\\values\n", Some("missing-arg")),
            ("\\values a.csv order=any\n", Some("values-option")),
            ("\\untimed\n\\if 1\n\\endif\n\\enduntimed\n", None),
            ("\\if 1\n\\untimed\n\\enduntimed\n\\endif\n", None),
            (
                "\\untimed\n\\startpipeline\n\\endpipeline\n\\enduntimed\n",
                None,
            ),
            ("\\untimed x\n", Some("unexpected-arg")),
            ("\\untimed\n", Some("untimed-unclosed")),
            ("\\enduntimed\n", Some("enduntimed-without-untimed")),
            ("\\if 1\n\\enduntimed\n", Some("enduntimed-without-untimed")),
            ("\\untimed\n\\endif\n", Some("endif-without-if")),
            ("\\untimed\n\\if 1\n\\untimed\n", Some("untimed-nested")),
            ("\\untimed\n\\if 1\n\\enduntimed\n", Some("blocks-cross")),
            ("\\if 1\n\\untimed\n\\else\n", Some("blocks-cross")),
            ("\\startpipeline\n\\untimed\n", Some("untimed-in-pipeline")),
            (
                "\\untimed\n\\startpipeline\n\\enduntimed\n",
                Some("untimed-in-pipeline"),
            ),
        ] {
            let mut table = TableBuilder::default();
            let result = Parser::new(Dialect::Extended, "s", &mut table, &mut 0)
                .parse(text.as_bytes())
                .map_err(|errors| errors[0].problem.code());
            assert_eq!(result.err(), expected, "{text:?}");
        }
        for name in NAMES[NAMES_OF_PGBENCH..].iter().map(|(name, _)| name) {
            assert_eq!(code(&format!("\\{name} x\n")), Some("unknown-command"));
        }
    }

    #[test]
    fn a_byte_order_mark_is_named_and_the_rest_is_read() {
        let text = "\u{feff}\\foo\n";
        let mut table = TableBuilder::default();
        let errors = Parser::new(Dialect::Extended, "s.sql", &mut table, &mut 0)
            .parse(text.as_bytes())
            .expect_err("two errors");
        let codes: Vec<&str> = errors.iter().map(|error| error.problem.code()).collect();
        assert_eq!(codes, ["byte-order-mark", "unknown-command"]);
        assert!(errors[0].to_string().contains("without one"));
        // For pgbench it belongs to the first word, which the server refuses.
        assert_eq!(code("\u{feff}select 1;"), None);
    }

    #[test]
    fn of_a_huge_line_the_surroundings_of_the_error_are_shown() {
        let text = format!(
            "\\set x 1{} ; {}\n",
            " + 1".repeat(20_000),
            "2".repeat(9_000)
        );
        let shown = errors(&text)[0].to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(lines[1].starts_with("...") && lines[1].ends_with("2..."));
        assert_eq!(lines[1].find(';'), lines[2].find('^'));
        assert!(shown.len() < 2500, "{}", shown.len());
        let word = format!("\\{} x\n", "é".repeat(50_000));
        let shown = errors(&word)[0].to_string();
        assert!(shown.len() < 2500, "{}", shown.len());
    }
}
