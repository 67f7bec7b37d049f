//! Takes the scripts and definitions of a run and makes the [`ScriptSet`] of them.

use super::builtin::Builtin;
use super::error::{Problem, ScriptError, ScriptErrors, shown};
use super::variables::{TableBuilder, is_valid_name};
use super::{Dialect, Script, ScriptSet, WeightedScript, parser};

/// The most scripts of a run; pgbench's limit.
const SCRIPTS_MAX: usize = 128;

/// Collects scripts and definitions; errors are told together at the end.
#[derive(Debug, Default)]
pub struct ScriptSetBuilder {
    dialect: Dialect,
    scripts: Vec<WeightedScript>,
    table: TableBuilder,
    any_builtin: bool,
    scripts_given: usize,
    sql_commands: usize,
    errors: Vec<ScriptError>,
}

impl ScriptSetBuilder {
    /// Nothing yet.
    pub fn new(dialect: Dialect) -> Self {
        ScriptSetBuilder {
            dialect,
            ..ScriptSetBuilder::default()
        }
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
        let parser =
            parser::Parser::new(self.dialect, &name, &mut self.table, &mut self.sql_commands);
        match parser.parse(text) {
            Ok(commands) => self.scripts.push(WeightedScript {
                script: Script { name, commands },
                weight,
            }),
            Err(errors) => self.errors.extend(errors),
        }
    }

    /// Defines a variable for all clients (`-D NAME=VALUE`). The last definition of a name wins.
    pub fn define(&mut self, definition: &[u8]) {
        let sign = definition.iter().position(|&byte| byte == b'=');
        let (name, value) = match sign {
            Some(sign) => (&definition[..sign], &definition[sign + 1..]),
            None => (definition, &b""[..]),
        };
        if name.is_empty() || value.is_empty() {
            self.error(Problem::BadDefine(shown(definition)));
        } else if !is_valid_name(name) {
            self.error(Problem::BadVariableName {
                name: shown(name),
                definition: shown(definition),
            });
        } else {
            self.table.define(name, value);
        }
    }

    /// Fails with all that is wrong with what was added so far, if anything is; it is not told again.
    ///
    /// # Errors
    /// Those of scripts and definitions.
    pub fn check(&mut self) -> Result<(), ScriptErrors> {
        match std::mem::take(&mut self.errors) {
            errors if errors.is_empty() => Ok(()),
            errors => Err(ScriptErrors(errors)),
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
        Ok(ScriptSet {
            scripts: self.scripts,
            variables: self.table.finish(self.dialect),
            any_builtin: self.any_builtin,
            sql_commands: self.sql_commands,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Seeds};
    use crate::script::builtin;

    fn build(scripts: &[(&str, u32)]) -> Result<ScriptSet, ScriptErrors> {
        let mut builder = ScriptSetBuilder::new(Dialect::Pgbench);
        for (text, weight) in scripts {
            builder.add_file("s.sql", text.as_bytes(), *weight);
        }
        builder.finish()
    }

    fn codes(errors: &ScriptErrors) -> Vec<&'static str> {
        errors.0.iter().map(|error| error.problem.code()).collect()
    }

    #[test]
    fn scripts_are_chosen_as_pgbench_chooses() {
        let set = build(&[("a;", 3), ("b;", 1)]).expect("two scripts");
        for (seed_given, expected) in [
            (false, [1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1]),
            (true, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let seeds = Seeds::draw(42, 1, 1, seed_given);
            let mut choose = Generator::new(seeds.threads[0].choose);
            let chosen: Vec<usize> = (0..16).map(|_| set.choose(&mut choose)).collect();
            assert_eq!(chosen, expected);
        }
    }

    #[test]
    fn a_single_script_is_chosen_without_a_draw_and_a_weightless_one_never() {
        let mut generator = Generator::new(1);
        let untouched = generator.clone();
        let single = build(&[("a;", 1)]).expect("one script");
        assert_eq!(single.choose(&mut generator), 0);
        assert_eq!(generator, untouched);
        let pair = build(&[("a;", 0), ("b;", 2), ("c;", 0)]).expect("three scripts");
        assert!((0..100).all(|_| pair.choose(&mut generator) == 1));
    }

    #[test]
    fn what_cannot_run_is_refused() {
        for (scripts, expected) in [
            (&[("", 1)][..], &["empty-script"][..]),
            (&[("a;", 0), ("b;", 0)], &["zero-weight"]),
            (
                &[("\\foo\n", 0), ("\\set\n", 0)],
                &["unknown-command", "missing-arg"],
            ),
            (&[("\0a;", 1)], &["empty-script"]),
            (&[], &["zero-weight"]),
        ] {
            assert_eq!(codes(&build(scripts).expect_err("refused")), expected);
        }
        assert!(build(&[("a;", 1); SCRIPTS_MAX]).is_ok());
        let errors = build(&[("a;", 1); SCRIPTS_MAX + 1]).expect_err("one too many");
        assert_eq!(codes(&errors), ["too-many-scripts"]);
    }

    #[test]
    fn definitions_are_checked() {
        let mut builder = ScriptSetBuilder::new(Dialect::Pgbench);
        for definition in [&b"x="[..], b"=1", b"a b=1", b"\xe9=\xff"] {
            builder.define(definition);
        }
        assert_eq!(
            codes(&builder.finish().expect_err("three are bad")),
            ["bad-define", "bad-define", "bad-var-name"]
        );
    }

    #[test]
    fn commands_with_many_variables_can_only_be_sent_as_text() {
        let uses = |count: usize| format!("select {};", ":x ".repeat(count));
        assert!(build(&[(&uses(255), 1)]).is_ok_and(|set| set.check_parameters().is_ok()));
        let set = build(&[("a;", 1), (&uses(256), 1)]).expect("fine in simple mode");
        let errors = set.check_parameters().expect_err("one too many");
        assert_eq!(codes(&errors), ["too-many-params"]);
    }

    #[test]
    fn builtin_scripts_parse_and_count_their_commands() {
        let mut builder = ScriptSetBuilder::new(Dialect::Pgbench);
        for builtin in &builtin::BUILTINS {
            builder.add_builtin(builtin, 1);
        }
        let set = builder.finish().expect("they are right");
        let commands: Vec<usize> = set
            .scripts
            .iter()
            .map(|script| script.script.commands.len())
            .collect();
        assert_eq!(commands, [11, 9, 2]);
        assert_eq!(set.sql_commands, 7 + 5 + 1);
        assert!(set.any_builtin);
    }
}
