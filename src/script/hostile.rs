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
    builder.define(b"x", b"7");
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
    use rustix::time::{ClockId, clock_gettime};

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

    /// Head, what is repeated, tail.
    const SHAPES: &[(&str, &str, &str)] = &[
        ("", "select 1;\n", ""),
        ("", ";", ""),
        ("select ", "a ", ""),
        ("select ", ":x ", ""),
        ("select ", ":'x' ", ""),
        ("select ", ":", ""),
        ("select ", "[:\"x\" ", ""),
        ("select ", "(", ""),
        ("select ", "'a'\n", ""),
        ("select ", "e'\\\\' ", ""),
        ("select ", "$a$b", ""),
        ("select ", "$a", ""),
        ("select ", "/*", ""),
        ("select ", ":{?x}", ""),
        ("select ", "\\;", ""),
        ("create function ", "begin ", ""),
        ("", "-- x\n", "select 1;"),
        ("", "\\\n", "select 1;"),
        ("", "\\set x 1\n", ""),
        ("", "\\set é", ""),
        ("", "select 1 as a \\gset\n", ""),
        ("", "\\if 1\nselect 1;\n\\endif\n", ""),
        ("", "\\if 1\n", ""),
        ("\\if 0\n", "\\elif 0\n", "\\endif\n"),
        ("", "\\untimed\nselect 1;\n\\enduntimed\n", ""),
        ("", "\\foo\n", ""),
        ("\\shell a", " a", ""),
        ("\\set x 1", " + 1", "\n"),
        ("\\set x 1", " + 1", " ;\n"),
        ("\\set x 1", "\\\n", "+ 1\n"),
        ("\\set x ", "- ", "1\n"),
        ("\\set x ", "not ", "1\n"),
        ("\\set x ", "(", "\n"),
        ("\\set x 1", " isnull", "\n"),
        ("\\set x 'a", "''", "'\n"),
        ("\\set x least(1", ", 1", ")\n"),
        ("\\set x case", " when 1 then 1", " end\n"),
    ];

    fn of_size(bytes: usize, (head, unit, tail): (&str, &str, &str)) -> String {
        format!("{head}{}{tail}", unit.repeat(bytes / unit.len()))
    }

    /// Time of this thread's own, so that other processes do not count.
    fn cpu_ns(work: impl Fn()) -> i64 {
        let now = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        let measured = |_| {
            let before = now();
            work();
            now() - before
        };
        (0..3).map(measured).min().unwrap_or_default()
    }

    #[test]
    fn time_grows_no_faster_than_the_text() {
        for &shape in SHAPES {
            let time = |bytes| {
                let text = of_size(bytes, shape);
                cpu_ns(|| match parse(Dialect::Extended, text.as_bytes()) {
                    Ok(set) => drop(set),
                    Err(errors) => drop(errors.to_string()),
                })
            };
            // Eight times the text: linear is 8, quadratic 64. Caches grow out of the smaller one.
            let (small, large) = (time(20_000), time(160_000));
            let (small, large) = (small.max(200_000) as f64, large as f64);
            assert!(
                large / small < 24.0,
                "{shape:?}: {small} ns, then {large} ns"
            );
        }
    }

    #[test]
    fn texts_of_every_shape_do_no_harm() {
        for &shape in SHAPES {
            drive_hostile(of_size(20_000, shape).as_bytes());
        }
    }
}
