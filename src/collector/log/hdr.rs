//! An HDR interval log: a line for each second of the window, with the latencies of the transactions
//! that were processed in it, as programs that know HDR histograms read it.

use std::time::Duration;

use super::row_file::{Form, RowFile};
use super::text::Cells;
use super::{Log, LogContext};
use crate::collector::by_interval::{ByInterval, ClosedInterval, IntervalSink};
use crate::event::Phase;
use crate::program::Build;
use crate::result::LoggedRows;
use crate::time::{Clock, Timestamp};

/// The log being written.
pub type HdrLog = ByInterval<HdrLines>;

/// Lines of intervals.
pub struct HdrLines {
    file: [RowFile; 1],
    clock: Clock,
    cells: Cells,
    /// Transactions in all lines so far.
    transactions: u64,
}

impl HdrLog {
    /// A line each second into `file`.
    pub(super) fn new(file: RowFile, context: &LogContext) -> Self {
        let lines = HdrLines {
            file: [file],
            clock: context.clock.clone(),
            cells: Cells::default(),
            transactions: 0,
        };
        ByInterval::of(Duration::from_secs(1), context, lines)
    }
}

/// The lines above the first interval. Intervals count from the beginning of the window.
fn head(unix_ns: i64) -> String {
    let begins = jiff::Timestamp::from_nanosecond(unix_ns.into()).unwrap_or_default();
    format!(
        "#[Latencies of processed transactions in nanoseconds, by pgmark {}; Interval_Max in milliseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {:.3} (seconds since epoch), {begins}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        Build::own().version,
        unix_ns as f64 / 1e9,
    )
}

impl IntervalSink for HdrLines {
    fn begin(&mut self, begins: Timestamp) {
        let head = head(self.clock.unix_ns(begins));
        self.file[0].begin_as(Form::Lines(head));
    }

    fn take(&mut self, closed: &ClosedInterval) {
        if closed.phase != Phase::Run {
            return;
        }
        let latency = &closed.total.stats.latency;
        self.transactions += latency.count();
        self.cells.three_decimals(closed.start_ns as f64 / 1e9);
        self.cells.three_decimals(closed.length_ns as f64 / 1e9);
        self.cells.three_decimals(latency.max_ns() as f64 / 1e6);
        self.cells.text(latency.to_hdr_v2_deflate().as_bytes());
        self.file[0].push(&mut self.cells);
    }
}

impl Log for HdrLog {
    fn files(&mut self) -> &mut [RowFile] {
        &mut self.sink.file
    }

    fn rows(&self) -> LoggedRows {
        LoggedRows::IntervalsOfProcessed {
            transactions: self.sink.transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    use super::*;
    use crate::collector::testing::{Memory, Story, log_context};
    use crate::plan::StopRule;

    #[test]
    fn a_reader_of_hdr_logs_finds_each_second() {
        let memory = Memory::default();
        let file = RowFile::new(
            Box::new(memory.clone()),
            Path::new("run.hlog"),
            Form::Lines(String::new()),
        );
        let mut story = Story::of_seconds(1, 2);
        let context = LogContext {
            stop: StopRule::Time(Duration::from_secs(2)),
            ..log_context(&["a"])
        };
        story.logs = vec![Box::new(HdrLog::new(file, &context))];
        story.works(0, 100, -200, 1_000);
        story.works(0, 250, 1_000, 2_000);
        let measured = story.tell();
        assert_eq!(measured.logs[0].rows_written, 2);

        let text = memory.text();
        assert!(text.contains("#[StartTime: 1796048716.123 "), "{text}");
        let entries: Vec<_> = IntervalLogIterator::new(text.as_bytes())
            .map(|entry| entry.expect("every line can be read"))
            .collect();
        let intervals: Vec<_> = entries
            .iter()
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval),
                LogEntry::StartTime(_) | LogEntry::BaseTime(_) => None,
            })
            .map(|interval| {
                let bytes = BASE64_STANDARD
                    .decode(interval.encoded_histogram())
                    .expect("it is base64");
                let histogram: hdrhistogram::Histogram<u64> = Deserializer::new()
                    .deserialize(&mut &bytes[..])
                    .expect("it is a histogram");
                let begins = interval.start_timestamp().as_secs();
                (begins, interval.max(), histogram.len())
            })
            .collect();
        assert_eq!(intervals, [(0, 100.0, 10), (1, 250.0, 4)]);
    }
}
