//! Reads result files that an enemy wrote. Property tests and the fuzz target share it.

use crate::page;
use crate::report;

use super::{Document, summary_table};

/// Takes `text` for a result file, and makes a report of it if it is one.
///
/// # Panics
/// If a promise is broken: a file that is accepted gives a report.
pub fn drive_hostile(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let _ = page::page(&document);
    let _ = summary_table(std::iter::once((&document, "")));
    let result = document.into_result();
    let mut report = Vec::new();
    report::text::write_summary(&result, &mut report).expect("memory takes all bytes");
    let _ = report::warnings(&result);
    let _ = result.check_books();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::{Document, Identity};
    use super::drive_hostile;
    use crate::page;
    use crate::plan::KeepPlan;
    use crate::report::testing;

    /// Where the numbers of a document stand, as JSON pointers.
    fn numbers(value: &Value, place: String, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(place),
            Value::Array(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    numbers(part, format!("{place}/{index}"), found);
                }
            }
            Value::Object(parts) => {
                for (name, part) in parts {
                    numbers(part, format!("{place}/{name}"), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    /// An enemy says of numbers that they did not agree from the beginning.
    fn drive_confessed(mut value: Value) {
        let disagreement = |value: &Value| {
            let problem = Document::parse(&value.to_string()).err()?;
            Some(
                problem
                    .strip_prefix("its numbers do not agree: ")?
                    .to_owned(),
            )
        };
        while let Some(violation) = disagreement(&value) {
            let violations = value["violations"].as_array_mut();
            violations.expect("it is a list").push(violation.into());
        }
        drive_hostile(value.to_string().as_bytes());
    }

    /// Every number that a result can have, on its own, as large, as small and as odd as JSON lets it be.
    #[test]
    fn no_single_number_does_harm() {
        let extremes: [Value; 8] = [
            0.into(),
            1.into(),
            (1_u64 << 53).into(),
            (1_u64 << 63).into(),
            u64::MAX.into(),
            i64::MIN.into(),
            1e308.into(),
            (-0.5).into(),
        ];
        let mut seen = BTreeSet::new();
        let kinds = page::testing::of_every_kind().into_iter();
        let hour = page::testing::hour(5, 2, "text");
        for document in kinds.map(|(_, document)| document).chain([hour]) {
            let good = serde_json::to_value(document).unwrap();
            let mut places = Vec::new();
            numbers(&good, String::new(), &mut places);
            for place in places {
                let is_index = |part: &&str| part.parse::<usize>().is_ok();
                let names: Vec<&str> = place.split('/').filter(|part| !is_index(part)).collect();
                if !seen.insert(names.join("/")) {
                    continue;
                }
                for extreme in &extremes {
                    let mut changed = good.clone();
                    *changed.pointer_mut(&place).expect("it is there") = extreme.clone();
                    let drive = || drive_confessed(changed);
                    let done = std::panic::catch_unwind(drive);
                    assert!(done.is_ok(), "{extreme} in {place}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            drive_hostile(&data);
        }

        #[test]
        fn a_result_with_other_numbers_does_no_harm(
            kind in 0_usize..100,
            changes in proptest::collection::vec((any::<usize>(), 0_u64..2_000_000_000), 1..4),
        ) {
            let mut kinds = testing::of_every_kind();
            let (_, result) = kinds.swap_remove(kind % kinds.len());
            let run = Identity::new(&KeepPlan::default(), 0);
            let mut value = serde_json::to_value(Document::new(result, run, 0)).unwrap();
            let mut places = Vec::new();
            numbers(&value, String::new(), &mut places);
            for (place, number) in changes {
                let place = &places[place % places.len()];
                *value.pointer_mut(place).expect("it is there") = number.into();
            }
            drive_confessed(value);
        }
    }
}
