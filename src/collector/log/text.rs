//! Cells of rows as bytes: numbers, times, names of scripts. Allocates nothing for a row.

use std::io::Write;

use csv::ByteRecord;
use jiff::tz::TimeZone;

use crate::plan::LogTime;
use crate::spreadsheet;

/// The cells of one row, in memory that is used again for the next.
#[derive(Default)]
pub(super) struct Cells {
    record: ByteRecord,
    integer: itoa::Buffer,
    decimal: Vec<u8>,
}

impl Cells {
    /// Adds text that needs no quotes, or has them.
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.record.push_field(text);
    }

    /// Adds a whole number.
    #[inline]
    pub(super) fn integer(&mut self, value: i64) {
        let digits = self.integer.format(value);
        self.record.push_field(digits.as_bytes());
    }

    /// Adds a count.
    pub(super) fn count(&mut self, value: u64) {
        self.integer(value as i64);
    }

    /// Adds a sum, which may exceed 64 bits.
    pub(super) fn sum(&mut self, value: u128) {
        let digits = self.integer.format(value);
        self.record.push_field(digits.as_bytes());
    }

    /// Adds a number with exactly six decimals: with three, a German spreadsheet would read 1.912
    /// as 1912.
    pub(super) fn six_decimals(&mut self, value: f64) {
        self.decimal.clear();
        write!(self.decimal, "{value:.6}").expect("memory takes all bytes");
        self.record.push_field(&self.decimal);
    }

    /// Adds a number with three decimals, as HDR logs have them.
    pub(super) fn three_decimals(&mut self, value: f64) {
        self.decimal.clear();
        write!(self.decimal, "{value:.3}").expect("memory takes all bytes");
        self.record.push_field(&self.decimal);
    }

    /// Adds a duration in whole microseconds.
    #[inline]
    pub(super) fn micros(&mut self, nanos: u64) {
        self.count(whole_micros(nanos));
    }

    /// The row, as far as it has come.
    pub(super) fn record(&self) -> &ByteRecord {
        &self.record
    }

    /// Begins a new row.
    pub(super) fn clear(&mut self) {
        self.record.clear();
    }
}

/// Whole microseconds, rounded to the nearest so that means over a log are not biased.
#[inline]
pub(super) fn whole_micros(nanos: u64) -> u64 {
    nanos.saturating_add(500) / 1000
}

/// As [`whole_micros`], of times that may lie before their origin.
pub(super) fn signed_micros(nanos: i64) -> i64 {
    nanos.saturating_add(500).div_euclid(1000)
}

/// The moment of completion as a cell, in the way that the user wants it.
pub(super) enum MomentText {
    /// `2026-11-30T14:25:16.123456` in a time zone.
    Calendar(CalendarText),
    /// Microseconds since 1970.
    Epoch,
    /// No cell.
    None,
}

impl MomentText {
    pub(super) fn new(time: LogTime) -> Self {
        match time {
            LogTime::Utc => MomentText::Calendar(CalendarText::new(TimeZone::UTC)),
            LogTime::Local => MomentText::Calendar(CalendarText::new(TimeZone::system())),
            LogTime::Epoch => MomentText::Epoch,
            LogTime::None => MomentText::None,
        }
    }

    pub(super) fn push(&mut self, unix_micros: i64, cells: &mut Cells) {
        match self {
            MomentText::Calendar(calendar) => cells.text(calendar.format(unix_micros)),
            MomentText::Epoch => cells.integer(unix_micros),
            MomentText::None => {}
        }
    }
}

/// Date and time without a zone letter, which spreadsheets and databases read as they are. The
/// calendar is asked once a second.
pub(super) struct CalendarText {
    zone: TimeZone,
    second: Option<i64>,
    text: [u8; 26],
}

impl CalendarText {
    fn new(zone: TimeZone) -> Self {
        CalendarText {
            zone,
            second: None,
            text: *b"0000-00-00T00:00:00.000000",
        }
    }

    fn format(&mut self, unix_micros: i64) -> &[u8] {
        let second = unix_micros.div_euclid(1_000_000);
        if self.second != Some(second) {
            self.second = Some(second);
            let moment = jiff::Timestamp::from_second(second).unwrap_or_default();
            let here = moment.to_zoned_datetime(self.zone.clone());
            let date_and_time = here.strftime("%Y-%m-%dT%H:%M:%S").to_string();
            self.text[..19].copy_from_slice(&date_and_time.as_bytes()[..19]);
        }
        let mut rest = unix_micros.rem_euclid(1_000_000) as u32;
        for digit in self.text[20..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.text
    }
}

/// Names of scripts as cells: each once, on one line, none that a spreadsheet would calculate, in
/// quotes where CSV wants them.
pub(super) fn script_cells(names: &[String]) -> Vec<Vec<u8>> {
    names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let nth = 1 + names[..index].iter().filter(|other| *other == name).count();
            let mut cell = spreadsheet::cell(name);
            if nth > 1 {
                cell += &format!("#{nth}");
            }
            quoted(&cell)
        })
        .collect()
}

/// A cell as it stands in a file of CSV.
fn quoted(cell: &str) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // The second one is empty: of a row, only what is before the comma is wanted.
    writer
        .write_record([cell, ""])
        .expect("memory takes all bytes");
    let mut row = writer.into_inner().expect("memory takes all bytes");
    row.truncate(row.len() - b",\n".len());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_over_seconds_days_and_years() {
        let mut utc = CalendarText::new(TimeZone::UTC);
        for (micros, expected) in [
            (1_798_761_599_999_999, "2026-12-31T23:59:59.999999"),
            (1_798_761_600_000_000, "2027-01-01T00:00:00.000000"),
            (1_798_761_599_000_001, "2026-12-31T23:59:59.000001"),
            (-1, "1969-12-31T23:59:59.999999"),
        ] {
            assert_eq!(utc.format(micros), expected.as_bytes());
        }
        let mut east = CalendarText::new(TimeZone::fixed(jiff::tz::offset(5)));
        let expected = b"2027-01-01T05:00:00.000001";
        assert_eq!(east.format(1_798_761_600_000_001), expected);
    }

    #[test]
    fn names_of_scripts_are_distinct_and_harmless() {
        let names = ["s", "=evil", "s", "a,\"b\"\n"].map(str::to_owned);
        let expected: [&[u8]; 4] = [b"s", b"'=evil", b"s#2", b"\"a,\"\"b\"\" \""];
        assert_eq!(script_cells(&names), expected);
    }
}
