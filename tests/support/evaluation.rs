//! Scripts of `\set` commands, evaluated the way a client does it, without a server.

use pgmark::random::Generator;
use pgmark::script::{
    Automatic, CommandKind, Dialect, EvalContext, Expr, Place, ScriptSet, ScriptSetBuilder, Slot,
    Variables,
};

/// A client that has nothing but variables.
pub struct Evaluation {
    variables: Variables,
    generator: Generator,
    assignments: Vec<(Slot, Expr)>,
}

impl Evaluation {
    /// Of a script that consists of `\set` commands.
    pub fn of(script: &str) -> Evaluation {
        let mut builder = ScriptSetBuilder::new(Dialect::Extended);
        builder.add_file("script", script.as_bytes(), 1);
        let set = builder.finish().expect("the script has no errors");
        let variables = set.variables.initial(&Automatic {
            scale: 100,
            client_id: 0,
            default_seed: Some(1),
            thread_id: 0,
            random_seed: 42,
        });
        Evaluation {
            variables,
            generator: Generator::new(42),
            assignments: assignments(set),
        }
    }

    /// Runs the script once.
    pub fn run(&mut self) {
        for (variable, expression) in &self.assignments {
            let mut context = EvalContext {
                unix_time_us: 0,
                variables: &mut self.variables,
                generator: &mut self.generator,
                messages: &mut |_| {},
                place: Place {
                    script: 0,
                    command: 0,
                },
            };
            let value = expression.evaluate(&mut context);
            let value = value.expect("the script's expressions have values");
            let set = self.variables.set(*variable, value);
            set.expect("the script's variables have valid names");
        }
    }

    /// The text of the variable that was set last.
    pub fn last(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let (variable, _) = self.assignments.last().expect("a script is never empty");
        self.variables.append_parameter(*variable, &mut text);
        text
    }
}

fn assignments(set: ScriptSet) -> Vec<(Slot, Expr)> {
    let scripts = set.scripts.into_iter().map(|script| script.script);
    let commands = scripts.flat_map(|script| script.commands);
    commands
        .map(|command| match command.kind {
            CommandKind::Set {
                variable,
                expression,
            } => (variable, expression),
            other => panic!("not a \\set: {other:?}"),
        })
        .collect()
}
