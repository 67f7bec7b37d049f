//! What the server has counted at one moment.

use postgres::Client;

use crate::server::{Activity, Counters};

/// A look at all its counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) activity: Activity,
    pub(super) counters: Counters,
}

impl Look {
    /// A look now.
    pub(super) fn now(client: &mut Client, version_num: u32) -> Self {
        Look {
            activity: Activity::now(client, version_num),
            counters: Counters::now(client, version_num),
        }
    }

    /// A look when what the clients did is in the counters, or after two seconds.
    pub(super) fn steady(client: &mut Client, version_num: u32) -> Self {
        let counters = Counters::steady(client, version_num);
        Look {
            activity: Activity::now(client, version_num),
            counters,
        }
    }
}
