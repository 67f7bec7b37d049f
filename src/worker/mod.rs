//! A worker thread: one `Poll`, its clients, its timers. The only place that waits.
//!
//! The loop stamps *all* sockets that are ready, handles at most `HANDLED_BETWEEN_POLLS` of
//! them, and then polls without waiting to stamp newcomers: otherwise replies that arrive while
//! the thread works would be booked as latency of the server. A client's logic lies in
//! `client`; here is only what touches sockets and the poll.

mod accounts;
mod client;
mod control;
mod delay;
mod headcount;
mod ports;
mod queue;
mod recorder;
mod shell;
/// Whole runs in virtual time, for tests.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::client::simulation::{Answer, Treatment, simulate, time};
}
#[cfg(test)]
mod tests;
mod timers;
mod watchdog;
mod window;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use mio::{Events, Poll, Token, Waker};

use crate::context::RunContext;
use crate::error::system_words;
use crate::random::Generator;
use crate::time::Timestamp;
use crate::transport::{Link, SERVER_CLOSED, Security, cancel};

use accounts::Accounts;
use client::{Action, Client, Environment, Progress};
pub use control::{Control, Notice};
use headcount::Headcount;
use ports::why_not_opened;
use queue::{Queue, Ready};
pub use recorder::{BATCH_EVENTS, Recorder};
use shell::{ShellOutput, Shells};
use timers::{Timers, Wake};
use watchdog::Watchdog;
pub use watchdog::{Place, Wait};
use window::Window;

/// Full buffers that are read from one client in a turn.
const READS_IN_A_TURN: usize = 16;

/// Clients handled before newcomers are stamped. With 16 a saturated thread of 256 clients books
/// about 0.1 ms of its own work as latency, with one stamp for all 1.9 ms; the polls cost 0.2 % of
/// throughput.
const HANDLED_BETWEEN_POLLS: usize = 16;

/// After a stop signal, transactions under way may finish for so long; then they are cancelled.
const GRACE: Duration = Duration::from_secs(3);

/// After the cancellation, connections are closed when so long has passed without an answer.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// A local socket's backlog that is full tells nobody when there is room again: ask after this.
const BACKLOG_RETRY: Duration = Duration::from_millis(2);

/// Read buffer of a thread. A reply of a benchmark fits many times; larger ones take more reads.
const BUFFER_BYTES: usize = 64 * 1024;

/// Reads of what is left of a lost connection. The kernel keeps some megabytes at most; a peer that
/// only stopped listening could go on for ever.
const REST_READS_MAX: usize = 128;

const WAKER: Token = Token(usize::MAX - 1);
const TIMER: Token = Token(usize::MAX - 2);

/// One thread's share of the run.
pub struct Worker {
    id: u32,
    run: Arc<RunContext>,
    control: Arc<Control>,
    notices: Sender<Notice>,
    poll: Poll,
    slots: Vec<Slot>,
    shells: Shells,
    waker: Arc<Waker>,
    queue: Queue,
    timers: Timers,
    buffer: Box<[u8]>,
    choose: Generator,
    accounts: Accounts,
    window: Window,
    /// Unless nobody is to be told of long waits.
    watchdog: Option<Watchdog>,
    /// Censuses that were answered.
    censuses: u32,
    /// When the poll reported what is being handled.
    stamp: Timestamp,
    headcount: Headcount,
    /// Hangs up when the cancellations have been sent.
    cancelled: Option<Receiver<()>>,
}

/// A client with its socket.
struct Slot {
    client: Client,
    link: Option<Link>,
    /// Counts the sockets that this slot has had. It is part of the token, so that an event of an
    /// earlier socket is never taken for one of the present.
    generation: u32,
    /// What its shell command has printed, until it is handled.
    shell_output: Option<Box<ShellOutput>>,
    /// The deadline that was last put into the timers for this client.
    timer: Option<Timestamp>,
}

impl Worker {
    /// Sets up thread `id` with its clients.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new(
        id: u32,
        run: Arc<RunContext>,
        control: Arc<Control>,
        notices: Sender<Notice>,
        recorder: Recorder,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let slots: Vec<Slot> = run
            .clients_of(id)
            .map(|client| Slot::new(Client::new(client, id, &run)))
            .collect();
        let timers = Timers::new(poll.registry(), TIMER, slots.len())?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Worker {
            id,
            choose: run.choose_generator(id),
            accounts: Accounts::new(recorder, run.clock.clone()),
            watchdog: run.plan.long_wait.map(Watchdog::new),
            run,
            control,
            notices,
            shells: Shells::new(slots.len()),
            waker,
            queue: Queue::new(slots.len()),
            timers,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            window: Window::default(),
            censuses: 0,
            stamp: Timestamp::ZERO,
            headcount: Headcount::of(slots.iter().map(|slot| slot.client.progress())),
            cancelled: None,
            poll,
            slots,
        })
    }

    /// Its number, from 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What wakes this worker when something in [`Control`] has changed.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Connects the clients, waits for the start, and runs until all of them are done.
    ///
    /// # Errors
    /// When waiting for events fails, which leaves nothing to go on with.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.connect_all();
        self.look_for_waits(self.run.clock.now());
        while self.headcount.any_running() {
            self.wait(&mut events)?;
            self.obey();
            self.handle_ready();
        }
        self.finish();
        Ok(())
    }

    /// Without a connection for each transaction, all clients connect at once, before the start.
    fn connect_all(&mut self) {
        if self.run.plan.load.reconnect {
            let _ = self.notices.send(Notice::Ready);
            return;
        }
        for slot in 0..self.slots.len() {
            self.with_client(slot, |client, env| client.connect(env));
        }
    }

    /// Waits until something happens, and notes who is ready. Does not wait while somebody is.
    /// Reads the clock twice: before and after.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let before = self.accounts.flush_if_due();
        let timeout = if self.queue.is_empty() {
            self.timers.arm(before)?;
            self.accounts.flush_due_at() - before
        } else {
            Duration::ZERO
        };
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let stamp = self.run.clock.now();
        if self.queue.is_empty() {
            self.accounts
                .add_wait(self.window.overlap_ns(before, stamp));
        }
        self.note_events(events, stamp);
        self.note_timers(stamp);
        self.note_shells(stamp);
        self.accounts
            .recorder
            .advance_to(self.queue.oldest().unwrap_or(stamp));
        Ok(())
    }

    fn note_events(&mut self, events: &Events, stamp: Timestamp) {
        for event in events {
            match event.token() {
                WAKER => {}
                TIMER => self.timers.fired(),
                token => {
                    let (slot, generation) = split_token(token);
                    // An event of a socket that has been closed since: not the present one's.
                    if self.slots[slot].generation != generation {
                        continue;
                    }
                    self.queue.mark(slot, stamp, |ready| {
                        ready.readable |= event.is_readable();
                        ready.writable |= event.is_writable();
                        ready.closed |= event.is_read_closed() || event.is_error();
                    });
                }
            }
        }
    }

    fn note_timers(&mut self, stamp: Timestamp) {
        self.stamp = stamp;
        while let Some((deadline, wake)) = self.timers.pop_due(stamp) {
            match wake {
                Wake::Client(slot) => {
                    if self.slots[slot].timer == Some(deadline) {
                        self.slots[slot].timer = None;
                        self.queue.mark(slot, stamp, |ready| ready.woken = true);
                    }
                }
                Wake::WindowEnd => self.end_window(deadline),
                Wake::CancelDue => self.cancel_all(),
                Wake::CloseDue => self.for_all(|client, env| client.handle_close_due(env)),
                Wake::WaitsDue => self.look_for_waits(stamp),
            }
        }
    }

    fn note_shells(&mut self, stamp: Timestamp) {
        while let Some((slot, output)) = self.shells.next_ended() {
            self.slots[slot].shell_output = Some(Box::new(output));
            self.queue
                .mark(slot, stamp, |ready| ready.shell_ended = true);
        }
    }

    /// Looks whether the main thread has given an order.
    fn obey(&mut self) {
        if !self.window.started()
            && let Some(start) = self.control.started_at()
        {
            self.start(start);
        }
        if !self.window.stopping
            && let Some(stop) = self.control.stopped_at()
        {
            self.stop(stop);
        }
        if !self.window.closing && self.control.closed_at().is_some() {
            // A server does not notice that a socket is closed while it executes something.
            self.cancel_all();
            self.window.closing = true;
            self.for_all(|client, env| client.handle_close_due(env));
        }
        let censuses = self.control.censuses();
        if self.censuses != censuses {
            self.censuses = censuses;
            self.answer_census();
        }
    }

    /// Says if somebody has waited too long, and plans when to look again.
    fn look_for_waits(&mut self, now: Timestamp) {
        let oldest = self.waits().map(|wait| wait.since).min();
        let Some(watchdog) = &mut self.watchdog else {
            return;
        };
        let look = watchdog.look(now, oldest);
        if look.overdue {
            let _ = self.notices.send(Notice::Overdue);
        }
        self.timers.add(look.again_at, Wake::WaitsDue);
    }

    fn answer_census(&self) {
        let now = self.run.clock.now();
        let watchdog = self.watchdog.as_ref();
        let counts = |wait: &Wait| watchdog.is_some_and(|dog| dog.counts(now, wait.since));
        let long = self.waits().filter(counts).collect();
        let _ = self.notices.send(Notice::Waits(long));
    }

    fn waits(&self) -> impl Iterator<Item = Wait> {
        self.slots.iter().filter_map(|slot| slot.client.wait())
    }

    fn start(&mut self, start: Timestamp) {
        self.window = Window::starting_at(start, &self.run.plan.load);
        self.stamp = start;
        if let Some(end) = self.window.end() {
            self.timers.add(end, Wake::WindowEnd);
        }
        self.for_all(|client, env| client.handle_start(env));
    }

    fn end_window(&mut self, end: Timestamp) {
        if let Some(patience) = self.run.plan.load.finish_within {
            self.timers.add(end + patience, Wake::CancelDue);
            self.timers
                .add(end + patience + CANCEL_GRACE, Wake::CloseDue);
        }
        self.cancel(Client::is_greeting);
        self.for_all(|client, env| client.handle_window_end(env));
    }

    fn stop(&mut self, stop: Timestamp) {
        self.window.stop(stop);
        self.stamp = stop;
        self.timers.add(stop + GRACE, Wake::CancelDue);
        self.timers.add(stop + GRACE + CANCEL_GRACE, Wake::CloseDue);
        self.cancel(Client::is_greeting);
        self.for_all(|client, env| client.handle_stop(env));
    }

    /// Asks the server to cancel what is still under way. That takes connections of its own, which
    /// block: a thread beside the loop makes them.
    fn cancel_all(&mut self) {
        if self.window.cancelling {
            return;
        }
        self.window.cancelling = true;
        self.cancel(|_| true);
        self.for_all(|client, env| client.handle_cancel(env));
    }

    /// Asks the server to cancel what it does for some of the clients.
    fn cancel(&mut self, which: impl Fn(&Client) -> bool) {
        let clients = self.slots.iter().map(|slot| &slot.client);
        let orders: Vec<cancel::Order> = clients
            .filter(|client| which(client))
            .filter_map(|client| client.cancel_order(&self.run))
            .collect();
        if !orders.is_empty() {
            self.cancelled = Some(cancel::send_beside(orders));
        }
    }

    /// Handles those who have waited longest.
    fn handle_ready(&mut self) {
        for _ in 0..HANDLED_BETWEEN_POLLS {
            let Some((slot, ready)) = self.queue.pop() else {
                break;
            };
            self.accounts.recorder.advance_to(ready.since);
            self.handle(slot, ready);
        }
    }

    fn handle(&mut self, slot: usize, ready: Ready) {
        self.stamp = ready.stamp;
        if ready.writable {
            self.handle_writable(slot);
        }
        if ready.readable || ready.closed {
            self.handle_readable(slot, ready.closed);
        }
        if ready.shell_ended
            && let Some(output) = self.slots[slot].shell_output.take()
        {
            self.with_client(slot, |client, env| client.handle_shell(&output, env));
        }
        if ready.woken {
            self.with_client(slot, |client, env| client.handle_timeout(env));
        }
    }

    fn handle_writable(&mut self, slot: usize) {
        match &self.slots[slot].link {
            Some(link) if link.is_ready() => self.with_client(slot, |_, _| {}),
            Some(_) => self.advance(slot),
            None => {}
        }
    }

    /// Goes on towards a link that a session can begin on.
    fn advance(&mut self, slot: usize) {
        let token = self.slots[slot].token(slot);
        let Some(link) = &mut self.slots[slot].link else {
            return;
        };
        match link.advance(self.poll.registry(), token) {
            Ok(None) => {}
            Ok(Some(security)) => self.with_client(slot, |client, env| {
                client.handle_transport_ready(security, env);
            }),
            Err(failure) => {
                self.close(slot);
                self.with_client(slot, |client, env| client.handle_unopened(failure, env));
            }
        }
    }

    /// Reads and lets the client act. A read that is shorter than the buffer has drained the
    /// socket, unless the peer has closed, too: data and end arrive in one event.
    fn handle_readable(&mut self, slot: usize, closed: bool) {
        let generation = self.slots[slot].generation;
        let mut reads = 0;
        if let Some(link) = &self.slots[slot].link
            && !link.is_ready()
        {
            self.advance(slot);
        }
        loop {
            let Some(link) = self.slots[slot].link.as_mut().filter(|it| it.is_ready()) else {
                return;
            };
            let length = match link.receive(&mut self.buffer) {
                Ok(0) => return self.lose(slot, SERVER_CLOSED),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.lose(slot, &system_words(&error)),
            };
            let buffer = std::mem::take(&mut self.buffer);
            self.with_client(slot, |client, env| {
                client.handle_input(&buffer[..length], env)
            });
            self.buffer = buffer;
            if self.slots[slot].generation != generation {
                return;
            }
            if length < self.buffer.len() && !closed {
                return;
            }
            reads += 1;
            // Never read again in the pass in which something was sent: what arrives now would be
            // booked to a stamp from before its own beginning. Nor for ever: others have their turn,
            // and the clock.
            if reads == READS_IN_A_TURN || self.slots[slot].client.has_sent_since(self.stamp) {
                let now = self.run.clock.now();
                return self.queue.mark(slot, now, |ready| {
                    ready.readable = true;
                    ready.closed = closed;
                });
            }
        }
    }

    /// The connection is gone.
    fn lose(&mut self, slot: usize, reason: &str) {
        self.close(slot);
        self.with_client(slot, |client, env| client.handle_lost(reason, env));
    }

    fn for_all(&mut self, mut act: impl FnMut(&mut Client, &mut Environment<'_>)) {
        for slot in 0..self.slots.len() {
            self.with_client(slot, &mut act);
        }
    }

    /// Lets a client act, then does what it asks for.
    fn with_client(&mut self, slot: usize, act: impl FnOnce(&mut Client, &mut Environment<'_>)) {
        let was = self.slots[slot].client.progress();
        self.act(slot, act);
        self.settle(slot);
        self.count_progress(slot, was);
    }

    fn act(&mut self, slot: usize, act: impl FnOnce(&mut Client, &mut Environment<'_>)) {
        act(
            &mut self.slots[slot].client,
            &mut Environment {
                run: &self.run,
                window: &self.window,
                stamp: self.stamp,
                choose: &mut self.choose,
                recorder: &mut self.accounts.recorder,
                delays: &mut self.accounts.delays,
                told: &mut self.accounts.told,
                notices: &self.notices,
            },
        );
    }

    /// Sends what the client has written and does what it asks for, until it asks for nothing.
    fn settle(&mut self, slot: usize) {
        loop {
            self.send(slot);
            match self.slots[slot].client.take_action() {
                None => break,
                Some(Action::Open) => self.open(slot),
                Some(Action::Close) => {
                    self.close(slot);
                    self.act(slot, |client, env| client.handle_closed(env));
                }
                Some(Action::Spawn(order)) => self.shells.start(slot, *order, &self.waker),
                Some(Action::Yield) => {
                    let now = self.run.clock.now();
                    self.queue.mark(slot, now, |ready| ready.woken = true);
                }
            }
        }
        self.note_deadline(slot);
    }

    fn send(&mut self, slot: usize) {
        let token = self.slots[slot].token(slot);
        let Slot { client, link, .. } = &mut self.slots[slot];
        let output = client.output();
        let Some(link) = link.as_mut().filter(|link| link.is_ready()) else {
            return;
        };
        if output.is_empty() && !link.has_unsent() {
            return;
        }
        match link.send(output, self.poll.registry(), token) {
            Ok(sent) => client.consume_output(sent),
            Err(error) => {
                let reason = system_words(&error);
                self.read_rest(slot);
                self.close(slot);
                self.act(slot, |client, env| client.handle_lost(&reason, env));
            }
        }
    }

    /// Reads what the server said before the connection went: it tells why.
    fn read_rest(&mut self, slot: usize) {
        // The thread's buffer may hold what the client handles at this moment.
        let mut buffer = vec![0; BUFFER_BYTES];
        for _ in 0..REST_READS_MAX {
            let Some(link) = &mut self.slots[slot].link else {
                return;
            };
            let Ok(length @ 1..) = link.receive(&mut buffer) else {
                return;
            };
            self.act(slot, |client, env| {
                client.handle_input(&buffer[..length], env)
            });
        }
    }

    fn close(&mut self, slot: usize) {
        self.slots[slot].close();
        self.shells.stop(slot);
    }

    fn open(&mut self, slot: usize) {
        let token = self.slots[slot].token(slot);
        let Some(attempt) = self.slots[slot].client.connection_attempt() else {
            return;
        };
        let encrypting = match self.run.encrypting(&attempt) {
            Ok(encrypting) => encrypting,
            Err(failure) => {
                return self.act(slot, |client, env| client.handle_unopened(failure, env));
            }
        };
        let keepalive = self.run.target.keepalive;
        let registry = self.poll.registry();
        match Link::open(attempt.endpoint, encrypting, keepalive, registry, token) {
            Ok(link) => self.begin_on(slot, link),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let retry_at = self.run.clock.now() + BACKLOG_RETRY;
                self.slots[slot].client.open_again_at(retry_at);
            }
            Err(error) => {
                let reason = why_not_opened(&error, self.slots[slot].generation > 0);
                self.act(slot, |client, env| client.handle_lost(&reason, env));
            }
        }
    }

    /// A local socket is ready at once, if it leads to whom it should.
    fn begin_on(&mut self, slot: usize, link: Link) {
        let ready = link.is_ready();
        let required_peer = self.run.target.login.required_peer.as_deref();
        let checked = required_peer.map_or(Ok(()), |required| link.check_peer(required));
        if let Err(failure) = checked {
            return self.act(slot, |client, env| client.handle_unopened(failure, env));
        }
        self.slots[slot].link = Some(link);
        if ready {
            self.act(slot, |client, env| {
                client.handle_transport_ready(Security::Plain, env);
            });
        }
    }

    fn note_deadline(&mut self, slot: usize) {
        let deadline = self.slots[slot].client.poll_timeout();
        if deadline == self.slots[slot].timer {
            return;
        }
        self.slots[slot].timer = deadline;
        if let Some(deadline) = deadline {
            self.timers.add(deadline, Wake::Client(slot));
        }
    }

    /// Keeps count of who is connected and who is done.
    fn count_progress(&mut self, slot: usize, was: Progress) {
        let is = self.slots[slot].client.progress();
        if self.headcount.note(was, is) {
            let _ = self.notices.send(Notice::Ready);
        }
    }

    fn finish(mut self) {
        let now = self.run.clock.now();
        let observed_ns = self.window.overlap_ns(Timestamp::ZERO, now);
        self.accounts.close(self.id, observed_ns, now);
        // The process may end soon after, and the cancellations with it.
        if let Some(cancelled) = &self.cancelled {
            let _ = cancelled.recv_timeout(CANCEL_GRACE);
        }
    }
}

impl Slot {
    fn new(client: Client) -> Self {
        Slot {
            client,
            link: None,
            generation: 0,
            shell_output: None,
            timer: None,
        }
    }

    fn token(&self, slot: usize) -> Token {
        join_token(slot, self.generation)
    }

    /// Closes the socket, which also takes it out of the poll.
    fn close(&mut self) {
        self.link = None;
        self.generation = self.generation.wrapping_add(1) & GENERATION_MASK;
    }
}

/// Slots take the low half of a token; generations stay below the tokens of waker and timer.
const GENERATION_MASK: u32 = 0x7fff_ffff;

fn join_token(slot: usize, generation: u32) -> Token {
    Token((generation as usize) << 32 | slot)
}

fn split_token(token: Token) -> (usize, u32) {
    (token.0 & 0xffff_ffff, (token.0 >> 32) as u32)
}
