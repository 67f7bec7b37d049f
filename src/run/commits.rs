//! How many commits the server should have counted: a figure of its own that ours can be held
//! against.

use crate::plan::{QueryMode, RunPlan};
use crate::result::{ExpectedCommits, Measured};
use crate::script::{CommandKind, Script};
use crate::server::Counters;

use super::look::Look;

/// Commits at the server that a connection and its end may be.
const OF_A_CONNECTION: u64 = 3;
/// Our own connections, before, during and after the run, and their statements; a second of the
/// run has a look at checkpoints.
const OWN: u64 = 60;

/// What is to be expected, if there is any telling: not if the clients connect again and again, if others
/// are at work in the database, or if the scripts do not say how often they commit.
pub(super) fn expected(
    plan: &RunPlan,
    measured: &Measured,
    before: &Look,
    after: &Look,
) -> Option<ExpectedCommits> {
    let reconnects = plan.load.reconnect || plan.load.reconnect_on_loss;
    let others = before.counters.sessions.is_none_or(|sessions| sessions > 1);
    if reconnects || others || plan.on_connect.is_some() {
        return None;
    }
    let mut transactions = of_lead_in(plan, measured)?;
    for (weighted, stats) in plan.scripts.scripts.iter().zip(&measured.scripts) {
        let each = commits(&weighted.script)?;
        // What failed, also at first, may have committed a part of what it does.
        if each > 1 && stats.failed.total() + stats.aborted.total() + stats.retries > 0 {
            return None;
        }
        transactions += each * stats.processed;
    }
    // A transaction whose end nobody saw may have been committed all the same.
    let cut_off = measured.total.aborted.total();
    let seconds = measured.window?.nanos() / 1_000_000_000;
    // Preparing a statement is a transaction of its own.
    let prepared = match plan.query_mode {
        QueryMode::Prepared => plan.scripts.sql_commands as u64,
        QueryMode::Simple | QueryMode::Extended => 0,
    };
    let of_clients = (OF_A_CONNECTION + prepared) * u64::from(plan.load.clients);
    let counted = after.counters.since(&before.counters);
    Some(ExpectedCommits {
        counted: *counted.get(Counters::COMMITS)? as u64,
        transactions,
        others: cut_off + of_clients + OWN + 2 * seconds,
    })
}

/// Commits of transactions from before the window, of which only the number is kept: it says enough if
/// all scripts commit as often, and if what came afterwards went well.
fn of_lead_in(plan: &RunPlan, measured: &Measured) -> Option<u64> {
    if measured.before_window == 0 {
        return Some(0);
    }
    let mut scripts = plan.scripts.scripts.iter();
    let each = commits(&scripts.next()?.script)?;
    let is_same = scripts.all(|weighted| commits(&weighted.script) == Some(each));
    let went_well = measured.total.processed == measured.total.recorded();
    (is_same && went_well).then_some(each * measured.before_window)
}

/// How often a script commits if all goes well; `None` where its text does not tell.
fn commits(script: &Script) -> Option<u64> {
    let mut commits = 0;
    let mut is_open = false;
    for command in &script.commands {
        match &command.kind {
            CommandKind::Sql(_) => match Statement::of(&command.text)? {
                Statement::Begin => is_open = true,
                Statement::Commit => {
                    commits += 1;
                    is_open = false;
                }
                Statement::Other if is_open => {}
                Statement::Other => commits += 1,
            },
            CommandKind::Set { .. }
            | CommandKind::Sleep(_)
            | CommandKind::Shell(_)
            | CommandKind::SetShell { .. }
            | CommandKind::Values(_)
            | CommandKind::Untimed
            | CommandKind::EndUntimed => {}
            CommandKind::If { .. }
            | CommandKind::Elif { .. }
            | CommandKind::Else { .. }
            | CommandKind::Endif
            | CommandKind::StartPipeline
            | CommandKind::SyncPipeline
            | CommandKind::EndPipeline => return None,
        }
    }
    (!is_open).then_some(commits)
}

/// What a statement does to the transaction that it is in.
enum Statement {
    Begin,
    Commit,
    Other,
}

impl Statement {
    /// `None` for one that may do more than its first word says.
    fn of(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        let text = text.trim().trim_end_matches(';').trim_end();
        let first = text.split(|c: char| !c.is_ascii_alphabetic()).next();
        match first? {
            _ if text.contains(';') || text.contains("and chain") => None,
            "begin" => Some(Statement::Begin),
            "start" if text.starts_with("start transaction") => Some(Statement::Begin),
            "commit" | "end" if !text.contains("prepared") => Some(Statement::Commit),
            "select" | "insert" | "update" | "delete" | "with" | "values" | "merge" | "table"
            | "truncate" | "lock" | "copy" | "explain" => Some(Statement::Other),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::run_plan;

    #[test]
    fn commits_of_a_script_are_told_by_its_text_where_they_can_be() {
        for (text, expected) in [
            ("SELECT 1;", Some(1)),
            ("SELECT 1;\nUPDATE t SET a = 1;", Some(2)),
            ("\\set a 1\nBEGIN;\nSELECT 1;\nSELECT 2;\nEND;", Some(1)),
            (
                "begin isolation level serializable;\nSELECT 1;\ncommit;\nSELECT 2;",
                Some(2),
            ),
            ("START TRANSACTION;\nSELECT 1;\nCOMMIT;", Some(1)),
            ("BEGIN;\nSELECT 1;", None),
            ("BEGIN;\nSELECT 1;\nROLLBACK;", None),
            ("SELECT 1\\; SELECT 2;", None),
            ("BEGIN;\nCOMMIT AND CHAIN;\nCOMMIT;", None),
            ("CALL p();", None),
            ("DO $$begin commit; end$$;", None),
            ("\\if 1\nSELECT 1;\n\\endif", None),
            ("/* begin */ SELECT 1;", None),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let plan = run_plan(&format!("-n -f {}", file.path().display()));
            assert_eq!(commits(&plan.scripts.scripts[0].script), expected, "{text}");
        }
    }
}
