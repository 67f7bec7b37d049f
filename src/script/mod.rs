//! The script language: text in, [`ScriptSet`] out, and evaluation. Everything in it is bytes; text
//! of any encoding passes unchanged. Does no I/O, knows neither time nor the protocol.
//!
//! [`ScriptSetBuilder`] takes the scripts and definitions of a run and checks all of it before
//! anything connects. A client then walks the [`Command`]s of the script that
//! [`ScriptSet::choose`] names, with its own [`Variables`] and its own random stream.

mod blocks;
mod builder;
pub mod builtin;
#[cfg(test)]
mod cases;
mod error;
mod expression;
mod functions;
mod grammar;
mod hostile;
mod meta;
mod parser;
mod scanner;
mod splitter;
mod sql;
mod text;
mod token;
mod value;
mod variables;

pub use builder::ScriptSetBuilder;
pub use error::{EvalError, Excerpt, Problem, ScriptError, ScriptErrors, Structure, Type};
pub use expression::{EvalContext, Expr, Place};
pub use functions::{Arity, FUNCTIONS, Function};
pub use hostile::drive_hostile;
pub use meta::{ShellCommand, Sleep, Values, ValuesEnd, ValuesOrder, setshell_value};
pub use sql::{Capture, CapturedRows, Sql};
pub use value::Value;
pub use variables::{Automatic, Slot, VariableTable, Variables, is_valid_name};

use crate::random::Generator;
use builtin::BUILTINS;

/// Which language the scripts are written in. Whatever pgbench accepts means the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// pgbench's, and what it refuses and pgmark understands.
    #[default]
    Extended,
    /// pgbench's alone.
    Pgbench,
}

/// All scripts of a run with the variables that they mention.
#[derive(Debug)]
pub struct ScriptSet {
    /// In the order of the command line.
    pub scripts: Vec<WeightedScript>,
    /// The variables of all scripts.
    pub variables: VariableTable,
    /// Whether any of them is builtin: the scale is then that of the tables.
    pub any_builtin: bool,
    /// SQL commands in all scripts together; [`Sql::number`] counts up to it.
    pub sql_commands: usize,
}

/// A script and how often it is chosen.
#[derive(Debug)]
pub struct WeightedScript {
    /// What it does.
    pub script: Script,
    /// Its weight relative to the others; 0 is never chosen. At most 2^31 - 1.
    pub weight: u32,
}

/// The most uses of variables in one SQL command that is sent with parameters; pgbench's limit.
const PARAMETERS_MAX: usize = 255;

impl ScriptSet {
    /// The index of the script that runs next. Draws nothing if there is only one.
    pub fn choose(&self, generator: &mut Generator) -> usize {
        if let [_] = self.scripts[..] {
            return 0;
        }
        let total: u64 = self.scripts.iter().map(|s| u64::from(s.weight)).sum();
        let mut left = generator.range(0, total.saturating_sub(1));
        for (index, script) in self.scripts.iter().enumerate() {
            let weight = u64::from(script.weight);
            if left < weight {
                return index;
            }
            left -= weight;
        }
        unreachable!("the number drawn is below the sum of the weights, which is not zero")
    }

    /// Checks that all SQL commands can be sent with their variables as parameters; needed in
    /// every query mode but the simple one.
    pub fn check_parameters(&self) -> Result<(), ScriptErrors> {
        let mut errors = Vec::new();
        for WeightedScript { script, .. } in &self.scripts {
            for command in &script.commands {
                if let Some(sql) = command.kind.sql()
                    && sql.parameters().len() > PARAMETERS_MAX
                {
                    errors.push(ScriptError {
                        source: Some(script.name.clone()),
                        line: Some(command.line),
                        problem: Problem::TooManyParameters {
                            found: sql.parameters().len(),
                            allowed: PARAMETERS_MAX,
                        },
                        command: None,
                        excerpt: None,
                    });
                }
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ScriptErrors(errors))
        }
    }
}

/// A parsed script.
#[derive(Debug)]
pub struct Script {
    /// As reports and errors show it: the path as given, `-`, or the name of a builtin.
    pub name: String,
    /// In the order of the text. Never empty.
    pub commands: Vec<Command>,
}

/// One command of a script.
#[derive(Debug)]
pub struct Command {
    /// Line of its first byte, from 1.
    pub line: u64,
    /// Its source, for reports and messages.
    pub text: Vec<u8>,
    /// What it does.
    pub kind: CommandKind,
}

/// What a command does. Targets of jumps are indices into [`Script::commands`].
#[derive(Debug)]
pub enum CommandKind {
    /// Sends an SQL command.
    Sql(Sql),
    /// Sets a variable to the value of an expression.
    Set {
        /// The variable.
        variable: Slot,
        /// Its new value.
        expression: Expr,
    },
    /// Waits.
    Sleep(Sleep),
    /// Begins a conditional block; see [`Script::branch`].
    If {
        /// Whether the commands up to the next branch are executed.
        condition: Expr,
        /// The `Elif`, `Else` or `Endif` where it goes on if not.
        otherwise: usize,
    },
    /// A further branch. Whoever falls into it from the branch above goes on at `end`.
    Elif {
        /// Whether the commands up to the next branch are executed.
        condition: Expr,
        /// The `Elif`, `Else` or `Endif` where it goes on if not.
        otherwise: usize,
        /// The `Endif`.
        end: usize,
    },
    /// The last branch. Whoever falls into it from the branch above goes on at `end`.
    Else {
        /// The `Endif`.
        end: usize,
    },
    /// Ends a conditional block.
    Endif,
    /// Runs a shell command.
    Shell(ShellCommand),
    /// Sets a variable to what a shell command prints; see [`setshell_value`].
    SetShell {
        /// The variable.
        variable: Slot,
        /// The command.
        command: ShellCommand,
    },
    /// Fills variables from the next row of a file.
    Values(Values),
    /// Begins commands whose time is left out of latency and service time.
    Untimed,
    /// Ends them.
    EndUntimed,
    /// Begins to send without waiting for results.
    StartPipeline,
    /// Sends a Sync inside of a pipeline.
    SyncPipeline,
    /// Sends a Sync and waits for all results.
    EndPipeline,
}

impl CommandKind {
    /// The SQL command, if it is one.
    pub fn sql(&self) -> Option<&Sql> {
        if let CommandKind::Sql(sql) = self {
            Some(sql)
        } else {
            None
        }
    }
}

impl Command {
    /// The beginning of its source, for a line of text: its first line, cut at 127 bytes.
    pub fn excerpt(&self) -> String {
        let line = self.text.split(|&byte| byte == b'\n').next();
        let line = line.unwrap_or_default().trim_ascii_end();
        String::from_utf8_lossy(&line[..line.len().min(127)]).into_owned()
    }

    /// What messages call it: `SQL`, or the name of the meta command without its backslash.
    pub fn name(&self) -> &'static str {
        match self.kind {
            CommandKind::Sql(_) => "SQL",
            CommandKind::Set { .. } => "set",
            CommandKind::Sleep(_) => "sleep",
            CommandKind::If { .. } => "if",
            CommandKind::Elif { .. } => "elif",
            CommandKind::Else { .. } => "else",
            CommandKind::Endif => "endif",
            CommandKind::Shell(_) => "shell",
            CommandKind::SetShell { .. } => "setshell",
            CommandKind::Values(_) => "values",
            CommandKind::Untimed => "untimed",
            CommandKind::EndUntimed => "enduntimed",
            CommandKind::StartPipeline => "startpipeline",
            CommandKind::SyncPipeline => "syncpipeline",
            CommandKind::EndPipeline => "endpipeline",
        }
    }
}

impl Script {
    /// Its name in tables and logs: that of the builtin, or of the file without its directory.
    pub fn short_name(&self) -> String {
        let builtin = BUILTINS
            .iter()
            .find(|builtin| builtin.display_name == self.name);
        match (builtin, self.name.rsplit_once('/')) {
            (Some(builtin), _) => builtin.name.to_owned(),
            (None, Some((_, file))) => file.to_owned(),
            (None, None) => self.name.clone(),
        }
    }

    /// Decides the conditional block whose `If` stands at the place of the context, and returns the
    /// index of the command that comes next. The place moves along: after an error it is the command
    /// whose condition failed.
    pub fn branch(&self, context: &mut EvalContext<'_>) -> Result<usize, EvalError> {
        loop {
            let at = context.place.command;
            match &self.commands[at].kind {
                CommandKind::If {
                    condition,
                    otherwise,
                }
                | CommandKind::Elif {
                    condition,
                    otherwise,
                    ..
                } => {
                    if condition.truth(context)? {
                        return Ok(at + 1);
                    }
                    context.place.command = *otherwise;
                }
                CommandKind::Else { .. }
                | CommandKind::Endif
                | CommandKind::Sql(_)
                | CommandKind::Set { .. }
                | CommandKind::Sleep(_)
                | CommandKind::Shell(_)
                | CommandKind::SetShell { .. }
                | CommandKind::Values(_)
                | CommandKind::Untimed
                | CommandKind::EndUntimed
                | CommandKind::StartPipeline
                | CommandKind::SyncPipeline
                | CommandKind::EndPipeline => return Ok(at + 1),
            }
        }
    }
}
