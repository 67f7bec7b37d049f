//! A transaction from its choice to its record: begin, end, failure, retry, abort.

use crate::event::{
    Abort, ClientEnd, CommandEnd, Event, Failure, Level, Outcome, SqlState, TransactionRecord,
    TryEnd, TryRecord,
};
use crate::protocol::TransactionStatus;
use crate::random::Generator;
use crate::script::Value;
use crate::time::Timestamp;

use super::recovery::Resume;
use super::{Action, Client, Environment, State, Then};

/// The transaction that a client works on.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Index of its script.
    pub(super) script: usize,
    /// Index of the command whose turn it is.
    pub(super) cursor: usize,
    pub(super) tries: u32,
    pub(super) scheduled_at: Timestamp,
    pub(super) started_at: Timestamp,
    try_started_at: Timestamp,
    /// Stamp of the last thing that was awaited since the beginning.
    pub(super) awaited_at: Option<Timestamp>,
    pub(super) connecting_ns: u64,
    pub(super) untimed_ns: u64,
    /// Inside `\untimed` since this moment.
    untimed_since: Option<Timestamp>,
    /// COMMIT (or END) was sent last, and its answer has not come.
    pub(super) committing: bool,
    /// The client's stream as it was at the first try.
    generator: Generator,
    /// The error that this try failed with.
    failure: SqlState,
}

impl Transaction {
    pub(super) fn new(generator: Generator) -> Self {
        Transaction {
            script: 0,
            cursor: 0,
            tries: 0,
            scheduled_at: Timestamp::ZERO,
            started_at: Timestamp::ZERO,
            try_started_at: Timestamp::ZERO,
            awaited_at: None,
            connecting_ns: 0,
            untimed_ns: 0,
            untimed_since: None,
            committing: false,
            generator,
            failure: SqlState::NONE,
        }
    }

    pub(super) fn begin_untimed(&mut self, now: Timestamp) {
        self.untimed_since = Some(now);
    }

    pub(super) fn is_untimed(&self) -> bool {
        self.untimed_since.is_some()
    }

    /// The block ends with the last thing that was awaited in it, or now if nothing was.
    pub(super) fn end_untimed(&mut self, now: Timestamp) {
        if let Some(since) = self.untimed_since.take() {
            let until = self.awaited_at.filter(|at| *at > since).unwrap_or(now);
            self.untimed_ns += until.nanos_since(since);
        }
    }
}

impl Client {
    /// Begins the chosen transaction, unless the window has ended.
    pub(super) fn begin_transaction(&mut self, env: &mut Environment<'_>) {
        let now = env.now();
        self.answer(now, env);
        if !env.window.is_open(now) {
            return self.finish(env);
        }
        self.number += 1;
        let transaction = &mut self.transaction;
        transaction.tries = 1;
        if env.run.schedule.is_none() {
            transaction.scheduled_at = now;
        }
        transaction.started_at = now;
        transaction.untimed_ns = 0;
        transaction.generator.clone_from(&self.generator);
        self.values.begin_transaction();
        self.tell_number(env);
        self.begin_try(now, env);
    }

    /// Sets the variable `transaction`, where a script uses it.
    fn tell_number(&mut self, env: &Environment<'_>) {
        if let Some(slot) = env.run.plan.scripts.variables.transaction() {
            let number = Value::Integer(self.number.cast_signed());
            self.variables
                .set(slot, number)
                .expect("its name is a valid one");
        }
    }

    fn begin_try(&mut self, now: Timestamp, env: &mut Environment<'_>) {
        self.transaction.cursor = 0;
        self.transaction.awaited_at = None;
        self.transaction.committing = false;
        self.transaction.failure = SqlState::NONE;
        self.transaction.try_started_at = now;
        self.statements.leave_pipeline();
        self.timing.clear();
        self.debug_script(env);
        self.run_commands(env);
    }

    /// The script has come to its end.
    pub(super) fn end_transaction(&mut self, env: &mut Environment<'_>) {
        self.record(Outcome::Processed, SqlState::NONE, env);
        if self.session.transaction_status() != TransactionStatus::Idle {
            let id = self.id;
            env.recorder.say(
                Level::Error,
                format!(
                    "client {id} aborted: end of script reached without completing the last \
                     transaction"
                ),
            );
            return self.close(Then::End(ClientEnd::Aborted), env);
        }
        self.follow(env);
    }

    /// There are no values left for the script: the client is done. A transaction in which nothing
    /// was awaited yet has not taken place.
    pub(super) fn run_out(&mut self, env: &mut Environment<'_>) {
        if self.transaction.awaited_at.is_some() || self.transaction.tries > 1 {
            self.record(Outcome::Aborted(Abort::Interrupted), SqlState::NONE, env);
        } else {
            self.number -= 1;
        }
        self.close(Then::End(ClientEnd::RanOut), env);
    }

    /// What comes after a transaction that leaves the client alive.
    fn follow(&mut self, env: &mut Environment<'_>) {
        if env.run.plan.load.reconnect {
            return self.close(self.then_next(env), env);
        }
        if self.transaction.awaited_at.is_some() {
            self.next_transaction(env);
        } else {
            // A script that waits for nothing must not keep its thread to itself.
            self.state = State::Choosing;
            self.action = Some(Action::Yield);
        }
    }

    /// With a connection for each transaction, its closing is followed by the next one, or by
    /// nothing.
    fn then_next(&self, env: &Environment<'_>) -> Then {
        if self.has_done_all(env) || env.window.stopping {
            Then::End(ClientEnd::Finished)
        } else {
            Then::NextTransaction
        }
    }

    /// The server refused a command. Errors that a repetition may cure fail the transaction; all
    /// others end the client.
    pub(super) fn fail_command(&mut self, env: &mut Environment<'_>) {
        let error = self.reply.take_error();
        if env.window.cancelling {
            return self.interrupt(env);
        }
        if env.run.plan.load.on_error.fails(error.sqlstate) {
            self.transaction.failure = error.sqlstate;
            self.tell_failure(&error, env);
            return self.clean_up(env);
        }
        let text = format!(
            "client {} script {} aborted in command {} query {}: {}",
            self.id, self.transaction.script, self.transaction.cursor, error.result, error.text
        );
        // Of a pipeline, the place of the command that failed is told.
        self.transaction.cursor = error.command.unwrap_or(self.transaction.cursor);
        self.abort(Abort::Server, error.sqlstate, text, env);
    }

    /// Rolls the failed block back, if one is open.
    fn clean_up(&mut self, env: &mut Environment<'_>) {
        match self.session.transaction_status() {
            TransactionStatus::Idle => self.retry_or_fail(env),
            TransactionStatus::InBlock | TransactionStatus::InFailedBlock => {
                self.send_rollback(env);
            }
        }
    }

    /// Nothing is left of the failed try.
    pub(super) fn retry_or_fail(&mut self, env: &mut Environment<'_>) {
        let now = env.now();
        self.transaction.end_untimed(now);
        if self.may_retry(now, env) {
            self.tell_try("repeats the transaction after the error", env);
            self.command_failed(CommandEnd::Retried, env);
            self.record_try(TryEnd::Retried, self.transaction.failure, now, env);
            self.transaction.tries += 1;
            self.generator.clone_from(&self.transaction.generator);
            return self.begin_try(now, env);
        }
        self.tell_try("ends the failed transaction", env);
        self.command_failed(CommandEnd::Failed, env);
        self.record(Outcome::Failed, self.transaction.failure, env);
        self.follow(env);
    }

    fn may_retry(&self, now: Timestamp, env: &Environment<'_>) -> bool {
        let tries_left = env
            .run
            .plan
            .load
            .max_tries
            .is_none_or(|most| self.transaction.tries < most);
        let within_limit = env
            .run
            .plan
            .load
            .latency_limit
            .is_none_or(|limit| now - self.transaction.scheduled_at <= limit);
        // Other errors come again, however often the transaction is repeated.
        let curable = Failure::of(self.transaction.failure) != Failure::Other;
        curable && tries_left && within_limit && env.window.is_open(now)
    }

    /// Ends the client for good, and its transaction with it.
    pub(super) fn abort(
        &mut self,
        why: Abort,
        sqlstate: SqlState,
        text: String,
        env: &mut Environment<'_>,
    ) {
        self.record(Outcome::Aborted(why), sqlstate, env);
        env.recorder.say(Level::Error, text);
        self.say_place(self.transaction.cursor, env);
        self.close(Then::End(ClientEnd::Aborted), env);
    }

    /// Tells where in the script a command stands.
    pub(super) fn say_place(&self, command: usize, env: &mut Environment<'_>) {
        let script = env.run.script(self.transaction.script);
        if let Some(command) = script.commands.get(command) {
            let place = format!(
                "{}, line {}: {}",
                script.name,
                command.line,
                command.excerpt()
            );
            env.recorder.say(Level::Detail, place);
        }
    }

    /// A stop signal, or the end of the time to finish, cuts the transaction off. Nothing is wrong
    /// with the client.
    pub(super) fn interrupt(&mut self, env: &mut Environment<'_>) {
        self.record(Outcome::Aborted(Abort::Interrupted), SqlState::NONE, env);
        self.close(Then::End(ClientEnd::Finished), env);
    }

    /// The connection was lost in the middle of a transaction. What the server said before it went
    /// says why.
    pub(super) fn lose_transaction(&mut self, reason: &str, env: &mut Environment<'_>) {
        let error = self.reply.take_last_words(reason);
        let why = if self.transaction.committing {
            Abort::ConnectionLostInCommit
        } else {
            Abort::ConnectionLost
        };
        self.record(Outcome::Aborted(why), error.sqlstate, env);
        if self.outlives_losses(env) {
            return self.recover(error.sqlstate, &error.text, Resume::Next, env);
        }
        let text = format!(
            "client {} script {} aborted in command {} query {}: connection lost: {}",
            self.id, self.transaction.script, self.transaction.cursor, error.result, error.text
        );
        env.recorder.say(Level::Error, text);
        self.say_place(self.transaction.cursor, env);
        self.drop_session(env);
        self.end(ClientEnd::Aborted, env.stamp, env);
    }

    pub(super) fn record(
        &mut self,
        outcome: Outcome,
        sqlstate: SqlState,
        env: &mut Environment<'_>,
    ) {
        let finished_at = match (outcome, self.transaction.awaited_at) {
            // What was awaited last is not what ended it.
            (Outcome::Aborted(Abort::Interrupted), _) | (_, None) => env.now(),
            // A send may fail in the turn in which the transaction began, after the stamp.
            (Outcome::Aborted(Abort::ConnectionLost | Abort::ConnectionLostInCommit), _) => {
                env.stamp.max(self.transaction.started_at)
            }
            (_, Some(stamp)) => stamp,
        };
        self.transaction.end_untimed(finished_at);
        let phase = env.window.phase(self.transaction.scheduled_at);
        self.count(phase);
        if outcome != Outcome::Skipped {
            self.record_try(TryEnd::Last(outcome), sqlstate, finished_at, env);
        }
        let transaction = &self.transaction;
        env.recorder.record(Event::Transaction(TransactionRecord {
            client: self.id,
            // There are at most 128 scripts.
            script: transaction.script as u8,
            outcome,
            sqlstate,
            phase,
            tries: transaction.tries,
            number: self.number,
            scheduled_at: transaction.scheduled_at,
            started_at: transaction.started_at,
            finished_at,
            connecting_ns: transaction.connecting_ns,
            untimed_ns: transaction.untimed_ns,
        }));
    }

    /// Tells of a try, where tries are logged.
    fn record_try(
        &self,
        end: TryEnd,
        sqlstate: SqlState,
        finished_at: Timestamp,
        env: &mut Environment<'_>,
    ) {
        if env.run.plan.tries.is_none() {
            return;
        }
        let transaction = &self.transaction;
        env.recorder.record(Event::Try(TryRecord {
            client: self.id,
            // There are at most 128 scripts.
            script: transaction.script as u8,
            phase: env.window.phase(transaction.scheduled_at),
            end,
            sqlstate,
            number: transaction.tries,
            transaction: self.number,
            started_at: transaction.try_started_at,
            finished_at,
        }));
    }

    /// The thread acts on what woke this client: the time since its stamp was the client's delay.
    pub(super) fn answer(&mut self, now: Timestamp, env: &mut Environment<'_>) {
        self.sent_at = now;
        if std::mem::take(&mut self.unanswered) && env.window.started() {
            env.delays.record(now.nanos_since(env.stamp));
        }
    }
}
