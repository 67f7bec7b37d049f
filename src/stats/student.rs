//! Quantiles of Student's t distribution.

/// The quantile of Student's t with `freedom` degrees of freedom (above 0, not only whole ones) for
/// `probability` (above 0 and below 1), to about ten digits.
///
/// The distribution function is found from the regularized incomplete beta function (Abramowitz and
/// Stegun 26.7.1), and inverted by bisection.
pub fn student_t(probability: f64, freedom: f64) -> f64 {
    if probability < 0.5 {
        return -student_t(1.0 - probability, freedom);
    }
    let mut high = 1.0;
    while cumulative(high, freedom) < probability && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Each step adds a binary digit, of which a number has 53.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match cumulative(middle, freedom) < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// The probability of at most `t` (at least 0).
fn cumulative(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    1.0 - incomplete_beta(x, freedom / 2.0, 0.5) / 2.0
}

/// The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun
/// 26.5.8), on the side where that converges fast.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() / (a * fraction(x, a, b))
}

/// 1 + d₁/(1 + d₂/(1 + …)), from the innermost that still counts.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    // Below the switch-over a few times √max(a, b) terms are enough.
    let terms = 60 + (4.0 * a.max(b).sqrt()).min(4_000.0) as u32;
    (1..=terms).rev().fold(1.0, |inner, n| {
        let m = f64::from(n / 2);
        let d = match n % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        1.0 + d / inner
    })
}

/// ln Γ(x) for x above 0: Stirling's series (Abramowitz and Stegun 6.1.41) from 10 up, and the
/// recurrence Γ(x + 1) = x Γ(x) below.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let y = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + (std::f64::consts::TAU.ln()) / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (probability, freedom, expected) in [
            (0.975, 1.0, 12.706_204_736),
            (0.975, 2.0, 4.302_652_730),
            (0.975, 4.0, 2.776_445_105),
            (0.975, 8.0, 2.306_004_135),
            (0.975, 30.0, 2.042_272_456),
            (0.975, 1e6, 1.959_966_357),
            (0.9, 8.0, 1.396_815_310),
            (0.95, 3.0, 2.353_363_435),
            (0.995, 5.0, 4.032_142_984),
            (0.5, 3.0, 0.0),
            // By numerical integration of the density.
            (0.975, 2.5, 3.574_654_842),
        ] {
            let found = student_t(probability, freedom);
            let bound = if freedom == 2.5 { 0.02 } else { 1e-7 };
            assert!(
                (found - expected).abs() < bound * expected.max(1.0),
                "{probability} {freedom}: {found}"
            );
            assert!((student_t(1.0 - probability, freedom) + found).abs() < 1e-7);
        }
    }

    #[test]
    fn more_freedom_is_less_doubt() {
        let quantiles: Vec<f64> = (2..400)
            .map(|half| student_t(0.975, f64::from(half) / 2.0))
            .collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
