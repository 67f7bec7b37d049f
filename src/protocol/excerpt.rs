//! The line of a statement that an error points at, with a mark under the place.

/// Columns shown of a long line.
const COLUMNS_MAX: usize = 60;

/// Columns that stay visible to the right of the mark.
const COLUMNS_AFTER_MARK: usize = 10;

/// `LINE 1: …` and a line with a caret under the character at `position`, counted from 1; `None` if
/// the statement has no such place. Every character is taken to be one column wide.
pub(super) fn excerpt(statement: &[u8], position: usize) -> Option<String> {
    let text: Vec<char> = String::from_utf8_lossy(statement).chars().collect();
    let mark = position.checked_sub(1).filter(|mark| *mark <= text.len())?;
    let (before, after) = text.split_at(mark);
    let begin = before
        .iter()
        .rposition(|c| *c == '\n')
        .map_or(0, |newline| newline + 1);
    let end = after
        .iter()
        .position(|c| matches!(c, '\n' | '\r'))
        .map_or(text.len(), |length| mark + length);
    let right = (begin + COLUMNS_MAX)
        .max(mark + COLUMNS_AFTER_MARK)
        .min(end);
    let left = right.saturating_sub(COLUMNS_MAX).max(begin);
    let number = 1 + before.iter().filter(|c| **c == '\n').count();

    let cut = |is_cut| if is_cut { "..." } else { "" };
    let head = format!("LINE {number}: {}", cut(left > begin));
    let line: String = text[left..right]
        .iter()
        .map(|c| if *c == '\t' { ' ' } else { *c })
        .collect();
    let indent = " ".repeat(head.len() + mark - left);
    Some(format!("{head}{line}{}\n{indent}^", cut(right < end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mark_is_under_the_place() {
        let long = format!("select {}, oops, {}", "a".repeat(70), "b".repeat(70));
        let cases: &[(&str, usize, Option<&str>)] = &[
            ("selec 1", 1, Some("LINE 1: selec 1\n        ^")),
            (
                "select é, x",
                11,
                Some("LINE 1: select é, x\n                  ^"),
            ),
            ("select\n\tx\r\nfrom y", 9, Some("LINE 2:  x\n         ^")),
            ("select", 7, Some("LINE 1: select\n              ^")),
            ("", 1, Some("LINE 1: \n        ^")),
            ("select", 8, None),
            ("select", 0, None),
            (
                &long,
                1,
                Some(
                    "LINE 1: select aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\
                     \n        ^",
                ),
            ),
            (
                &long,
                80,
                Some(
                    "LINE 1: ...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, oops, bbbb...\
                     \n                                                             ^",
                ),
            ),
        ];
        for (statement, position, expected) in cases {
            let made = excerpt(statement.as_bytes(), *position);
            assert_eq!(made.as_deref(), *expected, "{position} in {statement}");
        }
    }

    proptest! {
        #[test]
        fn any_statement_and_place_do_no_harm(
            statement in proptest::collection::vec(any::<u8>(), 0..200),
            position in 0_usize..300,
        ) {
            if let Some(made) = excerpt(&statement, position) {
                prop_assert!(made.ends_with('^'));
            }
        }
    }
}
