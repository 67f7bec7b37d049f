//! What evaluating an expression costs: `cargo bench --bench evaluation` prints nanoseconds for each
//! evaluation, the best of several rounds.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use pgmark::random::Generator;
use pgmark::script::{
    Automatic, CommandKind, Dialect, EvalContext, Expr, Place, ScriptSetBuilder, Slot, Variables,
};

const EXPRESSIONS: [&str; 4] = [
    "random(1, 100000 * :scale)",
    ":scale + 1",
    "random_zipfian(1, 1000000, 1.5)",
    "case when :scale > 5 and :scale < 10 then abs(:scale) else hash(:scale, 7) end",
];

const ROUNDS: u32 = 20;
const EVALUATIONS_PER_ROUND: u32 = 50_000;

fn main() {
    for text in EXPRESSIONS {
        let mut builder = ScriptSetBuilder::new(Dialect::Extended);
        builder.add_file("bench", format!("\\set x {text}\n").as_bytes(), 1);
        let set = builder.finish().expect("the expressions are right");
        let variables = set.variables.initial(&Automatic {
            scale: 10,
            client_id: 0,
            default_seed: Some(1),
            random_seed: 1,
            thread_id: 0,
        });
        let CommandKind::Set {
            variable,
            expression,
        } = &set.scripts[0].script.commands[0].kind
        else {
            unreachable!("the script is one \\set");
        };
        println!(
            "{:7.1} ns  \\set x {text}",
            best_ns(*variable, expression, variables)
        );
    }
}

fn best_ns(variable: Slot, expression: &Expr, mut variables: Variables) -> f64 {
    let mut generator = Generator::new(42);
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..EVALUATIONS_PER_ROUND {
                let mut context = EvalContext {
                    variables: &mut variables,
                    generator: &mut generator,
                    messages: &mut |_| {},
                    place: Place {
                        script: 0,
                        command: 0,
                    },
                    unix_time_us: 0,
                };
                let value = black_box(expression).evaluate(&mut context);
                let value = value.expect("the expressions have values");
                variables.set(variable, value).expect("the name is valid");
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(EVALUATIONS_PER_ROUND)
        })
        .fold(f64::INFINITY, f64::min)
}
