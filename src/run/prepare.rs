//! What has to be known and done before the clients connect: the server is looked at and vacuumed
//! over the control connection, the logs are opened.
//!
//! All of it may wait for ever, so that a signal ends each of the waits.

use crate::collector::{
    CourseKeeper, Keepers, LogContext, open_hdr, open_intervals, open_log, open_tries,
};
use crate::conninfo::Target;
use crate::console::Console;
use crate::context::RunContext;
use crate::error::{Error, Report};
use crate::plan::{Partitioning, RunPlan, ServerChoice};
use crate::program::{Build, Program};
use crate::report;
use crate::result::ServerPlace;
use crate::server::{self, ServerFacts};

use super::host::{self, ProcessorTimes};
use super::look::Look;
use super::lost_writes::{self, History};
use super::{Signals, Surroundings, password};

/// What the control connection learned before the run.
pub(super) struct Prepared {
    pub server: ServerFacts,
    pub scale: u64,
    pub partitions: Option<Partitioning>,
    pub look: Look,
    /// Rows of the history, where lost writes are looked for.
    pub history: Option<History>,
    /// Where the run takes place, if the result is kept.
    pub place: Option<PlaceBefore>,
}

/// Where a run takes place, as it was before.
pub(super) struct PlaceBefore {
    pub server: ServerPlace,
    pub processors: Option<ProcessorTimes>,
    pub frequency_mhz: Option<f64>,
}

/// Looks at the server, says the banner, vacuums. The control connection is closed afterwards, so
/// that the clients find all slots free. A password that the user had to type is the target's
/// afterwards.
pub(super) fn prepare(
    plan: &RunPlan,
    target: &mut Target,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<Prepared, Error> {
    let mut client = password::connect(target, signals, &around.console)?;
    let console = around.console.clone();
    let database = target.database.clone();
    let stdout = &mut *around.stdout;
    signals.cancelling(&mut client, |client| {
        let server = server::facts(client)?;
        let _ = writeln!(
            stdout,
            "{}",
            report::text::banner(plan.program, &Build::own(), &server.version)
        )
        .and_then(|()| stdout.flush());
        let (scale, partitions) = if plan.scripts.any_builtin {
            let hint = server::initialization_hint(plan.program, &target.database);
            let scale = server::scale(client, &hint)?;
            refuse_empty_tables(plan, scale, &hint)?;
            warn_of_ignored_scale(plan, scale, &console);
            (scale, server::partitions(client, &hint)?)
        } else {
            (u64::from(plan.scale.unwrap_or(1)), None)
        };
        server::vacuum(client, plan.vacuum, &console);
        server::before(client, &plan.before, &console)?;
        // pgbench has no line for what the server did.
        let look = match plan.program {
            Program::Pgmark => Look::now(client, server.version_num),
            Program::Pgbench => Look::default(),
        };
        Ok(Prepared {
            server,
            scale,
            partitions,
            look,
            history: lost_writes::can_be_told(plan).then(|| server::history_rows(client)),
            place: plan.keep.wants_place().then(|| PlaceBefore {
                server: server::place(client, &database),
                processors: ProcessorTimes::now(),
                frequency_mhz: host::frequency_mhz(),
            }),
        })
    })
}

/// Builtin scripts draw from as many accounts as the scale says, unless another one is defined.
fn refuse_empty_tables(plan: &RunPlan, scale: u64, hint: &str) -> Result<(), Error> {
    if scale > 0 || plan.scripts.variables.is_defined(b"scale") {
        return Ok(());
    }
    Err(Error::Server(
        Report::new("the table pgbench_branches is empty, so that a builtin script has no accounts to choose from").hint(hint),
    ))
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

/// Creates the files that are written while the run goes on, before anything is measured. That may
/// take its time: a named pipe waits for its reader.
pub(super) fn open_keepers(run: &RunContext, signals: &Signals) -> Result<Keepers, Error> {
    let context = log_context(run);
    let course = run
        .plan
        .keep
        .wants_course()
        .then(|| CourseKeeper::new(&context));
    let (log, intervals) = (run.plan.log.clone(), run.plan.intervals.clone());
    let (tries, hdr) = (run.plan.tries.clone(), run.plan.keep.hdr.clone());
    if log.is_none() && intervals.is_none() && tries.is_none() && hdr.is_none() {
        return Ok(Keepers {
            logs: Vec::new(),
            course,
        });
    }
    let opened = signals.beside(None, move || {
        let log = log.map(|log| open_log(&log, &context));
        let intervals = intervals.map(|intervals| open_intervals(&intervals, &context));
        let tries = tries.map(|tries| open_tries(&tries, &context));
        let hdr = hdr.map(|path| open_hdr(&path, &context));
        let logs = log.into_iter().chain(intervals).chain(tries).chain(hdr);
        logs.collect::<Result<Vec<_>, Error>>()
    })?;
    let logs = opened.expect("there is no bound")?;
    Ok(Keepers { logs, course })
}

fn log_context(run: &RunContext) -> LogContext {
    let scripts = run.plan.scripts.scripts.iter();
    LogContext {
        script_names: scripts
            .map(|weighted| weighted.script.short_name())
            .collect(),
        clock: run.clock.clone(),
        stop: run.plan.load.stop,
        schedule: run.schedule.clone(),
        ramp: run.plan.load.lead_in.ramp,
        warmup: run.plan.load.lead_in.warmup,
        samples: (0..run.plan.load.threads)
            .map(|thread| run.sample_generator(thread))
            .collect(),
    }
}
