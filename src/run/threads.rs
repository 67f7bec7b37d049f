//! The threads of a run: workers and collector are started, watched to their end, and joined.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select, unbounded};

use crate::collector::{Collector, CollectorPlan, Keepers, Progress};
use crate::console::Console;
use crate::context::RunContext;
use crate::error::{Error, Report as Problem, Signal};
use crate::event::{Announcement, Event, ToCollector};
use crate::program::Program;
use crate::result::Measured;
use crate::schedule::Schedule;
use crate::server::ServerFacts;
use crate::time::Clock;
use crate::worker::{BATCH_EVENTS, Control, Notice, Recorder, Worker};

use super::Signals;
use super::supervise::{Ending, Farewell, Supervisor, wake_all};

/// Batches that may wait for the collector, so that a log that cannot keep up takes no more memory
/// than this; then clients are slowed down, and the summary says so.
const WAITING_BATCHES: usize = 4096;
const _: () = assert!(WAITING_BATCHES * BATCH_EVENTS * size_of::<Event>() <= 84_000_000);

/// Emptied batches that wait for a worker. More than that it never has in flight for long.
const EMPTIED_BATCHES: usize = 64;

/// A collector that takes longer for its last rows has somebody to wait for, which is told.
const QUIET_WAIT: Duration = Duration::from_secs(2);

/// When the user does not want to wait any longer, the collector may still flush its log.
const LAST_FLUSH: Duration = Duration::from_secs(1);

/// How a run went that was driven to its end.
pub(super) struct Driven {
    pub ending: Ending,
    pub measured: Measured,
}

/// Starts collector and workers, watches them, and waits for what the collector says. It is an
/// error if there was no run, or the user did not wait for what it measured.
pub(super) fn drive(
    run: &Arc<RunContext>,
    keepers: Keepers,
    server: &ServerFacts,
    signals: &Signals,
    console: &Console,
) -> Result<Driven, Error> {
    let (reports, incoming) = bounded(WAITING_BATCHES);
    let (announcements, told) = unbounded();
    let (notices, noticed) = unbounded();
    let control = Arc::new(Control::default());
    let threads = 0..run.plan.load.threads;
    let (returns, emptied): (Vec<_>, Vec<_>) = threads.map(|_| bounded(EMPTIED_BATCHES)).unzip();

    let workers = set_up_workers(run, &control, &notices, reports, emptied)?;
    let wakers: Vec<_> = workers.iter().map(Worker::waker).collect();
    let collector = collector(run, keepers, console);
    let collected = spawn_collector(collector, incoming, told, returns)?;
    let threads = start_all(workers, &control, &run.clock, |worker| {
        spawn_worker(worker, notices.clone())
    })
    .inspect_err(|_| {
        let _ = collected.recv_timeout(LAST_FLUSH);
    })?;

    let mut ending = Supervisor {
        control: &control,
        wakers,
        notices: noticed,
        signals: signals.received(),
        announcements,
        run,
        server,
    }
    .watch();
    if !ending.abandoned {
        join(threads)?;
    }
    let measured = await_collector(&collected, signals, &mut ending, console)?;
    if let Some(error) = ending.failure {
        return Err(error);
    }
    match (measured, ending.interrupted) {
        (Some(measured), None) => Ok(Driven { ending, measured }),
        (Some(measured), Some(_)) if ending.started => Ok(Driven { ending, measured }),
        (_, signal) => Err(Error::Interrupted(signal.unwrap_or(Signal::Interrupt))),
    }
}

/// What the collector has measured. It may have to wait for a disk, or for the reader of a pipe; a
/// signal says that the user does not.
fn await_collector(
    collected: &Receiver<Measured>,
    signals: &Signals,
    ending: &mut Ending,
    console: &Console,
) -> Result<Option<Measured>, Error> {
    // What has come so far was meant for the clients.
    while signals.received().try_recv().is_ok() {}
    if !ending.abandoned {
        match collected.recv_timeout(QUIET_WAIT) {
            Err(RecvTimeoutError::Timeout) => console.notice(
                "waiting for the log to take its rows (is the disk slow, does nobody read the pipe?); \
                 another signal ends without them and without the summary",
            ),
            measured => return measured.map(Some).map_err(|_| internal("the collector")),
        }
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

fn collector(run: &RunContext, keepers: Keepers, console: &Console) -> Collector {
    let plan = CollectorPlan {
        program: run.plan.program.name(),
        clients: run.plan.load.clients,
        workers: run.plan.load.threads,
        scripts: run.plan.scripts.scripts.len(),
        commands: match run.plan.per_command {
            true => {
                let scripts = run.plan.scripts.scripts.iter();
                scripts
                    .map(|weighted| weighted.script.commands.len())
                    .collect()
            }
            false => Vec::new(),
        },
        stop: run.plan.load.stop,
        rate: run.schedule.as_deref().map(Schedule::rate),
        lead_in: run.plan.load.lead_in,
        latency_limit: run.plan.load.latency_limit,
        watches_outages: run.plan.load.reconnect_on_loss,
        with_retries: run.plan.load.max_tries != Some(1),
        progress: match run.plan.progress {
            Some(lines) => Progress::Lines(lines),
            None if console.is_terminal() && run.plan.program == Program::Pgmark => Progress::Live,
            None => Progress::Silent,
        },
    };
    Collector::new(plan, run.clock.clone(), keepers, Box::new(console.stream()))
}

/// The collector on a thread of its own; what it measured comes over the channel in the end.
fn spawn_collector(
    collector: Collector,
    incoming: Receiver<ToCollector>,
    announcements: Receiver<Announcement>,
    returns: Vec<Sender<Vec<Event>>>,
) -> Result<Receiver<Measured>, Error> {
    let (sender, collected) = bounded(1);
    std::thread::Builder::new()
        .name("collector".to_owned())
        .spawn(move || {
            let _ = sender.send(collector.run(&incoming, &announcements, &returns));
        })
        .map_err(|error| Error::no_thread(&error))?;
    Ok(collected)
}

/// The workers with their clients; none of them runs yet. They alone hold the way to the collector,
/// so that it ends when the last of them has hung up.
fn set_up_workers(
    run: &Arc<RunContext>,
    control: &Arc<Control>,
    notices: &Sender<Notice>,
    reports: Sender<ToCollector>,
    emptied: Vec<Receiver<Vec<Event>>>,
) -> Result<Vec<Worker>, Error> {
    (0..)
        .zip(emptied)
        .map(|(id, emptied)| {
            let recorder = Recorder::new(id, reports.clone(), emptied, run.clock.clone());
            let (run, control) = (Arc::clone(run), Arc::clone(control));
            Worker::new(id, run, control, notices.clone(), recorder).map_err(no_descriptor)
        })
        .collect()
}

type WorkerThread = JoinHandle<io::Result<()>>;

/// Starts each worker with `spawn`. Where one cannot be started, those that run are ended and
/// waited for: nobody else would.
fn start_all(
    workers: Vec<Worker>,
    control: &Control,
    clock: &Clock,
    mut spawn: impl FnMut(Worker) -> Result<WorkerThread, Error>,
) -> Result<Vec<WorkerThread>, Error> {
    let wakers: Vec<_> = workers.iter().map(Worker::waker).collect();
    let mut threads = Vec::new();
    for worker in workers {
        match spawn(worker) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                control.close(clock.now());
                wake_all(&wakers);
                // Whatever else goes wrong now is of less interest than the first cause.
                let _ = join(threads);
                return Err(error);
            }
        }
    }
    Ok(threads)
}

fn spawn_worker(worker: Worker, notices: Sender<Notice>) -> Result<WorkerThread, Error> {
    std::thread::Builder::new()
        .name(format!("worker {}", worker.id()))
        .spawn(move || {
            let _farewell = Farewell(notices);
            worker.run()
        })
        .map_err(|error| Error::no_thread(&error))
}

fn join(threads: Vec<WorkerThread>) -> Result<(), Error> {
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

fn no_descriptor(error: io::Error) -> Error {
    Error::Environment(
        Problem::new(format!("could not set up a worker thread: {error}"))
            .hint("Reduce --jobs, or raise the limit of open files with ulimit -n."),
    )
}

/// The thread has panicked, and has said why.
pub(super) fn internal(who: &str) -> Error {
    Error::Environment(Problem::new(format!(
        "internal error: {who} of pgmark failed"
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::conninfo::{Host, HostName, Target};
    use crate::options::tests::run_plan;
    use crate::transport::look_up;
    use crate::values::ValueSources;

    /// A run of two clients on two threads against a server that lets them wait.
    fn run_against(directory: &std::path::Path) -> Arc<RunContext> {
        let name = HostName::SocketDirectory(directory.to_owned());
        let target = Target::plain(vec![Host::new(name, 5432)], "someone", "bench");
        let addresses = look_up::addresses(&target);
        let plan = run_plan("-S -c 2 -j 2");
        let values = ValueSources::default();
        let clock = Clock::start();
        Arc::new(RunContext::new(plan, target, addresses, values, 1, clock))
    }

    #[test]
    fn a_worker_that_cannot_be_started_leaves_no_other_behind() {
        let directory = tempfile::tempdir().unwrap();
        let _server = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let run = run_against(directory.path());
        let control = Arc::new(Control::default());
        let (notices, noticed) = unbounded();
        let (reports, incoming) = unbounded();
        let emptied = (0..2).map(|_| bounded(1).1).collect();
        let workers = set_up_workers(&run, &control, &notices, reports, emptied).unwrap();
        let started = start_all(workers, &control, &run.clock, |worker| match worker.id() {
            0 => spawn_worker(worker, notices.clone()),
            _ => Err(Error::no_thread(&io::ErrorKind::WouldBlock.into())),
        });
        let error = started.expect_err("the second thread cannot be had");
        assert!(error.to_string().contains("could not create a thread"));
        // The first has said goodbye, and nobody holds the way to the collector any more.
        assert!(noticed.try_iter().any(|notice| notice == Notice::Done));
        let last = incoming.into_iter().last();
        assert!(matches!(last, Some(ToCollector::Batch(_))), "{last:?}");
    }
}
