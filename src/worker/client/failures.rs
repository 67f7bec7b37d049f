//! What is told of errors that fail a transaction and leave the client alive: each, where the user
//! wants that, or the first of each kind.

use crate::event::{Level, SqlState};
use crate::told::Pooling;

use super::reply::ReplyError;
use super::{Client, Environment};

impl Client {
    /// Whether the text of an error with this SQLSTATE will be told to somebody. If not, it need not
    /// be made: under contention such errors are part of steady state.
    pub(super) fn is_worth_telling(sqlstate: SqlState, env: &Environment<'_>) -> bool {
        let on_error = &env.run.plan.load.on_error;
        !on_error.fails(sqlstate)
            || on_error.verbose
            || (on_error.tell_first && !env.told.contains(&sqlstate))
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
        } else if on_error.tell_first && self.is_first_of_its_kind(error.sqlstate, env) {
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
    }

    /// A prepared statement is not where it should be: what the matter is, and what helps.
    pub(super) fn explain_pooling(&self, env: &mut Environment<'_>) {
        if env.run.pooling.is_first() {
            let text = format!("client {}: {}", self.id, Pooling::ADVICE);
            env.recorder.say(Level::Info, text);
        }
    }

    fn is_first_of_its_kind(&self, sqlstate: SqlState, env: &mut Environment<'_>) -> bool {
        if env.told.contains(&sqlstate) {
            return false;
        }
        env.told.push(sqlstate);
        env.run.first_errors.is_first(sqlstate)
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
