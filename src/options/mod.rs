//! The command line: text in, [`Plan`] out. What was typed (`Arguments`) and what will be done
//! ([`Plan`]) are two types; everything that can be wrong with the former is said here, and the
//! rest of the program asks for no option, environment variable or default again.
//!
//! Reads script files while it reads the options, but opens no sockets and starts no threads.

mod arguments;
mod compare;
mod complaint;
mod expand;
mod help;
mod into_plan;
mod logs;
mod modes;
mod pgbench;
mod report;
mod scripts;
mod subcommand;
mod values;

use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use arguments::Arguments;
use complaint::{discreet, explain, of_program, usage, usage_with_hint};
use expand::{Expanded, expand, takes_value};
use into_plan::{Typed, into_plan, seed_of_environment};
use modes::is_pgbenchs;
use scripts::Found;

use crate::conninfo::Environment;
use crate::error::Error;
use crate::plan::{Plan, Text};
use crate::program::Program;

/// Turns the arguments into a plan. The first of them is the program's name as called, which
/// decides whose options they are; `environment` knows what was not typed.
///
/// # Errors
/// [`Error::Usage`] for what is wrong with the options, [`Error::Script`] and [`Error::Io`] for
/// what is wrong with the scripts that they name.
pub fn parse(
    argv: impl Iterator<Item = OsString>,
    environment: &dyn Environment,
) -> Result<Plan, Error> {
    let mut argv = argv.peekable();
    let program = argv
        .peek()
        .map_or(Program::Pgmark, |name| Program::called(name));
    let argv: Vec<OsString> = argv.collect();
    let words = argv.get(1..).unwrap_or_default();
    if let (Program::Pgmark, Some((first, others))) = (program, words.split_first()) {
        let others = others.iter().cloned();
        match first.to_str() {
            Some(report::WORD) => return report::parse(others),
            Some(compare::WORD) => return compare::parse(others),
            Some(_) | None => {}
        }
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = command(program);
    let (argv, complaint) = match expand(program, &command, argv.into_iter().peekable()) {
        Expanded::Help => return Ok(Plan::Show(Text::Stdout(help::help(program, &command)))),
        Expanded::Version => return Ok(Plan::Show(Text::Stdout(help::version(program)))),
        Expanded::Arguments(argv) => (argv, None),
        Expanded::UpTo(argv, complaint) => (argv, Some(complaint)),
    };
    plan(program, &command, &words, (argv, complaint), environment)
        .map_err(|error| of_program(program, discreet(error)))
}

/// What is wrong is told in pgbench's order: the variable of the seed, then options and the scripts
/// that they name as they stand in `argv`, then what concerns several options.
fn plan(
    program: Program,
    command: &Command,
    words: &[String],
    (argv, complaint): (Vec<OsString>, Option<Error>),
    environment: &dyn Environment,
) -> Result<Plan, Error> {
    let seed_of_environment = seed_of_environment(environment)?;
    let (matches, complaint) = take(command, argv, complaint);
    let scripts = match scripts::read(program, &matches)? {
        Found::Text(text) => return Ok(Plan::Show(text)),
        Found::Scripts(builder) => builder,
    };
    if let Some(complaint) = complaint {
        return Err(complaint);
    }
    let arguments =
        Arguments::from_arg_matches(&matches).map_err(|complaint| explain(&complaint, command))?;
    if arguments.about.suite_mk {
        return Ok(Plan::SuiteMk);
    }
    let typed = Typed {
        program,
        command,
        matches: &matches,
        words,
        seed_of_environment,
    };
    into_plan(&arguments, scripts.finish()?, &typed, environment)
}

/// The options up to the first that is wrong, with what is wrong with it; `complaint` is about what
/// comes after `argv`.
fn take(
    command: &Command,
    argv: Vec<OsString>,
    complaint: Option<Error>,
) -> (ArgMatches, Option<Error>) {
    match command.clone().try_get_matches_from(&argv) {
        Ok(matches) => (matches, complaint),
        Err(complaint) => {
            let up_to_there = command.clone().ignore_errors(true);
            (
                up_to_there.get_matches_from(argv),
                Some(explain(&complaint, command)),
            )
        }
    }
}

/// The options as clap knows them; under the name pgbench, ours are hidden, and [`expand`] refuses
/// them. Like getopt, an option that needs a value takes whatever comes next, even if it begins
/// with a hyphen.
fn command(program: Program) -> Command {
    Arguments::command().mut_args(|arg| {
        let takes_hyphens = !arg.is_positional() && takes_value(&arg);
        let hidden = program == Program::Pgbench && arg.get_long().is_some_and(|n| !is_pgbenchs(n));
        let arg = arg.allow_hyphen_values(takes_hyphens).hide(hidden);
        match program {
            Program::Pgmark => arg,
            Program::Pgbench => pgbench::narrowed(arg),
        }
    })
}

#[cfg(test)]
pub(crate) mod tests;
