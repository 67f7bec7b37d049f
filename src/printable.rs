//! Texts of somebody else as they may be shown: nothing in them steers a terminal or turns the
//! direction of the text around them.

/// Whether a terminal or a browser would obey the character and not show it. Tabs and new lines are
/// none of these.
pub fn is_steering(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Marks, embeddings, overrides and isolates of the Unicode Bidirectional Algorithm.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => character.is_control(),
    }
}

/// The text with a replacement character (U+FFFD) for each that [`is_steering`].
pub fn printable(text: &str) -> String {
    text.replace(is_steering, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_obeyed_is_replaced() {
        for (text, shown) in [
            ("a\tb\n", "a\tb\n"),
            ("\u{1b}[2J", "\u{fffd}[2J"),
            ("\u{9b}x\r", "\u{fffd}x\u{fffd}"),
            ("user\u{202e}lqs.x\u{2066}", "user\u{fffd}lqs.x\u{fffd}"),
            ("żółć 表", "żółć 表"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
