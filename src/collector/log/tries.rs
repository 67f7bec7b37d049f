//! The log of tries: a CSV row for each time a client began a transaction, first or again, so that
//! what retries cost can be seen one by one.

use super::row::{Row, moment_column, phase, status};
use super::row_file::RowFile;
use super::{Log, LogContext};
use crate::collector::listener::Listener;
use crate::event::{Outcome, TransactionRecord, TryEnd, TryRecord};
use crate::plan::LogTime;
use crate::result::LoggedRows;
use crate::stats::ErrorKind;
use crate::time::Timestamp;

/// A column: its name in the header, and what a row has in it.
type Column = (&'static str, fn(&mut Row, &TryRecord));

/// The columns in their order; the moment of completion follows as in the log of transactions.
const COLUMNS: [Column; 9] = [
    ("client_id", |row, it| row.cells.integer(it.client.into())),
    ("transaction", |row, it| row.cells.count(it.transaction)),
    ("try", |row, it| row.cells.integer(it.number.into())),
    ("script", |row, it| row.script(it.script)),
    ("status", |row, it| {
        row.text(match it.end {
            TryEnd::Retried => "retried",
            TryEnd::Last(outcome) => status(outcome),
        });
    }),
    ("phase", |row, it| row.text(phase(it.phase))),
    ("duration_us", |row, it| {
        row.cells.micros(it.finished_at.nanos_since(it.started_at));
    }),
    ("error", push_error),
    ("completed_us", |row, it| row.since_begin(it.finished_at)),
];

/// A log of tries being written.
pub struct TryLog {
    file: [RowFile; 1],
    row: Row,
    /// Tries of all transactions that have ended.
    tries: u64,
}

impl TryLog {
    /// The names of the columns.
    pub(super) fn columns(time: LogTime) -> Vec<&'static str> {
        let names = COLUMNS.iter().map(|(name, _)| *name);
        names.chain(moment_column(time)).collect()
    }

    /// A log into `file`, which has its header already.
    pub(super) fn new(file: RowFile, time: LogTime, context: &LogContext) -> Self {
        TryLog {
            file: [file],
            row: Row::new(time, context),
            tries: 0,
        }
    }
}

impl Listener for TryLog {
    fn begin_window(&mut self, begins: Timestamp) {
        self.row.window_begins = begins;
    }

    fn transaction(&mut self, _worker: u32, record: &TransactionRecord) {
        self.tries += u64::from(record.tries);
    }

    fn tried(&mut self, record: &TryRecord) {
        let row = &mut self.row;
        for (_, push) in COLUMNS {
            push(row, record);
        }
        row.moment(record.finished_at);
        self.file[0].push(&mut row.cells);
    }
}

impl Log for TryLog {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.file
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::Tries { tries: self.tries }
    }
}

fn push_error(row: &mut Row, record: &TryRecord) {
    let outcome = match record.end {
        TryEnd::Retried => Outcome::Failed,
        TryEnd::Last(outcome) => outcome,
    };
    row.error(ErrorKind::of_outcome(outcome, record.sqlstate));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::row_file::Form;
    use super::*;
    use crate::collector::testing::{Memory, at, log_context, transaction};
    use crate::event::{Phase, SqlState};

    #[test]
    fn each_try_has_a_row_and_the_tries_of_transactions_are_counted_beside_them() {
        let memory = Memory::default();
        let form = Form::Csv(TryLog::columns(LogTime::None));
        let file = RowFile::new(Box::new(memory.clone()), Path::new("tries.csv"), form);
        let mut log: Box<dyn Log> =
            Box::new(TryLog::new(file, LogTime::None, &log_context(&["s"])));
        log.begin_window(at(0));
        let first = TryRecord {
            client: 3,
            script: 0,
            phase: Phase::Run,
            end: TryEnd::Retried,
            sqlstate: SqlState(*b"40001"),
            number: 1,
            transaction: 7,
            started_at: at(100),
            finished_at: at(110),
        };
        log.tried(&first);
        log.tried(&TryRecord {
            end: TryEnd::Last(Outcome::Processed),
            sqlstate: SqlState::NONE,
            number: 2,
            started_at: at(110),
            finished_at: at(115),
            ..first
        });
        log.transaction(
            0,
            &TransactionRecord {
                tries: 2,
                ..transaction(100, 115)
            },
        );
        let result = log.finish();
        let expected = "\
client_id,transaction,try,script,status,phase,duration_us,error,completed_us
3,7,1,s,retried,run,10000,SQLSTATE 40001,110000
3,7,2,s,ok,run,5000,,115000
";
        assert_eq!(memory.text(), expected);
        assert_eq!(result.rows, LoggedRows::Tries { tries: 2 });
        assert_eq!(result.rows_written, 2);
    }
}
