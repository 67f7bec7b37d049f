//! The report per command (`-r`): pgbench's table, row by row as others parse it, and before it,
//! where no reader of that table looks, a table of ours with what a mean conceals.
//!
//! Rows of ours begin with a word, so that nobody takes them for pgbench's, which begin with a
//! number.

use super::text::{millis, percentiles_ms};
use crate::program::Program;
use crate::result::{Facts, Measured};
use crate::stats::CommandStats;

/// Bytes of a command that are shown, as in pgbench.
const SHOWN_BYTES: usize = 127;

/// The tables of a script, `indent` before their headers; nothing if commands are not reported.
/// Under the name pgbench there is only pgbench's.
pub(super) fn tables(
    facts: &Facts,
    measured: &Measured,
    script: usize,
    indent: &str,
) -> Vec<String> {
    let Some(commands) = measured.commands.get(script) else {
        return Vec::new();
    };
    let texts = facts.scripts[script].commands.iter();
    let texts: Vec<String> = texts.map(|text| shown(text)).collect();
    let each = || commands.iter().zip(&texts);
    let mut lines = Vec::new();
    if facts.program == Program::Pgmark {
        lines.push(format!(
            "{indent}statement executions, percentiles and maxima in milliseconds:"
        ));
        let percents = &facts.summary.percentiles;
        lines.extend(each().map(|(stats, text)| our_row(stats, percents, text)));
    }
    let with_retries = facts.max_tries != Some(1);
    let and_what = match with_retries {
        true => ", failures and retries",
        false => " and failures",
    };
    lines.push(format!(
        "{indent}statement latencies in milliseconds{and_what}:"
    ));
    lines.extend(each().map(|(stats, text)| pgbench_row(stats, text, with_retries)));
    lines
}

fn our_row(stats: &CommandStats, percents: &[f64], text: &str) -> String {
    format!(
        "   executed {:>10}, {}, max {}  {text}",
        stats.durations.count(),
        percentiles_ms(&stats.durations, percents),
        millis(stats.durations.max_ns() as f64)
    )
}

fn pgbench_row(stats: &CommandStats, text: &str, with_retries: bool) -> String {
    let retries = match with_retries {
        true => format!(" {:>10}", stats.retries),
        false => String::new(),
    };
    format!(
        "   {:>11}  {:>10}{retries} {text}",
        millis(stats.durations.mean_ns()),
        stats.failures
    )
}

/// The first line of an SQL command, the whole of a meta command, on one line.
fn shown(text: &str) -> String {
    let text = text.trim();
    let whole = match text.starts_with('\\') {
        true => text,
        false => text.lines().next().unwrap_or_default(),
    };
    let mut shown = String::new();
    for character in whole.chars() {
        if shown.len() + character.len_utf8() > SHOWN_BYTES {
            break;
        }
        shown.push(match character.is_control() {
            true => ' ',
            false => character,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::event::CommandEnd;
    use crate::result::RunResult;

    fn stats() -> CommandStats {
        let mut stats = CommandStats::default();
        (1..=1_000).for_each(|us| stats.record(CommandEnd::Done, us * 1_000));
        (0..10).for_each(|_| stats.record(CommandEnd::Failed, 0));
        (0..37).for_each(|_| stats.record(CommandEnd::Retried, 0));
        stats
    }

    #[test]
    fn rows_are_pgbenchs_and_ours_cannot_be_taken_for_them() {
        for (found, expected) in [
            (
                pgbench_row(&stats(), "UPDATE t", true),
                "         0.500          10         37 UPDATE t",
            ),
            (
                pgbench_row(&stats(), "\\set aid 1", false),
                "         0.500          10 \\set aid 1",
            ),
            (
                pgbench_row(&CommandStats::default(), "END;", false),
                "         0.000           0 END;",
            ),
            (
                our_row(&stats(), &[50.0, 99.0], "END;"),
                "   executed       1000, p50 0.500, p99 0.990, max 1.000  END;",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_command_is_shown_on_one_line_of_bounded_length() {
        let long = "é".repeat(100);
        for (text, expected) in [
            ("SELECT 1\n  FROM t;", "SELECT 1"),
            ("\\set a \\\n  1 +\t2", "\\set a \\   1 + 2"),
            ("\n  END;\n", "END;"),
            (&long, &long[..126]),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn under_the_name_pgbench_there_is_only_its_table() {
        let mut result = testing::commands();
        let of = |result: &RunResult| tables(&result.facts, &result.measured, 0, " - ");
        let both = of(&result);
        result.facts.program = Program::Pgbench;
        assert_eq!(of(&result), both[3..]);
        assert!(both[3].starts_with(" - statement latencies in milliseconds"));
    }

    #[test]
    fn without_a_report_of_commands_there_is_nothing() {
        let result = testing::timed();
        let lines = tables(&result.facts, &result.measured, 0, "");
        assert_eq!(lines, Vec::<String>::new());
    }
}
