//! What a client waits for the server to do, for whoever watches over it.

use super::super::watchdog::{Place, Wait};
use super::{Client, State, Work};

impl Client {
    /// What it waits for, if it waits for the server.
    pub fn wait(&self) -> Option<Wait> {
        let (since, place) = match self.state {
            State::Connecting | State::Judging(_) | State::Backlogged { .. } => {
                (self.attempt.started_at(), Place::Connecting)
            }
            State::Greeting { since } => (since, Place::Greeting),
            State::Working(Work::Preparing | Work::Waiting | Work::RollingBack) => {
                let (script, command) = (self.transaction.script, self.transaction.cursor);
                (self.sent_at, Place::Command { script, command })
            }
            State::Idle
            | State::Standby
            | State::Ramping { .. }
            | State::Choosing
            | State::Skipping
            | State::Throttled { .. }
            | State::Working(Work::Shelling | Work::Sleeping { .. })
            | State::Closing { .. }
            | State::Done => return None,
        };
        Some(Wait {
            client: self.id,
            since,
            place,
            process_id: self.session.process_id(),
        })
    }
}
