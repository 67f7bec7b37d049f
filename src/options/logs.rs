//! From the options of logs to what is kept of a run in files: which go together, what the files
//! are called.

use std::path::PathBuf;
use std::time::Duration;

use super::arguments::{Arguments, Keep};
use super::usage;
use super::values::LogFormatName;
use crate::error::Error;
use crate::plan::{
    CsvStyle, IntervalPlan, LogFormat, LogPlan, LogRows, LogTime, PgbenchFields, TriesPlan,
};
use crate::program::Program;

/// Options of logs that exclude or need each other: first those of pgbench, in the order in which
/// it looks at them.
pub(super) fn check(arguments: &Arguments) -> Result<(), Error> {
    let keep = &arguments.keep;
    let logging = is_logging(keep);
    if keep.sampling_rate.is_some() && !logging {
        return Err(usage(
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
        ));
    }
    if keep.sampling_rate.is_some() && keep.aggregate_interval.is_some() {
        return Err(usage(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        ));
    }
    if keep.aggregate_interval.is_some() && !logging && keep.interval_csv.is_none() {
        return Err(usage(
            "log aggregation (--aggregate-interval) is allowed only when actually logging transactions (-l), or with --interval-csv",
        ));
    }
    if keep.log_prefix.is_some() && !keep.log {
        return Err(usage(
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
        ));
    }
    // The file of intervals has a row for a last one that is shorter, too.
    if logging {
        check_interval(keep.aggregate_interval, arguments.length.time)?;
    }
    check_form(keep, logging)
}

/// The duration must consist of whole intervals.
fn check_interval(interval: Option<Duration>, time: Option<Duration>) -> Result<(), Error> {
    let (Some(interval), Some(time)) = (interval, time) else {
        return Ok(());
    };
    let (interval_s, time_s) = (interval.as_secs_f64(), time.as_secs_f64());
    if interval > time {
        return Err(usage(format!(
            "log aggregation interval ({interval_s} seconds) must not be higher than test duration ({time_s} seconds)"
        )));
    }
    if time.as_nanos() % interval.as_nanos() != 0 {
        return Err(usage(format!(
            "duration ({time_s} seconds) must be a multiple of aggregation interval ({interval_s} seconds)"
        )));
    }
    Ok(())
}

/// What pgbench does not have: the name and the form of the log.
fn check_form(keep: &Keep, logging: bool) -> Result<(), Error> {
    if keep.log_prefix.is_some() && keep.log_file.is_some() {
        return Err(usage("specify either --log-prefix or --log-file, not both"));
    }
    let of_log = [
        ("--log-format", keep.log_format.is_some()),
        (
            "--log-time",
            keep.log_time.is_some() && keep.log_tries.is_none(),
        ),
        ("--log-split-rows", keep.log_split_rows.is_some()),
    ];
    if let Some((option, _)) = of_log.iter().find(|(_, given)| *given && !logging) {
        return Err(usage(format!(
            "{option} is allowed only when logging transactions (-l)"
        )));
    }
    let of_csv = of_log[1..].iter().find(|(_, given)| *given);
    let fraction = |length: Duration| length.subsec_nanos() != 0;
    match (keep.log_format, of_csv) {
        (Some(LogFormatName::Pgbench), Some((option, _))) => Err(usage(format!(
            "{option} cannot be used with --log-format=pgbench, whose lines are as they are"
        ))),
        (Some(LogFormatName::Pgbench), None) if keep.aggregate_interval.is_some_and(fraction) => {
            Err(usage(
                "with --log-format=pgbench, --aggregate-interval must be whole seconds",
            ))
        }
        _ if logging && of_log[1].1 && keep.aggregate_interval.is_some() => Err(usage(
            "--log-time cannot be used with --aggregate-interval: rows of intervals have no such column",
        )),
        _ => Ok(()),
    }
}

/// The log of transactions, if one is asked for. Under the name pgbench it is pgbench's.
pub(super) fn log(program: Program, arguments: &Arguments) -> Option<LogPlan> {
    let keep = &arguments.keep;
    if !is_logging(keep) {
        return None;
    }
    let format = keep.log_format.unwrap_or(match program {
        Program::Pgmark => LogFormatName::Csv,
        Program::Pgbench => LogFormatName::Pgbench,
    });
    Some(LogPlan {
        path: path(program, keep, format),
        format: match format {
            LogFormatName::Csv => LogFormat::Csv(CsvStyle {
                time: keep.log_time.unwrap_or(LogTime::Utc),
                rows_each_file: keep.log_split_rows.map(u64::from),
            }),
            LogFormatName::Pgbench => LogFormat::Pgbench(PgbenchFields {
                lag: arguments.pressure.rate.is_some(),
                retries: arguments.errors.max_tries.is_some_and(|tries| tries != 1),
                failures_detailed: arguments.show.failures_detailed,
                other_failures: arguments.errors.continue_on_error,
            }),
        },
        rows: match keep.aggregate_interval {
            Some(length) => LogRows::Intervals(length),
            None => LogRows::Transactions {
                sampling_rate: keep.sampling_rate,
            },
        },
    })
}

/// The file of intervals, if one is asked for.
pub(super) fn intervals(arguments: &Arguments) -> Option<IntervalPlan> {
    let keep = &arguments.keep;
    let path = keep.interval_csv.clone()?;
    let length = keep.aggregate_interval.unwrap_or(Duration::from_secs(1));
    Some(IntervalPlan { path, length })
}

/// The file of tries, if one is asked for.
pub(super) fn tries(arguments: &Arguments) -> Option<TriesPlan> {
    let keep = &arguments.keep;
    Some(TriesPlan {
        path: keep.log_tries.clone()?,
        time: keep.log_time.unwrap_or(LogTime::Utc),
    })
}

fn is_logging(keep: &Keep) -> bool {
    keep.log || keep.log_file.is_some()
}

fn path(program: Program, keep: &Keep, format: LogFormatName) -> PathBuf {
    if let Some(path) = &keep.log_file {
        return path.clone();
    }
    let prefix = keep.log_prefix.clone();
    let mut name = prefix.unwrap_or_else(|| format!("{}_log", program.name()).into());
    let pid = std::process::id();
    name.push(match format {
        LogFormatName::Csv => format!(".{pid}.csv"),
        LogFormatName::Pgbench => format!(".{pid}"),
    });
    PathBuf::from(name)
}
