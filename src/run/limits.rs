//! How many descriptors this process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Report};
use crate::plan::RunPlan;
use crate::script::CommandKind;

/// Descriptors besides those of clients and threads: the three standard streams, signals, logs,
/// the control connection and its event loop, cancellations, libraries.
const OTHERS: u64 = 32;

/// Descriptors of a thread: its poll, its waker, its timer, its log in pgbench's format.
const EACH_THREAD: u64 = 4;

/// Descriptors of a client whose shell command is being started: `/dev/null`, both ends of the pipe
/// for what it prints, and both of the one by which is known that it runs.
const EACH_SHELL_COMMAND: u64 = 5;

/// Raises the soft limit of open files if the run needs that.
///
/// # Errors
/// [`Error::Environment`] with the true need, where the hard limit is lower.
pub fn allow_descriptors(plan: &RunPlan) -> Result<(), Error> {
    let need = descriptors(plan);
    let limit = getrlimit(Resource::Nofile);
    raised(&limit, need)
        .and_then(|raised| match raised {
            None => Ok(()),
            Some(raised) => setrlimit(Resource::Nofile, raised)
                .map_err(|error| format!("the limit could not be raised: {error}")),
        })
        .map_err(|reason| {
            let clients = plan.load.clients;
            Error::Environment(
                Report::new(format!(
                    "{need} open files are needed for {clients} clients, but {reason}"
                ))
                .hint("Reduce the number of clients, or raise the limit with ulimit -n."),
            )
        })
}

/// The most descriptors that are open at a time, each client being at what takes most of them.
fn descriptors(plan: &RunPlan) -> u64 {
    let each_client = match runs_shell_commands(plan) {
        true => 1 + EACH_SHELL_COMMAND,
        false => 1,
    };
    let (clients, threads) = (plan.load.clients, plan.load.threads);
    each_client * u64::from(clients) + EACH_THREAD * u64::from(threads) + OTHERS
}

fn runs_shell_commands(plan: &RunPlan) -> bool {
    let scripts = plan.scripts.scripts.iter();
    scripts
        .flat_map(|weighted| &weighted.script.commands)
        .any(|command| {
            matches!(
                command.kind,
                CommandKind::Shell(_) | CommandKind::SetShell { .. }
            )
        })
}

/// `limit` raised to `need`, `None` if it is high enough; or why it cannot be. An absent limit is
/// none.
fn raised(limit: &Rlimit, need: u64) -> Result<Option<Rlimit>, String> {
    if limit.current.is_none_or(|soft| soft >= need) {
        return Ok(None);
    }
    match limit.maximum {
        Some(hard) if hard < need => Err(format!("the system limit is {hard}")),
        Some(_) | None => Ok(Some(Rlimit {
            current: Some(need),
            ..*limit
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::run_plan;
    use crate::script::{Dialect, ScriptSetBuilder};

    #[test]
    fn the_need_is_that_of_clients_threads_and_their_shell_commands() {
        for (script, expected) in [
            ("SELECT 1;", 80 + 2 * EACH_THREAD + OTHERS),
            ("\\setshell a echo 1", 6 * 80 + 2 * EACH_THREAD + OTHERS),
            ("SELECT 1;\n\\shell true", 6 * 80 + 2 * EACH_THREAD + OTHERS),
        ] {
            let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
            scripts.add_file("test.sql", script.as_bytes(), 1);
            let mut plan = run_plan("-c 80 -j 2");
            plan.scripts = scripts.finish().unwrap();
            assert_eq!(descriptors(&plan), expected, "{script}");
        }
    }

    #[test]
    fn the_soft_limit_is_raised_as_far_as_is_needed_and_the_hard_limit_allows() {
        for (soft, hard, expected) in [
            (Some(100), Some(100), Ok(None)),
            (None, None, Ok(None)),
            (Some(99), Some(100), Ok(Some(100))),
            (Some(99), None, Ok(Some(100))),
            (Some(10), Some(99), Err("the system limit is 99".to_owned())),
        ] {
            let limit = Rlimit {
                current: soft,
                maximum: hard,
            };
            let found = raised(&limit, 100);
            let soft_after = found.map(|raised| raised.and_then(|limit| limit.current));
            assert_eq!(soft_after, expected, "{soft:?} {hard:?}");
        }
    }
}
