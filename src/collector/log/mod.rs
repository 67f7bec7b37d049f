//! What is kept of a run in files while it goes on: a row for every transaction, or one for every
//! interval, as CSV or in pgbench's formats. A file that stops taking rows never stops the run: the
//! rows that it did not take are counted.

mod hdr;
mod intervals;
mod pgbench;
mod row;
mod row_file;
mod sampling;
mod text;
mod transactions;
mod tries;

pub use hdr::HdrLog;
pub use intervals::IntervalLog;
pub use pgbench::{PgbenchIntervals, PgbenchTransactions};
pub use row_file::is_further_file;
pub use transactions::TransactionLog;
pub use tries::TryLog;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::row_file::{Form, RowFile};
use self::sampling::Sampling;
use super::listener::Listener;
use crate::error::Error;
use crate::plan::{IntervalPlan, LogFormat, LogPlan, LogRows, StopRule, TriesPlan};
use crate::random::Generator;
use crate::result::{LogResult, LoggedRows};
use crate::schedule::Schedule;
use crate::time::Clock;

/// Something that is kept in one file or several.
pub trait Log: Listener {
    /// Its files, the first of which gives it its name.
    fn files(&mut self) -> &mut [RowFile];

    /// What its rows are rows of.
    fn rows(&self) -> LoggedRows;
}

impl dyn Log {
    /// Gives all rows to the files.
    pub(super) fn flush(&mut self) {
        self.files().iter_mut().for_each(RowFile::flush);
    }

    /// What went wrong with a file, once for each.
    pub(super) fn new_failure(&mut self) -> Option<String> {
        self.files().iter_mut().find_map(RowFile::new_failure)
    }

    /// Ends the files and says what became of all rows.
    pub(super) fn finish(&mut self) -> LogResult {
        let rows = self.rows();
        let files = self.files();
        files.iter_mut().for_each(RowFile::finish);
        LogResult {
            path: files[0].path().display().to_string(),
            rows,
            rows_written: files.iter().map(RowFile::rows_written).sum(),
            rows_lost: files.iter().map(RowFile::rows_lost).sum(),
            failure: files.iter().find_map(RowFile::failure),
        }
    }
}

/// What a log must know of a run.
#[derive(Clone, Debug)]
pub struct LogContext {
    /// Short names of the scripts; `#2` and so on is appended to those that come again.
    pub script_names: Vec<String>,
    /// Turns moments into dates.
    pub clock: Clock,
    /// When the run is to end.
    pub stop: StopRule,
    /// When transactions are due, if not when their clients are free.
    pub schedule: Option<Arc<Schedule>>,
    /// How long clients are added, before the warm-up.
    pub ramp: Duration,
    /// How long the warm-up lasts, before the window.
    pub warmup: Duration,
    /// The stream by which each worker thread chooses the transactions that are logged.
    pub samples: Vec<Generator>,
}

/// Creates the files of a log, replacing those of the same name, before the run begins.
///
/// # Errors
/// [`Error::Io`] if one cannot be created.
pub fn open_log(plan: &LogPlan, context: &LogContext) -> Result<Box<dyn Log>, Error> {
    let sampling = |rate: Option<f64>| rate.map(|rate| Sampling::new(rate, &context.samples));
    Ok(match (&plan.format, &plan.rows) {
        (LogFormat::Csv(style), LogRows::Transactions { sampling_rate }) => {
            let form = Form::Csv(TransactionLog::columns(style.time));
            let file = RowFile::create(&plan.path, form, style.rows_each_file)?;
            let sampling = sampling(*sampling_rate);
            Box::new(TransactionLog::new(file, style.time, sampling, context))
        }
        (LogFormat::Csv(style), LogRows::Intervals(length)) => {
            let form = Form::Csv(IntervalLog::columns());
            let file = RowFile::create(&plan.path, form, style.rows_each_file)?;
            Box::new(IntervalLog::new(file, *length, context))
        }
        (LogFormat::Pgbench(fields), LogRows::Transactions { sampling_rate }) => {
            let files = pgbench::create_files(&plan.path, context.samples.len())?;
            let sampling = sampling(*sampling_rate);
            let clock = context.clock.clone();
            Box::new(PgbenchTransactions::new(files, *fields, sampling, clock))
        }
        (LogFormat::Pgbench(fields), LogRows::Intervals(length)) => {
            let files = pgbench::create_files(&plan.path, context.samples.len())?;
            let clock = context.clock.clone();
            Box::new(PgbenchIntervals::new(files, *fields, *length, clock))
        }
    })
}

/// Creates the file of `--interval-csv`.
///
/// # Errors
/// [`Error::Io`] if it cannot be created.
pub fn open_intervals(plan: &IntervalPlan, context: &LogContext) -> Result<Box<dyn Log>, Error> {
    let form = Form::Csv(IntervalLog::columns());
    let file = RowFile::create(&plan.path, form, None)?;
    Ok(Box::new(IntervalLog::new(file, plan.length, context)))
}

/// Creates the file of `--log-tries`.
///
/// # Errors
/// [`Error::Io`] if it cannot be created.
pub fn open_tries(plan: &TriesPlan, context: &LogContext) -> Result<Box<dyn Log>, Error> {
    let form = Form::Csv(TryLog::columns(plan.time));
    let file = RowFile::create(&plan.path, form, None)?;
    Ok(Box::new(TryLog::new(file, plan.time, context)))
}

/// Creates the file of `--hdr`.
///
/// # Errors
/// [`Error::Io`] if it cannot be created.
pub fn open_hdr(path: &Path, context: &LogContext) -> Result<Box<dyn Log>, Error> {
    let file = RowFile::create(path, Form::Lines(String::new()), None)?;
    Ok(Box::new(HdrLog::new(file, context)))
}
