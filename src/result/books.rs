//! The books of a run: what must agree, whatever happened, because it was counted along different
//! ways. A difference is an error of pgmark, never of the server or the user.

use super::{ClientResult, LogResult, LoggedRows, RunResult, Slice};
use crate::event::ClientEnd;
use crate::plan::StopRule;

impl RunResult {
    /// The identities that must hold: violations, each with its figures.
    pub fn check_books(&self) -> Vec<String> {
        let mut books = Books::default();
        self.check_totals(&mut books);
        self.check_course(&mut books);
        for log in &self.measured.logs {
            self.check_log(log, &mut books);
        }
        self.check_schedule(&mut books);
        self.check_transactions_of_clients(&mut books);
        books.violations
    }

    /// Clients, points of time and kinds of errors, each added up, are all transactions.
    fn check_totals(&self, books: &mut Books) {
        let (measured, total) = (&self.measured, &self.measured.total);
        let over_clients =
            |count: fn(&ClientResult) -> u64| measured.clients.iter().map(count).sum::<u64>();
        let points = measured.series.total();
        let (processed, skipped) = (total.processed, total.skipped);
        let (failed, aborted) = (total.failed.total(), total.aborted.total());
        for (what, found, expected) in [
            (
                "processed by clients",
                over_clients(ClientResult::processed),
                processed,
            ),
            ("failed by clients", over_clients(|c| c.failed), failed),
            ("skipped by clients", over_clients(|c| c.skipped), skipped),
            ("aborted by clients", over_clients(|c| c.aborted), aborted),
            ("processed by time", points.processed, processed),
            ("failed by time", points.failed, failed),
            ("skipped by time", points.skipped, skipped),
            ("aborted by time", points.aborted, aborted),
            ("latencies of processed", total.latency.count(), processed),
            ("errors by kind", total.errors.total(), failed + aborted),
        ] {
            books.same(what, found, expected);
        }
    }

    /// The seconds of the window, where they are kept, are all of it.
    fn check_course(&self, books: &mut Books) {
        let Some(course) = &self.measured.course else {
            return;
        };
        let total = &self.measured.total;
        let over_slices = |count: fn(&Slice) -> u64| {
            course
                .slices()
                .iter()
                .map(count)
                .fold(0, u64::saturating_add)
        };
        for (what, found, expected) in [
            (
                "processed by second",
                over_slices(|it| it.processed),
                total.processed,
            ),
            (
                "failed by second",
                over_slices(|it| it.failed),
                total.failed.total(),
            ),
            (
                "skipped by second",
                over_slices(|it| it.skipped),
                total.skipped,
            ),
            (
                "aborted by second",
                over_slices(|it| it.aborted),
                total.aborted.total(),
            ),
        ] {
            books.same(what, found, expected);
        }
    }

    /// A log has a row for everything that it is to have one for, written, lost or left out.
    fn check_log(&self, log: &LogResult, books: &mut Books) {
        let total = &self.measured.total;
        let rows = log.rows_written + log.rows_lost;
        let recorded = total.recorded() + self.measured.before_window;
        let attempted = total.attempted();
        match log.rows {
            LoggedRows::Transactions { left_out } => {
                books.same("rows of the log", rows + left_out, recorded);
            }
            LoggedRows::AttemptedInWindow { left_out } => {
                books.same("rows of the log", rows + left_out, attempted);
            }
            LoggedRows::Intervals { transactions } => {
                books.same("transactions in the intervals", transactions, recorded);
            }
            LoggedRows::Tries { tries } => books.same("rows of the log of tries", rows, tries),
            LoggedRows::IntervalsOfProcessed { transactions } => {
                let processed = self.measured.total.processed;
                books.same("transactions in the HDR log", transactions, processed);
            }
            LoggedRows::IntervalsOfAttempted { transactions } => {
                books.same("transactions in the intervals", transactions, attempted);
            }
        }
    }

    /// Nothing happens that was not due.
    fn check_schedule(&self, books: &mut Books) {
        let recorded = self.measured.total.recorded();
        if let Some(schedule) = &self.facts.schedule
            && schedule.due.slots < recorded
            && !schedule.due.approximate
        {
            books.same("due by schedule", schedule.due.slots, recorded);
        }
    }

    /// With a number of transactions, every client that was let do its work has done exactly that.
    fn check_transactions_of_clients(&self, books: &mut Books) {
        let StopRule::Transactions(each) = self.facts.stop else {
            return;
        };
        let clients = &self.measured.clients;
        let ended_by_abort =
            self.facts.exit_on_abort && clients.iter().any(|c| c.end == ClientEnd::Aborted);
        let ended_early = self.facts.interrupted.is_some() || ended_by_abort;
        if ended_early || self.measured.window.is_none() {
            return;
        }
        for (number, client) in self.measured.clients.iter().enumerate() {
            if client.end == ClientEnd::Finished {
                books.same(
                    &format!("transactions of client {number}"),
                    client.recorded(),
                    each,
                );
            }
        }
    }
}

#[derive(Default)]
struct Books {
    violations: Vec<String>,
}

impl Books {
    fn same(&mut self, what: &str, found: u64, expected: u64) {
        if found != expected {
            self.violations
                .push(format!("{what}: {found}, where {expected} were recorded"));
        }
    }
}

#[cfg(test)]
mod tests {

    use super::super::testing::three_transactions;
    use super::super::{Measured, ScheduleFacts};
    use super::*;
    use crate::error::Signal;
    use crate::schedule::Due;
    use crate::stats::Series;

    #[test]
    fn books_that_balance_have_no_violations() {
        assert_eq!(three_transactions().check_books(), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_lost_is_named_with_its_figures() {
        let with = |change: fn(&mut Measured)| {
            let mut result = three_transactions();
            change(&mut result.measured);
            result.check_books()
        };
        let log = |rows_written| LogResult {
            path: String::new(),
            rows: LoggedRows::Transactions { left_out: 0 },
            rows_written,
            rows_lost: 1,
            failure: None,
        };
        for (found, expected) in [
            (
                with(|m| m.clients[0].processed_by_script[0] = 2),
                "processed by clients: 2, where 3 were recorded",
            ),
            (
                with(|m| m.series = Series::new()),
                "processed by time: 0, where 3 were recorded",
            ),
            (
                with(|m| m.clients[0].failed = 1),
                "transactions of client 0: 4, where 3 were recorded",
            ),
        ] {
            assert!(found.contains(&expected.to_owned()), "{found:?}");
        }
        let mut result = three_transactions();
        result.measured.logs = vec![log(1)];
        assert_eq!(
            result.check_books(),
            ["rows of the log: 2, where 3 were recorded"]
        );
        result.measured.logs = vec![log(2)];
        assert_eq!(result.check_books(), Vec::<String>::new());
        result.measured.logs[0].rows = LoggedRows::Intervals { transactions: 2 };
        assert_eq!(
            result.check_books(),
            ["transactions in the intervals: 2, where 3 were recorded"]
        );
    }

    /// Where the first aborted client ends the run, the others have not done all that they were to do.
    #[test]
    fn a_run_that_an_abort_ends_leaves_work_undone() {
        for (exit_on_abort, violations) in [(true, 0), (false, 1)] {
            let mut result = three_transactions();
            result.facts.exit_on_abort = exit_on_abort;
            result
                .measured
                .clients
                .push(result.measured.clients[0].clone());
            result.measured.clients[1].end = ClientEnd::Aborted;
            result.measured.clients[1].processed_by_script = vec![0];
            result.facts.stop = StopRule::Transactions(5);
            assert_eq!(result.check_books().len(), violations, "{exit_on_abort}");
        }
    }

    #[test]
    fn what_was_not_due_did_not_happen() {
        for (slots, approximate, expected) in [(3, false, 0), (2, false, 1), (2, true, 0)] {
            let mut result = three_transactions();
            result.facts.schedule = Some(ScheduleFacts {
                rate: 1.0,
                due: Due { slots, approximate },
            });
            assert_eq!(result.check_books().len(), expected, "{slots}");
        }
    }

    #[test]
    fn an_interrupted_or_dead_client_owes_no_transactions() {
        let mut interrupted = three_transactions();
        interrupted.facts.stop = StopRule::Transactions(5);
        assert_eq!(interrupted.check_books().len(), 1);
        interrupted.facts.interrupted = Some(Signal::Interrupt);
        assert_eq!(interrupted.check_books(), Vec::<String>::new());

        let mut dead = three_transactions();
        dead.facts.stop = StopRule::Transactions(5);
        dead.measured.clients[0].end = ClientEnd::Aborted;
        assert_eq!(dead.check_books(), Vec::<String>::new());
    }
}
