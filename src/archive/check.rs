//! Whether what was read is a run that a report can be made of: its parts belong together, and no
//! number of it is one that no run can have.

use crate::result::{ClientResult, Facts, Measured};

/// 2^53 ns are a hundred days, and sums over all clients of a run still fit into 64 bits.
const NUMBER_MAX: u64 = 1 << 53;

/// Says what is wrong.
pub(super) fn check(facts: &Facts, measured: &Measured) -> Result<(), String> {
    let scripts = facts.scripts.len();
    let wrong = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what} do not belong together, or cannot be")),
    };
    wrong(scripts > 0 && measured.scripts.len() == scripts, "scripts")?;
    wrong(
        measured.clients.len() == facts.clients as usize && facts.clients > 0,
        "clients",
    )?;
    let is_possible = |client: &ClientResult| {
        client.processed_by_script.len() == scripts && client_numbers(client).all(is_small)
    };
    wrong(
        measured.clients.iter().all(is_possible),
        "figures of clients",
    )?;
    let commands = facts.scripts.iter().map(|script| script.commands.len());
    wrong(
        measured.commands.is_empty() || measured.commands.iter().map(Vec::len).eq(commands),
        "commands",
    )?;
    wrong(!measured.series.width().is_zero(), "points of the series")?;
    let percentiles = &facts.summary.percentiles;
    wrong(
        percentiles
            .iter()
            .all(|percent| *percent > 0.0 && *percent <= 100.0),
        "percentiles",
    )?;
    let rate = facts.schedule.map_or(1.0, |schedule| schedule.rate);
    wrong(rate.is_finite() && rate > 0.0, "figures of the schedule")
}

fn client_numbers(client: &ClientResult) -> impl Iterator<Item = u64> {
    let own = [
        client.starts.nanos(),
        client.ends.nanos(),
        client.last_end.nanos(),
        client.connecting_ns,
        client.in_transactions_ns,
        client.think_ns,
        client.slot_wait_ns,
        client.failed,
        client.skipped,
        client.aborted,
    ];
    own.into_iter()
        .chain(client.processed_by_script.iter().copied())
}

fn is_small(number: u64) -> bool {
    number <= NUMBER_MAX
}
