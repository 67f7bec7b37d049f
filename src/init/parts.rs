//! How the rows of the accounts are split over connections: by the ranges of their partitions, or
//! equally. Pure.

use std::ops::Range;

use super::session::TextRow;

/// Rows that are loaded by one connection, in one transaction unless they come in batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The table or partition that they go into.
    pub target: String,
    /// Numbers of the rows, counted from 0.
    pub rows: Range<u64>,
    /// Whether `target` is a table by itself that may be emptied and filled with frozen rows.
    pub alone: bool,
}

/// `total` rows of `target` in at most `count` parts of equal size.
pub fn equal(target: &str, total: u64, count: u32) -> Vec<Part> {
    let size = total.div_ceil(u64::from(count)).max(1);
    (0..u64::from(count))
        .map(|index| index * size..total.min((index + 1) * size))
        .take_while(|rows| !rows.is_empty())
        .map(|rows| Part {
            target: target.to_owned(),
            rows,
            alone: false,
        })
        .collect()
}

/// A part for each partition that gets rows. `None` unless the partitions, as the catalog tells
/// them (name, bounds, alone), are ranges of account numbers that hold exactly `total` rows.
pub fn of_partitions(partitions: &[TextRow], total: u64) -> Option<Vec<Part>> {
    let parts = partitions
        .iter()
        .map(|row| match row.as_slice() {
            [Some(name), Some(bounds), alone] => Some(Part {
                target: name.clone(),
                rows: rows_within(bounds, total)?,
                alone: alone.as_deref() == Some("t"),
            }),
            _ => None,
        })
        .collect::<Option<Vec<Part>>>()?;
    // Partitions never overlap, so the sum tells whether any row is without one.
    let held: u64 = parts
        .iter()
        .map(|part| part.rows.end - part.rows.start)
        .sum();
    let filled = parts.into_iter().filter(|part| !part.rows.is_empty());
    (held == total).then(|| filled.collect())
}

/// The rows, at most `total`, whose account numbers lie in bounds such as
/// `FOR VALUES FROM (MINVALUE) TO ('3000000001')`.
fn rows_within(bounds: &str, total: u64) -> Option<Range<u64>> {
    let inner = bounds
        .strip_prefix("FOR VALUES FROM (")?
        .strip_suffix(')')?;
    let (from, to) = inner.split_once(") TO (")?;
    // Account n is row n - 1; the upper bound is exclusive.
    let row = |bound: &str| match bound {
        "MINVALUE" => Some(0),
        "MAXVALUE" => Some(total),
        number => {
            let number: i128 = number.trim_matches('\'').parse().ok()?;
            u64::try_from((number - 1).clamp(0, i128::from(total))).ok()
        }
    };
    Some(row(from)?..row(to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_hold_every_row_once() {
        for (total, count, expected) in [
            (100_000, 2, vec![0..50_000, 50_000..100_000]),
            (100_000, 3, vec![0..33_334, 33_334..66_668, 66_668..100_000]),
            (2, 5, vec![0..1, 1..2]),
            (
                100_000_000_000,
                2,
                vec![0..50_000_000_000, 50_000_000_000..100_000_000_000],
            ),
        ] {
            let rows: Vec<Range<u64>> = equal("t", total, count)
                .into_iter()
                .map(|part| part.rows)
                .collect();
            assert_eq!(rows, expected, "{total} / {count}");
        }
    }

    fn partition(name: &str, bounds: &str) -> TextRow {
        vec![
            Some(name.to_owned()),
            Some(format!(
                "FOR VALUES FROM ({})",
                bounds.replace("..", ") TO (")
            )),
            Some("t".to_owned()),
        ]
    }

    #[test]
    fn rows_go_into_the_partitions_whose_bounds_hold_them() {
        let found = [
            partition("a", "MINVALUE..100001"),
            partition("c", "'200001'..MAXVALUE"),
            partition("b", "100001..'200001'"),
        ];
        let rows = |total| -> Vec<(String, Range<u64>)> {
            let parts = of_partitions(&found, total).unwrap();
            parts
                .into_iter()
                .map(|part| (part.target, part.rows))
                .collect()
        };
        assert_eq!(
            rows(300_000),
            [
                ("a".to_owned(), 0..100_000),
                ("c".to_owned(), 200_000..300_000),
                ("b".to_owned(), 100_000..200_000)
            ]
        );
        // A partition without rows is left out.
        assert_eq!(
            rows(150_000),
            [
                ("a".to_owned(), 0..100_000),
                ("b".to_owned(), 100_000..150_000)
            ]
        );
    }

    #[test]
    fn other_partitions_are_left_to_the_server() {
        let hash = |remainder: &str| {
            vec![
                Some("h".to_owned()),
                Some(format!(
                    "FOR VALUES WITH (modulus 2, remainder {remainder})"
                )),
                Some("t".to_owned()),
            ]
        };
        for found in [
            vec![hash("0"), hash("1")],
            vec![
                partition("gap", "MINVALUE..100"),
                partition("b", "200..MAXVALUE"),
            ],
            vec![partition("a", "MINVALUE..100")],
            vec![partition("text", "'a'..'b'")],
            vec![vec![
                Some("default".to_owned()),
                Some("DEFAULT".to_owned()),
                None,
            ]],
            vec![],
        ] {
            assert_eq!(of_partitions(&found, 100_000), None, "{found:?}");
        }
    }
}
