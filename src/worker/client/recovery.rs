//! What a client does that has lost its connection and is to go on (`--reconnect-on-loss`): it waits
//! a little, tries to make another one, waits again, and in the end goes on with its work.

use std::time::Duration;

use crate::conninfo::AttemptFailure;
use crate::event::{ClientEnd, Event, Level, LossCause, LossRecord, LossStep, SqlState};
use crate::plan::StopRule;
use crate::time::Timestamp;

use super::{Action, Client, Environment, State, Then};

/// The first pause; each is twice as long as the one before, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Who has tried for so long is more patient.
const PATIENT_AFTER: Duration = Duration::from_secs(30);
const PATIENT_PAUSE: Duration = Duration::from_secs(1);

/// A run that ends by a number of transactions would else never end.
const OUTAGE_MAX: Duration = Duration::from_secs(5 * 60);

/// A client without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recovery {
    since: Timestamp,
    /// Pauses so far.
    pauses: u32,
    resume: Resume,
}

/// What a client goes on with when it has a connection again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Another transaction.
    Next,
    /// The slot of the schedule, or with `-C` the transaction, that it has and has not begun.
    Held,
    /// Its turn in the ramp, which comes at this moment.
    Ramp(Timestamp),
}

impl Recovery {
    pub(super) fn new(since: Timestamp, resume: Resume) -> Self {
        Recovery {
            since,
            pauses: 0,
            resume,
        }
    }

    /// The next pause. `chance` is random, from 0 to 1: clients that lost their connections together
    /// are not to come back together.
    fn pause(&mut self, now: Timestamp, chance: f64) -> Duration {
        let pause = match now - self.since < PATIENT_AFTER {
            true => PAUSE_MAX.min(PAUSE_MIN * (1 << self.pauses.min(4))),
            false => PATIENT_PAUSE,
        };
        self.pauses += 1;
        pause.mul_f64(0.75 + chance / 2.0)
    }
}

impl Client {
    /// Whether the loss of its connection does not end the client.
    pub(super) fn outlives_losses(&self, env: &Environment<'_>) -> bool {
        env.run.plan.load.reconnect_on_loss && self.launched
    }

    /// Whether a client without a connection is to make another one.
    pub(super) fn may_recover(&self, env: &Environment<'_>) -> bool {
        let window = env.window;
        self.outlives_losses(env)
            && !(window.stopping || window.closing || window.cancelling)
            && window.is_open(env.now())
    }

    /// The connection has been lost, for this reason.
    pub(super) fn recover(
        &mut self,
        sqlstate: SqlState,
        reason: &str,
        resume: Resume,
        env: &mut Environment<'_>,
    ) {
        let cause = LossCause::of(sqlstate, reason);
        self.drop_session(env);
        if !self.may_recover(env) {
            // The run is over, and there is nothing left to go on with: no outage of the server.
            return self.end(ClientEnd::Finished, env.stamp, env);
        }
        self.tell_loss(LossStep::Lost, cause, env);
        if env.run.plan.load.reconnect {
            // Its next transaction makes a connection anyway. A socket that is still open, since
            // what came from it makes no sense, is closed before.
            self.state = State::Closing {
                since: env.stamp,
                then: Then::NextTransaction,
            };
            self.action = Some(Action::Close);
            return;
        }
        self.pause(Recovery::new(env.now(), resume), env);
    }

    /// There is a connection again.
    pub(super) fn go_on(&mut self, recovery: Recovery, env: &mut Environment<'_>) {
        if env.run.plan.load.reconnect {
            return self.begin_transaction(env);
        }
        let now = env.now();
        match recovery.resume {
            Resume::Held => self.await_slot(self.transaction.scheduled_at, now, env),
            Resume::Ramp(until) if until > now => self.state = State::Ramping { until },
            Resume::Ramp(_) | Resume::Next => self.next_transaction(env),
        }
    }

    /// The window ends before there is a connection again: a slot that lies after that was not due.
    pub(super) fn give_up_recovery(&mut self, env: &Environment<'_>) {
        let held = self.recovery.take().map(|recovery| recovery.resume) == Some(Resume::Held);
        if held && !env.run.plan.load.reconnect {
            self.give_back_slot(env);
        }
    }

    /// Another connection could not be made either.
    pub(super) fn retry_later(&mut self, cause: LossCause, env: &mut Environment<'_>) {
        let recovery = self.recovery.take();
        // With a connection for each transaction, the first that cannot be made is a loss, too.
        let step = match recovery {
            Some(_) => LossStep::TryFailed,
            None => LossStep::Lost,
        };
        self.tell_loss(step, cause, env);
        let recovery = recovery.unwrap_or_else(|| Recovery::new(env.now(), Resume::Held));
        let outage = env.now() - recovery.since;
        let counts = matches!(env.run.plan.load.stop, StopRule::Transactions(_));
        if counts && outage > OUTAGE_MAX {
            let (id, minutes) = (self.id, OUTAGE_MAX.as_secs() / 60);
            env.recorder.say(
                Level::Error,
                format!("client {id} aborted: no connection could be made for {minutes} minutes"),
            );
            return self.end(ClientEnd::Aborted, env.now(), env);
        }
        self.pause(recovery, env);
    }

    fn pause(&mut self, mut recovery: Recovery, env: &Environment<'_>) {
        let now = env.now();
        let pause = recovery.pause(now, self.attempt.chance());
        self.recovery = Some(recovery);
        self.state = State::Recovering { until: now + pause };
    }

    fn tell_loss(&self, step: LossStep, cause: LossCause, env: &mut Environment<'_>) {
        env.recorder.record(Event::Loss(LossRecord {
            client: self.id,
            at: env.now(),
            step,
            cause,
        }));
    }
}

/// Why an attempt failed, if what it failed by may pass: a server that restarts, or another that
/// takes its place, comes back.
pub(super) fn passing_cause(failure: &AttemptFailure) -> Option<LossCause> {
    match failure {
        AttemptFailure::Unreachable(words) | AttemptFailure::Handshake(words) => {
            Some(LossCause::of_words(words))
        }
        AttemptFailure::TimedOut => Some(LossCause::TimedOut),
        AttemptFailure::Unsuitable(_) => Some(LossCause::Other),
        AttemptFailure::Refused { sqlstate, .. } => {
            let passes = [b"57P01", b"57P02", b"57P03", b"53300"].contains(&&sqlstate.0)
                || sqlstate.0.starts_with(b"08");
            passes.then_some(LossCause::SqlState(*sqlstate))
        }
        AttemptFailure::NoTls
        | AttemptFailure::PasswordRequired
        | AttemptFailure::Unacceptable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_get_long_after_a_while() {
        let mut recovery = Recovery::new(Timestamp::ZERO, Resume::Next);
        let mut pauses_at = |seconds, chance| {
            let now = Timestamp::ZERO + Duration::from_secs(seconds);
            recovery.pause(now, chance).as_micros()
        };
        let first: Vec<u128> = (0..6).map(|_| pauses_at(1, 0.5)).collect();
        assert_eq!(first, [10_000, 20_000, 40_000, 80_000, 100_000, 100_000]);
        assert_eq!(pauses_at(29, 0.0), 75_000);
        assert_eq!(pauses_at(29, 1.0), 125_000);
        assert_eq!(pauses_at(31, 0.5), 1_000_000);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let refused = |code: &[u8; 5]| AttemptFailure::Refused {
            sqlstate: SqlState(*code),
            message: String::new(),
        };
        let unreachable = |words: &str| AttemptFailure::Unreachable(words.to_owned());
        for (failure, cause) in [
            (
                refused(b"57P03"),
                Some(LossCause::SqlState(SqlState(*b"57P03"))),
            ),
            (
                refused(b"53300"),
                Some(LossCause::SqlState(SqlState(*b"53300"))),
            ),
            (
                refused(b"08006"),
                Some(LossCause::SqlState(SqlState(*b"08006"))),
            ),
            (refused(b"28P01"), None),
            (refused(b"3D000"), None),
            (unreachable("Connection refused"), Some(LossCause::Refused)),
            (
                unreachable("No such file or directory"),
                Some(LossCause::NoSocket),
            ),
            (AttemptFailure::TimedOut, Some(LossCause::TimedOut)),
            (AttemptFailure::Unacceptable("peer".to_owned()), None),
        ] {
            assert_eq!(passing_cause(&failure), cause, "{failure:?}");
        }
    }
}
