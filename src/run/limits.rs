//! How many descriptors this process may open: as many as the run needs, or the run does not begin.
//! Afterwards it would fail in the middle of connecting, and look like trouble with the server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Report};
use crate::plan::{Load, RunPlan};
use crate::script::{CommandKind, ScriptSet};

/// Descriptors besides those of clients and threads: the three standard streams, signals, logs,
/// the control connection and its event loop, libraries.
const OTHERS: u64 = 32;

/// Descriptors of a thread: its poll, its waker, its timer, its log in pgbench's format, and the
/// connection over which it cancels.
const EACH_THREAD: u64 = 5;

/// Descriptors while a client starts a shell command: its input, both ends of its output, and both
/// ends of what tells whether it could be started.
const EACH_SHELL: u64 = 5;

/// Raises the soft limit of open files if the run needs that, and no further: shell commands of
/// scripts inherit it, and programs are known that are slow under a huge one.
///
/// # Errors
/// [`Error::Environment`] with the true need, where the hard limit is lower.
pub fn allow_descriptors(plan: &RunPlan) -> Result<(), Error> {
    allow(
        descriptors(&plan.load, uses_shells(&plan.scripts)),
        plan.load.clients,
    )
}

fn allow(need: u64, clients: u32) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= need) {
        return Ok(());
    }
    let refusal = |reason: String| {
        Error::Environment(
            Report::new(format!(
                "{need} open files are needed for {clients} clients, but {reason}"
            ))
            .hint("Use fewer clients (-c), or raise the limit with ulimit -n."),
        )
    };
    if let Some(hard) = limit.maximum.filter(|&hard| hard < need) {
        return Err(refusal(format!("the limit is {hard} (ulimit -n)")));
    }
    let raised = Rlimit {
        current: Some(need),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        refusal(format!(
            "the limit (ulimit -n) could not be raised: {error}"
        ))
    })
}

fn descriptors(load: &Load, with_shells: bool) -> u64 {
    let each_client = match with_shells {
        true => 1 + EACH_SHELL,
        false => 1,
    };
    each_client * u64::from(load.clients) + EACH_THREAD * u64::from(load.threads) + OTHERS
}

fn uses_shells(scripts: &ScriptSet) -> bool {
    let mut commands = scripts
        .scripts
        .iter()
        .flat_map(|weighted| &weighted.script.commands);
    commands.any(|command| {
        matches!(
            command.kind,
            CommandKind::Shell(_) | CommandKind::SetShell { .. }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StopRule;
    use crate::script::{Dialect, ScriptSetBuilder};

    #[test]
    fn clients_threads_and_shells_are_counted() {
        let load = |clients, threads| Load {
            clients,
            threads,
            ..Load::of_one_client(StopRule::Transactions(1))
        };
        for (load, with_shells, need) in [
            (load(1, 1), false, 38),
            (load(100, 4), false, 152),
            (load(100, 4), true, 652),
            (load(u32::MAX, 1), true, 25_769_803_807),
        ] {
            assert_eq!(descriptors(&load, with_shells), need, "{load:?}");
        }
    }

    #[test]
    fn a_script_with_a_shell_command_anywhere_needs_them() {
        for (script, expected) in [
            ("SELECT 1;", false),
            ("\\set a 1\n\\if :a\n\\shell true\n\\endif", true),
            ("\\setshell a echo 1\nSELECT :a;", true),
        ] {
            let mut scripts = ScriptSetBuilder::new(Dialect::Extended);
            scripts.add_file("first.sql", b"SELECT 1;", 1);
            scripts.add_file("second.sql", script.as_bytes(), 1);
            let scripts = scripts.finish().unwrap();
            assert_eq!(uses_shells(&scripts), expected, "{script}");
        }
    }

    #[test]
    fn more_than_the_system_allows_is_refused_with_need_limit_and_remedy() {
        let Some(hard) = getrlimit(Resource::Nofile).maximum else {
            return;
        };
        assert!(allow(1, 1).is_ok());
        let error = allow(hard + 1, 7).unwrap_err().to_string();
        let need = hard + 1;
        for essence in [
            format!("{need} open files are needed for 7 clients"),
            format!("the limit is {hard} (ulimit -n)"),
        ] {
            assert!(error.contains(&essence), "{error}");
        }
    }
}
