//! Keeps the window second by second, for the result.

use std::time::Duration;

use super::by_interval::{ByInterval, ClosedInterval, IntervalSink};
use super::log::LogContext;
use crate::event::Phase;
use crate::result::{Course, Slice, SliceLatency};
use crate::stats::Histogram;

/// Hears a run and keeps its course.
pub type CourseKeeper = ByInterval<Course>;

impl CourseKeeper {
    /// A keeper that has heard nothing yet.
    pub fn new(context: &LogContext) -> Self {
        ByInterval::of(Duration::from_secs(1), context, Course::new())
    }
}

impl IntervalSink for Course {
    fn take(&mut self, closed: &ClosedInterval) {
        if closed.phase == Phase::Run {
            self.push(slice(closed));
        }
    }
}

fn slice(closed: &ClosedInterval) -> Slice {
    let stats = &closed.total.stats;
    Slice {
        length_ns: closed.length_ns,
        clients_connected: closed.connected,
        due: closed.total.due,
        processed: stats.processed,
        failed: stats.failed.total(),
        skipped: stats.skipped,
        aborted: stats.aborted.total(),
        lost: stats.aborted.connection_lost,
        retries: stats.retries,
        connects: closed.connects,
        checkpoints: closed.checkpoints,
        latency: SliceLatency::of(&stats.latency),
        lag_mean_ns: stats.lag_mean_ns(),
        lag_max_ns: stats.lag().map_or(0, Histogram::max_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Story, log_context};
    use super::*;
    use crate::plan::StopRule;

    #[test]
    fn the_course_has_a_slice_for_each_second_of_the_window() {
        let mut story = Story::of_seconds(2, 3);
        let context = LogContext {
            stop: StopRule::Time(Duration::from_secs(3)),
            ..log_context(&["a"])
        };
        story.course = Some(CourseKeeper::new(&context));
        story.works(0, 100, -500, 1_000);
        story.works(0, 250, 1_000, 3_000);
        let course = story.tell().course.expect("it was asked for");
        let slices: Vec<_> = course
            .slices()
            .iter()
            .map(|slice| {
                (
                    slice.length_ns / 1_000_000,
                    slice.processed,
                    slice.latency.max_ns / 1_000_000,
                )
            })
            .collect();
        assert_eq!(slices, [(1_000, 10, 100), (1_000, 4, 250), (1_000, 4, 250)]);
    }
}
