//! When the measured window ended, and each client's part of it. Stamps in, stamps out: reads no
//! clock.

use std::collections::VecDeque;

use crate::event::{
    ClientEnd, ClientRecord, ConnectionRecord, Outcome, SpanKind, TransactionRecord,
};
use crate::plan::StopRule;
use crate::result::{ClientResult, Window};
use crate::time::Timestamp;

/// Connection spans of a client that are kept until E is known. After E a client begins nothing,
/// so at most the connect that is under way, the on-connect commands and the disconnect reach
/// beyond it; the rest of the number is for attempts at several addresses.
const RECENT_SPANS: usize = 8;

/// What one client did, as far as the measured window is concerned.
#[derive(Debug)]
pub(super) struct Timeline {
    connected_at: Option<Timestamp>,
    before_window_ends: Option<Timestamp>,
    last_transaction_ends: Option<Timestamp>,
    last_span_ends: Option<Timestamp>,
    last_due: Timestamp,
    /// Time connecting of the spans that are no longer in `recent`, clipped to begin at W1.
    settled_connecting_ns: u64,
    settled_failures: u64,
    recent: VecDeque<ConnectionRecord>,
    in_transactions_ns: u64,
    processed_by_script: Vec<u64>,
    failed: u64,
    skipped: u64,
    aborted: u64,
    done: Option<ClientRecord>,
}

impl Timeline {
    pub(super) fn new(scripts: usize) -> Self {
        Timeline {
            connected_at: None,
            before_window_ends: None,
            last_transaction_ends: None,
            last_span_ends: None,
            last_due: Timestamp::ZERO,
            settled_connecting_ns: 0,
            settled_failures: 0,
            // Most clients connect once and disconnect once.
            recent: VecDeque::with_capacity(2),
            in_transactions_ns: 0,
            processed_by_script: vec![0; scripts],
            failed: 0,
            skipped: 0,
            aborted: 0,
            done: None,
        }
    }

    pub(super) fn transaction(&mut self, record: &TransactionRecord) {
        self.last_due = self.last_due.max(record.scheduled_at);
        if !record.phase.is_measured() {
            self.before_window_ends = self.before_window_ends.max(Some(record.finished_at));
            self.forget_connecting();
            return;
        }
        self.last_transaction_ends = self.last_transaction_ends.max(Some(record.finished_at));
        let duration_ns = record.finished_at.nanos_since(record.started_at);
        match record.outcome {
            Outcome::Processed => {
                self.processed_by_script[usize::from(record.script)] += 1;
                self.in_transactions_ns += duration_ns;
            }
            Outcome::Failed => {
                self.failed += 1;
                self.in_transactions_ns += duration_ns;
            }
            Outcome::Aborted(_) => {
                self.aborted += 1;
                self.in_transactions_ns += duration_ns;
            }
            Outcome::Skipped => self.skipped += 1,
        }
    }

    /// What was spent connecting up to the end of a transaction from before the window lies before
    /// this client's part of it.
    fn forget_connecting(&mut self) {
        let recent = self.recent.drain(..);
        let failures = recent.filter(|span| span.kind == SpanKind::ConnectFailed);
        self.settled_failures += failures.count() as u64;
        self.settled_connecting_ns = 0;
    }

    /// Takes a span; those of one client come in order.
    pub(super) fn connection(&mut self, span: ConnectionRecord, begins: Option<Timestamp>) {
        self.last_span_ends = self.last_span_ends.max(Some(span.finished_at));
        if span.kind == SpanKind::Connect {
            self.connected_at.get_or_insert(span.finished_at);
        }
        self.recent.push_back(span);
        if self.recent.len() <= RECENT_SPANS {
            return;
        }
        if let Some(oldest) = self.recent.pop_front() {
            // Before W1 is known there is no window that a span could be inside of.
            let begins = begins.unwrap_or(Timestamp::MAX);
            self.settled_connecting_ns += overlap_ns(&oldest, begins, Timestamp::MAX);
            self.settled_failures += u64::from(oldest.kind == SpanKind::ConnectFailed);
        }
    }

    pub(super) fn done(&mut self, record: ClientRecord) {
        self.done = Some(record);
    }

    /// Whether no transaction from before the window is under way any more.
    pub(super) fn has_left_lead_in(&self) -> bool {
        self.last_transaction_ends.is_some() || self.done.is_some()
    }

    /// The moment up to which all its slots of the schedule have been heard of: it takes them in
    /// their order.
    pub(super) fn due_through(&self) -> Timestamp {
        match self.done {
            Some(_) => Timestamp::MAX,
            None => self.last_due,
        }
    }

    /// The latest moment at which a transaction of the window ended.
    pub(super) fn last_transaction_ends(&self) -> Option<Timestamp> {
        self.last_transaction_ends
    }

    /// Attempts to connect that failed before `ends`: one that the end of the window cut off did
    /// not fail.
    pub(super) fn failed_connects(&self, ends: Timestamp) -> u64 {
        let recent = self
            .recent
            .iter()
            .filter(|span| span.kind == SpanKind::ConnectFailed && span.finished_at <= ends);
        self.settled_failures + recent.count() as u64
    }

    /// The client's row once the window is known.
    pub(super) fn finish(self, window: &Window) -> ClientResult {
        let starts = window
            .begins
            .max(self.before_window_ends.unwrap_or_default());
        let ends = window
            .ends
            .max(self.last_transaction_ends.unwrap_or_default());
        let recent_ns = self
            .recent
            .iter()
            .map(|span| overlap_ns(span, starts, ends));
        let last_span_ends = self.last_span_ends.unwrap_or_default().min(ends);
        ClientResult {
            connected_at: self.connected_at,
            starts,
            ends,
            last_end: self
                .last_transaction_ends
                .unwrap_or_default()
                .max(last_span_ends)
                .max(starts),
            connecting_ns: self.settled_connecting_ns + recent_ns.sum::<u64>(),
            in_transactions_ns: self.in_transactions_ns,
            think_ns: self.done.map_or(0, |done| done.think_ns),
            slot_wait_ns: self.done.map_or(0, |done| done.slot_wait_ns),
            failed: self.failed,
            skipped: self.skipped,
            aborted: self.aborted,
            end: self.done.map_or(ClientEnd::Finished, |done| done.end),
            processed_by_script: self.processed_by_script,
        }
    }

    /// When it ended for good before the run did, if so.
    fn left_at(&self) -> Option<Timestamp> {
        self.done
            .filter(|done| match done.end {
                ClientEnd::Finished => false,
                ClientEnd::RanOut | ClientEnd::Aborted => true,
            })
            .map(|done| done.ended_at)
    }

    fn ended_by(&self, moment: Timestamp) -> bool {
        self.done.is_some_and(|done| done.ended_at <= moment)
    }
}

/// E: the end of the window that began at `begins`. `told` is the first end that was announced: the
/// time was over, a stop signal came, or the last client died.
///
/// With a number of transactions, E is the end of the last one, unless a stop signal came before
/// all clients were done.
pub(super) fn end_of_window(
    stop: StopRule,
    begins: Timestamp,
    told: Option<Timestamp>,
    clients: &[Timeline],
) -> Timestamp {
    let ends = match stop {
        StopRule::Time(duration) => [Some(begins + duration), told, departure_of_last(clients)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(begins),
        StopRule::Transactions(_) => match told {
            Some(told) if !clients.iter().all(|client| client.ended_by(told)) => told,
            Some(_) | None => last_transaction_ends(clients).unwrap_or(begins),
        },
    };
    ends.max(begins)
}

/// When the last transaction of any client ended.
pub(super) fn last_transaction_ends(clients: &[Timeline]) -> Option<Timestamp> {
    clients
        .iter()
        .filter_map(Timeline::last_transaction_ends)
        .max()
}

/// When the last client died or had nothing left to do, if all did.
fn departure_of_last(clients: &[Timeline]) -> Option<Timestamp> {
    let departures: Option<Vec<Timestamp>> = clients.iter().map(Timeline::left_at).collect();
    departures?.into_iter().max()
}

fn overlap_ns(span: &ConnectionRecord, from: Timestamp, to: Timestamp) -> u64 {
    span.finished_at
        .min(to)
        .nanos_since(span.started_at.max(from))
}
