//! Times in which clients had lost their connections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::LossCause;

/// All outages of a run whose clients go on after a loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outages {
    /// In the order in which they began.
    pub list: Vec<Outage>,
    /// Further ones, of which only the number is kept.
    pub further: u64,
    /// Time without a completion in all of them, ns.
    pub unavailable_ns: u64,
}

/// From the first loss of a connection until every client that lost its own has completed a
/// transaction again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// The last completion before, from the beginning of the window, ns; the first loss if others
    /// went on completing.
    pub begins_ns: i64,
    /// From there to the first completion after, ns; 0 if others went on completing. The longest such
    /// time, if connections were lost again before all clients were back.
    pub length_ns: u64,
    /// From the beginning until the last client had completed again, ns; `None` if the run ended
    /// before.
    pub recovered_ns: Option<u64>,
    /// Clients that lost their connections.
    pub clients: u32,
    /// Why connections were lost and could not be made, and how often.
    pub causes: BTreeMap<LossCause, u64>,
    /// Completions a second in the second before it began, or since the start.
    pub before_per_s: f64,
    /// Completions a second in the second after it ended, or until the end.
    pub after_per_s: f64,
}
