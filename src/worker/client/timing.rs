//! How long each command takes, where commands are reported. Without that no clock is read here.

use std::collections::VecDeque;

use crate::event::{CommandEnd, CommandRecord, Event};
use crate::time::Timestamp;

use super::{Client, Environment};

/// The commands of a client whose end is awaited.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// When the command whose turn it is began.
    begun: Option<Timestamp>,
    /// SQL commands in a pipeline that are not answered yet, in order, each with its beginning.
    piped: VecDeque<(usize, Timestamp)>,
    /// The command in a pipeline that was answered with an error.
    failed: Option<usize>,
}

impl Timing {
    /// A new try begins.
    pub(super) fn clear(&mut self) {
        self.begun = None;
        self.piped.clear();
        self.failed = None;
    }

    /// The server has answered with an error. In a pipeline that is the answer to the earliest
    /// command that is not answered yet, and which of those after it are answered is not known.
    pub(super) fn note_error(&mut self) {
        if let Some((command, _)) = self.piped.front() {
            self.failed = Some(*command);
        }
        self.piped.clear();
    }
}

impl Client {
    /// The command whose turn it is begins, unless it goes on after its statements were prepared.
    pub(super) fn begin_command(&mut self, env: &Environment<'_>) {
        if env.run.plan.per_command && self.timing.begun.is_none() {
            self.timing.begun = Some(env.now());
        }
    }

    /// The command that began last was executed without anything to wait for.
    pub(super) fn command_went_on(&mut self, command: usize, env: &mut Environment<'_>) {
        if self.timing.begun.is_some() {
            self.command_done(command, env.now(), env);
        }
    }

    /// What the command that began last waited for was there at `stamp`.
    pub(super) fn command_done(
        &mut self,
        command: usize,
        stamp: Timestamp,
        env: &mut Environment<'_>,
    ) {
        if let Some(begun) = self.timing.begun.take() {
            self.record_command(command, CommandEnd::Done, stamp.nanos_since(begun), env);
        }
    }

    /// The SQL command that began last was sent in a pipeline; its answer comes later.
    pub(super) fn command_piped(&mut self, command: usize) {
        if let Some(begun) = self.timing.begun.take() {
            self.timing.piped.push_back((command, begun));
        }
    }

    /// A result is complete: in a pipeline, that of the earliest command that is not answered yet.
    pub(super) fn piped_command_done(&mut self, env: &mut Environment<'_>) {
        if let Some((command, begun)) = self.timing.piped.pop_front() {
            let duration_ns = env.stamp.nanos_since(begun);
            self.record_command(command, CommandEnd::Done, duration_ns, env);
        }
    }

    /// The transaction has failed in the command whose turn it is, or in one of a pipeline.
    pub(super) fn command_failed(&mut self, end: CommandEnd, env: &mut Environment<'_>) {
        if !env.run.plan.per_command {
            return;
        }
        let command = self.timing.failed.unwrap_or(self.transaction.cursor);
        self.record_command(command, end, 0, env);
        self.timing.clear();
    }

    fn record_command(
        &mut self,
        command: usize,
        end: CommandEnd,
        duration_ns: u64,
        env: &mut Environment<'_>,
    ) {
        env.recorder.record(Event::Command(CommandRecord {
            client: self.id,
            // There are at most 128 scripts.
            script: self.transaction.script as u8,
            // A script with more commands would not fit into memory.
            command: command as u32,
            phase: env.window.phase(self.transaction.scheduled_at),
            end,
            duration_ns,
        }));
    }
}
