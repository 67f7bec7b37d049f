//! Making and ending a client's connection: endpoint after endpoint, socket first, then the
//! start-up exchange up to the first ReadyForQuery.

use crate::conninfo::{
    self, Addresses, AttemptFailure, Attempts, Endpoint, Question, ServerState, Verdict,
};
use crate::error::Report;
use crate::event::{ClientEnd, ConnectionRecord, Event, Level, LossCause, SpanKind};
use crate::protocol::{DataRow, ProtocolError, ServerMessage, TransactionStatus};
use crate::random::Generator;
use crate::time::Timestamp;
use crate::transport::Security;

use super::super::control::Notice;
use super::recovery::{Resume, passing_cause};
use super::{Action, Client, Environment, Progress, State, Then};

/// A connection that is being made, and how the present one was made.
#[derive(Debug)]
pub(super) struct Attempt {
    attempts: Attempts,
    /// Chooses hosts, if they are to be tried in random order.
    generator: Generator,
    /// When the first of the attempts began.
    started_at: Timestamp,
    /// When the present one has taken too long.
    deadline: Option<Timestamp>,
    /// Why the present one failed: the first reason is the true one.
    failure: Option<AttemptFailure>,
    /// Why the last one failed, if that may pass.
    cause: Option<LossCause>,
    /// How the bytes of the present connection travel.
    security: Security,
    /// What the server has said of its kind.
    server: ServerState,
}

impl Attempt {
    pub(super) fn new(addresses: &Addresses, mut generator: Generator) -> Self {
        Attempt {
            attempts: addresses.attempts(|bound| generator.index_below(bound)),
            generator,
            started_at: Timestamp::ZERO,
            deadline: None,
            failure: None,
            cause: None,
            security: Security::Plain,
            server: ServerState::default(),
        }
    }

    pub(super) fn endpoint(&self) -> Option<&Endpoint> {
        self.attempts.current().map(|attempt| attempt.endpoint)
    }

    /// What is tried at present.
    pub(super) fn current(&self) -> Option<conninfo::Attempt<'_>> {
        self.attempts.current()
    }

    /// Whether the present connection is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.security.description().is_some()
    }

    /// A random number from 0 to 1.
    pub(super) fn chance(&mut self) -> f64 {
        self.generator.double()
    }

    /// A setting that the server reports.
    pub(super) fn note_parameter(&mut self, name: &[u8], value: &[u8]) {
        self.server.note_parameter(name, value);
    }

    pub(super) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub(super) fn deadline(&self) -> Timestamp {
        self.deadline.unwrap_or(Timestamp::MAX)
    }

    /// The server has answered with an error.
    pub(super) fn refuse(&mut self, message: &ServerMessage<'_>) {
        self.failure.get_or_insert_with(|| AttemptFailure::Refused {
            sqlstate: message.sqlstate(),
            message: message.to_string(),
        });
    }

    /// The answer to a question about the server's kind.
    pub(super) fn note_answer(&mut self, question: Question, row: &DataRow<'_>) {
        if let Some(Some(answer)) = row.values().next() {
            self.server.note_answer(question, answer);
        }
    }

    /// What the server says or asks for is not what we accept.
    pub(super) fn refuse_server(&mut self, reason: ProtocolError) {
        self.failure.get_or_insert_with(|| reason.into());
    }

    pub(super) fn fail(&mut self, reason: &str) {
        self.failure
            .get_or_insert_with(|| AttemptFailure::Unreachable(reason.to_owned()));
    }
}

impl Client {
    /// Begins to connect.
    pub fn connect(&mut self, env: &mut Environment<'_>) {
        self.attempt.started_at = env.now();
        let generator = &mut self.attempt.generator;
        self.attempt.attempts = env
            .run
            .addresses
            .attempts(|bound| generator.index_below(bound));
        self.try_endpoint(env);
    }

    /// Tries the endpoint whose turn it is, or gives up if there is none left.
    fn try_endpoint(&mut self, env: &mut Environment<'_>) {
        if self.endpoint().is_none() {
            return self.give_up(env);
        }
        let timeout = env.run.target.connect_timeout;
        self.attempt.deadline = timeout.map(|timeout| env.now() + timeout);
        self.attempt.failure = None;
        self.attempt.server = ServerState::default();
        self.open();
    }

    /// Asks for a socket.
    pub(super) fn open(&mut self) {
        self.state = State::Connecting;
        self.action = Some(Action::Open);
    }

    /// The socket could not even begin to connect, because the server has too many waiting.
    pub fn open_again_at(&mut self, moment: Timestamp) {
        self.state = State::Backlogged { until: moment };
    }

    /// The socket is connected, and secured like this: the start-up exchange begins.
    pub fn handle_transport_ready(&mut self, security: Security, env: &mut Environment<'_>) {
        if self.state != State::Connecting || self.session.is_started() {
            return;
        }
        if security == Security::Refused {
            self.attempt.attempts.go_on_plain();
        }
        self.attempt.security = security;
        let Some(attempt) = self.attempt.attempts.current() else {
            return;
        };
        self.statements.forget();
        let startup = env.run.startup(attempt.host, &self.attempt.security);
        if let Err(error) = self.session.start(&startup) {
            self.attempt.refuse_server(error);
            self.fail_attempt(env);
        }
    }

    /// The attempt has ended before there was a socket that a session can begin on.
    pub fn handle_unopened(&mut self, failure: AttemptFailure, env: &mut Environment<'_>) {
        if matches!(self.state, State::Connecting | State::Backlogged { .. }) {
            self.attempt.failure.get_or_insert(failure);
            self.session.reset();
            self.next_attempt(env);
        }
    }

    /// The server has let us in. It may not be of the kind that is wanted.
    pub(super) fn handle_started(&mut self, env: &mut Environment<'_>) {
        match self.attempt.attempts.judge(self.attempt.server) {
            Verdict::Suitable => self.handle_suitable(env),
            Verdict::Unsuitable(reason) => {
                let failure = AttemptFailure::Unsuitable(reason);
                self.attempt.failure.get_or_insert(failure);
                self.fail_attempt(env);
            }
            Verdict::Ask(question) => {
                self.reply.clear();
                self.session.want_rows(true);
                self.state = State::Judging(question);
                let sql = question.sql().as_bytes();
                if let Err(error) = self.session.simple_query(|out| out.extend_from_slice(sql)) {
                    self.attempt.fail(&error.to_string());
                    self.fail_attempt(env);
                }
            }
        }
    }

    /// The server has answered what it was asked about its kind.
    pub(super) fn handle_judged(&mut self, env: &mut Environment<'_>) {
        if self.reply.has_error() {
            let error = self.reply.take_error();
            self.attempt.fail(&error.text);
            return self.fail_attempt(env);
        }
        self.session.want_rows(false);
        self.handle_started(env);
    }

    fn handle_suitable(&mut self, env: &mut Environment<'_>) {
        self.record_connect(SpanKind::Connect, env.stamp, env);
        self.introduce(env);
        let Some(sql) = &env.run.plan.on_connect else {
            return self.handle_connected(env);
        };
        self.reply.clear();
        self.state = State::Greeting { since: env.stamp };
        if let Err(error) = self.session.simple_query(|out| out.extend_from_slice(sql)) {
            self.refuse_greeting(&error.to_string(), env);
        }
    }

    /// The commands that the connection begins with have been answered.
    pub(super) fn handle_greeted(&mut self, since: Timestamp, env: &mut Environment<'_>) {
        env.recorder.record(Event::Connection(ConnectionRecord {
            client: self.id,
            kind: SpanKind::OnConnect,
            started_at: since,
            finished_at: env.stamp,
        }));
        if self.reply.has_error() {
            let error = self.reply.take_error();
            return self.refuse_greeting(&error.text, env);
        }
        if self.session.transaction_status() != TransactionStatus::Idle {
            let problem = "they leave a transaction open; end it with COMMIT";
            return self.refuse_greeting(problem, env);
        }
        self.handle_connected(env);
    }

    /// A connection that does not begin as it should is of no use.
    fn refuse_greeting(&mut self, problem: &str, env: &mut Environment<'_>) {
        let report = Report::new(format!("the commands of --on-connect failed: {problem}"));
        self.report_failure(report, env);
        self.close(Then::End(ClientEnd::Aborted), env);
    }

    /// The connection is there, with everything that it begins with.
    fn handle_connected(&mut self, env: &mut Environment<'_>) {
        self.unanswered = true;
        if !self.launched {
            self.launched = true;
            self.state = State::Standby;
            return;
        }
        self.transaction.connecting_ns = env.stamp.nanos_since(self.attempt.started_at);
        match self.recovery.take() {
            Some(recovery) => self.go_on(recovery, env),
            None => self.begin_transaction(env),
        }
    }

    fn introduce(&mut self, env: &Environment<'_>) {
        if self.introduced {
            return;
        }
        let endpoint = self.attempt.endpoint().cloned();
        if let Some((endpoint, method)) = endpoint.zip(self.session.authentication()) {
            self.introduced = true;
            let tls = self.attempt.security.description().map(str::to_owned);
            let _ = env.notices.send(Notice::Authenticated {
                endpoint,
                tls,
                method,
            });
        }
    }

    pub(super) fn handle_connect_timeout(&mut self, env: &mut Environment<'_>) {
        if self.attempt.deadline() <= env.stamp {
            self.attempt.failure.get_or_insert(AttemptFailure::TimedOut);
            self.fail_attempt(env);
        }
    }

    /// The attempt has failed: its socket is closed, and the next endpoint tried if there is one.
    pub(super) fn fail_attempt(&mut self, env: &mut Environment<'_>) {
        if self.session.is_started() {
            self.session.terminate();
        }
        self.state = State::Closing {
            since: env.now(),
            then: Then::NextAttempt,
        };
        self.action = Some(Action::Close);
    }

    pub(super) fn next_attempt(&mut self, env: &mut Environment<'_>) {
        self.attempt.fail("the connection was closed");
        if let Some(failure) = self.attempt.failure.take() {
            self.attempt.cause = passing_cause(&failure);
            self.attempt.attempts.fail(failure);
        }
        self.try_endpoint(env);
    }

    fn give_up(&mut self, env: &mut Environment<'_>) {
        let report = self.attempt.attempts.report(&env.run.target);
        let now = env.now();
        self.record_connect(SpanKind::ConnectFailed, now, env);
        if let Some(cause) = self.attempt.cause {
            match (self.may_recover(env), self.outlives_losses(env)) {
                (true, _) => return self.retry_later(cause, env),
                // The run is over, and it would have tried again.
                (false, true) => return self.end(ClientEnd::Finished, now, env),
                (false, false) => {}
            }
        }
        self.report_failure(report, env);
        self.end(ClientEnd::Aborted, now, env);
    }

    /// Before the start a connection that cannot be made ends the run, later the client.
    fn report_failure(&mut self, report: Report, env: &mut Environment<'_>) {
        if self.progress() == Progress::Connecting {
            let _ = env.notices.send(Notice::ConnectFailed {
                client: self.id,
                report,
            });
        } else {
            let id = self.id;
            env.recorder.say(
                Level::Error,
                format!("client {id} aborted while establishing connection: {report}"),
            );
        }
    }

    /// The end of the window, or a stop, has come before the connection was made.
    pub(super) fn cut_connect(&mut self, env: &mut Environment<'_>) {
        let now = env.now();
        self.record_connect(SpanKind::ConnectCut, now, env);
        self.state = State::Closing {
            since: now,
            then: Then::End(ClientEnd::Finished),
        };
        self.action = Some(Action::Close);
    }

    fn record_connect(&mut self, kind: SpanKind, at: Timestamp, env: &mut Environment<'_>) {
        env.recorder.record(Event::Connection(ConnectionRecord {
            client: self.id,
            kind,
            started_at: self.attempt.started_at,
            finished_at: at,
        }));
    }

    /// Says goodbye and closes; `then` says what follows.
    pub(super) fn close(&mut self, then: Then, env: &mut Environment<'_>) {
        let since = env.now();
        // In an open pipeline the goodbye would be held back until there is more.
        self.statements.leave_pipeline();
        if self.session.is_started() {
            self.session.terminate();
        }
        self.state = State::Closing { since, then };
        self.action = Some(Action::Close);
    }

    /// The socket that was to be closed is closed.
    pub fn handle_closed(&mut self, env: &mut Environment<'_>) {
        let State::Closing { since, then } = self.state else {
            return;
        };
        let now = env.now();
        if self.session.is_started() && then != Then::NextAttempt {
            env.recorder.record(Event::Connection(ConnectionRecord {
                client: self.id,
                kind: SpanKind::Disconnect,
                started_at: since,
                finished_at: now,
            }));
        }
        self.session.reset();
        match then {
            Then::NextAttempt => self.next_attempt(env),
            Then::NextTransaction => self.next_transaction(env),
            Then::End(end) => self.end(end, since, env),
        }
    }

    /// Forgets a connection that is gone, which is told as a disconnect that took no time.
    pub(super) fn drop_session(&mut self, env: &mut Environment<'_>) {
        if self.session.is_started() {
            env.recorder.record(Event::Connection(ConnectionRecord {
                client: self.id,
                kind: SpanKind::Disconnect,
                started_at: env.stamp,
                finished_at: env.stamp,
            }));
        }
        self.session.reset();
    }

    /// The connection is gone, without our doing.
    pub fn handle_lost(&mut self, reason: &str, env: &mut Environment<'_>) {
        match self.state {
            State::Connecting | State::Judging(_) | State::Backlogged { .. } => {
                self.attempt.fail(reason);
                self.session.reset();
                self.next_attempt(env);
            }
            State::Greeting { .. } if self.outlives_losses(env) => {
                let error = self.reply.take_last_words(reason);
                let cause = LossCause::of(error.sqlstate, &error.text);
                self.drop_session(env);
                match self.may_recover(env) {
                    true => self.retry_later(cause, env),
                    false => self.end(ClientEnd::Finished, env.now(), env),
                }
            }
            State::Greeting { .. } => {
                let reason = self.reply.take_last_words(reason).text;
                let report = Report::new(format!(
                    "the connection was lost in the commands of --on-connect: {reason}"
                ));
                self.report_failure(report, env);
                self.drop_session(env);
                self.end(ClientEnd::Aborted, env.now(), env);
            }
            State::Standby => self.lose_before_start(reason, env),
            State::Working(_) => self.lose_transaction(reason, env),
            State::Ramping { until } => self.lose_between(reason, Resume::Ramp(until), env),
            State::Throttled { .. } => self.lose_between(reason, Resume::Held, env),
            State::Choosing | State::Skipping => self.lose_between(reason, Resume::Next, env),
            State::Idle | State::Recovering { .. } | State::Done => {}
            State::Closing { .. } => self.handle_closed(env),
        }
    }

    fn lose_before_start(&mut self, reason: &str, env: &mut Environment<'_>) {
        let reason = self.reply.take_last_words(reason).text;
        let place = self
            .endpoint()
            .map_or_else(String::new, |endpoint| format!(" to {endpoint}"));
        let report = Report::new(format!(
            "the connection{place} was lost before the start of the run: {reason}"
        ));
        let _ = env.notices.send(Notice::ConnectFailed {
            client: self.id,
            report,
        });
        self.session.reset();
        self.end(ClientEnd::Aborted, env.now(), env);
    }

    /// Lost while no transaction was under way.
    fn lose_between(&mut self, reason: &str, resume: Resume, env: &mut Environment<'_>) {
        let error = self.reply.take_last_words(reason);
        if self.outlives_losses(env) {
            return self.recover(error.sqlstate, &error.text, resume, env);
        }
        let text = format!(
            "client {} aborted: connection lost: {}",
            self.id, error.text
        );
        env.recorder.say(Level::Error, text);
        self.drop_session(env);
        self.end(ClientEnd::Aborted, env.stamp, env);
    }
}
