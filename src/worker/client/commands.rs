//! Working through a script's commands, and what comes back from the server.

use bytes::BytesMut;

use crate::event::{Abort, Level, SqlState};
use crate::protocol::{Event, ServerMessage};
use crate::script::{Command, CommandKind, EvalContext, EvalError, Place, Script, Variables};
use crate::time::Timestamp;

use super::{Action, Client, Environment, State};

/// What the server has answered to the command under way so far.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Results that are complete.
    results: u32,
    error: Option<ReplyError>,
    /// The command wants to copy data to or from the client.
    copies: bool,
}

/// An error that the server answered with.
#[derive(Debug, Default)]
pub(super) struct ReplyError {
    pub(super) sqlstate: SqlState,
    /// As libpq shows it.
    pub(super) text: String,
    /// Number of the result that it came instead of, from 0.
    pub(super) result: u32,
}

impl Reply {
    fn clear(&mut self) {
        self.results = 0;
        self.error = None;
        self.copies = false;
    }

    /// The first error is the cause of those that follow it.
    fn note_error(&mut self, message: &ServerMessage<'_>) {
        let result = self.results;
        self.error.get_or_insert_with(|| ReplyError {
            sqlstate: message.sqlstate(),
            text: message.to_string(),
            result,
        });
    }

    /// The error, with the count of results alone where there was none.
    pub(super) fn take_error(&mut self) -> ReplyError {
        let result = self.results;
        self.error.take().unwrap_or_else(|| ReplyError {
            result,
            ..ReplyError::default()
        })
    }
}

impl Client {
    /// Bytes have arrived.
    pub fn handle_input(&mut self, mut input: &[u8], env: &mut Environment<'_>) {
        loop {
            let event = match self.session.advance(&mut input) {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => return self.handle_nonsense(&error.to_string(), env),
            };
            match event {
                Event::Started => self.handle_started(env),
                Event::Ready(_) => self.handle_reply(env),
                Event::CommandComplete(_) | Event::EmptyQuery => self.reply.results += 1,
                Event::Error(message) if self.state == State::Connecting => {
                    self.attempt.refuse(&message);
                }
                Event::Error(message) => self.reply.note_error(&message),
                Event::Notice(message) => {
                    env.recorder.say(Level::Plain, message.to_string());
                }
                Event::CopyStarted(_) => self.reply.copies = true,
                Event::RowDescription(_)
                | Event::DataRow(_)
                | Event::ParameterStatus { .. }
                | Event::Notification { .. }
                | Event::ParseComplete
                | Event::BindComplete
                | Event::CloseComplete
                | Event::NoData => {}
            }
        }
    }

    /// What arrived makes no sense, or asks for what cannot be given: the connection is of no use.
    fn handle_nonsense(&mut self, problem: &str, env: &mut Environment<'_>) {
        match self.state {
            State::Connecting => {
                self.attempt.fail(problem);
                self.fail_attempt(env);
            }
            State::Done | State::Closing { .. } => {}
            _ => {
                self.action = Some(Action::Close);
                self.handle_lost(problem, env);
            }
        }
    }

    /// The server is ready again: what was sent has been answered completely.
    fn handle_reply(&mut self, env: &mut Environment<'_>) {
        match self.state {
            State::Waiting => {
                self.note_awaited(env);
                self.transaction.committing = false;
                if self.reply.error.is_some() {
                    self.fail_command(env);
                } else if self.reply.copies {
                    self.abort_command("COPY is not supported in a script", env);
                } else {
                    self.transaction.cursor += 1;
                    self.run_commands(env);
                }
            }
            State::RollingBack => {
                self.note_awaited(env);
                if self.reply.error.is_some() {
                    self.fail_rollback(env);
                } else {
                    self.retry_or_fail(env);
                }
            }
            _ => {}
        }
    }

    fn note_awaited(&mut self, env: &Environment<'_>) {
        self.transaction.awaited_at = Some(env.stamp);
        self.unanswered = true;
    }

    /// Works through the script until something has to be waited for.
    pub(super) fn run_commands(&mut self, env: &mut Environment<'_>) {
        let script = env.run.script(self.transaction.script);
        while let Some(command) = script.commands.get(self.transaction.cursor) {
            if env.window.cancelling || env.window.closing {
                return self.interrupt(env);
            }
            match self.execute(script, command, env) {
                Ok(Flow::On) => {}
                Ok(Flow::Waits) => return,
                Err(problem) => return self.abort_command(&problem, env),
            }
        }
        self.end_transaction(env);
    }
}

/// How a script goes on after a command.
enum Flow {
    /// With the command whose turn it is now.
    On,
    /// When what was sent has been answered, or the sleep is over.
    Waits,
}

impl Client {
    /// Does what a command says, and moves on to the next one unless that has to wait.
    fn execute(
        &mut self,
        script: &Script,
        command: &Command,
        env: &mut Environment<'_>,
    ) -> Result<Flow, String> {
        match &command.kind {
            CommandKind::Sql(sql) => {
                self.send(env, |variables, out| sql.append_simple(variables, out))?;
                self.transaction.committing = sql.commits();
                self.state = State::Waiting;
                return Ok(Flow::Waits);
            }
            CommandKind::Set {
                variable,
                expression,
            } => {
                self.evaluate(env, |context| {
                    let value = expression.evaluate(context)?;
                    context.variables.set(*variable, value)
                })?;
            }
            CommandKind::Sleep(sleep) => {
                let length = sleep
                    .duration(&self.variables)
                    .map_err(|error| error.to_string())?;
                if !length.is_zero() {
                    let since = env.now();
                    self.answer(since, env);
                    let until = since + length;
                    self.state = State::Sleeping { since, until };
                    return Ok(Flow::Waits);
                }
            }
            CommandKind::If { .. } => {
                self.transaction.cursor = self.evaluate(env, |context| script.branch(context))?;
                return Ok(Flow::On);
            }
            // Reached from the end of the branch before it, which was taken.
            CommandKind::Elif { end, .. } | CommandKind::Else { end } => {
                self.transaction.cursor = *end;
                return Ok(Flow::On);
            }
            CommandKind::Endif => {}
            CommandKind::Shell(_)
            | CommandKind::SetShell { .. }
            | CommandKind::StartPipeline
            | CommandKind::SyncPipeline
            | CommandKind::EndPipeline => {
                return Err("this command is not available yet".to_owned());
            }
        }
        self.transaction.cursor += 1;
        Ok(Flow::On)
    }

    /// Lets an expression or a condition be evaluated, and tells what is wrong with it.
    fn evaluate<T>(
        &mut self,
        env: &mut Environment<'_>,
        evaluate: impl FnOnce(&mut EvalContext<'_>) -> Result<T, EvalError>,
    ) -> Result<T, String> {
        let recorder = &mut *env.recorder;
        let mut context = EvalContext {
            variables: &mut self.variables,
            generator: &mut self.generator,
            messages: &mut |line| {
                recorder.say(Level::Plain, String::from_utf8_lossy(line).into_owned());
            },
            place: Place {
                script: self.transaction.script,
                command: self.transaction.cursor,
            },
        };
        let result = evaluate(&mut context);
        // After a failed condition this is the command that it belongs to.
        self.transaction.cursor = context.place.command;
        result.map_err(|error| error.to_string())
    }

    /// The sleep is over.
    pub(super) fn wake_up(&mut self, since: Timestamp, env: &mut Environment<'_>) {
        self.think_ns += env.window.overlap_ns(since, env.stamp);
        self.note_awaited(env);
        self.transaction.cursor += 1;
        self.run_commands(env);
    }

    /// Queues SQL written by `write`.
    fn send(
        &mut self,
        env: &mut Environment<'_>,
        write: impl FnOnce(&Variables, &mut BytesMut),
    ) -> Result<(), String> {
        let now = env.now();
        self.answer(now, env);
        self.reply.clear();
        let variables = &self.variables;
        self.session
            .simple_query(|out| write(variables, out))
            .map_err(|error| error.to_string())
    }

    /// Rolls the failed transaction back.
    pub(super) fn send_rollback(&mut self, env: &mut Environment<'_>) {
        self.state = State::RollingBack;
        self.send(env, |_, out| out.extend_from_slice(b"ROLLBACK"))
            .expect("eight bytes fit into a message");
    }

    /// A meta command failed, or the command is one that no script may use.
    fn abort_command(&mut self, problem: &str, env: &mut Environment<'_>) {
        let script = env.run.script(self.transaction.script);
        let command = &script.commands[self.transaction.cursor];
        let text = format!(
            "client {} aborted in command {} ({}) of script {}; {problem}",
            self.id,
            self.transaction.cursor,
            command.name(),
            self.transaction.script,
        );
        self.abort(Abort::Client, SqlState::NONE, text, env);
    }

    fn fail_rollback(&mut self, env: &mut Environment<'_>) {
        let error = self.reply.take_error();
        let text = format!(
            "client {} aborted while rolling back the transaction after an error: {}",
            self.id, error.text
        );
        self.abort(Abort::Server, error.sqlstate, text, env);
    }
}
