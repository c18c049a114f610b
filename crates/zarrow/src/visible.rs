//! Names as a terminal may show them: what stores hold comes from anyone, and a terminal obeys what it is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with escapes, as Python writes them, for what is no visible character: controls, line breaks, and the marks
/// that turn the direction of the text after them.
///
/// ```
/// assert_eq!(zarrow::visible("rain\u{1b}[2J\n"), r"rain\x1b[2J\n");
/// assert_eq!(zarrow::visible("Gr\u{fc}n"), "Gr\u{fc}n");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        let number = u32::from(character);
        // Writing to a string cannot fail.
        let _ = match character {
            '\n' => shown.write_str("\\n"),
            '\r' => shown.write_str("\\r"),
            '\t' => shown.write_str("\\t"),
            _ if !is_hidden(character) => shown.write_char(character),
            _ if number <= 0xff => write!(shown, "\\x{number:02x}"),
            _ if number <= 0xffff => write!(shown, "\\u{number:04x}"),
            _ => write!(shown, "\\U{number:08x}"),
        };
    }
    Cow::Owned(shown)
}

/// Controls, line and paragraph separators, and what has no width or changes the direction (Unicode, categories Cc, Zl,
/// Zp, and those of Cf). Joiners, which scripts and emoji need, stay.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
