//! Several connections that share out a list of items. The calling thread alone watches: it hears
//! of progress and failures, and cancels what is under way when one member failed or the user
//! wants to stop. Knows nothing about what the items are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::canceller::LOOK_INTERVAL;
use super::session::{Failure, Session, Stop};
use crate::conninfo::Target;
use crate::console::Console;
use crate::control::{self, Cancellation, Connection};
use crate::error::Error;

/// Where and on whose behalf a team works.
#[derive(Clone, Copy)]
pub struct Team<'a> {
    /// What each member connects to.
    pub target: &'a Target,
    /// Where notices of the server go.
    pub console: &'a Console,
    /// The user does not want to go on.
    pub stop: &'a AtomicBool,
    /// Connections at most.
    pub connections: u32,
}

/// What a member tells the watching thread.
enum Told {
    /// So many more rows are loaded.
    Rows(u64),
    /// It could not go on.
    Failed(Failure),
}

/// How a member tells that it has loaded more rows.
pub struct Teller<'a>(&'a Sender<Told>);

impl Teller<'_> {
    /// So many more are loaded.
    pub fn rows(&self, more: u64) {
        // Nobody listens only if the watching thread has panicked.
        let _ = self.0.send(Told::Rows(more));
    }
}

impl Team<'_> {
    /// Does `work` on each of `items`, begun in their order; `told` hears how many rows were
    /// loaded since it last heard.
    ///
    /// # Errors
    /// The first failure. The other members have stopped then, too, and what they had begun in a
    /// transaction is undone.
    pub fn share_out<T: Sync>(
        &self,
        items: &[T],
        work: impl Fn(&mut Session<'_>, &T, &Teller<'_>) -> Result<(), Failure> + Sync,
        told: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let clients = self.connect(items.len())?;
        let orders: Vec<Cancellation> = clients.iter().map(Connection::cancellation).collect();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = unbounded();
        let complaints = sender.clone();
        thread::scope(|scope| {
            for mut client in clients {
                let (sender, next, failed, work) = (sender.clone(), &next, &failed, &work);
                let stop = Stop {
                    ordered: self.stop,
                    failed_elsewhere: Some(failed),
                };
                let member = move || {
                    let mut session = Session {
                        client: &mut client,
                        stop,
                    };
                    while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(failure) = work(&mut session, item, &Teller(&sender)) {
                            failed.store(true, Ordering::Relaxed);
                            let _ = sender.send(Told::Failed(failure));
                            return;
                        }
                    }
                };
                let spawned = thread::Builder::new()
                    .name("init".to_owned())
                    .spawn_scoped(scope, member);
                if let Err(error) = spawned {
                    failed.store(true, Ordering::Relaxed);
                    let _ = complaints.send(Told::Failed(Failure::Other(Error::no_thread(&error))));
                    break;
                }
            }
            drop((sender, complaints));
            self.watch(&receiver, &orders, told)
        })
    }

    fn connect(&self, items: usize) -> Result<Vec<Connection>, Failure> {
        let members = items.min(self.connections as usize);
        (0..members)
            .map(|_| control::connect(self.target, self.console).map_err(Failure::Other))
            .collect()
    }

    /// Listens until no member is left.
    fn watch(
        &self,
        receiver: &Receiver<Told>,
        orders: &[Cancellation],
        told: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let mut outcome = Ok(());
        loop {
            match receiver.recv_timeout(LOOK_INTERVAL) {
                Ok(Told::Rows(more)) => told(more),
                Ok(Told::Failed(failure)) => {
                    outcome = first_cause(outcome, failure);
                    cancel(orders);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if outcome.is_err() || self.stop.load(Ordering::Relaxed) {
                        cancel(orders);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return outcome,
            }
        }
    }
}

/// Members that stop because another failed say so too, which is not the cause.
fn first_cause(outcome: Result<(), Failure>, failure: Failure) -> Result<(), Failure> {
    match outcome {
        Ok(()) | Err(Failure::Stopped) => Err(failure),
        Err(Failure::Statement { .. } | Failure::Other(_)) => outcome,
    }
}

/// Sessions that are between two statements, or gone, take no notice.
fn cancel(orders: &[Cancellation]) {
    for order in orders {
        order.send();
    }
}
