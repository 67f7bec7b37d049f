//! Commands besides running a benchmark, such as `pgmark report`: their words as clap takes them, and
//! complaints that point to their own help.

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::complaint::{explain, usage_with_hint};
use crate::error::{Error, Report};
use crate::plan::{Plan, Text};

/// What was typed behind the word of a command.
pub(super) enum Typed<A> {
    /// What is to be done.
    Arguments(A),
    /// Its help is wanted.
    Help(Plan),
}

/// Takes the words behind `name`, as in `pgmark report`. A field `help` asks for help.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn take<A: CommandFactory + FromArgMatches>(
    name: &str,
    words: impl Iterator<Item = OsString>,
) -> Result<Typed<A>, Error> {
    let mut command = A::command();
    let words = std::iter::once(OsString::from(name)).chain(words);
    let matches = command.try_get_matches_from_mut(words);
    let complain = |complaint: clap::Error| pointing_to(name, explain(&complaint, &A::command()));
    let matches: ArgMatches = matches.map_err(complain)?;
    if matches.get_flag("help") {
        let help = command.render_help().to_string();
        return Ok(Typed::Help(Plan::Show(Text::Stdout(help))));
    }
    A::from_arg_matches(&matches)
        .map(Typed::Arguments)
        .map_err(complain)
}

/// A complaint about the command.
pub(super) fn wrong(name: &str, message: impl Into<String>) -> Error {
    usage_with_hint(
        message,
        format!("Try \"{name} --help\" for more information."),
    )
}

fn pointing_to(name: &str, error: Error) -> Error {
    match error {
        Error::Usage(Report { message, .. }) => wrong(name, message),
        other => other,
    }
}
