//! How many clients of a worker still connect, and how many are not done.

use super::client::Progress;

/// Counts of clients.
#[derive(Debug)]
pub struct Headcount {
    connecting: usize,
    running: usize,
}

impl Headcount {
    /// Clients that are so far.
    pub fn of(clients: impl Iterator<Item = Progress>) -> Self {
        let mut headcount = Headcount {
            connecting: 0,
            running: 0,
        };
        for progress in clients {
            headcount.connecting += usize::from(progress == Progress::Connecting);
            headcount.running += usize::from(progress != Progress::Done);
        }
        headcount
    }

    /// A client has come from `was` to `is`. Whether it was the last that others waited for before
    /// the start.
    pub fn note(&mut self, was: Progress, is: Progress) -> bool {
        if was != Progress::Done && is == Progress::Done {
            self.running -= 1;
        }
        let connected = was == Progress::Connecting && is != Progress::Connecting;
        self.connecting -= usize::from(connected);
        connected && !self.any_connecting()
    }

    /// Whether a client is not yet ready to start.
    pub fn any_connecting(&self) -> bool {
        self.connecting > 0
    }

    /// Whether a client is not done.
    pub fn any_running(&self) -> bool {
        self.running > 0
    }
}

#[cfg(test)]
mod tests {
    use super::Progress::{Active, Connecting, Done};
    use super::*;

    #[test]
    fn the_last_to_connect_is_told_once_also_if_it_fails() {
        let mut headcount = Headcount::of([Connecting, Connecting, Active].into_iter());
        assert!(!headcount.note(Connecting, Connecting));
        assert!(!headcount.note(Connecting, Active));
        assert!(headcount.note(Connecting, Done));
        assert!(!headcount.any_connecting() && headcount.any_running());
        assert!(!headcount.note(Active, Active));
        assert!(!headcount.note(Active, Done));
        assert!(!headcount.note(Active, Done));
        assert!(!headcount.any_running());
    }
}
