//! Where a run took place, for whoever compares it with another one.

use serde::{Deserialize, Serialize};

/// The machine of the client, and the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The machine that pgmark ran on.
    pub host: Host,
    /// The server, before the run.
    pub server: ServerPlace,
}

/// A machine, as far as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// What it calls itself.
    #[serde(default)]
    pub name: String,
    /// The model of its processors.
    pub cpu: String,
    /// Processors that the program may use.
    pub processors: u32,
    /// Its memory, kB.
    pub memory_kb: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Mean frequency of its processors before and after the run, MHz, where the kernel tells; some
    /// virtual machines tell a number that never changes.
    #[serde(default)]
    pub frequency_mhz: Option<[f64; 2]>,
    /// Share of the time of all processors that a hypervisor gave to others during the run, percent.
    pub steal_pct: Option<f64>,
}

/// A server, as it was before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPlace {
    /// The database.
    pub database: String,
    /// Settings that are not at their default, by name. A value with a password in it is masked.
    pub settings: Vec<ServerSetting>,
    /// Sessions of others that were there.
    pub other_sessions: Option<u64>,
}

/// A setting of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Its name.
    pub name: String,
    /// Its value, in its unit.
    pub value: String,
    /// As in `8kB`; empty if it has none.
    pub unit: String,
    /// Where it was set, as in `configuration file`.
    pub source: String,
}
