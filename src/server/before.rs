//! What `--before` asks for: the server put into a known state before a run, untimed.
//!
//! Each of these was asked for, so that one that cannot be done is an error: the run would not be
//! what it is taken for.

use postgres::Client;
use postgres::error::SqlState;

use crate::console::Console;
use crate::control::server_message;
use crate::error::{Error, Report};
use crate::plan::Preparation;

/// Does these in their order, saying so.
///
/// # Errors
/// [`Error::Server`] for the first that the server refuses.
pub fn before(
    client: &mut Client,
    preparations: &[Preparation],
    console: &Console,
) -> Result<(), Error> {
    for preparation in preparations {
        console.begin_line(&format!("{}...", announcement(*preparation)));
        client
            .batch_execute(statement(*preparation))
            .map_err(|error| refused(*preparation, &error))?;
        console.end_line("end.");
    }
    Ok(())
}

fn announcement(preparation: Preparation) -> &'static str {
    match preparation {
        Preparation::Vacuum => "vacuum and analyze of the database",
        Preparation::Checkpoint => "checkpoint",
        Preparation::Prewarm => "tables and indexes into shared buffers",
        Preparation::Reset => "reset of statistics",
    }
}

/// A statement that would open a transaction block with others stands alone, as VACUUM must.
fn statement(preparation: Preparation) -> &'static str {
    match preparation {
        Preparation::Vacuum => "vacuum analyze",
        Preparation::Checkpoint => "checkpoint",
        Preparation::Prewarm => {
            "select pg_prewarm(c.oid::regclass) \
             from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
             where c.relkind in ('r', 'i', 'm') \
             and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
             order by c.relkind = 'i', c.oid"
        }
        // The statements' own statistics are an extension that need not be there.
        Preparation::Reset => {
            "select pg_catalog.pg_stat_reset(); \
             do $$ begin \
                 if to_regproc('pg_stat_statements_reset') is not null then \
                     perform pg_stat_statements_reset(); \
                 end if; \
             end $$"
        }
    }
}

fn refused(preparation: Preparation, error: &postgres::Error) -> Error {
    let word = preparation.word();
    let message = server_message(error);
    let report = Report::new(format!("--before {word} failed: {message}"));
    let hint = match (preparation, error.code()) {
        (Preparation::Prewarm, Some(&SqlState::UNDEFINED_FUNCTION)) => {
            Some("CREATE EXTENSION pg_prewarm in this database; it comes with PostgreSQL.")
        }
        (Preparation::Checkpoint, Some(&SqlState::INSUFFICIENT_PRIVILEGE)) => {
            Some("It needs a superuser or, since PostgreSQL 15, the role pg_checkpoint.")
        }
        (Preparation::Reset, Some(&SqlState::INSUFFICIENT_PRIVILEGE)) => {
            Some("GRANT EXECUTE ON FUNCTION pg_stat_reset() TO the role, or use a superuser.")
        }
        (
            Preparation::Vacuum
            | Preparation::Checkpoint
            | Preparation::Prewarm
            | Preparation::Reset,
            _,
        ) => None,
    };
    Error::Server(match hint {
        Some(hint) => report.hint(hint),
        None => report,
    })
}
