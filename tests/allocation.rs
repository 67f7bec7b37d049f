//! Evaluating numbers allocates nothing.

#[path = "support/allocations.rs"]
mod allocations;
#[path = "support/evaluation.rs"]
mod evaluation;

use allocations::allocations;
use evaluation::Evaluation;

#[test]
fn evaluating_numbers_allocates_nothing() {
    for script in [
        "\\set aid random(1, 100000 * :scale)",
        "\\set d random_gaussian(1, 1000, 2.5) + random_exponential(1, 10, 1.5) \
             - random_zipfian(1, 1000, 1.1)",
        "\\set h hash(:client_id + :scale) % 1000 + permute(5, 100)",
        "\\set x 1\n\\set y :x * 2.5 + sqrt(:scale)\n\\set z least(:x, :y, 7) > 3 and not :y is null",
        "\\set c case when :scale > 1000 then 1 when random(0, 1) = 1 then 2.5 else null end",
    ] {
        let mut evaluation = Evaluation::of(script);
        // Once, until all buffers have their size.
        evaluation.run();
        let counted = allocations(|| (0..1000).for_each(|_| evaluation.run()));
        assert_eq!(counted, 0, "{script}");
        assert!(!evaluation.last().is_empty(), "{script}");
    }
}

#[test]
fn an_allocation_is_counted() {
    let counted = allocations(|| {
        let mut text = std::hint::black_box(Vec::<u8>::with_capacity(1));
        text.extend_from_slice(std::hint::black_box(&[0; 1000]));
        std::hint::black_box(text);
    });
    assert_eq!(counted, 2);
}
