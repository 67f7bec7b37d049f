//! Takes the scripts and definitions of a run and makes the [`ScriptSet`] of them.

use super::builtin::Builtin;
use super::error::{Problem, ScriptError, ScriptErrors, shown};
use super::variables::{TableBuilder, is_valid_name};
use super::{Script, ScriptSet, WeightedScript, parser};

/// The most scripts of a run; pgbench's limit.
const SCRIPTS_MAX: usize = 128;

/// Which language the scripts are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// pgbench's, and what it refuses and pgmark understands.
    #[default]
    Extended,
    /// pgbench's alone.
    Pgbench,
}

/// Collects scripts and definitions; errors are told together at the end.
#[derive(Debug, Default)]
pub struct ScriptSetBuilder {
    scripts: Vec<WeightedScript>,
    table: TableBuilder,
    any_builtin: bool,
    scripts_given: usize,
    sql_commands: usize,
    errors: Vec<ScriptError>,
}

impl ScriptSetBuilder {
    /// Nothing yet.
    pub fn new(_dialect: Dialect) -> Self {
        ScriptSetBuilder::default()
    }

    /// Adds the script of a file; `name` is what reports and errors call it. Like for pgbench, a
    /// NUL byte ends the text.
    pub fn add_file(&mut self, name: impl Into<String>, text: &[u8], weight: u32) {
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        self.add(name.into(), text, weight);
    }

    /// Adds a builtin script.
    pub fn add_builtin(&mut self, builtin: &'static Builtin, weight: u32) {
        self.any_builtin = true;
        let name = builtin.display_name.to_owned();
        self.add(name, builtin.text.as_bytes(), weight);
    }

    fn add(&mut self, name: String, text: &[u8], weight: u32) {
        self.scripts_given += 1;
        if self.scripts_given > SCRIPTS_MAX {
            return;
        }
        match parser::parse(&name, text, &mut self.table, &mut self.sql_commands) {
            Ok(commands) => self.scripts.push(WeightedScript {
                script: Script { name, commands },
                weight,
            }),
            Err(errors) => self.errors.extend(errors),
        }
    }

    /// Defines a variable for all clients (`-D`). The last definition of a name wins.
    pub fn define(&mut self, name: &[u8], value: &[u8]) {
        if name.is_empty() || value.is_empty() {
            self.error(Problem::BadDefine);
        } else if !is_valid_name(name) {
            self.error(Problem::BadVariableName(shown(name)));
        } else {
            self.table.define(name, value);
        }
    }

    fn error(&mut self, problem: Problem) {
        self.errors.push(ScriptError {
            source: None,
            line: None,
            problem,
            command: None,
            excerpt: None,
        });
    }

    /// All scripts, checked; or all that is wrong with them.
    pub fn finish(mut self) -> Result<ScriptSet, ScriptErrors> {
        if self.scripts_given > SCRIPTS_MAX {
            self.error(Problem::TooManyScripts(SCRIPTS_MAX));
        }
        if self.errors.is_empty() && self.scripts.iter().all(|script| script.weight == 0) {
            self.error(Problem::ZeroWeight);
        }
        if !self.errors.is_empty() {
            return Err(ScriptErrors(self.errors));
        }
        // The automatic variables exist even if no script mentions them: a hash may ask.
        Ok(ScriptSet {
            scripts: self.scripts,
            variables: self.table.finish(),
            any_builtin: self.any_builtin,
            sql_commands: self.sql_commands,
        })
    }
}
