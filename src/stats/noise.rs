//! How much of a figure is noise of the run itself: 95 % intervals from batch means. They say
//! nothing about another run; only repeats do.

use super::series::{Point, Series, merged};
use super::student::student_t;

/// Noise within one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Half width of the 95 % interval of throughput as a share of it.
    pub throughput: Result<f64, Untold>,
    /// Half width of the 95 % interval of mean latency as a share of it.
    pub latency: Result<f64, Untold>,
    /// Throughput of the first and the second half of the window, per second.
    pub halves: [f64; 2],
}

/// Why noise cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// The window has fewer points of time than batches are needed.
    ShortWindow,
    /// There are fewer transactions than samples are needed.
    FewTransactions,
    /// What was measured drifts, so that batches depend on each other.
    Drift,
}

/// Batches that the points are merged into. Fewer say too little about the spread; more would be
/// so short that each depends on the one before.
const BATCHES: std::ops::RangeInclusive<usize> = 20..=60;
/// Below this many effective samples an interval would itself be noise.
const MIN_EFFECTIVE: f64 = 5.0;

impl Noise {
    /// The noise in the first `window_ns` of the series, its last partial point left out of the
    /// intervals. `None` if the window is empty.
    pub fn of(series: &Series, window_ns: u64) -> Option<Noise> {
        if window_ns == 0 {
            return None;
        }
        let batches = equal_batches(&series.whole_points(window_ns));
        Some(Noise {
            throughput: batches
                .as_deref()
                .map_err(|&why| why)
                .and_then(throughput_noise),
            latency: batches
                .as_deref()
                .map_err(|&why| why)
                .and_then(latency_noise),
            halves: halves(series, window_ns),
        })
    }
}

fn halves(series: &Series, window_ns: u64) -> [f64; 2] {
    let half_s = window_ns as f64 / 2e9;
    let first = series.processed_until(window_ns / 2, window_ns);
    let all = series.processed_until(window_ns, window_ns);
    [first / half_s, (all - first) / half_s]
}

/// Points merged into as many equal batches as allowed. What is left over at the end is dropped.
fn equal_batches(points: &[Point]) -> Result<Vec<Point>, Untold> {
    let size = points.len().div_ceil(*BATCHES.end()).max(1);
    let count = points.len() / size;
    let processed: u64 = points.iter().map(|point| point.processed).sum();
    if count < *BATCHES.start() {
        return Err(Untold::ShortWindow);
    }
    if (processed as f64) < MIN_EFFECTIVE {
        return Err(Untold::FewTransactions);
    }
    Ok(merged(&points[..count * size], size))
}

fn throughput_noise(batches: &[Point]) -> Result<f64, Untold> {
    let counts: Vec<f64> = batches.iter().map(|batch| batch.processed as f64).collect();
    let mean = mean(&counts);
    let deviations: Vec<f64> = counts.iter().map(|count| count - mean).collect();
    Ok(half_width(&deviations)? / positive(mean)?)
}

/// Mean latency is a ratio, Σ latency / Σ count: its noise is that of the residuals
/// latencies − ratio × count, over the mean count (the ratio estimator of survey statistics). So an
/// empty batch needs no exception.
fn latency_noise(batches: &[Point]) -> Result<f64, Untold> {
    let sums: Vec<f64> = batches.iter().map(|b| b.latency_sum_ns as f64).collect();
    let counts: Vec<f64> = batches.iter().map(|b| b.processed as f64).collect();
    let ratio = mean(&sums) / positive(mean(&counts))?;
    let residuals: Vec<f64> = sums
        .iter()
        .zip(&counts)
        .map(|(s, n)| s - ratio * n)
        .collect();
    Ok(half_width(&residuals)? / positive(mean(&sums))?)
}

/// Half width of the 95 % interval of the mean of a series with these deviations from it, if they
/// are worth [`MIN_EFFECTIVE`] samples.
///
/// With n samples worth n' independent ones, the scatter around the series' own mean has n − n/n'
/// degrees of freedom (n − 1 if all are independent).
fn half_width(deviations: &[f64]) -> Result<f64, Untold> {
    let n = deviations.len() as f64;
    let effective = effective_samples(deviations);
    if effective < MIN_EFFECTIVE {
        return Err(Untold::Drift);
    }
    let squares: f64 = deviations.iter().map(|d| d * d).sum();
    let variance = squares / (n - n / effective);
    Ok(student_t(0.975, effective - 1.0) * (variance / effective).sqrt())
}

/// n / (1 + 2 Σ ρ_k), summed up to the first autocorrelation that is not positive (later ones are
/// noise), and never more than n.
fn effective_samples(deviations: &[f64]) -> f64 {
    let n = deviations.len();
    let squares: f64 = deviations.iter().map(|d| d * d).sum();
    if squares == 0.0 {
        return n as f64;
    }
    let correlation = |lag: usize| -> f64 {
        let products = deviations
            .iter()
            .zip(&deviations[lag..])
            .map(|(a, b)| a * b);
        products.sum::<f64>() / squares
    };
    let correlated: f64 = (1..n).map(correlation).take_while(|&rho| rho > 0.0).sum();
    n as f64 / (1.0 + 2.0 * correlated)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn positive(value: f64) -> Result<f64, Untold> {
    (value > 0.0)
        .then_some(value)
        .ok_or(Untold::FewTransactions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Roughly normal numbers of mean 0 and spread 1: twelve uniform ones, summed.
    fn normals(seed: u64) -> impl FnMut() -> f64 {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        move || {
            (0..12)
                .map(|_| generator.next_u64() as f64 / u64::MAX as f64)
                .sum::<f64>()
                - 6.0
        }
    }

    /// Batches of 1000 transactions each on average, spread 50, `carry` of each deviation carried
    /// over to the next.
    fn batches(count: usize, carry: f64, seed: u64) -> Vec<Point> {
        let mut normal = normals(seed);
        let mut deviation = 0.0;
        (0..count)
            .map(|_| {
                deviation = carry * deviation + normal() * (1.0 - carry * carry).sqrt();
                let processed = (1000.0 + 50.0 * deviation) as u64;
                Point {
                    processed,
                    latency_sum_ns: processed * 1_000_000 + (deviation * 1e7) as u64,
                    ..Point::default()
                }
            })
            .collect()
    }

    #[test]
    fn independent_batches_give_the_interval_of_theory() {
        // 50 batches of spread 5 %: 2.01 × 5 % / √50 = 1.42 %.
        let widths: Vec<f64> = (0..40)
            .filter_map(|seed| throughput_noise(&batches(50, 0.0, seed)).ok())
            .collect();
        assert_eq!(widths.len(), 40);
        let average = mean(&widths);
        assert!((0.0135..0.0175).contains(&average), "{average}");
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        let covered = |carry: f64| {
            (0..400)
                .filter(|&seed| {
                    let batches = batches(60, carry, seed);
                    let counts: Vec<f64> = batches.iter().map(|b| b.processed as f64).collect();
                    let mean = mean(&counts);
                    throughput_noise(&batches).map_or(true, |w| (mean - 999.5).abs() <= w * mean)
                })
                .count()
        };
        assert!(
            (370..=396).contains(&covered(0.0)),
            "{} of 400",
            covered(0.0)
        );
        assert!(covered(0.6) >= 350, "{} of 400", covered(0.6));
    }

    #[test]
    fn batches_that_depend_on_each_other_widen_it() {
        let average = |carry| {
            let widths: Vec<f64> = (0..40)
                .filter_map(|seed| throughput_noise(&batches(60, carry, seed)).ok())
                .collect();
            mean(&widths)
        };
        assert!(average(0.6) > 1.5 * average(0.0));
    }

    #[test]
    fn mean_latency_is_as_noisy_as_its_batches_say() {
        // Latency alternates between 1 and 3 ms, equally often: a spread of half the mean. Batches
        // without a transaction take nothing away.
        let batch = |processed, latency_ns| Point {
            processed,
            latency_sum_ns: processed * latency_ns,
            ..Point::default()
        };
        let alternating: Vec<Point> = (0..40)
            .map(|i| batch(100, if i % 2 == 0 { 1_000_000 } else { 3_000_000 }))
            .collect();
        let width = latency_noise(&alternating).expect("40 samples");
        assert!(
            (width - 2.023 * 0.5 / 39_f64.sqrt()).abs() < 0.001,
            "{width}"
        );
        let steady: Vec<Point> = (0..40).map(|i| batch(i % 2, 1_000_000)).collect();
        assert_eq!(latency_noise(&steady), Ok(0.0));
    }

    #[test]
    fn a_few_slow_transactions_are_no_sample() {
        let with = |transactions: usize| {
            let slow = (0..40).map(|i| Point {
                processed: u64::from(i % 7 == 0 && i / 7 < transactions),
                ..Point::default()
            });
            equal_batches(&slow.collect::<Vec<_>>()).map(|batches| batches.len())
        };
        assert_eq!((with(4), with(5)), (Err(Untold::FewTransactions), Ok(40)));
    }

    #[test]
    fn a_trend_leaves_too_few_samples_to_tell() {
        let rising: Vec<Point> = (0..40)
            .map(|i| Point {
                processed: 1000 + 10 * i,
                ..Point::default()
            })
            .collect();
        assert_eq!(throughput_noise(&rising), Err(Untold::Drift));
    }

    #[test]
    fn points_are_merged_into_20_to_60_equal_batches() {
        for (points, expected) in [
            (0, None),
            (19, None),
            (20, Some(20)),
            (60, Some(60)),
            (61, Some(30)),
            (119, Some(59)),
            (36_000, Some(60)),
        ] {
            let point = Point {
                processed: 1,
                ..Point::default()
            };
            let merged = equal_batches(&vec![point; points]);
            let count = merged.as_ref().map(Vec::len);
            assert_eq!(count.ok(), expected, "{points} points");
            let equal = |batches: &[Point]| batches.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(merged.map_or_else(|why| why == Untold::ShortWindow, |b| equal(&b)));
        }
    }

    #[test]
    fn nothing_processed_has_no_noise_and_no_division_by_zero() {
        let noise = Noise::of(&Series::new(), 5_000_000_000).expect("a window");
        assert_eq!(
            noise,
            Noise {
                throughput: Err(Untold::FewTransactions),
                latency: Err(Untold::FewTransactions),
                halves: [0.0, 0.0]
            }
        );
        assert_eq!(Noise::of(&Series::new(), 0), None);
    }
}
