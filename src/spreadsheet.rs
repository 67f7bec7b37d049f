//! Texts as cells of tables that people open in spreadsheets.

/// The text on one line, and so that no spreadsheet takes it for a formula. Quotes are left to the
/// writer of the file.
pub fn cell(text: &str) -> String {
    let mut cell: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if cell.starts_with(['=', '+', '-', '@']) {
        cell.insert(0, '\'');
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_calculated_or_breaks_a_row() {
        for (text, expected) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("-C", "'-C"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\n=1", " =1"),
            ("a\r\nb\tc", "a  b c"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
