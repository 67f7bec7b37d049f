//! What the server's processes wait for, as the server sees it, when clients have waited for it
//! long.

use postgres::Client;

use super::number;
use crate::control::{rows, server_message};

/// Processes that are looked up. Finding what blocks one of them stops all locking for a moment, and
/// the rest of a larger number waits for the same.
const PROCESSES_MAX: usize = 100;

/// What is listed of each.
const LISTED_MAX: usize = 8;

/// What processes wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerWaits {
    /// Each kind of wait as in `Lock transactionid`, and how many wait for it, the most first.
    pub events: Vec<(String, u64)>,
    /// Who blocks them and waits for no lock, as in `4711 (psql, idle in transaction)`.
    pub blockers: Vec<String>,
}

/// Asks what processes of the server wait for. Those that it does not know are passed over.
///
/// # Errors
/// The words of the server or of the driver.
pub fn waits(client: &mut Client, process_ids: &[i32]) -> Result<ServerWaits, String> {
    let known = process_ids.iter().take(PROCESSES_MAX);
    let ids: Vec<String> = known.map(i32::to_string).collect();
    if ids.is_empty() {
        return Ok(ServerWaits::default());
    }
    let ids = ids.join(",");
    let mut ask =
        |statement: String| rows(client, &statement).map_err(|error| server_message(&error));
    let events = ask(format!(
        "select coalesce(wait_event_type || ' ' || wait_event, state, 'unknown'), count(*) \
         from pg_catalog.pg_stat_activity where pid in ({ids}) \
         group by 1 order by 2 desc, 1 limit {LISTED_MAX}"
    ))?;
    let blockers = ask(format!(
        "select b.pid || coalesce(' (' || concat_ws(', ', nullif(a.application_name, ''), a.state) \
         || ')', '') \
         from (select distinct unnest(pg_blocking_pids(pid)) as pid \
               from pg_catalog.pg_stat_activity where pid in ({ids})) b \
         left join pg_catalog.pg_stat_activity a using (pid) \
         where a.wait_event_type is distinct from 'Lock' order by b.pid limit {LISTED_MAX}"
    ))?;
    let text = |row: &postgres::SimpleQueryRow| row.get(0).unwrap_or_default().to_owned();
    Ok(ServerWaits {
        events: events
            .iter()
            .map(|row| (text(row), number(row, 1).unwrap_or(0)))
            .collect(),
        blockers: blockers.iter().map(text).collect(),
    })
}
