//! Figures of several rounds, and how they are shown.

use std::fmt;

/// The same figure, once a round.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn add(&mut self, figure: f64) {
        let place = self.0.partition_point(|other| *other < figure);
        self.0.insert(place, figure);
    }

    pub fn median(&self) -> f64 {
        let count = self.0.len();
        match count {
            0 => f64::NAN,
            _ => (self.0[(count - 1) / 2] + self.0[count / 2]) / 2.0,
        }
    }
}

impl fmt::Display for Sample {
    /// Median, least and most.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision().unwrap_or(2);
        let [least, most] =
            [self.0.first(), self.0.last()].map(|end| end.copied().unwrap_or(f64::NAN));
        write!(
            f,
            "{:.precision$} [{least:.precision$} {most:.precision$}]",
            self.median()
        )
    }
}

/// Shows a figure beside the most that it should be.
pub fn verdict(figure: &Sample, most: f64) -> String {
    let word = match figure.median() <= most {
        true => "reached",
        false => "MISSED",
    };
    format!("{figure} (at most {most}: {word})")
}
