//! Unambiguous beginnings of long options into their full names, as getopt does it: pgbench's
//! names come first, ours are asked only if they know nothing. Also notices `--help` and
//! `--version` wherever they stand, since the walk knows what is an option and what a value.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, Command};

use super::modes::pgbench_names;
use super::usage;
use crate::error::Error;
use crate::program::Program;

/// What the walk over the arguments found.
#[derive(Debug)]
pub(super) enum Expanded {
    /// `--help` or `-?` stands among the options.
    Help,
    /// `--version` or `-V` does.
    Version,
    /// The arguments with all long names spelled out, the program's name first.
    Arguments(Vec<OsString>),
    /// Those before one that is no option, and what is wrong with that.
    UpTo(Vec<OsString>, Error),
}

/// Expands the long names in `argv`, the first element of which is the program's name. Under the
/// name pgbench there are no names but its own.
pub(super) fn expand(
    program: Program,
    command: &Command,
    argv: impl Iterator<Item = OsString>,
) -> Expanded {
    let mut expanded = Vec::new();
    let mut arguments = argv.into_iter();
    expanded.extend(arguments.next());
    while let Some(argument) = arguments.next() {
        let options = match argument.as_bytes() {
            b"--" => {
                expanded.push(argument);
                break;
            }
            [b'-', b'-', name @ ..] => match long_option(program, command, name) {
                Ok(option) => vec![option],
                Err(complaint) => return Expanded::UpTo(expanded, complaint),
            },
            [b'-', letters @ ..] if !letters.is_empty() => short_options(command, letters),
            _ => {
                expanded.push(argument);
                continue;
            }
        };
        for option in &options {
            match option.name.as_str() {
                "help" => return Expanded::Help,
                "version" => return Expanded::Version,
                _ => {}
            }
        }
        let option = match options.as_slice() {
            [only] if argument.as_bytes().starts_with(b"--") => only.spelled(&argument),
            _ => argument,
        };
        match options.last() {
            Some(last) if last.value_follows => push_value(&mut expanded, option, arguments.next()),
            Some(_) | None => expanded.push(option),
        }
    }
    expanded.extend(arguments);
    Expanded::Arguments(expanded)
}

/// Adds an option and its value as one argument: clap looks at the value there and then. With two it
/// does so only when it has seen what comes next, and complains of that first.
fn push_value(expanded: &mut Vec<OsString>, mut option: OsString, value: Option<OsString>) {
    match value {
        Some(value) if !value.is_empty() => {
            option.push("=");
            option.push(value);
            expanded.push(option);
        }
        // An equals sign alone gives no value at all.
        none_or_empty => {
            expanded.push(option);
            expanded.extend(none_or_empty);
        }
    }
}

/// One option as it stands in an argument.
struct Typed {
    /// Its full long name; what was typed, where nothing fits.
    name: String,
    /// Its value is the next argument.
    value_follows: bool,
}

impl Typed {
    /// `--name`, with the value that `typed` has after an equals sign.
    fn spelled(&self, typed: &OsStr) -> OsString {
        let bytes = typed.as_bytes();
        let value = bytes.iter().position(|byte| *byte == b'=');
        let mut spelled = format!("--{}", self.name).into_bytes();
        spelled.extend_from_slice(value.map_or(&[], |at| &bytes[at..]));
        OsString::from_vec(spelled)
    }
}

fn long_option(program: Program, command: &Command, typed: &[u8]) -> Result<Typed, Error> {
    let end = typed.iter().position(|byte| *byte == b'=');
    let prefix = String::from_utf8_lossy(&typed[..end.unwrap_or(typed.len())]).into_owned();
    let name = full_name(program, command, &prefix)?;
    let value_follows = end.is_none() && find_long(command, &name).is_some_and(takes_value);
    Ok(Typed {
        name,
        value_follows,
    })
}

/// The options of a cluster such as `-nrf`; the rest after one that takes a value is its value.
fn short_options(command: &Command, letters: &[u8]) -> Vec<Typed> {
    let mut options = Vec::new();
    for (index, letter) in letters.iter().enumerate() {
        let arg = command
            .get_arguments()
            .find(|arg| arg.get_short() == Some(char::from(*letter)));
        let with_value = arg.is_some_and(takes_value);
        options.push(Typed {
            name: arg
                .and_then(Arg::get_long)
                .map_or_else(|| char::from(*letter).to_string(), str::to_owned),
            value_follows: with_value && index + 1 == letters.len(),
        });
        if with_value || arg.is_none() {
            break;
        }
    }
    options
}

/// The only name that begins with `prefix`, or `prefix` itself if none does.
fn full_name(program: Program, command: &Command, prefix: &str) -> Result<String, Error> {
    let mut candidates: Vec<&str> = pgbench_names()
        .filter(|name| name.starts_with(prefix))
        .collect();
    let ours_too = program == Program::Pgmark;
    if candidates.is_empty() && ours_too {
        let ours = command.get_arguments().flat_map(long_names);
        candidates = ours.filter(|name| name.starts_with(prefix)).collect();
    }
    if candidates.contains(&prefix) || (ours_too && find_long(command, prefix).is_some()) {
        return Ok(prefix.to_owned());
    }
    match candidates.as_slice() {
        [] => unknown_unless(ours_too, prefix),
        [only] => Ok((*only).to_owned()),
        several => Err(usage(format!(
            "option '--{prefix}' is ambiguous; possibilities: '--{}'",
            several.join("' '--")
        ))),
    }
}

/// clap says best what is wrong with an unknown name, but to it ours are known.
fn unknown_unless(ours_too: bool, name: &str) -> Result<String, Error> {
    if ours_too {
        return Ok(name.to_owned());
    }
    Err(usage(format!("unrecognized option '--{name}'")))
}

fn find_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command
        .get_arguments()
        .find(|arg| long_names(arg).any(|long| long == name))
}

/// The long name and those that mean the same.
fn long_names(arg: &Arg) -> impl Iterator<Item = &str> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases)
}

/// Whether a value follows, in the same argument or the next.
pub(super) fn takes_value(arg: &Arg) -> bool {
    match arg.get_num_args() {
        Some(range) => range.takes_values(),
        None => arg.get_action().takes_values(),
    }
}
