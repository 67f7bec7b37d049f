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

use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};

use crate::cluster::TemporaryCluster;
use crate::collector::{Collector, CollectorPlan, Log, Progress};
use crate::conninfo::Target;
use crate::console::{Console, PROGRAM};
use crate::error::{Error, Report as Problem, Signal};
use crate::event::{Event, Report};
use crate::init;
use crate::plan::{ClusterPlan, InitPlan, InitStep, Plan, RunPlan, ServerChoice, Tables, Text};
use crate::report;
use crate::result::{Measured, RunResult};
use crate::server::{self, Activity, ServerFacts};
use crate::time::Clock;
use crate::transport::resolve;
use crate::values::ValueSources;
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
        Plan::Init(plan) if plan.dry_run => {
            let _ = around.stdout.write_all(init::preview(&plan).as_bytes());
            Ok(ExitStatus::Success)
        }
        Plan::Init(plan) => {
            let signals = Signals::catch()?;
            initialise(&plan, &signals, around)?;
            Ok(ExitStatus::Success)
        }
        Plan::Run(plan) if plan.dry_run => {
            let _ = around.stdout.write_all(report::preview(&plan).as_bytes());
            Ok(ExitStatus::Success)
        }
        Plan::Run(plan) => run_benchmark(*plan, &Signals::catch()?, around),
    }
}

fn initialise(plan: &InitPlan, signals: &Signals, around: &Surroundings<'_>) -> Result<(), Error> {
    let mut client = signals.connecting(&plan.target, &around.console)?;
    signals.cancelling(&mut client, |client| {
        init::run(
            client,
            plan,
            &around.console,
            &around.clock,
            signals.stopped(),
        )
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
    let steps = vec![
        InitStep::CreateTables,
        InitStep::GenerateClientSide,
        InitStep::Vacuum,
        InitStep::PrimaryKeys,
    ];
    let init = InitPlan {
        target: cluster.target(),
        tables: Tables {
            quiet: cluster_plan.quiet,
            ..Tables::plain(steps, cluster_plan.scale)
        },
        dry_run: false,
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
    let values = ValueSources::read(&plan.scripts)?;
    let addresses = resolve::addresses(&target);
    let prepared = prepare(&plan, &target, signals, around)?;
    let log = open_log(&plan, signals, &around.clock)?;
    let run = Arc::new(RunContext::new(
        plan,
        target,
        addresses,
        values,
        prepared.scale,
        around.clock.clone(),
    ));
    let driven = drive(&run, log, signals, &around.console)?;
    if let Some(error) = driven.ending.failure {
        return Err(error);
    }
    if let (Some(signal), false) = (driven.ending.interrupted, driven.ending.started) {
        return Err(Error::Interrupted(signal));
    }
    let Some(measured) = driven.measured else {
        let signal = driven.ending.interrupted.unwrap_or(Signal::Interrupt);
        return Err(Error::Interrupted(signal));
    };
    let facts = facts::gather(&run, &prepared, &driven.ending, signals, &around.console);
    Ok(conclude(&RunResult { facts, measured }, around))
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
fn open_log(plan: &RunPlan, signals: &Signals, clock: &Clock) -> Result<Option<Log>, Error> {
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

/// How a run went that was driven to its end.
struct Driven {
    ending: Ending,
    /// `None` if the user did not want to wait for the collector.
    measured: Option<Measured>,
}

/// Starts collector and workers, watches them, and waits for what the collector says.
fn drive(
    run: &Arc<RunContext>,
    log: Option<Log>,
    signals: &Signals,
    console: &Console,
) -> Result<Driven, Error> {
    let (reports, incoming) = bounded(WAITING_BATCHES);
    let (notices, noticed) = unbounded();
    let control = Arc::new(Control::default());
    let threads = 0..run.plan.load.threads;
    let (returns, emptied): (Vec<_>, Vec<_>) = threads.map(|_| bounded(EMPTIED_BATCHES)).unzip();

    let collected = spawn_collector(run, log, console, incoming, returns)?;
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

    let mut ending = Supervisor {
        control: &control,
        wakers,
        notices: noticed,
        signals: signals.received(),
        reports,
        clock: &run.clock,
    }
    .watch();
    if !ending.abandoned {
        join(threads)?;
    }
    let measured = await_collector(&collected, signals, &mut ending)?;
    Ok(Driven { ending, measured })
}

/// What the collector has measured. It may have to wait for a disk, or for the reader of a pipe; a
/// signal says that the user does not.
fn await_collector(
    collected: &Receiver<Measured>,
    signals: &Signals,
    ending: &mut Ending,
) -> Result<Option<Measured>, Error> {
    // What has come so far was meant for the clients.
    while signals.received().try_recv().is_ok() {}
    if !ending.abandoned {
        select! {
            recv(collected) -> measured => {
                return measured.map(Some).map_err(|_| internal("the collector"));
            }
            recv(signals.received()) -> signal => {
                let signal = signal.unwrap_or(Signal::Interrupt);
                ending.interrupted.get_or_insert(signal);
            }
        }
    }
    Ok(collected.recv_timeout(LAST_FLUSH).ok())
}

/// The collector on a thread of its own; what it measured comes over the channel in the end.
fn spawn_collector(
    run: &RunContext,
    log: Option<Log>,
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
            Some(interval) => Progress::Lines(interval),
            None if console.is_terminal() => Progress::Live,
            None => Progress::Silent,
        },
    };
    let collector = Collector::new(plan, run.clock.clone(), log, Box::new(std::io::stderr()));
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
fn conclude(result: &RunResult, around: &mut Surroundings<'_>) -> ExitStatus {
    let summary = report::text::write_summary(result, around.stdout);
    let unwritten = summary
        .and_then(|()| around.stdout.flush())
        .err()
        // A reader that has seen enough is no error.
        .filter(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
    if let Some(error) = &unwritten {
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
    let lost_rows = result
        .measured
        .log
        .as_ref()
        .is_some_and(|log| log.rows_lost > 0);
    let status = ExitStatus::of_result(
        result,
        lost_rows || unwritten.is_some() || !violations.is_empty(),
    );
    if status == ExitStatus::Aborted {
        around
            .console
            .error("Run was aborted; the above results are incomplete.");
    }
    status
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;
    use crate::console::tests::recorded;
    use crate::report::testing;

    /// The exit status after `result`, and what standard error says.
    fn concluded(result: &RunResult, stdout: &mut dyn Write) -> (ExitStatus, String) {
        let (console, recording) = recorded();
        let clock = Clock::manual(0);
        let mut around = Surroundings {
            stdout,
            console,
            clock,
        };
        (conclude(result, &mut around), recording.text())
    }

    #[test]
    fn the_status_tells_how_the_run_went() {
        let mut out_of_balance = testing::timed();
        out_of_balance.measured.total.processed += 1;
        let mut cut_log = testing::timed();
        cut_log.measured.log = Some(testing::cut_log(700, 300));
        for (result, status, essence) in [
            (testing::timed(), ExitStatus::Success, ""),
            (
                testing::interrupted(),
                ExitStatus::Interrupted(Signal::Interrupt),
                "",
            ),
            (
                testing::nothing_attempted(),
                ExitStatus::Aborted,
                "the above results are incomplete",
            ),
            (
                out_of_balance,
                ExitStatus::Failure,
                "internal error: the books do not balance",
            ),
            (cut_log, ExitStatus::Failure, "lacks 300 of 1000 rows"),
        ] {
            let mut stdout = Vec::new();
            let (found, stderr) = concluded(&result, &mut stdout);
            assert_eq!(found, status, "{stderr}");
            assert!(stderr.contains(essence), "{stderr}");
            assert!(!stdout.is_empty());
        }
    }

    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_summary_that_gets_lost_is_a_failure_but_a_reader_that_leaves_is_not() {
        for (kind, expected, said) in [
            (ErrorKind::StorageFull, ExitStatus::Failure, true),
            (ErrorKind::BrokenPipe, ExitStatus::Success, false),
        ] {
            let (status, stderr) = concluded(&testing::timed(), &mut Refusing(kind));
            assert_eq!(status, expected, "{kind}");
            let told = stderr.contains("could not write the summary");
            assert_eq!(told, said, "{kind}");
        }
    }
}
