//! Everything that keeps more of a run than its figures: logs, and its course for the result.

use super::course::CourseKeeper;
use super::listener::Listener;
use super::log::Log;
use crate::result::{Course, LogResult};
use crate::time::Timestamp;

/// What is kept besides the figures. The default is nothing.
#[derive(Default)]
pub struct Keepers {
    /// Logs, each in files of its own.
    pub logs: Vec<Box<dyn Log>>,
    /// The window second by second.
    pub course: Option<CourseKeeper>,
}

impl Keepers {
    pub(super) fn are_none(&self) -> bool {
        self.logs.is_empty() && self.course.is_none()
    }

    /// Lets all of them hear something.
    pub(super) fn hear(&mut self, tell: impl Fn(&mut dyn Listener)) {
        self.logs.iter_mut().for_each(|log| tell(log.as_mut()));
        if let Some(course) = &mut self.course {
            tell(course);
        }
    }

    /// Gives all rows to the files.
    pub(super) fn flush(&mut self) {
        self.logs.iter_mut().for_each(|log| log.flush());
    }

    /// What went wrong with a file, once for each.
    pub(super) fn new_failure(&mut self) -> Option<String> {
        self.logs.iter_mut().find_map(|log| log.new_failure())
    }

    /// Everything has been told, and the window, with the last transaction in it, ended here: ends
    /// the files and says what became of all rows.
    pub(super) fn finish(&mut self, ends: Timestamp) -> (Vec<LogResult>, Option<Course>) {
        self.hear(|listener| listener.end(ends));
        let logs = self.logs.iter_mut().map(|log| log.finish()).collect();
        (logs, self.course.take().map(|keeper| keeper.sink))
    }
}
