//! What it takes to evaluate the expressions that most scripts have. `make bench` runs it.

#![allow(clippy::print_stdout)]

#[path = "../support/allocations.rs"]
mod allocations;
#[path = "../support/evaluation.rs"]
mod evaluation;

use allocations::allocations;
use evaluation::Evaluation;
use rustix::time::{ClockId, clock_gettime};

const SCRIPTS: [&str; 5] = [
    "\\set aid random(1, 100000 * :scale)",
    "\\set delta random(-5000, 5000)",
    "\\set x random_gaussian(1, 100000, 2.5)",
    "\\set x random_zipfian(1, 100000, 1.5)",
    "\\set x hash(:client_id) % 1000",
];

/// A round takes some hundred microseconds: long against reading the clock, and so short that
/// nothing disturbs most of them.
const EVALUATIONS: u32 = 2_000;
const ROUNDS: u32 = 2_000;

fn main() {
    for script in SCRIPTS {
        let mut evaluation = Evaluation::of(script);
        evaluation.run();
        let mut rounds: Vec<f64> = Vec::new();
        let mut counted = 0;
        for _ in 0..ROUNDS {
            let start_ns = processor_ns();
            counted += allocations(|| (0..EVALUATIONS).for_each(|_| evaluation.run()));
            let spent_ns = processor_ns() - start_ns;
            rounds.push(spent_ns as f64 / f64::from(EVALUATIONS));
        }
        assert!(!evaluation.last().is_empty(), "the work is not left out");
        rounds.sort_by(f64::total_cmp);
        let (best, median) = (rounds[0], rounds[rounds.len() / 2]);
        println!("{best:6.1} ns (median {median:6.1} ns), {counted} allocations: {script}");
    }
}

/// Processor time of this thread: what others do on the machine hardly shows in it.
fn processor_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
