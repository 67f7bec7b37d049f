//! Sending SQL the way the query mode asks for: as one simple query, or parsed and bound with
//! parameters; statements prepared once a connection; pipelines.
//!
//! What goes to the server is what libpq sends for pgbench, so that the server has the same work.

use bytes::BytesMut;

use crate::plan::QueryMode;
use crate::protocol::{ProtocolError, TransactionStatus};
use crate::script::{Command, CommandKind, Sql};

use super::commands::Flow;
use super::{Client, Environment, State, Work};

/// What a client keeps of the statements of its connection.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// Which SQL commands are prepared in the present connection, by number.
    prepared: Vec<bool>,
    /// The command that opened the pipeline, if one is open.
    pipeline: Option<usize>,
    /// The statement under way was sent along with its execution, because the server had lost it.
    sent_along: bool,
}

/// In a pipeline, so much is gathered before it is sent, as libpq does.
const PIPELINE_FLUSH_BYTES: usize = 65_536;

impl Statements {
    /// A new connection knows no statements.
    pub(super) fn forget(&mut self) {
        self.prepared.fill(false);
        self.pipeline = None;
    }

    /// The command that opened the pipeline, if one is open.
    pub(super) fn pipeline(&self) -> Option<usize> {
        self.pipeline
    }

    /// A new try begins outside of a pipeline.
    pub(super) fn leave_pipeline(&mut self) {
        self.pipeline = None;
    }

    /// Whether `output` is to be held back until there is more.
    pub(super) fn holds_back(&self, output: &[u8]) -> bool {
        self.pipeline.is_some() && output.len() < PIPELINE_FLUSH_BYTES
    }

    fn is_prepared(&self, sql: &Sql) -> bool {
        self.prepared.get(sql.number) == Some(&true)
    }

    fn forget_statement(&mut self, sql: &Sql) {
        if let Some(prepared) = self.prepared.get_mut(sql.number) {
            *prepared = false;
        }
    }

    fn note_prepared(&mut self, sql: &Sql) {
        if self.prepared.len() <= sql.number {
            self.prepared.resize(sql.number + 1, false);
        }
        self.prepared[sql.number] = true;
    }
}

/// Whether a statement copies data from the client. In a pipeline that cannot be refused once it is
/// sent: the server takes what follows for data, and ends the connection. One that hides behind a
/// comment is not seen here, and that is what becomes of it.
fn copies_in(statement: &[u8]) -> bool {
    let mut words = statement
        .split(|byte| byte.is_ascii_whitespace() || *byte == b';')
        .filter(|word| !word.is_empty());
    if !words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(b"copy"))
    {
        return false;
    }
    let mut after_from = false;
    words.any(|word| {
        let found = after_from && word.eq_ignore_ascii_case(b"stdin");
        after_from = word.eq_ignore_ascii_case(b"from");
        found
    })
}

impl Client {
    /// Sends an SQL command; in a pipeline nothing is waited for.
    pub(super) fn execute_sql(
        &mut self,
        sql: &Sql,
        env: &mut Environment<'_>,
    ) -> Result<Flow, String> {
        let piped = self.statements.pipeline.is_some();
        if piped && let Some(capture) = &sql.capture {
            return Err(format!(
                "{} is not allowed in a pipeline",
                capture.command()
            ));
        }
        if piped && copies_in(sql.parameterized()) {
            return Err("COPY FROM STDIN is not allowed in a pipeline".to_owned());
        }
        let mode = env.run.plan.query_mode;
        if mode == QueryMode::Prepared && !piped && !self.statements.is_prepared(sql) {
            return self.prepare(&[(self.transaction.cursor, sql)], env);
        }
        self.begin_sending(env);
        if !piped {
            self.statements.sent_along = false;
            self.reply.clear();
            self.session.want_rows(sql.capture.is_some());
        }
        self.queue(sql, mode, env)
            .map_err(|error| error.to_string())?;
        self.transaction.committing |= sql.commits();
        if piped {
            self.reply.note_sent(self.transaction.cursor);
            self.command_piped(self.transaction.cursor);
            self.transaction.cursor += 1;
            return Ok(Flow::On);
        }
        if mode != QueryMode::Simple {
            self.session.sync();
        }
        self.state = State::Working(Work::Waiting);
        Ok(Flow::Waits)
    }

    fn queue(
        &mut self,
        sql: &Sql,
        mode: QueryMode,
        env: &Environment<'_>,
    ) -> Result<(), ProtocolError> {
        let variables = &self.variables;
        let write_text = |out: &mut BytesMut| out.extend_from_slice(sql.parameterized());
        let name = match mode {
            QueryMode::Simple => {
                return self
                    .session
                    .simple_query(|out| sql.append_simple(variables, out));
            }
            QueryMode::Extended => {
                self.session.parse(c"", write_text)?;
                c""
            }
            QueryMode::Prepared => {
                let name = env.run.statement_name(sql);
                if !self.statements.is_prepared(sql) {
                    self.session.parse(name, write_text)?;
                    self.statements.note_prepared(sql);
                }
                name
            }
        };
        let parameters = sql.parameters();
        self.session.execute(name, parameters.len(), |index, out| {
            variables.append_parameter(parameters[index], out)
        })
    }

    /// If an error says that the server has lost the statement (or has it where it should not), as
    /// behind a pooler, the cause is explained once. Outside of a block and of a pipeline nothing of
    /// the command has been done: it is sent again, once, with its statement and a Close that makes
    /// room for it, all of which a pooler gives to the same connection. The time that this takes is
    /// part of the latency. False if nothing was sent.
    pub(super) fn prepare_again(&mut self, sql: Option<&Sql>, env: &mut Environment<'_>) -> bool {
        if env.run.plan.query_mode != QueryMode::Prepared || !self.reply.is_about_preparing() {
            return false;
        }
        self.explain_pooling(env);
        let in_block = self.session.transaction_status() != TransactionStatus::Idle;
        let Some(sql) = sql.filter(|_| !in_block && !self.statements.sent_along) else {
            return false;
        };
        self.begin_sending(env);
        self.reply.clear();
        self.session.want_rows(sql.capture.is_some());
        self.statements.sent_along = true;
        let name = env.run.statement_name(sql);
        self.session.close_statement(name);
        if self.parse_and_queue(sql, env).is_err() {
            return false;
        }
        self.session.sync();
        self.transaction.committing |= sql.commits();
        self.state = State::Working(Work::Waiting);
        env.run.pooling.note_prepared_again();
        true
    }

    fn parse_and_queue(&mut self, sql: &Sql, env: &Environment<'_>) -> Result<(), ProtocolError> {
        self.statements.forget_statement(sql);
        self.queue(sql, QueryMode::Prepared, env)
    }

    /// Prepares statements, each with a round trip of its own on the server's side. When they are
    /// answered, the command under way is executed again, and finds them prepared.
    fn prepare(
        &mut self,
        statements: &[(usize, &Sql)],
        env: &mut Environment<'_>,
    ) -> Result<Flow, String> {
        self.begin_sending(env);
        self.statements.sent_along = false;
        self.reply.clear();
        for &(command, sql) in statements {
            self.reply.note_sent(command);
            let write_text = |out: &mut BytesMut| out.extend_from_slice(sql.parameterized());
            self.session
                .parse(env.run.statement_name(sql), write_text)
                .map_err(|error| error.to_string())?;
            self.session.sync();
            self.statements.note_prepared(sql);
        }
        self.state = State::Working(Work::Preparing);
        Ok(Flow::Waits)
    }

    /// `\startpipeline`. What will be sent in it is prepared before it opens.
    pub(super) fn start_pipeline(
        &mut self,
        commands: &[Command],
        env: &mut Environment<'_>,
    ) -> Result<Flow, String> {
        let mode = env.run.plan.query_mode;
        if mode == QueryMode::Simple {
            return Err("a pipeline needs the extended or prepared query mode (-M)".to_owned());
        }
        if self.statements.pipeline.is_some() {
            return Err("already in a pipeline".to_owned());
        }
        if mode == QueryMode::Prepared {
            let unprepared = self.unprepared(commands);
            if !unprepared.is_empty() {
                return self.prepare(&unprepared, env);
            }
        }
        self.reply.clear();
        self.session.want_rows(false);
        self.statements.pipeline = Some(self.transaction.cursor);
        self.transaction.cursor += 1;
        Ok(Flow::On)
    }

    /// The SQL commands up to the end of the pipeline that are not prepared yet, those in skipped
    /// branches included, with their indices.
    fn unprepared<'a>(&self, commands: &'a [Command]) -> Vec<(usize, &'a Sql)> {
        commands
            .iter()
            .enumerate()
            .skip(self.transaction.cursor + 1)
            .take_while(|(_, command)| !matches!(command.kind, CommandKind::EndPipeline))
            .filter_map(|(index, command)| Some((index, command.kind.sql()?)))
            .filter(|(_, sql)| !self.statements.is_prepared(sql))
            .collect()
    }

    /// `\syncpipeline`: ends an implicit transaction, and waits for nothing.
    pub(super) fn sync_pipeline(&mut self) -> Result<Flow, String> {
        if self.statements.pipeline.is_none() {
            return Err("not in a pipeline".to_owned());
        }
        self.session.sync();
        self.reply.note_sent(self.transaction.cursor);
        self.transaction.cursor += 1;
        Ok(Flow::On)
    }

    /// `\endpipeline`: waits for everything that the pipeline has sent.
    pub(super) fn end_pipeline(&mut self, env: &mut Environment<'_>) -> Result<Flow, String> {
        if self.statements.pipeline.take().is_none() {
            return Err("not in a pipeline".to_owned());
        }
        self.begin_sending(env);
        self.session.sync();
        self.state = State::Working(Work::Waiting);
        Ok(Flow::Waits)
    }

    /// Rolls the failed transaction back.
    pub(super) fn send_rollback(&mut self, env: &mut Environment<'_>) {
        self.begin_sending(env);
        self.reply.clear();
        self.state = State::Working(Work::RollingBack);
        self.session
            .simple_query(|out| out.extend_from_slice(b"ROLLBACK"))
            .expect("eight bytes fit into a message");
    }

    /// What was answered in this turn already, as when a transaction has just begun, is sent at that
    /// moment: the clock is not read again.
    fn begin_sending(&mut self, env: &mut Environment<'_>) {
        if self.unanswered || !self.has_sent_since(env.stamp) {
            self.answer(env.now(), env);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_from_the_client_is_recognised() {
        for (statement, copies) in [
            ("COPY t FROM STDIN;", true),
            ("\n copy t (a, b)\nfrom stdin with (format csv)", true),
            ("copy t from '/tmp/file';", false),
            ("copy (select 1) to stdout;", false),
            ("select 1 from stdin;", false),
            ("copy t from;", false),
            ("", false),
        ] {
            assert_eq!(copies_in(statement.as_bytes()), copies, "{statement}");
        }
    }
}
