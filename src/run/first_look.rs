//! A look at the server's counters when the measured window begins after ramp or warm-up, so that
//! what the server did before it is not taken for a part of it. Sessions tell their counts about once a
//! second, so that up to a second of the warm-up may still be in it.
//!
//! On a thread and a connection of its own, once the clients have theirs: whatever becomes of it,
//! the run does not wait for it.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::console::Console;
use crate::context::RunContext;
use crate::control;
use crate::program::Program;
use crate::time::Timestamp;

use super::look::Look;

/// A look that was late has this long to be taken when the run is over.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the look will have found.
#[derive(Debug)]
pub(super) struct FirstLook {
    found: Receiver<Result<Look, String>>,
    /// Ends the waiting when it is dropped.
    _end: Sender<()>,
}

impl FirstLook {
    /// Looks when the window `begins`; not where that is now, or nobody is told of what is found.
    pub(super) fn begin(
        run: &Arc<RunContext>,
        version_num: u32,
        begins: Timestamp,
    ) -> Option<FirstLook> {
        let is_told = run.plan.program == Program::Pgmark;
        if !is_told || run.plan.load.lead_in.total().is_zero() {
            return None;
        }
        let (end, ended) = bounded(0);
        let (sender, found) = bounded(1);
        let run = Arc::clone(run);
        std::thread::Builder::new()
            .name("first look".to_owned())
            .spawn(move || {
                let _ = sender.send(look(&run, version_num, begins, &ended));
            })
            .ok()?;
        Some(FirstLook { found, _end: end })
    }

    /// What was found.
    ///
    /// # Errors
    /// Why nothing was.
    pub(super) fn found(&self) -> Result<Look, String> {
        let found = self.found.recv_timeout(PATIENCE);
        found.unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// Connects at once, so that this is over when the window begins.
fn look(
    run: &RunContext,
    version_num: u32,
    begins: Timestamp,
    ended: &Receiver<()>,
) -> Result<Look, String> {
    // The collector owns standard error.
    let console = Console::to(Box::new(std::io::sink()));
    let mut client = control::connect(&run.target, &console).map_err(|error| error.to_string())?;
    let until = Duration::from_nanos(begins.nanos_since(run.clock.now()));
    let _ = ended.recv_timeout(until);
    Ok(Look::now(&mut client, version_num))
}
