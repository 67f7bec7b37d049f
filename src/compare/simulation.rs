//! Comparisons of many simulated runs, whose truth is known: how often a verdict is right. The runs
//! are whole ones in virtual time, against a server whose times are drawn.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::estimate::{self, estimate};
use super::figures::Family;
use super::{Direction, Estimate, Method, Verdict};
use crate::archive::{Document, Identity};
use crate::plan::{KeepPlan, Load, StopRule};
use crate::result::testing::three_transactions;
use crate::result::{Measured, RunResult};
use crate::stats::Histogram;
use crate::worker::testing::{Answer, Treatment, simulate, time};

/// A run of one client over ten seconds with `tps` transactions a second, all of the same latency.
pub(super) fn document(id: &str, seed: u64, tps: u64) -> Document {
    let mut result = three_transactions();
    let measured = &mut result.measured;
    let client = &mut measured.clients[0];
    client.processed_by_script = vec![tps * 10];
    client.ends = client.starts + Duration::from_secs(10);
    measured.total.processed = tps * 10;
    measured.total.latency = Histogram::new();
    measured
        .total
        .latency
        .record_many(1_000_000_000 / tps.max(1), tps * 10);
    kept(id, seed, result)
}

fn kept(id: &str, seed: u64, mut result: RunResult) -> Document {
    result.facts.seed = seed;
    result.facts.build.debug = false;
    let run = Identity {
        id: id.to_owned(),
        ..Identity::new(&KeepPlan::default(), 0)
    };
    Document::new(result, run, 0)
}

/// Roughly normal numbers of mean 0 and spread 1: twelve uniform ones, summed.
struct Normal(Xoshiro256PlusPlus);

impl Normal {
    fn of_seed(seed: u64) -> Self {
        Normal(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn next(&mut self) -> f64 {
        let uniform =
            |generator: &mut Xoshiro256PlusPlus| generator.next_u64() as f64 / u64::MAX as f64;
        (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
    }
}

/// How long the simulated server takes, on average.
const SERVICE_NS: f64 = 4e6;

/// A run of one client against a server that takes `service_ns` on average, a fifth more or less;
/// `carry` of each deviation is carried over to the next transaction.
fn run(load: Load, service_ns: f64, carry: f64, seed: u64) -> Measured {
    let mut normal = Normal::of_seed(seed);
    let mut deviation = normal.next();
    let answer = move |_| {
        deviation = carry * deviation + normal.next() * (1.0 - carry * carry).sqrt();
        Answer::DoneAfterNs((service_ns * (1.0 + 0.2 * deviation)).max(1.0) as u64)
    };
    let client = Treatment {
        connect_ms: 0,
        answer: Box::new(answer),
    };
    simulate(load, vec![client], None)
}

/// What five repeats of a base and of something new with `effect` times the service time tell of
/// throughput. They take turns as A B B A A B B A A B; each takes 2 % more or less than the one before,
/// and `drift` more with each that came earlier.
fn trial(number: u64, effect: f64, drift: f64, method: Method) -> Estimate {
    let load = Load {
        stop: StopRule::Transactions(50),
        ..time(1)
    };
    let mut between_runs = Normal::of_seed(1_000_000 + number);
    let mut sides = [Vec::new(), Vec::new()];
    for place in 0..10_u64 {
        let side = (place.div_ceil(2) % 2) as usize;
        let effect = [1.0, effect][side];
        let luck = (0.02 * between_runs.next() + drift * place as f64).exp();
        let service_ns = SERVICE_NS * effect * luck;
        let measured = run(load.clone(), service_ns, 0.5, number * 10 + place);
        sides[side].push(measured.tps());
    }
    estimate(&sides[0], &sides[1], method, Family::Throughput.doubt()).expect("all have throughput")
}

const TRIALS: u64 = 200;

/// How many trials say this of throughput, and the average of the smallest differences that
/// they call visible.
fn said(verdict: Verdict, effect: f64, drift: f64, method: Method) -> (usize, f64) {
    let estimates: Vec<Estimate> = (0..TRIALS)
        .map(|number| trial(number, effect, drift, method))
        .collect();
    let visible = estimates.iter().filter_map(|estimate| estimate.visible);
    let mean = visible.sum::<f64>() / TRIALS as f64;
    let say = estimates
        .iter()
        .filter(|estimate| estimate::verdict(Some(estimate), Direction::HigherIsBetter) == verdict);
    (say.count(), mean)
}

#[test]
fn runs_of_the_same_are_rarely_called_different_and_differences_that_are_visible_are_found() {
    for method in [Method::Welch, Method::Paired] {
        let (silent, visible) = said(Verdict::NoDifferenceShown, 1.0, 0.0, method);
        let (found, _) = said(Verdict::Worse, 1.0 + visible, 0.0, method);
        let (half, _) = said(Verdict::Worse, 1.0 + visible / 2.0, 0.0, method);
        let told = format!("{method:?}: {silent} silent; {visible} found {found}, its half {half}");
        assert!(silent >= 188, "{told}");
        assert!(found >= 170, "{told}");
        // What is called visible is no more than that: half of it is not.
        assert!(half < 130, "{told}");
    }
}

#[test]
fn drift_over_the_night_makes_no_difference_and_hides_none_in_pairs() {
    let drift = 0.05;
    let (silent, visible) = said(Verdict::NoDifferenceShown, 1.0, drift, Method::Paired);
    let (found, _) = said(Verdict::Worse, 1.0 + visible, drift, Method::Paired);
    assert!(silent >= 188, "{silent} of {TRIALS}");
    assert!(found >= 170, "{visible} was found in {found} of {TRIALS}");
    // Without pairs the drift would hide it.
    let (found, _) = said(Verdict::Worse, 1.0 + visible, drift, Method::Welch);
    assert!(found < 170);
}

#[test]
fn the_noise_in_a_run_covers_what_a_longer_run_would_have_shown() {
    let carry = 0.98;
    let covered = |value: fn(&Measured) -> (f64, Option<f64>), truth: f64| {
        let of_run = |seed| {
            let (found, width) = value(&run(time(10), SERVICE_NS, carry, seed));
            width.map(|width| (found - truth).abs() <= width * found)
        };
        let told: Vec<bool> = (0..TRIALS).filter_map(of_run).collect();
        let covered = told.iter().filter(|it| **it).count();
        (covered as f64 / told.len() as f64, told.len())
    };
    let latency = |measured: &Measured| {
        let noise = measured.noise().and_then(|noise| noise.latency.ok());
        (measured.total.latency.mean_ns(), noise)
    };
    let throughput = |measured: &Measured| {
        let noise = measured.noise().and_then(|noise| noise.throughput.ok());
        (measured.tps(), noise)
    };
    for (what, (share, told)) in [
        ("latency", covered(latency, SERVICE_NS)),
        ("throughput", covered(throughput, 1e9 / SERVICE_NS)),
    ] {
        assert!(told as u64 >= TRIALS * 9 / 10, "{what}: {told} intervals");
        assert!((0.91..=0.99).contains(&share), "{what}: {share}");
    }
}
