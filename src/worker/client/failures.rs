//! What is told of errors that fail a transaction and leave the client alive: each, where the user
//! wants that, or the first of each kind.

use crate::event::{Level, SqlState};
use crate::told::{KINDS_TOLD_MAX, Pooling, Telling};

use super::reply::ReplyError;
use super::{Client, Environment};

/// Said after the last kind of error that is told of.
const NO_FURTHER_KINDS: &str = "errors of further kinds are only counted";

impl Client {
    /// Whether the text of an error with this SQLSTATE will be told to somebody. If not, it need not
    /// be made: under contention such errors are part of steady state.
    pub(super) fn is_worth_telling(sqlstate: SqlState, env: &Environment<'_>) -> bool {
        let on_error = &env.run.plan.load.on_error;
        !on_error.fails(sqlstate)
            || on_error.verbose
            || (on_error.tell_first && may_be_first(sqlstate, env))
    }

    /// A command has failed, and its transaction with it.
    pub(super) fn tell_failure(&self, error: &ReplyError, env: &mut Environment<'_>) {
        let on_error = &env.run.plan.load.on_error;
        let (id, script) = (self.id, self.transaction.script);
        let (command, text) = (self.transaction.cursor, &error.text);
        if on_error.verbose {
            env.recorder.say(
                Level::Info,
                format!(
                    "client {id} got an error in command {command} (SQL) of script {script}; {text}"
                ),
            );
        } else if on_error.tell_first && may_be_first(error.sqlstate, env) {
            env.told.push(error.sqlstate);
            match env.run.first_errors.note(error.sqlstate) {
                Telling::Nothing => {}
                Telling::First => self.tell_first(error, env),
                Telling::Last => {
                    self.tell_first(error, env);
                    env.recorder.say(Level::Info, NO_FURTHER_KINDS.to_owned());
                }
            }
        }
    }

    fn tell_first(&self, error: &ReplyError, env: &mut Environment<'_>) {
        let (id, script) = (self.id, self.transaction.script);
        let (command, text) = (self.transaction.cursor, &error.text);
        let begun = self.transaction.started_at;
        let after = begun.signed_nanos_since(env.window.begin()) as f64 / 1e9;
        env.recorder.say(
            Level::Info,
            format!(
                "client {id}, {after:.3} s: SQLSTATE {} in command {command} of script {script}, \
                 the first of its kind (others are only counted): {text}",
                error.sqlstate.as_str()
            ),
        );
        let place = error.command.unwrap_or(command);
        self.say_place(place, env);
    }

    /// A prepared statement is not where it should be: what the matter is, and what helps.
    pub(super) fn explain_pooling(&self, env: &mut Environment<'_>) {
        if env.run.pooling.is_first() {
            let text = format!("client {}: {}", self.id, Pooling::ADVICE);
            env.recorder.say(Level::Info, text);
        }
    }

    /// What becomes of a transaction after an error, with the tries and the time that it has taken.
    pub(super) fn tell_try(&self, what: &str, env: &mut Environment<'_>) {
        let load = &env.run.plan.load;
        if !load.on_error.verbose {
            return;
        }
        let most = load.max_tries.map(|most| format!("/{most}"));
        let share = load.latency_limit.map(|limit| {
            let used = env.now() - self.transaction.scheduled_at;
            let percent = used.as_secs_f64() / limit.as_secs_f64() * 100.0;
            format!(", {percent:.3}% of the maximum time of tries was used")
        });
        let text = format!(
            "client {} {what} (try {}{}{})",
            self.id,
            self.transaction.tries,
            most.unwrap_or_default(),
            share.unwrap_or_default()
        );
        env.recorder.say(Level::Info, text);
    }
}

/// Whether this thread has not told of this kind of error yet, nor of so many others that no more
/// are told of.
fn may_be_first(sqlstate: SqlState, env: &Environment<'_>) -> bool {
    env.told.len() < KINDS_TOLD_MAX && !env.told.contains(&sqlstate)
}
