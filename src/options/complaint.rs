//! clap's complaints in our own words, which are those that getopt and pgbench taught people to
//! read. Decides nothing.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use super::values::Rejected;
use crate::conninfo::holds_password;
use crate::error::{Error, Report};
use crate::program::Program;
use crate::spelling::nearest;

/// A usage error that points to the help.
pub(super) fn usage(message: impl Into<String>) -> Error {
    Error::Usage(Report::new(message).hint(HELP_HINT))
}

/// A usage error with a remedy of its own.
pub(super) fn usage_with_hint(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Usage(Report::new(message).hint(hint))
}

/// The same complaint, pointing to the help of the program that was called.
pub(super) fn of_program(program: Program, error: Error) -> Error {
    match error {
        Error::Usage(report) if report.hint.as_deref() == Some(HELP_HINT) => {
            let name = program.name();
            usage_with_hint(
                report.message,
                format!("Try \"{name} --help\" for more information."),
            )
        }
        other => other,
    }
}

/// The same complaint, unless it repeats what looks like a connection string with a password.
pub(super) fn discreet(error: Error) -> Error {
    match error {
        Error::Usage(report) if holds_password(&report.message) => usage_with_hint(
            "a connection string with a password is given where none is read",
            "It takes the place of the database's name (-d), as one argument: put it in quotes.",
        ),
        other => other,
    }
}

/// A second name of a database.
pub(super) fn too_many_arguments(surplus: &str) -> Error {
    usage(format!(
        "too many command-line arguments (first is \"{surplus}\")"
    ))
}

/// What clap found wrong with the arguments.
pub(super) fn explain(complaint: &clap::Error, command: &Command) -> Error {
    let named = text(complaint, ContextKind::InvalidArg);
    let arg = find(command, &named);
    let option = arg.map_or_else(|| named.clone(), spelled);
    let value = text(complaint, ContextKind::InvalidValue);
    match complaint.kind() {
        ErrorKind::UnknownArgument => unknown(&named, command),
        ErrorKind::InvalidValue if value.is_empty() => missing_value(&option),
        ErrorKind::ValueValidation => rejected(complaint, arg, &option, &value),
        ErrorKind::TooManyValues => usage(format!("option {option} doesn't allow an argument")),
        ErrorKind::InvalidUtf8 => usage("an argument that must be text is not valid UTF-8"),
        // What else clap can say concerns settings that no option of ours has.
        _ => usage(complaint.to_string().trim().to_owned()),
    }
}

/// `-c/--client`: both spellings, as messages name an option.
pub(super) fn spelled(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}/--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => arg
            .get_value_names()
            .and_then(|names| names.first())
            .map_or_else(String::new, ToString::to_string),
    }
}

const HELP_HINT: &str = "Try \"pgmark --help\" for more information.";

const TIME_HINT: &str = "A time is a number, with a unit if you like: 90, 1.5s, 250ms, 5m, 2h.";

fn unknown(named: &str, command: &Command) -> Error {
    match named.strip_prefix('-') {
        Some("-report-latencies") => usage_with_hint(
            format!("unrecognized option '{named}'"),
            "Since pgbench 15 it is called --report-per-command.",
        ),
        Some("W") => usage_with_hint(
            "there is no option -W",
            "The password is asked for if the server wants one; or use a password file or $PGPASSWORD.",
        ),
        Some(letter) if !letter.starts_with('-') => usage(format!("invalid option -- '{letter}'")),
        Some(long) => {
            let message = format!("unrecognized option '{named}'");
            let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
            let names = shown.filter_map(Arg::get_long);
            match nearest(long.trim_start_matches('-').as_bytes(), names) {
                Some(meant) => usage_with_hint(message, format!("Perhaps you meant --{meant}.")),
                None => usage(message),
            }
        }
        None => too_many_arguments(named),
    }
}

fn missing_value(option: &str) -> Error {
    let message = format!("option {option} requires an argument");
    match option {
        "-h/--host" => usage_with_hint(
            message,
            "-h is the host of the server; help is -? or --help.",
        ),
        "-d/--dbname" => usage_with_hint(
            message,
            "-d is the database, as in pgbench since version 17.",
        ),
        _ => usage(message),
    }
}

fn rejected(complaint: &clap::Error, arg: Option<&Arg>, option: &str, value: &str) -> Error {
    let reason = complaint
        .source()
        .and_then(|source| source.downcast_ref::<Rejected>());
    match reason {
        Some(Rejected::OutOfRange(range)) => {
            usage(format!("{option} must be in range {range}, not {value}"))
        }
        Some(Rejected::Because(message, Some(hint))) => usage_with_hint(message.clone(), *hint),
        Some(Rejected::Because(message, None)) => usage(message.clone()),
        Some(Rejected::Malformed) | None => {
            let message = format!("invalid value \"{value}\" for option {option}");
            if arg.is_some_and(takes_time) {
                return usage_with_hint(message, TIME_HINT);
            }
            usage(message)
        }
    }
}

fn takes_time(arg: &Arg) -> bool {
    arg.get_value_names()
        .is_some_and(|names| names.iter().any(|name| name == "TIME"))
}

/// The option that clap shows as `--client <N>` or `-c <N>`.
fn find<'a>(command: &'a Command, shown: &str) -> Option<&'a Arg> {
    let name = shown.split([' ', '=']).next()?;
    command.get_arguments().find(|arg| {
        arg.get_long()
            .is_some_and(|long| name.strip_prefix("--") == Some(long))
            || arg
                .get_short()
                .is_some_and(|short| name.strip_prefix('-') == Some(&short.to_string()))
    })
}

fn text(complaint: &clap::Error, kind: ContextKind) -> String {
    match complaint.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
