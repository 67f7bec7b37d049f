//! Random numbers, bit for bit those of pgbench: the generator, its streams, the distributions,
//! hashes and the permutation. Whoever needs numbers is handed a [`Generator`]; none is global.
//! Knows nothing of time or scripts, and checks no user input beyond what its types say.

use rand_xoshiro::Xoroshiro128StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// One stream of random numbers: xoroshiro128** seeded by splitmix64. A clone continues from the
/// same state, which is how a retry repeats the numbers of its first try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator(Xoroshiro128StarStar);

impl Generator {
    /// The stream that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        Generator(Xoroshiro128StarStar::seed_from_u64(seed))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from `low` to `high`, both included, by rejection under a bit mask. When there is
    /// no choice (`high <= low`) it is `low`, and nothing is drawn.
    #[inline]
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        if high <= low {
            return low;
        }
        let width = high - low;
        let shift = width.leading_zeros();
        loop {
            let drawn = self.next_u64() >> shift;
            if drawn <= width {
                return low + drawn;
            }
        }
    }

    /// A number below `bound`, or 0 if that is 0.
    pub fn index_below(&mut self, bound: usize) -> usize {
        self.range(0, (bound as u64).saturating_sub(1)) as usize
    }

    /// A number in [0, 1), a multiple of 2^-52. One draw.
    #[inline]
    pub fn double(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * STEP
    }

    /// A number in (0, 1], safe to take the logarithm of. One draw.
    #[inline]
    fn positive_double(&mut self) -> f64 {
        1.0 - self.double()
    }

    /// A standard normal variate (Box-Muller; the second variate is not kept). Two draws.
    pub fn normal(&mut self) -> f64 {
        let radius = self.positive_double();
        let angle = self.positive_double();
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin()
    }

    /// The gap to the next event of a Poisson process with this mean gap, rounded; the unit is
    /// that of `mean`. One draw.
    pub fn exponential_gap(&mut self, mean: f64) -> u64 {
        (-self.positive_double().ln() * mean + 0.5) as u64
    }

    /// Uniform over the span. Draws nothing if the span is a single number.
    #[inline]
    pub fn uniform(&mut self, span: Span) -> i64 {
        span.low
            .wrapping_add(self.range(0, span.width()).cast_signed())
    }

    /// Exponential over the span, cut at `parameter` (> 0) times the mean. One draw.
    pub fn exponential(&mut self, span: Span, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = self.positive_double();
        let drawn = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        span.at(drawn)
    }

    /// Normal over the span, its middle the mean, cut at `parameter` (≥ 2) standard deviations
    /// on both sides. Two draws for each attempt.
    pub fn gaussian(&mut self, span: Span, parameter: f64) -> i64 {
        let drawn = loop {
            let normal = self.normal();
            if -parameter <= normal && normal < parameter {
                break normal;
            }
        };
        span.at((drawn + parameter) / (parameter * 2.0))
    }

    /// Zipfian over the span with exponent `parameter` (1.001 to 1000), by Devroye's rejection
    /// method ("Non-Uniform Random Variate Generation", p. 550). Two draws for each attempt, none
    /// if the span is a single number.
    pub fn zipfian(&mut self, span: Span, parameter: f64) -> i64 {
        let count = span.count as f64;
        if span.count <= 1 {
            return span.low;
        }
        let bound = 2.0_f64.powf(parameter - 1.0);
        loop {
            let u = self.double();
            let v = self.double();
            let x = u.powf(-1.0 / (parameter - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
            if v * x * (t - 1.0) / (bound - 1.0) <= t / bound && x <= count {
                return span.low.wrapping_sub(1).wrapping_add(x as i64);
            }
        }
    }
}

/// A range of integers that a random function draws from: not empty, and countable in an `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    low: i64,
    count: i64,
}

/// Why two bounds make no [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// The lower bound is greater than the upper one.
    #[error("empty range given to random: {0} to {1}")]
    Empty(i64, i64),
    /// There are 2^63 or more numbers between the bounds.
    #[error("random range is too large: {0} to {1}")]
    TooLarge(i64, i64),
}

impl Span {
    /// The integers from `low` to `high`, both included.
    #[inline]
    pub fn new(low: i64, high: i64) -> Result<Span, SpanError> {
        if low > high {
            return Err(SpanError::Empty(low, high));
        }
        match high.checked_sub(low).and_then(|width| width.checked_add(1)) {
            Some(count) => Ok(Span { low, count }),
            None => Err(SpanError::TooLarge(low, high)),
        }
    }

    fn width(self) -> u64 {
        (self.count - 1).cast_unsigned()
    }

    /// The number that lies at this fraction (0 to 1) of the span.
    fn at(self, fraction: f64) -> i64 {
        self.low.wrapping_add((self.count as f64 * fraction) as i64)
    }
}

/// The 64-bit FNV-1a hash of the eight bytes of `value`, least significant first.
pub fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    value
        .to_le_bytes()
        .iter()
        .fold(BASIS ^ seed.cast_unsigned(), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        })
        .cast_signed()
}

/// MurmurHash2 (variant 64A) of the eight bytes of `value`.
pub fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const LENGTH_BYTES: u64 = 8;
    let fold = |bits: u64| bits ^ (bits >> 47);

    let mut hash = seed.cast_unsigned() ^ LENGTH_BYTES.wrapping_mul(MULTIPLIER);
    let key = fold(value.cast_unsigned().wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    hash = (hash ^ key).wrapping_mul(MULTIPLIER);
    fold(fold(hash).wrapping_mul(MULTIPLIER)).cast_signed()
}

/// The place of `index` in the pseudo-random permutation of 0..`size` that belongs to `seed`.
/// `size` must be positive; `index` is taken modulo `size` as an unsigned number.
pub fn permute(index: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: u32 = 6;
    if size <= 1 {
        return 0;
    }
    let size = size.cast_unsigned();
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let mut generator = Generator::new(seed.cast_unsigned());
    let mut place = index.cast_unsigned() % size;

    for _ in 0..ROUNDS {
        // The lower 2^bits numbers are scrambled, then the upper 2^bits ones (seen from the top);
        // together they cover all, and the shift moves the middle, which is scrambled twice.
        place = scramble(&mut generator, place, bits, mask);
        place = size - 1 - scramble(&mut generator, size - 1 - place, bits, mask);
        // Neither term reaches 2^63, so the sum cannot overflow.
        place = (place + generator.range(0, size - 1)) % size;
    }
    place.cast_signed()
}

/// Scrambles a number of at most `mask`, leaves others alone, and draws twice in either case.
fn scramble(generator: &mut Generator, number: u64, bits: u32, mask: u64) -> u64 {
    let factor = (generator.next_u64() & mask) | 1;
    let flip = generator.next_u64() & mask;
    if number > mask {
        return number;
    }
    let mixed = (number.wrapping_mul(factor) ^ flip) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}

/// The seeds of all streams of a run, drawn from the base seed in pgbench's order. What a client
/// draws does not depend on the number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// One stream a client: what its scripts draw.
    pub clients: Vec<u64>,
    /// The variable `default_seed`; none if the user defined that, which shifts what follows.
    pub default_seed: Option<u64>,
    /// One set of streams a thread.
    pub threads: Vec<ThreadSeeds>,
}

/// The seeds of the streams that belong to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSeeds {
    /// Which script comes next.
    pub choose: u64,
    /// The gaps of the schedule.
    pub throttle: u64,
    /// Which transactions are logged.
    pub sample: u64,
}

impl Seeds {
    /// Draws them. `default_seed_given` says that the user defined the variable `default_seed`.
    pub fn draw(base_seed: u64, clients: u32, threads: u32, default_seed_given: bool) -> Self {
        let mut base = Generator::new(base_seed);
        Seeds {
            clients: (0..clients).map(|_| base.next_u64()).collect(),
            default_seed: (!default_seed_given).then(|| base.next_u64()),
            threads: (0..threads)
                .map(|_| ThreadSeeds {
                    choose: base.next_u64(),
                    throttle: base.next_u64(),
                    sample: base.next_u64(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_refuse_what_cannot_be_counted() {
        assert_eq!(Span::new(5, 3), Err(SpanError::Empty(5, 3)));
        assert_eq!(
            Span::new(0, i64::MAX),
            Err(SpanError::TooLarge(0, i64::MAX))
        );
        assert_eq!(
            Span::new(i64::MIN, i64::MAX),
            Err(SpanError::TooLarge(i64::MIN, i64::MAX))
        );
        assert!(Span::new(1, i64::MAX).is_ok());
        assert!(Span::new(i64::MIN, -2).is_ok());
    }

    #[test]
    fn the_base_seed_gives_the_known_default_seed() {
        let one = Seeds::draw(42, 1, 1, false);
        assert_eq!(one.default_seed, Some(4_306_334_408_478_191_133));
        let three = Seeds::draw(42, 3, 2, false);
        assert_eq!(three.default_seed, Some(1_183_949_725_203_728_575));
        assert_eq!(three.clients[0], one.clients[0]);
        assert_eq!(three.threads.len(), 2);
    }

    #[test]
    fn a_given_default_seed_shifts_the_streams_of_the_threads() {
        let drawn = Seeds::draw(42, 1, 1, false);
        let given = Seeds::draw(42, 1, 1, true);
        assert_eq!(given.default_seed, None);
        assert_eq!(given.threads[0].choose, 4_306_334_408_478_191_133);
        assert_eq!(given.threads[0].throttle, drawn.threads[0].choose);
    }

    #[test]
    fn throttle_gaps_are_those_of_pgbench() {
        let seeds = Seeds::draw(42, 1, 1, false);
        let mut throttle = Generator::new(seeds.threads[0].throttle);
        let gaps_us: Vec<u64> = (0..8).map(|_| throttle.exponential_gap(20_000.0)).collect();
        assert_eq!(
            gaps_us,
            [30006, 31336, 60971, 12653, 10908, 2388, 1524, 14183]
        );
    }

    #[test]
    fn sampled_transactions_are_those_of_pgbench() {
        let seeds = Seeds::draw(42, 1, 1, false);
        let mut sample = Generator::new(seeds.threads[0].sample);
        let logged: Vec<u32> = (1..=40).filter(|_| sample.double() <= 0.3).collect();
        assert_eq!(logged, [1, 3, 12, 13, 16, 19, 24, 28, 32, 35]);
    }

    #[test]
    fn permute_is_a_permutation() {
        for size in [1, 2, 3, 10, 100, 257] {
            for seed in [0, 1, -7] {
                let mut images: Vec<i64> = (0..size).map(|i| permute(i, size, seed)).collect();
                images.sort_unstable();
                assert!(images.into_iter().eq(0..size), "size {size}, seed {seed}");
            }
        }
    }

    #[test]
    fn distributions_stay_inside_their_span() {
        let mut generator = Generator::new(1);
        let span = Span::new(-3, 4).expect("not empty");
        for _ in 0..2000 {
            for drawn in [
                generator.uniform(span),
                generator.exponential(span, 0.001),
                generator.gaussian(span, 2.0),
                generator.zipfian(span, 1.001),
            ] {
                assert!((-3..=4).contains(&drawn), "{drawn}");
            }
        }
    }
}
