//! Looks after the server's checkpoints while a run goes on, for files that tell them by interval.
//!
//! On a thread and a connection of its own, once the clients have theirs: whatever becomes of it,
//! the run does not wait for it.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::console::Console;
use crate::context::RunContext;
use crate::control;
use crate::event::{Announcement, Level, Message};
use crate::server::Activity;

/// Time from look to look. Each is one short statement.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Ends the looking when it is dropped.
pub(super) struct CheckpointWatch {
    _end: Sender<()>,
}

impl CheckpointWatch {
    /// Begins to look, if something that is kept of the run has use for it; the collector is told what is seen.
    pub(super) fn begin(
        run: &Arc<RunContext>,
        version_num: u32,
        announcements: Sender<Announcement>,
    ) -> Option<CheckpointWatch> {
        if !run.plan.logs_intervals() && !run.plan.keep.wants_course() {
            return None;
        }
        let (end, ended) = bounded(0);
        let run = Arc::clone(run);
        std::thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || look(&run, version_num, &announcements, &ended))
            .ok()?;
        Some(CheckpointWatch { _end: end })
    }
}

/// Looks until the run is over; a server that has gone may come back.
fn look(
    run: &RunContext,
    version_num: u32,
    announcements: &Sender<Announcement>,
    ended: &Receiver<()>,
) {
    // The collector owns standard error.
    let console = Console::to(Box::new(std::io::sink()));
    let mut before = None;
    loop {
        match control::connect(&run.target, &console) {
            Ok(mut client) => {
                while let Some(counted) = Activity::now(&mut client, version_num).checkpoints {
                    announce(counted, before.replace(counted), run, announcements);
                    if is_over(ended) {
                        return;
                    }
                }
                if before.is_none() {
                    return give_up("the server does not say how many there were", announcements);
                }
            }
            Err(error) if before.is_none() => return give_up(&error.to_string(), announcements),
            Err(_) => {}
        }
        let _ = announcements.send(Announcement::CheckpointsUnknown);
        if is_over(ended) {
            return;
        }
    }
}

/// A server that has never told is not asked again and again while it is measured.
fn give_up(reason: &str, announcements: &Sender<Announcement>) {
    let _ = announcements.send(Announcement::CheckpointsUnknown);
    let _ = announcements.send(Announcement::Message(Message {
        level: Level::Info,
        text: format!("checkpoints are not watched: {reason}"),
    }));
}

/// Tells what was counted since the look before. A counter that was reset has counted what it shows.
fn announce(
    counted: u64,
    before: Option<u64>,
    run: &RunContext,
    announcements: &Sender<Announcement>,
) {
    let begun = before.map_or(0, |before| counted.checked_sub(before).unwrap_or(counted));
    let at = run.clock.now();
    let _ = announcements.send(Announcement::Checkpoints { at, begun });
}

/// Waits until the next look is due, or the run is over.
fn is_over(ended: &Receiver<()>) -> bool {
    ended.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout)
}
