//! A benchmark run from the plan to the exit status: prepare the server, start the threads, watch
//! them, put the result together, say it.
//!
//! Every step here may block and be friendly; nothing here is measured.

mod context;
mod facts;
mod limits;
mod signals;
mod status;
mod supervise;

pub use context::RunContext;
pub use signals::Signals;
pub use status::ExitStatus;

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::cluster::TemporaryCluster;
use crate::collector::{
    Collector, CollectorPlan, Log, LogContext, Progress, open_intervals, open_log,
};
use crate::conninfo::Target;
use crate::console::{Console, PROGRAM};
use crate::control;
use crate::error::{Error, Report as Problem, Signal};
use crate::event::{Event, Report};
use crate::init;
use crate::plan::{ClusterPlan, InitPlan, InitStep, Plan, RunPlan, ServerChoice, Tables, Text};
use crate::report;
use crate::result::{Measured, RunResult};
use crate::server::{self, Activity, ServerFacts};
use crate::time::Clock;
use crate::transport::resolve;
use crate::worker::{Control, Notice, Recorder, Worker};

use supervise::{Ending, Farewell, Supervisor};

/// Batches that may wait for the collector. With the records of a batch this bounds the memory to
/// about 75 MB when a log cannot keep up; then clients are slowed down, and the summary says so.
const WAITING_BATCHES: usize = 4096;

/// Emptied batches that wait for a worker. More than that it never has in flight for long.
const EMPTIED_BATCHES: usize = 64;

/// When the user does not want to wait any longer, the collector may still flush its log.
const LAST_FLUSH: Duration = Duration::from_secs(1);

/// What a program run needs from its surroundings.
pub struct Surroundings<'a> {
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error of the control plane.
    pub console: Console,
    /// The clock.
    pub clock: Clock,
}

/// Does what the plan says.
///
/// # Errors
/// Whatever keeps it from being done; the caller reports it and ends with
/// [`ExitStatus::of_error`].
pub fn execute(plan: Plan, around: &mut Surroundings<'_>) -> Result<ExitStatus, Error> {
    match plan {
        Plan::Show(Text::Stdout(text)) => {
            // A reader that has seen enough is no error.
            let _ = around.stdout.write_all(text.as_bytes());
            Ok(ExitStatus::Success)
        }
        Plan::Show(Text::Stderr(text)) => {
            around.console.line(text.trim_end_matches('\n'));
            Ok(ExitStatus::Success)
        }
        Plan::Init(plan) => {
            let signals = Signals::catch()?;
            initialise(&plan, &signals, around)?;
            Ok(ExitStatus::Success)
        }
        Plan::Run(plan) => run_benchmark(*plan, &Signals::catch()?, around),
    }
}

fn initialise(plan: &InitPlan, signals: &Signals, around: &Surroundings<'_>) -> Result<(), Error> {
    let mut client = control::connect(&plan.target, &around.console)?;
    signals.cancelling(&mut client, |client| {
        init::run(
            client,
            &plan.tables,
            &around.console,
            &around.clock,
            signals.stopped(),
        )
        .map(drop)
    })
}

fn run_benchmark(
    plan: RunPlan,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    limits::allow_descriptors(&plan.load)?;
    report_seed(&plan, &around.console);
    match &plan.server {
        ServerChoice::Given(target) => {
            let target = target.clone();
            benchmark(plan, target, signals, around)
        }
        ServerChoice::Temporary {
            cluster: cluster_plan,
            manners,
        } => {
            let cluster_plan = cluster_plan.clone();
            let cluster = start_cluster(&cluster_plan, &plan, signals, around)?;
            let target = Target {
                options: manners.options.clone(),
                application_name: manners.application_name.clone(),
                connect_timeout: manners.connect_timeout,
                ..cluster.target()
            };
            let status = benchmark(plan, target, signals, around);
            end_cluster(cluster, &cluster_plan, &around.console)?;
            status
        }
    }
}

fn report_seed(plan: &RunPlan, console: &Console) {
    if plan.seed.explicit {
        console.notice(&format!("setting random seed to {}", plan.seed.value));
    }
}

/// A throwaway server with its tables.
fn start_cluster(
    cluster_plan: &ClusterPlan,
    plan: &RunPlan,
    signals: &Signals,
    around: &Surroundings<'_>,
) -> Result<TemporaryCluster, Error> {
    let cluster = TemporaryCluster::start(cluster_plan, plan.load.clients)?;
    signals.check()?;
    let tables = Tables {
        steps: vec![
            InitStep::CreateTables,
            InitStep::GenerateClientSide,
            InitStep::Vacuum,
            InitStep::PrimaryKeys,
        ],
        scale: cluster_plan.scale,
        quiet: cluster_plan.quiet,
    };
    let init = InitPlan {
        target: cluster.target(),
        tables,
    };
    initialise(&init, signals, around)?;
    Ok(cluster)
}

fn end_cluster(
    cluster: TemporaryCluster,
    plan: &ClusterPlan,
    console: &Console,
) -> Result<(), Error> {
    if plan.keep {
        console.line(&cluster.keep());
        return Ok(());
    }
    cluster.stop()
}

/// The run proper, against a server that is there.
fn benchmark(
    plan: RunPlan,
    target: Target,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<ExitStatus, Error> {
    let addresses = resolve::addresses(&target);
    let prepared = prepare(&plan, &target, signals, around)?;
    let run = Arc::new(RunContext::new(
        plan,
        target,
        addresses,
        prepared.scale,
        around.clock.clone(),
    ));
    let logs = open_logs(&run)?;
    let driven = drive(&run, logs, signals, &around.console)?;
    if let Some(error) = driven.ending.failure {
        return Err(error);
    }
    if let (Some(signal), false) = (driven.ending.interrupted, driven.ending.started) {
        return Err(Error::Interrupted(signal));
    }
    let Some(measured) = driven.measured else {
        let signal = driven.ending.interrupted.unwrap_or(Signal::Interrupt);
        return Ok(ExitStatus::Interrupted(signal));
    };
    let facts = facts::gather(&run, &prepared, &driven.ending, &around.console);
    conclude(&RunResult { facts, measured }, around)
}

/// What the control connection learned before the run.
struct Prepared {
    server: ServerFacts,
    scale: u64,
    partitions: Option<server::Partitions>,
    activity: Activity,
}

/// Looks at the server, says the banner, vacuums. The control connection is closed afterwards, so
/// that the clients find all slots free.
fn prepare(
    plan: &RunPlan,
    target: &Target,
    signals: &Signals,
    around: &mut Surroundings<'_>,
) -> Result<Prepared, Error> {
    let mut client = control::connect(target, &around.console)?;
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

/// Creates the files that are written while the run goes on, before anything is measured.
fn open_logs(run: &RunContext) -> Result<Vec<Box<dyn Log>>, Error> {
    let scripts = run.plan.scripts.scripts.iter();
    let context = LogContext {
        script_names: scripts
            .map(|weighted| weighted.script.short_name())
            .collect(),
        clock: run.clock.clone(),
        stop: run.plan.load.stop,
        ramp: Duration::ZERO,
        warmup: Duration::ZERO,
        samples: (0..run.plan.load.threads)
            .map(|thread| run.sample_generator(thread))
            .collect(),
    };
    let log = run.plan.log.as_ref().map(|log| open_log(log, &context));
    let intervals = run.plan.intervals.as_ref();
    let intervals = intervals.map(|intervals| open_intervals(intervals, &context));
    log.into_iter().chain(intervals).collect()
}

/// How a run went that was driven to its end.
struct Driven {
    ending: Ending,
    /// `None` if the user did not want to wait for the collector.
    measured: Option<Measured>,
}

/// Starts collector and workers, watches them, and waits for what the collector says.
fn drive(
    run: &Arc<RunContext>,
    logs: Vec<Box<dyn Log>>,
    signals: &Signals,
    console: &Console,
) -> Result<Driven, Error> {
    let (reports, incoming) = bounded(WAITING_BATCHES);
    let (notices, noticed) = unbounded();
    let control = Arc::new(Control::default());
    let threads = 0..run.plan.load.threads;
    let (returns, emptied): (Vec<_>, Vec<_>) = threads.map(|_| bounded(EMPTIED_BATCHES)).unzip();

    let collected = spawn_collector(run, logs, console, incoming, returns)?;
    let mut workers = Vec::new();
    let mut wakers = Vec::new();
    for (id, emptied) in (0..).zip(emptied) {
        let recorder = Recorder::new(id, reports.clone(), emptied, run.clock.clone());
        let worker = Worker::new(
            id,
            Arc::clone(run),
            Arc::clone(&control),
            notices.clone(),
            recorder,
        )
        .map_err(no_descriptor)?;
        wakers.push(worker.waker());
        workers.push(worker);
    }
    let threads = workers
        .into_iter()
        .map(|worker| spawn_worker(worker, notices.clone()))
        .collect::<Result<Vec<_>, Error>>()?;

    let ending = Supervisor {
        control: &control,
        wakers,
        notices: noticed,
        signals: signals.received(),
        reports,
        clock: &run.clock,
    }
    .watch();
    if ending.abandoned {
        let measured = collected.recv_timeout(LAST_FLUSH).ok();
        return Ok(Driven { ending, measured });
    }
    join(threads)?;
    let measured = collected.recv().map_err(|_| internal("the collector"))?;
    Ok(Driven {
        ending,
        measured: Some(measured),
    })
}

/// The collector on a thread of its own; what it measured comes over the channel in the end.
fn spawn_collector(
    run: &RunContext,
    logs: Vec<Box<dyn Log>>,
    console: &Console,
    incoming: Receiver<Report>,
    returns: Vec<Sender<Vec<Event>>>,
) -> Result<Receiver<Measured>, Error> {
    let plan = CollectorPlan {
        program: PROGRAM,
        clients: run.plan.load.clients,
        workers: run.plan.load.threads,
        scripts: run.plan.scripts.scripts.len(),
        stop: run.plan.load.stop,
        lead_in: Duration::ZERO,
        latency_limit: run.plan.load.latency_limit,
        with_retries: run.plan.load.max_tries != Some(1),
        progress: match run.plan.progress {
            Some(lines) => Progress::Lines(lines),
            None if console.is_terminal() => Progress::Live,
            None => Progress::Silent,
        },
    };
    let collector = Collector::new(plan, run.clock.clone(), logs, Box::new(std::io::stderr()));
    let (sender, collected) = bounded(1);
    std::thread::Builder::new()
        .name("collector".to_owned())
        .spawn(move || {
            let _ = sender.send(collector.run(&incoming, &returns));
        })
        .map_err(no_thread)?;
    Ok(collected)
}

fn spawn_worker(
    worker: Worker,
    notices: Sender<Notice>,
) -> Result<JoinHandle<std::io::Result<()>>, Error> {
    std::thread::Builder::new()
        .name(format!("worker {}", worker.id()))
        .spawn(move || {
            let _farewell = Farewell(notices);
            worker.run()
        })
        .map_err(no_thread)
}

fn join(threads: Vec<JoinHandle<std::io::Result<()>>>) -> Result<(), Error> {
    for thread in threads {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                return Err(Error::Environment(Problem::new(format!(
                    "a worker thread could not wait for events: {error}"
                ))));
            }
            Err(_) => return Err(internal("a worker thread")),
        }
    }
    Ok(())
}

fn no_descriptor(error: std::io::Error) -> Error {
    Error::Environment(
        Problem::new(format!("could not set up a worker thread: {error}"))
            .hint("Reduce --jobs, or raise the limit of open files with ulimit -n."),
    )
}

fn no_thread(error: std::io::Error) -> Error {
    Error::Environment(
        Problem::new(format!("could not create a thread: {error}")).hint("Reduce --jobs."),
    )
}

/// The thread has panicked, and has said why.
fn internal(who: &str) -> Error {
    Error::Environment(Problem::new(format!(
        "internal error: {who} of {PROGRAM} failed"
    )))
}

/// Prints the summary and what has to be said about it.
fn conclude(result: &RunResult, around: &mut Surroundings<'_>) -> Result<ExitStatus, Error> {
    let summary = report::text::write_summary(result, around.stdout);
    if let Err(error) = summary.and_then(|()| around.stdout.flush()) {
        around
            .console
            .error(&format!("could not write the summary: {error}"));
    }
    let violations = result.check_books();
    for violation in &violations {
        around.console.error(&format!(
            "internal error: the books do not balance: {violation}"
        ));
    }
    for warning in report::warnings(result) {
        around.console.warning(&warning);
    }
    let lost_rows = result.measured.logs.iter().any(|log| log.rows_lost > 0);
    let status = ExitStatus::of_result(result, lost_rows || !violations.is_empty());
    if status == ExitStatus::Aborted {
        around
            .console
            .error("Run was aborted; the above results are incomplete.");
    }
    Ok(status)
}
