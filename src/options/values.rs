//! Text of one option into a value, strictly: `10abc` is no number. Knows nothing about which
//! option it reads; [`Rejected`] leaves the option's name to the caller.

use std::time::Duration;

use crate::condition::Condition;
use crate::plan::{InitStep, LoadMode, LogTime, PartitionMethod, Preparation, QueryMode};

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejected {
    /// Not of the right form.
    #[error("invalid value")]
    Malformed,
    /// A number, but not one in this range, which is told as written here.
    #[error("must be in range {0}")]
    OutOfRange(&'static str),
    /// Refused for a reason of its own: message and hint.
    #[error("{0}")]
    Because(String, Option<&'static str>),
}

/// Counts (`-c -j -s -t`): 1 to 2147483647.
pub(super) fn count(text: &str) -> Result<u32, Rejected> {
    match whole_number(text)? {
        number @ 1..=COUNT_MAX => Ok(number as u32),
        _ => Err(Rejected::OutOfRange("1..2147483647")),
    }
}

/// `--max-tries` and the weights of scripts: 0 to 2147483647.
pub(super) fn from_zero(text: &str) -> Result<u32, Rejected> {
    match whole_number(text)? {
        number @ 0..=COUNT_MAX => Ok(number as u32),
        _ => Err(Rejected::OutOfRange("0..2147483647")),
    }
}

/// `-F`: 10 to 100 percent.
pub(super) fn fillfactor(text: &str) -> Result<u32, Rejected> {
    match whole_number(text)? {
        number @ 10..=100 => Ok(number as u32),
        _ => Err(Rejected::OutOfRange("10..100")),
    }
}

/// `--partition-method`, in any case.
pub(super) fn partition_method(text: &str) -> Result<PartitionMethod, Rejected> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(Rejected::Because(
            format!("invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""),
            None,
        )),
    }
}

/// `--init-mode`
pub(super) fn load_mode(text: &str) -> Result<LoadMode, Rejected> {
    match text {
        "copy" => Ok(LoadMode::Copy),
        "insert" => Ok(LoadMode::Insert),
        _ => Err(Rejected::Because(
            format!("invalid way to load (--init-mode): \"{text}\""),
            Some("Rows are sent by copy or insert."),
        )),
    }
}

/// A length of time in seconds, or with a unit: `90`, `1.5s`, `250ms`, `5m`, `2h`.
pub(super) fn seconds(text: &str) -> Result<Duration, Rejected> {
    duration(
        text,
        Duration::from_secs(1),
        "0.000001..2147483647 (seconds)",
    )
}

/// As [`seconds`], for what is done again and again: at least a millisecond, since each time costs
/// memory and a line.
pub(super) fn interval(text: &str) -> Result<Duration, Rejected> {
    const RANGE: &str = "0.001..2147483647 (seconds)";
    match duration(text, Duration::from_secs(1), RANGE)? {
        length if length < Duration::from_millis(1) => Err(Rejected::OutOfRange(RANGE)),
        length => Ok(length),
    }
}

/// `-T -P --aggregate-interval` of pgbench: whole seconds, 1 to 2147483647.
pub(super) fn whole_seconds(text: &str) -> Result<Duration, Rejected> {
    count(text).map(|seconds| Duration::from_secs(seconds.into()))
}

/// `-R` of pgbench: transactions per second.
pub(super) fn plain_rate(text: &str) -> Result<f64, Rejected> {
    match number(text.trim()) {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        Ok(_) | Err(_) => Err(Rejected::Because(
            format!("invalid rate limit: \"{text}\""),
            Some("A rate is a number of transactions per second, above 0."),
        )),
    }
}

/// `-L` of pgbench: milliseconds. What it would round to none at all is refused.
pub(super) fn plain_milliseconds(text: &str) -> Result<Duration, Rejected> {
    let limit = number(text.trim()).map(|ms| Duration::try_from_secs_f64(ms / 1e3));
    match limit {
        Ok(Ok(limit)) if limit >= Duration::from_micros(1) => Ok(limit),
        Ok(_) | Err(_) => Err(Rejected::Because(
            format!("invalid latency limit: \"{text}\""),
            Some("A limit is a number of milliseconds, at least 0.001."),
        )),
    }
}

/// As [`seconds`], or 0.
pub(super) fn seconds_or_none(text: &str) -> Result<Duration, Rejected> {
    match decimal(text.trim()) {
        Ok(0.0) => Ok(Duration::ZERO),
        Ok(_) | Err(_) => duration(text, Duration::from_secs(1), "0..2147483647 (seconds)"),
    }
}

/// `-R`: transactions per second, or with another unit: `6/min`, `100/h`.
pub(super) fn rate(text: &str) -> Result<f64, Rejected> {
    let (number, unit) = match text.split_once('/') {
        Some((number, unit)) => (number, unit.trim()),
        None => (text, "s"),
    };
    let unit_s = match unit {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(no_rate(text)),
    };
    match self::number(number.trim()) {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate / unit_s),
        Ok(_) | Err(_) => Err(no_rate(text)),
    }
}

/// The value of `--latency-percentiles`, in percent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Percentiles(pub Vec<f64>);

/// `--latency-percentiles`: numbers above 0, at most 100; in ascending order, each once.
pub(super) fn percentiles(text: &str) -> Result<Percentiles, Rejected> {
    let one = |element: &str| match decimal(element.trim()) {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        Ok(_) | Err(_) => Err(Rejected::Because(
            format!("invalid percentile (--latency-percentiles): \"{element}\""),
            Some("Each is a number above 0, at most 100, as in 50,95,99.9."),
        )),
    };
    let percents: Result<Vec<f64>, _> = text.split(',').map(one).collect();
    let mut percents = percents?;
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    Ok(Percentiles(percents))
}

/// The value of `--before`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preparations(pub Vec<Preparation>);

/// `--before`: words in their order.
pub(super) fn preparations(text: &str) -> Result<Preparations, Rejected> {
    let one = |element: &str| {
        let known = Preparation::ALL.into_iter();
        let mut named = known.filter(|known| known.word() == element.trim());
        named.next().ok_or_else(|| {
            Rejected::Because(
                format!("unknown preparation (--before): \"{element}\""),
                Some("There are: vacuum, checkpoint, prewarm, reset."),
            )
        })
    };
    let preparations: Result<_, _> = text.split(',').map(one).collect();
    Ok(Preparations(preparations?))
}

/// A length of time in milliseconds, or with a unit.
pub(super) fn milliseconds(text: &str) -> Result<Duration, Rejected> {
    duration(
        text,
        Duration::from_millis(1),
        "0.001..2147483647000 (milliseconds)",
    )
}

/// `-M`
pub(super) fn query_mode(text: &str) -> Result<QueryMode, Rejected> {
    let modes = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];
    modes
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| {
            Rejected::Because(
                format!("invalid query mode (-M/--protocol): \"{text}\""),
                Some("Query modes are: simple, extended, prepared."),
            )
        })
}

/// How a log looks, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogFormatName {
    /// `csv`
    Csv,
    /// `pgbench`
    Pgbench,
}

/// `--log-format`
pub(super) fn log_format(text: &str) -> Result<LogFormatName, Rejected> {
    match text {
        "csv" => Ok(LogFormatName::Csv),
        "pgbench" => Ok(LogFormatName::Pgbench),
        _ => Err(Rejected::Because(
            format!("invalid log format (--log-format): \"{text}\""),
            Some("Log formats are: csv, pgbench."),
        )),
    }
}

/// `--log-time`
pub(super) fn log_time(text: &str) -> Result<LogTime, Rejected> {
    match text {
        "utc" => Ok(LogTime::Utc),
        "local" => Ok(LogTime::Local),
        "epoch" => Ok(LogTime::Epoch),
        "none" => Ok(LogTime::None),
        _ => Err(Rejected::Because(
            format!("invalid way to tell the time (--log-time): \"{text}\""),
            Some("It is told as: utc, local, epoch, none."),
        )),
    }
}

/// `--sampling-rate`
pub(super) fn sampling_rate(text: &str) -> Result<f64, Rejected> {
    match number(text.trim()) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(Rejected::Because(
            format!("invalid sampling rate: \"{text}\""),
            Some("Expecting a number above 0, at most 1."),
        )),
    }
}

/// The value of `-I`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub Vec<InitStep>);

/// `-I`: letters of steps in their order; blanks are ignored.
pub(super) fn init_steps(text: &str) -> Result<Steps, Rejected> {
    if text.is_empty() {
        return Err(Rejected::Because(
            "no initialization steps specified (-I/--init-steps)".to_owned(),
            Some(STEPS_HINT),
        ));
    }
    let steps: Result<_, _> = text
        .chars()
        .filter(|letter| *letter != ' ')
        .map(init_step)
        .collect();
    Ok(Steps(steps?))
}

/// `--temp-config NAME=VALUE`.
pub(super) fn setting(text: &str) -> Result<(String, String), Rejected> {
    name_and_value(text).ok_or_else(|| {
        Rejected::Because(
            format!("--temp-config needs NAME=VALUE, not \"{text}\""),
            Some("For example --temp-config shared_buffers=256MB."),
        )
    })
}

/// `--fail-if COND`.
pub(super) fn condition(text: &str) -> Result<Condition, Rejected> {
    text.parse().map_err(|problem| {
        Rejected::Because(
            format!("--fail-if: {problem}"),
            Some(
                "For example --fail-if 'p99 > 10ms'; figures are tps, mean, max, p50 to p99.999, \
                 response_p99 and the like, failed, achieved, within_limit and skipped.",
            ),
        )
    })
}

/// `--tag NAME=VALUE`.
pub(super) fn tag(text: &str) -> Result<(String, String), Rejected> {
    name_and_value(text).ok_or_else(|| {
        Rejected::Because(
            format!("--tag needs NAME=VALUE, not \"{text}\""),
            Some("For example --tag branch=main."),
        )
    })
}

/// What stands before the first `=` and behind it, if the name is none of blanks.
fn name_and_value(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// How the seed of the random streams is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeedSource {
    /// From the time of day.
    Time,
    /// From the system's source of randomness.
    Random,
    /// Given as a number.
    Number(u64),
}

/// `--random-seed` and `PGBENCH_RANDOM_SEED`. As in C, a minus sign wraps (-1 is the largest
/// number) and what is too large becomes the largest number.
pub(super) fn seed(text: &str) -> Result<SeedSource, Rejected> {
    match text {
        "time" => return Ok(SeedSource::Time),
        "rand" => return Ok(SeedSource::Random),
        _ => {}
    }
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Rejected::Because(
            format!("invalid random seed: \"{text}\""),
            Some("Expecting an unsigned integer, \"time\" or \"rand\"."),
        ));
    }
    let number = match digits.parse::<u64>() {
        Ok(number) if negative => number.wrapping_neg(),
        Ok(number) => number,
        Err(_) => u64::MAX,
    };
    Ok(SeedSource::Number(number))
}

/// The largest number that pgbench takes for a count, and so scripts may rely on.
const COUNT_MAX: i128 = i32::MAX as i128;

/// A schedule of one transaction each nanosecond, the resolution of the clock.
const RATE_MAX: f64 = 1e9;

fn no_rate(text: &str) -> Rejected {
    Rejected::Because(
        format!("invalid rate limit (-R/--rate): \"{text}\""),
        Some("A rate is a number above 0, per second or with a unit: 500, 0.2, 6/min, 100/h."),
    )
}

const STEPS_HINT: &str = "Allowed step characters are: \"dtgGvpf\"; the default is dtgvp.";

fn init_step(letter: char) -> Result<InitStep, Rejected> {
    InitStep::ALL
        .into_iter()
        .find(|step| step.letter() == letter)
        .ok_or_else(|| {
            Rejected::Because(
                format!("unrecognized initialization step \"{letter}\""),
                Some(STEPS_HINT),
            )
        })
}

/// A decimal integer of any size; blanks around it are allowed. What exceeds 128 bits is cut to
/// the largest number, which every range refuses.
fn whole_number(text: &str) -> Result<i128, Rejected> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Rejected::Malformed);
    }
    Ok(text.parse().unwrap_or(i128::MAX))
}

/// A positive decimal number with an optional unit; `unit` is what a bare number counts.
fn duration(text: &str, unit: Duration, range: &'static str) -> Result<Duration, Rejected> {
    let text = text.trim();
    let number_end = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_end);
    let unit = match suffix {
        "" => unit,
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" | "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return Err(Rejected::Malformed),
    };
    let seconds = decimal(number.trim_end())? * unit.as_secs_f64();
    // One microsecond is the smallest unit in which anything is reported.
    if !(1e-6..=f64::from(i32::MAX)).contains(&seconds) {
        return Err(Rejected::OutOfRange(range));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A decimal number, with an exponent if you like.
fn number(text: &str) -> Result<f64, Rejected> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    decimal(mantissa)?;
    exponent.map(whole_number).transpose()?;
    text.parse().map_err(|_| Rejected::Malformed)
}

/// Digits with at most one decimal point; no exponent, so that every letter starts a unit.
fn decimal(text: &str) -> Result<f64, Rejected> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let of_digits = digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !of_digits {
        return Err(Rejected::Malformed);
    }
    text.parse().map_err(|_| Rejected::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers_in_range() {
        let out_of_range = Err(Rejected::OutOfRange("1..2147483647"));
        for (text, expected) in [
            ("1", Ok(1)),
            (" +7 ", Ok(7)),
            ("2147483647", Ok(2147483647)),
            ("0", out_of_range.clone()),
            ("-3", out_of_range.clone()),
            ("2147483648", out_of_range.clone()),
            ("99999999999999999999999999999999999999999999", out_of_range),
            ("10abc", Err(Rejected::Malformed)),
            ("1.5", Err(Rejected::Malformed)),
            ("0x10", Err(Rejected::Malformed)),
            ("", Err(Rejected::Malformed)),
            ("- 3", Err(Rejected::Malformed)),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn some_numbers_begin_at_zero() {
        assert_eq!(from_zero("0"), Ok(0));
        assert_eq!(from_zero("3"), Ok(3));
        assert_eq!(from_zero("abc"), Err(Rejected::Malformed));
        assert_eq!(from_zero("-1"), Err(Rejected::OutOfRange("0..2147483647")));
    }

    #[test]
    fn durations_take_units() {
        for (text, expected_ms) in [
            ("90", Some(90_000.0)),
            ("1.5s", Some(1_500.0)),
            ("1.5 s", Some(1_500.0)),
            ("250ms", Some(250.0)),
            ("500us", Some(0.5)),
            ("5m", Some(300_000.0)),
            ("5min", Some(300_000.0)),
            ("2h", Some(7_200_000.0)),
            ("0", None),
            ("-1", None),
            ("2147483648", None),
            ("1e3", None),
            ("1.5.1", None),
            (".", None),
            ("s", None),
            ("5 minutes", None),
            ("10abc", None),
            ("inf", None),
        ] {
            let actual = seconds(text)
                .ok()
                .map(|duration| duration.as_secs_f64() * 1e3);
            assert_eq!(actual, expected_ms, "{text:?}");
        }
        assert_eq!(milliseconds("100"), Ok(Duration::from_millis(100)));
        assert_eq!(milliseconds("0.5"), Ok(Duration::from_micros(500)));
        assert_eq!(milliseconds("2s"), Ok(Duration::from_secs(2)));
        assert!(
            milliseconds("0.0001").is_err(),
            "a limit that would turn itself off"
        );
    }

    #[test]
    fn rates_have_a_unit_of_time() {
        for (text, expected) in [
            ("500", Some(500.0)),
            ("0.2", Some(0.2)),
            ("1/s", Some(1.0)),
            ("6/min", Some(0.1)),
            ("6 / m", Some(0.1)),
            ("360/h", Some(0.1)),
            (" +10 ", Some(10.0)),
            ("0", None),
            ("-1", None),
            ("1e3", Some(1000.0)),
            ("1.5E-1", Some(0.15)),
            ("10abc", None),
            ("1e", None),
            ("1e1.5", None),
            ("1e999", None),
            ("e3", None),
            ("6/d", None),
            ("6/", None),
            ("/s", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(rate(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn pgbenchs_numbers_have_no_unit() {
        for (text, s, tps, ms) in [
            ("5", Some(5.0), Some(5.0), Some(5.0)),
            (" +5", Some(5.0), Some(5.0), Some(5.0)),
            ("1.5", None, Some(1.5), Some(1.5)),
            ("1e3", None, Some(1000.0), Some(1000.0)),
            ("5s", None, None, None),
            ("6/min", None, None, None),
            ("0", None, None, None),
            ("-1", None, None, None),
            ("0.0001", None, Some(0.0001), None),
            ("2147483648", None, None, Some(2_147_483_648.0)),
            ("1e300", None, None, None),
            ("", None, None, None),
        ] {
            let seconds = whole_seconds(text).ok().map(|time| time.as_secs_f64());
            let limit = plain_milliseconds(text).ok();
            let limit = limit.map(|time| time.as_secs_f64() * 1e3);
            assert_eq!(
                (seconds, plain_rate(text).ok(), limit),
                (s, tps, ms),
                "{text:?}"
            );
        }
    }

    #[test]
    fn lists_name_their_bad_element() {
        assert_eq!(
            percentiles("100, 50,99.9,50"),
            Ok(Percentiles(vec![50.0, 99.9, 100.0]))
        );
        for (text, bad) in [
            ("50,0", "\"0\""),
            ("100.1", "\"100.1\""),
            ("50,,99", "\"\""),
            ("50,p99", "\"p99\""),
            ("", "\"\""),
        ] {
            let message = percentiles(text).unwrap_err().to_string();
            assert!(message.ends_with(bad), "{text:?}: {message}");
        }
        assert_eq!(
            preparations("reset, vacuum,reset"),
            Ok(Preparations(vec![
                Preparation::Reset,
                Preparation::Vacuum,
                Preparation::Reset
            ]))
        );
        let message = preparations("vacuum,freeze").unwrap_err().to_string();
        assert!(message.ends_with("\"freeze\""), "{message}");
    }

    #[test]
    fn some_lengths_of_time_may_be_nothing() {
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        assert_eq!(seconds_or_none("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(seconds_or_none("-1").is_err());
    }

    #[test]
    fn a_sampling_rate_is_a_share() {
        for (text, expected) in [
            ("1", Some(1.0)),
            ("0.25", Some(0.25)),
            (" .5 ", Some(0.5)),
            ("0", None),
            ("1.01", None),
            ("-0.1", None),
            ("0.1x", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(sampling_rate(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn seeds_are_read_as_c_reads_them() {
        for (text, expected) in [
            ("time", Some(SeedSource::Time)),
            ("rand", Some(SeedSource::Random)),
            ("42", Some(SeedSource::Number(42))),
            (" +42", Some(SeedSource::Number(42))),
            ("-1", Some(SeedSource::Number(u64::MAX))),
            (
                "99999999999999999999999",
                Some(SeedSource::Number(u64::MAX)),
            ),
            ("0x2a", None),
            ("42 ", None),
            ("", None),
            ("Time", None),
        ] {
            assert_eq!(seed(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn steps_keep_their_order_and_repeats() {
        use InitStep::{CreateTables, DropTables};
        assert_eq!(
            init_steps("d td"),
            Ok(Steps(vec![DropTables, CreateTables, DropTables]))
        );
        assert_eq!(init_steps("  "), Ok(Steps(vec![])));
        assert_eq!(init_steps("dtgGvpf"), Ok(Steps(InitStep::ALL.to_vec())));
        for bad in ["", "dtx", "F", "D"] {
            assert!(init_steps(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn tables_are_described_by_words_and_percents() {
        assert_eq!(partition_method("RANGE"), Ok(PartitionMethod::Range));
        assert_eq!(partition_method("Hash"), Ok(PartitionMethod::Hash));
        assert!(partition_method("list").is_err());
        assert_eq!(load_mode("insert"), Ok(LoadMode::Insert));
        assert!(load_mode("Copy").is_err());
        assert_eq!((fillfactor("10"), fillfactor("100")), (Ok(10), Ok(100)));
        for bad in ["9", "101", "-10"] {
            assert_eq!(fillfactor(bad), Err(Rejected::OutOfRange("10..100")));
        }
    }

    #[test]
    fn settings_have_a_name() {
        assert_eq!(
            setting("fsync=off"),
            Ok(("fsync".to_owned(), "off".to_owned()))
        );
        assert_eq!(
            setting("a = b=c"),
            Ok(("a".to_owned(), "b=c".to_owned())),
            "only the first sign separates"
        );
        for bad in ["fsync", "=off", " =off"] {
            assert!(setting(bad).is_err(), "{bad:?}");
        }
    }
}
