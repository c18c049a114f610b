//! Makes names safe to print: stores may hold any text, and a terminal executes escape sequences in it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces invisible characters of `text` with escapes in Python's syntax: controls, line breaks, and marks that
/// change the direction of the following text.
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

/// Whether a character is a control, a line or paragraph separator, or a mark without width or for the direction
/// (Unicode, categories Cc, Zl, Zp, and some of Cf). Joiners are kept, since scripts and emoji need them.
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
