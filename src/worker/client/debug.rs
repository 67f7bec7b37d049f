//! What `--debug` tells: each thing that a client does, as it does it. It is not meant for measuring.

use crate::event::Level;
use crate::plan::QueryMode;
use crate::script::Command;

use super::{Client, Environment};

impl Client {
    /// A script begins.
    pub(super) fn debug_script(&self, env: &mut Environment<'_>) {
        if env.run.plan.debug {
            let name = &env.run.script(self.transaction.script).name;
            self.debug(&format!("executing script \"{name}\""), env);
        }
    }

    /// A command is executed: SQL as it is sent, or the name of the prepared statement.
    pub(super) fn debug_command(&self, command: &Command, env: &mut Environment<'_>) {
        if !env.run.plan.debug {
            return;
        }
        let what = match (command.kind.sql(), env.run.plan.query_mode) {
            (None, _) => format!("executing {}", command.excerpt()),
            (Some(sql), QueryMode::Prepared) => {
                format!("sending {}", env.run.statement_name(sql).to_string_lossy())
            }
            (Some(sql), QueryMode::Extended) => {
                format!("sending {}", String::from_utf8_lossy(sql.parameterized()))
            }
            (Some(sql), QueryMode::Simple) => {
                let mut text = Vec::new();
                sql.append_simple(&self.variables, &mut text);
                format!("sending {}", String::from_utf8_lossy(&text))
            }
        };
        self.debug(&what, env);
    }

    /// Bytes have arrived.
    pub(super) fn debug_input(&self, env: &mut Environment<'_>) {
        if env.run.plan.debug {
            self.debug("receiving", env);
        }
    }

    fn debug(&self, what: &str, env: &mut Environment<'_>) {
        let text = format!("client {} {what}", self.id);
        env.recorder.say(Level::Info, text);
    }
}
