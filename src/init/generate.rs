//! The steps that fill the tables: in one transaction over one connection wherever that is
//! possible, since rows may only be frozen in the transaction that emptied their table; in
//! several where it was asked for or the server refuses. Whatever fails, no half-filled table is
//! left behind.

use super::load::{Load, load};
use super::parts::{self, Part};
use super::progress::Progress;
use super::rows::FilledTable;
use super::session::{Failure, Session};
use super::way::{Means, Way};
use super::{InitRun, statements};
use crate::plan::InitStep;

/// Fills the tables, and tries other ways when the server refuses one.
pub fn generate(run: &mut InitRun<'_>, step: InitStep) -> Result<(), Failure> {
    let mut way = Way::asked_for(step, run.tables.loading);
    loop {
        let Err(failure) = generate_by(run, way) else {
            return Ok(());
        };
        let Some((next, notice)) = way.after(&failure) else {
            return Err(failure);
        };
        run.console.notice(&notice);
        run.reconnect()?;
        way = next;
    }
}

fn generate_by(run: &mut InitRun<'_>, way: Way) -> Result<(), Failure> {
    let parts = match run.tables.loading.connections {
        0 | 1 => Vec::new(),
        connections => parts_of_accounts(run, way, connections)?,
    };
    if parts.len() > 1 {
        return tidily(run, |run| {
            fill_first(run, way, &[FilledTable::Branches, FilledTable::Tellers])?;
            fill_together(run, way, &parts)
        });
    }
    if way.batch_rows.is_some() {
        return tidily(run, |run| fill_first(run, way, &FilledTable::ALL));
    }
    fill_first(run, way, &FilledTable::ALL)
}

/// What several connections can load at the same time; nothing if it has to be one stream.
fn parts_of_accounts(
    run: &mut InitRun<'_>,
    way: Way,
    connections: u32,
) -> Result<Vec<Part>, Failure> {
    let name = FilledTable::Accounts.name();
    let total = FilledTable::Accounts.rows(run.tables.scale);
    let mut session = run.session();
    let partitions = session.rows(statements::PARTITIONS)?;
    if let Some(parts) = parts::of_partitions(&partitions, total) {
        return Ok(parts);
    }
    let one_frozen_stream = way.means == (Means::Copy { freeze: true })
        && session.is_true(&statements::may_freeze(name))?;
    if one_frozen_stream {
        return Ok(Vec::new());
    }
    Ok(parts::equal(name, total, connections))
}

/// Does `work`, which commits more than once; if it fails, the tables are emptied again.
fn tidily(
    run: &mut InitRun<'_>,
    work: impl FnOnce(&mut InitRun<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let outcome = work(run);
    if outcome.is_err() {
        run.tidy_up();
    }
    outcome
}

/// Empties all tables and fills these over the first connection.
fn fill_first(run: &mut InitRun<'_>, way: Way, tables: &[FilledTable]) -> Result<(), Failure> {
    let work = |run: &mut InitRun<'_>| {
        run.session().execute(statements::TRUNCATE)?;
        tables.iter().try_for_each(|table| fill(run, way, *table))
    };
    if way.batch_rows.is_some() {
        return work(run);
    }
    run.in_transaction(work)
}

fn fill(run: &mut InitRun<'_>, mut way: Way, table: FilledTable) -> Result<(), Failure> {
    if way.means == (Means::Copy { freeze: true }) {
        let freeze = run
            .session()
            .is_true(&statements::may_freeze(table.name()))?;
        way.means = Means::Copy { freeze };
    }
    let task = Load {
        table,
        target: table.name(),
        rows: 0..table.rows(run.tables.scale),
        way,
    };
    with_progress(run, way, table, |run, told| {
        load(&mut run.session(), &task, told)
    })
}

/// The accounts, over several connections, each part in its own transaction.
fn fill_together(run: &mut InitRun<'_>, way: Way, parts: &[Part]) -> Result<(), Failure> {
    let team = run.team();
    with_progress(run, way, FilledTable::Accounts, |_, told| {
        team.share_out(
            parts,
            |session, part, teller| fill_part(session, way, part, &mut |rows| teller.rows(rows)),
            told,
        )
    })
}

fn fill_part(
    session: &mut Session<'_>,
    mut way: Way,
    part: &Part,
    told: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let frozen = way.means == (Means::Copy { freeze: true }) && part.alone;
    if let Means::Copy { .. } = way.means {
        way.means = Means::Copy { freeze: frozen };
    }
    let task = Load {
        table: FilledTable::Accounts,
        target: &part.target,
        rows: part.rows.clone(),
        way,
    };
    if way.batch_rows.is_some() {
        return load(session, &task, told);
    }
    session.in_transaction(|session| {
        if frozen {
            // It is empty already; but only the transaction that empties it may freeze.
            session.execute(&format!("truncate table {}", part.target))?;
        }
        load(session, &task, told)
    })
}

/// Shows how `table` gets on while `work` tells how many more rows are loaded. What the server
/// makes by itself is not shown: it tells nothing before its end.
fn with_progress<'a>(
    run: &mut InitRun<'a>,
    way: Way,
    table: FilledTable,
    work: impl FnOnce(&mut InitRun<'a>, &mut dyn FnMut(u64)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if way.means == Means::Series {
        return work(run, &mut |_| ());
    }
    let total = table.rows(run.tables.scale);
    let (clock, started_at) = (run.clock, run.clock.now());
    let mut progress = Progress::new(run.console, table, total, run.tables.quiet);
    let mut done = 0;
    let outcome = work(run, &mut |more| {
        done += more;
        progress.advance(done, clock.now() - started_at);
    });
    progress.finish();
    outcome
}
