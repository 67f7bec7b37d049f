//! Which name was probably meant by a word that is none. Knows no names itself.

/// Longer words are no slips of the finger, and comparing takes quadratic time.
const WORD_BYTES_MAX: usize = 24;

/// The name that takes the fewest edits to get to, if those are at most a third of the word's
/// letters, rounded up. Names are in lower case; that of the word does not matter.
pub fn nearest<'a>(word: &[u8], names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    names
        .into_iter()
        .map(|name| (edit_distance(&word, name.as_bytes()), name))
        .filter(|&(distance, _)| distance <= word.len().div_ceil(3))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Bytes to insert, delete or replace to make one word of the other (Levenshtein).
fn edit_distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        for (from, to, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abc", "ac", 1),
            ("ac", "abc", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(from.as_bytes(), to.as_bytes()), distance);
        }
    }

    #[test]
    fn only_a_name_that_is_near_was_meant() {
        let names = ["host", "hostaddr", "dbname", "application_name", "ln"];
        for (word, expected) in [
            ("hots", Some("host")),
            ("HOST", Some("host")),
            ("hostadr", Some("hostaddr")),
            ("db_name", Some("dbname")),
            ("aplication_name", Some("application_name")),
            ("database", None),
            ("zzzzzzzz", None),
            ("x", None),
            ("", None),
            ("applicationnameapplicationname", None),
        ] {
            assert_eq!(nearest(word.as_bytes(), names), expected, "{word}");
        }
    }
}
