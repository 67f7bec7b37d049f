//! Parses and evaluates scripts that an enemy wrote. Property tests and the fuzz target share it.

use super::{
    Automatic, CommandKind, Dialect, EvalContext, EvalError, Place, ScriptErrors, ScriptSet,
    ScriptSetBuilder, Variables,
};
use crate::random::Generator;

/// The most that is told of one script: 21 errors, each with words, a hint and a few cut lines.
const TOLD_BYTES_MAX: usize = 200_000;

/// Scripts with more lines than this may show more of them.
const LINES_MAX: usize = 100;

/// Takes `text` for a script, in both dialects, and does everything with its commands that needs no
/// server.
///
/// # Panics
/// If the language breaks one of its promises: an error is told, briefly; and what pgbench's dialect
/// accepts, the other one accepts too, with as many commands.
pub fn drive_hostile(text: &[u8]) {
    let counts = [Dialect::Pgbench, Dialect::Extended].map(|dialect| match parse(dialect, text) {
        Ok(set) => {
            act(&set, text.len());
            Some(set.scripts[0].script.commands.len())
        }
        Err(errors) => {
            check(&errors, text);
            None
        }
    });
    if let [Some(of_pgbench), of_ours] = counts
        && !text.starts_with(b"\xef\xbb\xbf")
    {
        assert_eq!(
            Some(of_pgbench),
            of_ours,
            "what pgbench accepts must not change"
        );
    }
}

fn parse(dialect: Dialect, text: &[u8]) -> Result<ScriptSet, ScriptErrors> {
    let mut builder = ScriptSetBuilder::new(dialect);
    builder.define(b"x=7");
    builder.add_file("script", text, 1);
    builder.finish()
}

fn check(errors: &ScriptErrors, text: &[u8]) {
    let told = errors.to_string();
    assert!(!told.is_empty());
    if text.iter().filter(|&&byte| byte == b'\n').count() < LINES_MAX {
        assert!(told.len() < TOLD_BYTES_MAX, "{} bytes are told", told.len());
    }
    for excerpt in errors.0.iter().filter_map(|error| error.excerpt.as_ref()) {
        let caret = excerpt.caret.unwrap_or_default();
        assert!(caret <= text.len(), "the caret is beyond the script");
    }
}

/// What a client does with the commands, in the order of the text.
fn act(set: &ScriptSet, text_bytes: usize) {
    let mut variables = set.variables.initial(&Automatic {
        scale: 1,
        client_id: 0,
        default_seed: None,
        random_seed: 1,
        thread_id: 0,
    });
    let mut generator = Generator::new(1);
    for (command, step) in set.scripts[0].script.commands.iter().enumerate() {
        let mut context = EvalContext {
            variables: &mut variables,
            generator: &mut generator,
            messages: &mut |_| {},
            place: Place { script: 0, command },
            unix_time_us: 1,
        };
        if let Err(error) = execute(&step.kind, &mut context, text_bytes) {
            assert!(!error.to_string().is_empty());
        }
        assert!(step.excerpt().lines().count() <= 1);
    }
}

fn execute(
    kind: &CommandKind,
    context: &mut EvalContext<'_>,
    text_bytes: usize,
) -> Result<(), EvalError> {
    match kind {
        CommandKind::Set {
            variable,
            expression,
        } => {
            let value = expression.evaluate(context)?;
            context.variables.set(*variable, value)
        }
        CommandKind::If { condition, .. } | CommandKind::Elif { condition, .. } => {
            condition.truth(context).map(drop)
        }
        CommandKind::Sql(sql) => {
            // A use of a variable is two bytes or more, and its number eight at most.
            assert!(sql.parameterized().len() <= 4 * text_bytes + 8);
            append(sql, context.variables);
            Ok(())
        }
        CommandKind::Sleep(sleep) => sleep.duration(context.variables).map(drop),
        CommandKind::Shell(command) | CommandKind::SetShell { command, .. } => {
            command.line(context.variables).map(drop)
        }
        CommandKind::Values(_)
        | CommandKind::Else { .. }
        | CommandKind::Endif
        | CommandKind::Untimed
        | CommandKind::EndUntimed
        | CommandKind::StartPipeline
        | CommandKind::SyncPipeline
        | CommandKind::EndPipeline => Ok(()),
    }
}

fn append(sql: &super::Sql, variables: &Variables) {
    // A long text that is used often would take all memory, as it would of a client.
    if sql.parameters().len() < 8 {
        sql.append_simple(variables, &mut Vec::new());
        for slot in sql.parameters() {
            variables.append_parameter(*slot, &mut Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORDS: &[&str] = &[
        "\\set x ",
        "\\set y ",
        "\\if ",
        "\\elif ",
        "\\else",
        "\\endif",
        "\\gset ",
        "\\aset p",
        "\\sleep ",
        "\\shell ",
        "\\setshell x ",
        "\\values a.csv ",
        "order=random ",
        "end=stop",
        "\\untimed",
        "\\enduntimed",
        "\\startpipeline",
        "\\syncpipeline",
        "\\endpipeline",
        "\\foo",
        "\n",
        "\n",
        "\n",
        "\\\n",
        "\\\r\n",
        "\r\n",
        " ",
        "\t",
        "\u{feff}",
        "é",
        "\\",
        "\0",
        "1",
        "2.5e3",
        "1e400",
        ".",
        "9223372036854775807",
        "9223372036854775808",
        ":x",
        ":nobody",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">>",
        "<",
        ">=",
        "<>",
        "!=",
        "=",
        "&",
        "|",
        "||",
        "#",
        "~",
        "!",
        "case ",
        "when ",
        "then ",
        "else ",
        "end ",
        "and ",
        "or ",
        "not ",
        "is ",
        "isnull ",
        "null ",
        "true ",
        "random(",
        "random_zipfian(",
        "permute(",
        "hash(",
        "least(",
        "text(",
        "lpad(",
        "substr(",
        "random_text(",
        "random_element(",
        "uuid_v7()",
        "debug(",
        "'",
        "''",
        "\"",
        "e'",
        "u&'",
        "$$",
        "$a$",
        "/*",
        "*/",
        "--",
        ";",
        "\\;",
        "\\:",
        ":'x'",
        ":\"x\"",
        ":{?x}",
        "::",
        "[",
        "]",
        "select ",
        "create function f() ",
        "begin ",
        "atomic ",
        "ms",
        "us",
    ];

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            drive_hostile(&text);
        }

        #[test]
        fn anything_like_a_script_does_no_harm(
            words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60)
        ) {
            drive_hostile(words.concat().as_bytes());
        }

        #[test]
        fn a_damaged_script_does_no_harm(
            which in 0..crate::script::builtin::BUILTINS.len(),
            damages in proptest::collection::vec(
                (any::<prop::sample::Index>(), proptest::sample::select(WORDS)), 0..8)
        ) {
            let mut text = crate::script::builtin::BUILTINS[which].text.to_owned();
            for (place, word) in damages {
                let at = place.index(text.len());
                let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text.insert_str(at, word);
            }
            drive_hostile(text.as_bytes());
        }
    }
}
