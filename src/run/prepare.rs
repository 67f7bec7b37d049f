//! What has to be known and done before the clients connect: the server is looked at and vacuumed
//! over the control connection, the log is opened.
//!
//! All of it may wait for ever, so that a signal ends each of the waits.

use crate::collector::Log;
use crate::conninfo::Target;
use crate::console::Console;
use crate::error::Error;
use crate::plan::{RunPlan, ServerChoice};
use crate::report;
use crate::server::{self, Activity, ServerFacts};
use crate::time::Clock;

use super::{Signals, Surroundings};

/// What the control connection learned before the run.
pub(super) struct Prepared {
    pub server: ServerFacts,
    pub scale: u64,
    pub partitions: Option<server::Partitions>,
    pub activity: Activity,
}

/// Looks at the server, says the banner, vacuums. The control connection is closed afterwards, so
/// that the clients find all slots free.
pub(super) fn prepare(
    plan: &RunPlan,
    target: &Target,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<Prepared, Error> {
    let mut client = signals.connecting(target, &around.console)?;
    let console = around.console.clone();
    let stdout = &mut *around.stdout;
    signals.cancelling(&mut client, |client| {
        let server = server::facts(client)?;
        let _ = writeln!(stdout, "{}", report::text::banner(&server.version))
            .and_then(|()| stdout.flush());
        let (scale, partitions) = if plan.scripts.any_builtin {
            let scale = server::scale(client, &target.database)?;
            warn_of_ignored_scale(plan, scale, &console);
            (scale, server::partitions(client, &target.database)?)
        } else {
            (u64::from(plan.scale.unwrap_or(1)), None)
        };
        server::vacuum(client, plan.vacuum, &console);
        let activity = Activity::now(client, server.version_num);
        Ok(Prepared {
            server,
            scale,
            partitions,
            activity,
        })
    })
}

fn warn_of_ignored_scale(plan: &RunPlan, found: u64, console: &Console) {
    // The tables of a temporary cluster were made by that very option.
    let given = matches!(plan.server, ServerChoice::Given(_));
    if given && plan.scale.is_some() {
        console.warning(&format!(
            "scale option ignored, using count from pgbench_branches table ({found})"
        ));
    }
}

/// Opening may take its time: a named pipe waits for its reader.
pub(super) fn open_log(
    plan: &RunPlan,
    signals: &Signals,
    clock: &Clock,
) -> Result<Option<Log>, Error> {
    let Some(path) = plan.log.clone() else {
        return Ok(None);
    };
    let names: Vec<String> = plan
        .scripts
        .scripts
        .iter()
        .map(|weighted| weighted.script.short_name())
        .collect();
    let clock = clock.clone();
    let opened = signals.beside(None, move || Log::create(&path, &names, clock))?;
    opened.transpose()
}
