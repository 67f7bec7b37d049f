//! How far the filling of one table is: when a line is due, and what it says. On a terminal a bar
//! is drawn instead. Reads no clock: the time elapsed is told by the caller.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::rows::FilledTable;
use crate::console::Console;

/// Rows between two lines, where they go by rows.
pub const ROWS_PER_LINE: u64 = 100_000;
/// Time between two lines, where they go by time.
const QUIET_INTERVAL: Duration = Duration::from_secs(5);

/// Shows how far one table is.
pub struct Progress<'a> {
    console: &'a Console,
    table: FilledTable,
    total: u64,
    display: Display,
}

enum Display {
    /// A line after every [`ROWS_PER_LINE`]; so many rows were done at the last look.
    ByRows { before: u64 },
    /// A line after every [`QUIET_INTERVAL`] and at the end; the next one is due at this time.
    ByTime { next_due: Duration },
    /// One line that is redrawn.
    Bar(ProgressBar),
}

impl<'a> Progress<'a> {
    /// Of `table`, which gets `total` rows; lines go by time if `quiet`.
    pub fn new(console: &'a Console, table: FilledTable, total: u64, quiet: bool) -> Self {
        let display = if console.is_terminal() {
            Display::Bar(bar(table, total))
        } else if quiet {
            Display::ByTime {
                next_due: QUIET_INTERVAL,
            }
        } else {
            Display::ByRows { before: 0 }
        };
        Progress {
            console,
            table,
            total,
            display,
        }
    }

    /// `done` rows have been sent, `elapsed` after the first. By rows, the line tells the last
    /// round number: what several connections have done together seldom is one.
    pub fn advance(&mut self, done: u64, elapsed: Duration) {
        let told = match &mut self.display {
            Display::ByRows { before } => {
                let due = done / ROWS_PER_LINE > *before / ROWS_PER_LINE;
                *before = done;
                due.then_some(done - done % ROWS_PER_LINE)
            }
            Display::ByTime { next_due } => {
                due_by_time(done, self.total, elapsed, next_due).then_some(done)
            }
            Display::Bar(bar) => {
                bar.set_position(done);
                None
            }
        };
        if let Some(done) = told {
            let text = line(self.table.name(), done, self.total, elapsed);
            self.console.line(&text);
        }
    }

    /// Nothing more comes: a bar goes away.
    pub fn finish(self) {
        match self.display {
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::ByRows { .. } | Display::ByTime { .. } => {}
        }
    }
}

fn bar(table: FilledTable, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:30} {percent}% {pos}/{len}, {eta} left")
        .expect("the template is a constant that indicatif accepts");
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.with_style(style).with_message(table.name())
}

/// The last row is only told of in round hundreds, so that small tables stay silent.
fn due_by_time(done: u64, total: u64, elapsed: Duration, next_due: &mut Duration) -> bool {
    let due = if done == total {
        total.is_multiple_of(100)
    } else {
        elapsed >= *next_due
    };
    if due {
        let intervals = elapsed.as_nanos().div_ceil(QUIET_INTERVAL.as_nanos());
        // An interval count that does not fit would be 600 years away.
        *next_due = QUIET_INTERVAL * u32::try_from(intervals).unwrap_or(u32::MAX);
    }
    due
}

fn line(table: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let elapsed_s = elapsed.as_secs_f64();
    let remaining_s = (total - done) as f64 * elapsed_s / done as f64;
    format!(
        "{done} of {total} tuples ({percent}%) of {table} done \
         (elapsed {elapsed_s:.2} s, remaining {remaining_s:.2} s)",
        percent = percent(done, total)
    )
}

/// Rounded down, so that 100 % means done.
fn percent(done: u64, total: u64) -> u64 {
    // At the largest scale the product is 4.3e16, far inside 64 bits.
    done * 100 / total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::tests::recorded;

    #[test]
    fn percents_are_exact_beyond_32_bits() {
        let cases: &[(u64, u64, u64)] = &[
            (239_300_000, 3_800_000_000, 6),
            (1, 100_000, 0),
            (99_999, 100_000, 99),
            (100_000, 100_000, 100),
            (429_496_729_500_000, 429_496_729_500_000, 100),
        ];
        for &(done, total, expected) in cases {
            assert_eq!(percent(done, total), expected, "{done} of {total}");
        }
    }

    #[test]
    fn a_line_tells_what_is_done_and_what_remains() {
        assert_eq!(
            line(
                "pgbench_accounts",
                100_000,
                400_000,
                Duration::from_millis(1_500)
            ),
            "100000 of 400000 tuples (25%) of pgbench_accounts done \
             (elapsed 1.50 s, remaining 4.50 s)"
        );
    }

    #[test]
    fn by_rows_a_line_comes_after_every_hundred_thousandth() {
        let (console, recording) = recorded();
        let mut progress = Progress::new(&console, FilledTable::Accounts, 200_000, false);
        for done in [50_000, 100_000, 150_000, 200_000] {
            progress.advance(done, Duration::from_secs(1));
        }
        progress.finish();
        let mut progress = Progress::new(&console, FilledTable::Accounts, 300_000, false);
        for done in [98_334, 103_334, 201_668] {
            progress.advance(done, Duration::from_secs(1));
        }
        assert_eq!(
            recording.text(),
            "100000 of 200000 tuples (50%) of pgbench_accounts done \
             (elapsed 1.00 s, remaining 1.00 s)\n\
             200000 of 200000 tuples (100%) of pgbench_accounts done \
             (elapsed 1.00 s, remaining 0.00 s)\n\
             100000 of 300000 tuples (33%) of pgbench_accounts done \
             (elapsed 1.00 s, remaining 2.00 s)\n\
             200000 of 300000 tuples (66%) of pgbench_accounts done \
             (elapsed 1.00 s, remaining 0.50 s)\n"
        );
    }

    #[test]
    fn by_time_a_line_comes_every_five_seconds_and_at_a_round_end() {
        let seconds = Duration::from_secs_f64;
        let mut next_due = QUIET_INTERVAL;
        let steps: &[(u64, f64, bool)] = &[
            (100, 4.9, false),
            (200, 5.1, true),
            (300, 9.9, false),
            (433, 12.0, true),
            (500, 14.0, false),
            (1_000, 14.5, true),
        ];
        for &(done, elapsed, expected) in steps {
            let due = due_by_time(done, 1_000, seconds(elapsed), &mut next_due);
            assert_eq!(due, expected, "{done} rows after {elapsed} s");
        }
        let mut next_due = QUIET_INTERVAL;
        assert!(!due_by_time(30, 30, seconds(0.1), &mut next_due));
    }
}
