//! Scripts and definitions of the command line, read in the order in which they were given.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::ArgMatches;

use super::values::{self, Rejected};
use super::{usage, usage_with_hint};
use crate::error::Error;
use crate::plan::Text;
use crate::program::Program;
use crate::script::builtin::{self, BUILTINS, Builtin, NotFound};
use crate::script::{Dialect, ScriptSetBuilder};

/// What the options concerned ask for.
pub(super) enum Found {
    /// Something is printed instead of a run: the list of the builtin scripts, or the text of one.
    Text(Text),
    /// All scripts and definitions; tpcb-like where no script was asked for.
    Scripts(ScriptSetBuilder),
}

/// Does what the options say in the order in which they were given; what is wrong with a script is
/// told before what is wrong with a later option.
///
/// # Errors
/// What cannot be read or found, or else all that is wrong with what was read before it.
pub(super) fn read(program: Program, matches: &ArgMatches) -> Result<Found, Error> {
    let mut builder = ScriptSetBuilder::new(match program {
        Program::Pgmark => Dialect::Extended,
        Program::Pgbench => Dialect::Pgbench,
    });
    let given = in_order(matches);
    for (kind, argument) in &given {
        match add(*kind, argument, &mut builder) {
            Ok(None) => {}
            Ok(Some(text)) => {
                builder.check()?;
                return Ok(Found::Text(text));
            }
            Err(error) => {
                builder.check()?;
                return Err(error);
            }
        }
    }
    builder.check()?;
    if given.iter().all(|(kind, _)| *kind == Kind::Definition) {
        builder.add_builtin(builtin::DEFAULT, 1);
    }
    Ok(Found::Scripts(builder))
}

/// Does what one option says; a text is to be shown.
fn add(
    kind: Kind,
    argument: &OsStr,
    builder: &mut ScriptSetBuilder,
) -> Result<Option<Text>, Error> {
    match kind {
        Kind::Builtin if argument == "list" => return Ok(Some(Text::Stderr(list()))),
        Kind::Builtin => {
            let (name, weight) = split_weight(argument)?;
            builder.add_builtin(find(name)?, weight);
        }
        Kind::File => {
            let (name, weight) = split_weight(argument)?;
            builder.add_file(name.to_string_lossy(), &read_file(name)?, weight);
        }
        Kind::Definition => {
            builder.define(argument.as_bytes());
        }
        Kind::Show => {
            let builtin = find(argument)?;
            return Ok(Some(Text::Stderr(format!(
                "-- {}: {}\n{}\n",
                builtin.name, builtin.display_name, builtin.text
            ))));
        }
    }
    Ok(None)
}

/// `--on-connect`: the SQL itself, or what stands in the file after `@`.
pub(super) fn on_connect(argument: &OsStr) -> Result<Vec<u8>, Error> {
    match argument.as_bytes().strip_prefix(b"@") {
        Some(name) => read_file(OsStr::from_bytes(name)),
        None => Ok(argument.as_bytes().to_vec()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Builtin,
    File,
    Definition,
    Show,
}

/// The options concerned, by the names of their fields. `-N` and `-S` stand for a builtin script
/// and carry its name.
const OPTIONS: &[(&str, Kind)] = &[
    ("builtin", Kind::Builtin),
    ("skip_some_updates", Kind::Builtin),
    ("select_only", Kind::Builtin),
    ("file", Kind::File),
    ("define", Kind::Definition),
    ("show_script", Kind::Show),
];

fn in_order(matches: &ArgMatches) -> Vec<(Kind, OsString)> {
    let mut given: Vec<(usize, Kind, OsString)> = Vec::new();
    for (option, kind) in OPTIONS {
        let indices = matches.indices_of(option).into_iter().flatten();
        let values = matches.get_many::<OsString>(option).into_iter().flatten();
        given.extend(
            indices
                .zip(values)
                .map(|(index, value)| (index, *kind, value.clone())),
        );
    }
    given.sort_by_key(|(index, ..)| *index);
    given
        .into_iter()
        .map(|(_, kind, value)| (kind, value))
        .collect()
}

/// Name and weight: the weight stands after the last `@` and is 1 if there is none.
fn split_weight(argument: &OsStr) -> Result<(&OsStr, u32), Error> {
    let bytes = argument.as_bytes();
    let Some(at) = bytes.iter().rposition(|byte| *byte == b'@') else {
        return Ok((argument, 1));
    };
    let (name, weight) = (&bytes[..at], String::from_utf8_lossy(&bytes[at + 1..]));
    match values::from_zero(&weight) {
        Ok(number) => Ok((OsStr::from_bytes(name), number)),
        Err(Rejected::OutOfRange(range)) => Err(usage(format!(
            "weight specification out of range ({range}): \"{weight}\""
        ))),
        Err(Rejected::Malformed | Rejected::Because(..)) => Err(usage_with_hint(
            format!("invalid weight specification: \"@{weight}\""),
            "If the @ belongs to the name of the file, add @1.",
        )),
    }
}

fn read_file(name: &OsStr) -> Result<Vec<u8>, Error> {
    if name != "-" {
        let path = Path::new(name);
        return std::fs::read(path).map_err(|error| Error::io("read", path, error));
    }
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|error| Error::io("read", Path::new("standard input"), error))?;
    Ok(text)
}

fn find(prefix: &OsStr) -> Result<&'static Builtin, Error> {
    let prefix = prefix.to_string_lossy();
    builtin::find(&prefix).map_err(|error| {
        let message = match error {
            NotFound::Unknown => format!("no builtin script is called \"{prefix}\""),
            NotFound::Ambiguous => {
                format!("ambiguous: several builtin scripts begin with \"{prefix}\"")
            }
        };
        let names = BUILTINS.each_ref().map(|builtin| builtin.name);
        usage_with_hint(
            message,
            format!("Builtin scripts are: {}.", names.join(", ")),
        )
    })
}

fn list() -> String {
    let mut text = "Available builtin scripts:\n".to_owned();
    for builtin in &BUILTINS {
        text.push_str(&format!("  {}: {}\n", builtin.name, builtin.display_name));
    }
    text
}
