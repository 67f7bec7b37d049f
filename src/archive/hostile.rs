//! Reads result files that an enemy wrote. Property tests and the fuzz target share it.

use crate::page;
use crate::report;

use super::Document;

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
    let result = document.into_result();
    let mut report = Vec::new();
    report::text::write_summary(&result, &mut report).expect("memory takes all bytes");
    let _ = report::warnings(&result);
    let _ = result.check_books();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::{Document, Identity};
    use super::drive_hostile;
    use crate::plan::KeepPlan;
    use crate::report::testing;

    /// All numbers of a document.
    fn numbers<'v>(value: &'v mut Value, found: &mut Vec<&'v mut Value>) {
        match value {
            Value::Number(_) => found.push(value),
            Value::Array(parts) => parts.iter_mut().for_each(|part| numbers(part, found)),
            Value::Object(parts) => parts.values_mut().for_each(|part| numbers(part, found)),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
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
            for (place, number) in changes {
                let mut found = Vec::new();
                numbers(&mut value, &mut found);
                let count = found.len();
                *found[place % count] = number.into();
            }
            drive_hostile(value.to_string().as_bytes());
        }
    }
}
