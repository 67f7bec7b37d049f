//! Working through a script's commands, and acting on what comes back from the server.

use crate::event::{Abort, Level, SqlState};
use crate::plan::QueryMode;
use crate::protocol::{Event, ProtocolError, ServerMessage};
use crate::script::{
    self, Command, CommandKind, EvalContext, EvalError, Place, Script, ShellCommand, Variables,
    setshell_value,
};
use crate::time::Timestamp;
use crate::values::Asker;

use super::super::shell::{Capture, ShellOrder, ShellOutput};
use super::reply::Copied;
use super::transaction::Transaction;
use super::{Action, Client, Environment, State, Work};

impl Client {
    /// Bytes have arrived.
    pub fn handle_input(&mut self, mut input: &[u8], env: &mut Environment<'_>) {
        self.debug_input(env);
        loop {
            if let Some(results) = self.session.take_success(&mut input) {
                self.handle_success(results, env);
                if input.is_empty() {
                    return;
                }
            }
            let event = match self.session.advance(&mut input) {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(error) => return self.handle_nonsense(error, env),
            };
            match event {
                Event::Started => self.handle_started(env),
                Event::Ready(_) => self.handle_reply(env),
                Event::CommandComplete(_) | Event::EmptyQuery => self.handle_complete(env),
                Event::ParameterStatus { name, value } => self.attempt.note_parameter(name, value),
                Event::RowDescription(_) if !self.state.is_work() => {}
                Event::DataRow(row) if !self.state.is_work() => {
                    if let State::Judging(question) = self.state {
                        self.attempt.note_answer(question, &row);
                    }
                }
                Event::Error(message) if self.state == State::Connecting => {
                    self.attempt.refuse(&message);
                }
                Event::Error(message) => {
                    self.timing.note_error();
                    let (state, variables) = (self.state, &self.variables);
                    let (script, cursor) = (self.transaction.script, self.transaction.cursor);
                    self.reply.note_error(message.sqlstate(), |command| {
                        let command = (script, command.unwrap_or(cursor));
                        error_text(message, state, command, variables, env)
                    });
                }
                Event::Notice(message) => {
                    if self.notices.count(&message, &env.run.notices) {
                        env.recorder.say(Level::Plain, message.to_string());
                    }
                }
                Event::BindComplete => self.reply.note_bound(),
                Event::CopyStarted(_) => self.reply.note_copy(),
                Event::RowDescription(description) => {
                    if let Some((number, capture)) = captured(env, &self.transaction) {
                        let wanted =
                            self.reply
                                .note_columns(number, capture, &description, &self.variables);
                        self.session.want_columns(wanted);
                    }
                }
                Event::DataRow(row) => {
                    if let Some((number, capture)) = captured(env, &self.transaction) {
                        self.reply.note_row(number, capture, &row);
                    }
                }
                Event::Notification { .. }
                | Event::ParseComplete
                | Event::CloseComplete
                | Event::NoData => {}
            }
        }
    }

    /// All that was asked for last has come, and nothing went wrong.
    fn handle_success(&mut self, results: usize, env: &mut Environment<'_>) {
        for _ in 0..results {
            self.handle_complete(env);
        }
        self.handle_reply(env);
    }

    /// What arrived makes no sense, or asks for what cannot be given: the connection is of no use.
    fn handle_nonsense(&mut self, problem: ProtocolError, env: &mut Environment<'_>) {
        match self.state {
            State::Connecting | State::Judging(_) | State::Backlogged { .. } => {
                self.attempt.refuse_server(problem);
                self.fail_attempt(env);
            }
            State::Idle
            | State::Greeting { .. }
            | State::Standby
            | State::Ramping { .. }
            | State::Recovering { .. }
            | State::Choosing
            | State::Skipping
            | State::Throttled { .. }
            | State::Working(_) => {
                self.action = Some(Action::Close);
                self.handle_lost(&problem.to_string(), env);
            }
            State::Done | State::Closing { .. } => {}
        }
    }

    /// A result is complete.
    fn handle_complete(&mut self, env: &mut Environment<'_>) {
        self.reply.note_complete();
        self.piped_command_done(env);
        if let Some((number, capture)) = captured(env, &self.transaction)
            && self.state.is_work()
        {
            self.reply.store_each(number, capture, &mut self.variables);
        }
    }

    /// The server is ready again. In a pipeline that may be so several times.
    fn handle_reply(&mut self, env: &mut Environment<'_>) {
        if self.session.ready_owed() > 0 {
            return self.reply.note_ready();
        }
        let work = match self.state {
            State::Greeting { since } => return self.handle_greeted(since, env),
            State::Judging(_) => return self.handle_judged(env),
            State::Working(work) => work,
            // Nothing was asked.
            State::Idle
            | State::Connecting
            | State::Backlogged { .. }
            | State::Standby
            | State::Ramping { .. }
            | State::Recovering { .. }
            | State::Choosing
            | State::Skipping
            | State::Throttled { .. }
            | State::Closing { .. }
            | State::Done => return,
        };
        match work {
            Work::Preparing => {
                self.note_awaited(env);
                self.conclude_prepare(env);
            }
            Work::Waiting => {
                self.note_awaited(env);
                self.transaction.committing = false;
                self.conclude_command(env);
            }
            Work::RollingBack => {
                self.note_awaited(env);
                self.conclude_rollback(env);
            }
            Work::Shelling | Work::Sleeping { .. } => {}
        }
    }

    fn conclude_rollback(&mut self, env: &mut Environment<'_>) {
        if self.reply.has_error() {
            self.fail_rollback(env);
        } else {
            self.retry_or_fail(env);
        }
    }

    /// What was sent has been answered completely.
    fn conclude_command(&mut self, env: &mut Environment<'_>) {
        // Before errors: that we refused to send data is one of them.
        if let Some(copied) = self.reply.copied() {
            self.transaction.cursor = copied.command.unwrap_or(self.transaction.cursor);
            return self.abort_command(Copied::PROBLEM, env);
        }
        if self.reply.has_error() {
            return self.fail_unless_prepared_again(env);
        }
        if let Err(problem) = self.store_reply(env) {
            return self.abort_command(&problem, env);
        }
        self.complete_command(env);
    }

    /// What the command whose turn it is waited for is there: the script goes on.
    fn complete_command(&mut self, env: &mut Environment<'_>) {
        self.command_done(self.transaction.cursor, env.stamp, env);
        self.transaction.cursor += 1;
        self.run_commands(env);
    }

    fn store_reply(&mut self, env: &Environment<'_>) -> Result<(), String> {
        match captured(env, &self.transaction) {
            Some((number, capture)) => self.reply.store_last(number, capture, &mut self.variables),
            None => Ok(()),
        }
    }

    fn fail_unless_prepared_again(&mut self, env: &mut Environment<'_>) {
        let sql = current(env, &self.transaction).and_then(CommandKind::sql);
        if !self.prepare_again(sql, env) {
            self.fail_command(env);
        }
    }

    /// Statements have been prepared. One that could not be is an error of the command that needs
    /// it; before a pipeline it may be in a branch that is never taken, so that is told and no more.
    fn conclude_prepare(&mut self, env: &mut Environment<'_>) {
        if self.reply.has_error() {
            if current(env, &self.transaction).is_some_and(|kind| kind.sql().is_some()) {
                return self.fail_unless_prepared_again(env);
            }
            let error = self.reply.take_error();
            let command = error.command.unwrap_or(self.transaction.cursor);
            let text = format!(
                "client {} script {} could not prepare command {command}: {}",
                self.id, self.transaction.script, error.text
            );
            env.recorder.say(Level::Error, text);
            self.say_place(command, env);
        }
        self.run_commands(env);
    }

    /// A shell command has ended.
    pub fn handle_shell(&mut self, output: &ShellOutput, env: &mut Environment<'_>) {
        if self.state != State::Working(Work::Shelling) {
            return;
        }
        self.note_awaited(env);
        match self.take_shell_output(output, env) {
            Ok(()) => self.complete_command(env),
            Err(problem) => self.abort_command(&problem, env),
        }
    }

    fn take_shell_output(
        &mut self,
        output: &ShellOutput,
        env: &Environment<'_>,
    ) -> Result<(), String> {
        let printed = output.as_ref().map_err(Clone::clone)?;
        let Some(CommandKind::SetShell { variable, .. }) = current(env, &self.transaction) else {
            return Ok(());
        };
        setshell_value(printed)
            .and_then(|value| self.variables.set(*variable, value))
            .map_err(|error| error.to_string())
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
            let place = self.transaction.cursor;
            self.begin_command(env);
            self.debug_command(command, env);
            match self.execute(script, command, env) {
                Ok(Flow::On) => self.command_went_on(place, env),
                Ok(Flow::Waits) => return,
                Ok(Flow::Ends) => return self.run_out(env),
                Err(problem) => return self.abort_command(&problem, env),
            }
        }
        match self.statements.pipeline() {
            Some(opened) => self.abort_open_pipeline(opened, env),
            None => self.end_transaction(env),
        }
    }

    fn abort_open_pipeline(&mut self, opened: usize, env: &mut Environment<'_>) {
        let script = env.run.script(self.transaction.script);
        let text = format!(
            "client {} aborted: end of script {} reached with the pipeline open that begins in \
             line {}",
            self.id, self.transaction.script, script.commands[opened].line
        );
        self.abort(Abort::Client, SqlState::NONE, text, env);
    }
}

/// How a script goes on after a command.
pub(super) enum Flow {
    /// With the command whose turn it is now.
    On,
    /// When what was sent has been answered, or the sleep is over.
    Waits,
    /// Not at all: there are no values left for it.
    Ends,
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
            CommandKind::Sql(sql) => return self.execute_sql(sql, env),
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
                    self.state = State::Working(Work::Sleeping { since, until });
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
            CommandKind::Values(_) => {
                if !self.take_values(env)? {
                    return Ok(Flow::Ends);
                }
            }
            CommandKind::Untimed => self.transaction.begin_untimed(env.now()),
            CommandKind::EndUntimed => self.transaction.end_untimed(env.now()),
            CommandKind::Shell(command) => return self.run_shell(command, Capture::No, env),
            CommandKind::SetShell { command, .. } => {
                return self.run_shell(command, Capture::Yes, env);
            }
            CommandKind::StartPipeline => return self.start_pipeline(&script.commands, env),
            CommandKind::SyncPipeline => return self.sync_pipeline(),
            CommandKind::EndPipeline => return self.end_pipeline(env),
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
        // The latest moment that is known: a script's time need not be read for each expression.
        let now = env.stamp.max(self.sent_at);
        let recorder = &mut *env.recorder;
        let mut context = EvalContext {
            unix_time_us: env.run.clock.unix_us(now),
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

    /// Sets the variables of the next row of values; false if there is none.
    fn take_values(&mut self, env: &mut Environment<'_>) -> Result<bool, String> {
        let asker = Asker {
            script: self.transaction.script,
            command: self.transaction.cursor,
            client: self.id,
            clients: env.run.plan.load.clients,
        };
        env.run
            .values
            .fill(
                asker,
                &mut self.values,
                &mut self.generator,
                &mut self.variables,
            )
            .map_err(|error| error.to_string())
    }

    /// The sleep is over.
    pub(super) fn wake_up(&mut self, since: Timestamp, env: &mut Environment<'_>) {
        // What is untimed is no part of latency, and told by itself.
        if !self.transaction.is_untimed() {
            self.think_ns += env.window.overlap_ns(since, env.stamp);
        }
        self.note_awaited(env);
        self.complete_command(env);
    }

    /// Has the worker run a shell command beside its loop.
    fn run_shell(
        &mut self,
        command: &ShellCommand,
        capture: Capture,
        env: &mut Environment<'_>,
    ) -> Result<Flow, String> {
        let line = command
            .line(&self.variables)
            .map_err(|error| error.to_string())?;
        self.answer(env.now(), env);
        self.state = State::Working(Work::Shelling);
        self.action = Some(Action::Spawn(Box::new(ShellOrder { line, capture })));
        Ok(Flow::Waits)
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

/// The command whose turn it is.
fn current<'a>(env: &Environment<'a>, transaction: &Transaction) -> Option<&'a CommandKind> {
    let script = env.run.script(transaction.script);
    let command = script.commands.get(transaction.cursor)?;
    Some(&command.kind)
}

/// Number and capture of the SQL command whose turn it is, if its result becomes variables.
fn captured<'a>(
    env: &Environment<'a>,
    transaction: &Transaction,
) -> Option<(usize, &'a script::Capture)> {
    let sql = current(env, transaction)?.sql()?;
    Some((sql.number, sql.capture.as_ref()?))
}

/// An error as it is told, with the line that it points into; empty if nobody is told of it.
fn error_text(
    message: ServerMessage<'_>,
    state: State,
    command: (usize, usize),
    variables: &Variables,
    env: &Environment<'_>,
) -> String {
    if matches!(state, State::Working(Work::Waiting))
        && !Client::is_worth_telling(message.sqlstate(), env)
    {
        return String::new();
    }
    if let State::Greeting { .. } = state {
        let sql = env.run.plan.on_connect.as_deref().unwrap_or_default();
        return message.with_statement(sql).to_string();
    }
    if let State::Working(Work::Waiting | Work::Preparing) = state {
        let statement = statement_text(command, variables, env);
        let mut text = message.with_statement(&statement).to_string();
        if message.sqlstate() == SqlState::SYNTAX_ERROR {
            text.push_str(&hint_of_unset_variables(command, variables, env));
        }
        return text;
    }
    message.to_string()
}

/// Where a variable without a value stood in the command, its name was sent in its place, which is
/// hardly ever SQL.
fn hint_of_unset_variables(
    (script, command): (usize, usize),
    variables: &Variables,
    env: &Environment<'_>,
) -> String {
    let command = env.run.script(script).commands.get(command);
    let sql = command.and_then(|command| command.kind.sql());
    let (Some(sql), QueryMode::Simple) = (sql, env.run.plan.query_mode) else {
        return String::new();
    };
    let mut names: Vec<String> = Vec::new();
    for slot in sql.parameters() {
        let name = String::from_utf8_lossy(variables.name(*slot)).into_owned();
        if !variables.is_defined(*slot) && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "\nHINT:  No value is set for the variable {}, so that its name was sent.",
            names.join(", ")
        ),
    }
}

/// The SQL of a command of a script, as it was sent.
fn statement_text(
    (script, command): (usize, usize),
    variables: &Variables,
    env: &Environment<'_>,
) -> Vec<u8> {
    let mut text = Vec::new();
    let command = env.run.script(script).commands.get(command);
    if let Some(sql) = command.and_then(|command| command.kind.sql()) {
        match env.run.plan.query_mode {
            QueryMode::Simple => sql.append_simple(variables, &mut text),
            QueryMode::Extended | QueryMode::Prepared => {
                text.extend_from_slice(sql.parameterized());
            }
        }
    }
    text
}
