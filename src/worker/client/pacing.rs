//! When a client's next transaction begins: at once, or when its slot in the schedule comes; and at
//! first when its turn in the ramp comes.

use crate::event::{Outcome, Phase, SqlState};
use crate::plan::StopRule;
use crate::schedule::Schedule;
use crate::time::Timestamp;

use super::{Action, Client, Environment, State};

/// Slots that a client may skip in one turn. Others have theirs then.
const SKIPS_IN_A_TURN: u32 = 32;

impl Client {
    /// The clients are released: this one begins when its turn in the ramp comes.
    pub(super) fn enter(&mut self, start: Timestamp, env: &mut Environment<'_>) {
        let load = &env.run.plan.load;
        let wait = load.lead_in.ramp * self.id / load.clients;
        if wait.is_zero() {
            return self.next_transaction(env);
        }
        self.state = State::Ramping {
            until: start + wait,
        };
    }

    /// Goes on with the next transaction, if there is to be one.
    pub(super) fn next_transaction(&mut self, env: &mut Environment<'_>) {
        if self.has_done_all(env) || env.window.stopping {
            return self.finish(env);
        }
        self.transaction.script = env.run.plan.scripts.choose(env.choose);
        self.transaction.connecting_ns = 0;
        match &env.run.schedule {
            Some(schedule) => self.take_slot(schedule, env),
            None => self.approach(env),
        }
    }

    /// Takes the next slot of the schedule. One that is older than the latency limit is skipped.
    pub(super) fn take_slot(&mut self, schedule: &Schedule, env: &mut Environment<'_>) {
        let now = env.now();
        for _ in 0..SKIPS_IN_A_TURN {
            let slot = schedule.draw(now);
            self.transaction.scheduled_at = slot;
            if !env.window.is_open(now) {
                return self.give_up_slot(env);
            }
            if !self.is_too_late(now, env) {
                return self.await_slot(slot, now, env);
            }
            self.number += 1;
            self.transaction.tries = 0;
            self.transaction.started_at = now;
            self.transaction.awaited_at = None;
            self.record(Outcome::Skipped, SqlState::NONE, env);
            if self.has_done_all(env) {
                return self.finish(env);
            }
        }
        self.state = State::Skipping;
        self.action = Some(Action::Yield);
    }

    fn is_too_late(&self, now: Timestamp, env: &Environment<'_>) -> bool {
        let limit = env.run.plan.load.latency_limit;
        limit.is_some_and(|limit| now - self.transaction.scheduled_at > limit)
    }

    pub(super) fn await_slot(
        &mut self,
        slot: Timestamp,
        now: Timestamp,
        env: &mut Environment<'_>,
    ) {
        if slot <= now {
            return self.approach(env);
        }
        self.answer(now, env);
        self.state = State::Throttled {
            since: now,
            until: slot,
        };
    }

    /// The run ends before this client's slot is used. A slot after the end was never due. Without
    /// a known end only those were due that clients used.
    pub(super) fn give_up_slot(&mut self, env: &mut Environment<'_>) {
        self.give_back_slot(env);
        self.finish(env);
    }

    /// As [`Client::give_up_slot`], for the schedule.
    pub(super) fn give_back_slot(&self, env: &Environment<'_>) {
        let slot = self.transaction.scheduled_at;
        let was_due = env.window.end().is_some_and(|end| slot < end);
        if let (Some(schedule), false) = (&env.run.schedule, was_due) {
            schedule.give_back(slot);
        }
    }

    /// It is time: with a connection for each transaction it is made now, else the transaction
    /// begins.
    pub(super) fn approach(&mut self, env: &mut Environment<'_>) {
        if !env.run.plan.load.reconnect {
            return self.begin_transaction(env);
        }
        if env.window.is_open(env.now()) {
            self.connect(env);
        } else {
            self.finish(env);
        }
    }

    /// Whether this client has done all its transactions. Those before the window do not count.
    pub(super) fn has_done_all(&self, env: &Environment<'_>) -> bool {
        match env.run.plan.load.stop {
            StopRule::Transactions(count) => self.counted >= count,
            StopRule::Time(_) => false,
        }
    }

    /// Notes a transaction towards the number to be done.
    pub(super) fn count(&mut self, phase: Phase) {
        self.counted += u64::from(phase.is_measured());
    }
}
