//! What hears what the collector hears.

use crate::event::{ConnectionRecord, TransactionRecord, TryRecord};
use crate::time::Timestamp;

/// Hears what happens in a run, in the order in which it was told.
pub trait Listener: Send {
    /// The measured window begins at this moment.
    fn begin_window(&mut self, begins: Timestamp);

    /// The measured window is said to end at this moment; transactions under way still count.
    fn end_window(&mut self, _ends: Timestamp) {}

    /// A transaction of this worker thread ended.
    fn transaction(&mut self, worker: u32, record: &TransactionRecord);

    /// A try of a transaction ended.
    fn tried(&mut self, _record: &TryRecord) {}

    /// A client connected, failed to, or disconnected.
    fn connection(&mut self, _span: &ConnectionRecord) {}

    /// The server was asked at this moment, and began so many checkpoints since it was asked before.
    fn checkpoints(&mut self, _at: Timestamp, _begun: u64) {}

    /// From now on nothing is known of checkpoints.
    fn checkpoints_unknown(&mut self) {}

    /// So much has been told.
    fn complete_through(&mut self, _known: Known) {}

    /// Everything has been told, and the window, with the last transaction in it, ended here.
    fn end(&mut self, _ends: Timestamp) {}
}

/// How far all that happened has been told.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// All that ended before this moment.
    pub through: Timestamp,
    /// Under a rate: what became of all transactions that were due before this moment.
    pub due_through: Timestamp,
    /// No transaction from before the window is under way any more.
    pub lead_in_over: bool,
}
