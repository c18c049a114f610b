//! Where the members of a JSON object begin and end in its text, found without taking memory.
//!
//! The text need not be valid: what is found lies inside it, and the parser says what is wrong with it.

use std::ops::Range;

/// The spans of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spans {
    /// The key with its quotes.
    pub(super) key: Range<usize>,
    /// The value.
    pub(super) value: Range<usize>,
}

/// The members of the first object of a text, in their order.
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// The members of the object that `text` begins with.
pub(super) fn members(text: &[u8]) -> Members<'_> {
    Members { text, at: text.iter().position(|byte| *byte == b'{').map_or(text.len(), |brace| brace + 1) }
}

impl Iterator for Members<'_> {
    type Item = Spans;

    fn next(&mut self) -> Option<Spans> {
        let start = self.next_at(self.at, |byte| byte == b'"' || byte == b'}')?;
        if self.text[start] == b'}' {
            self.at = self.text.len();
            return None;
        }
        let key_end = end_of_value(self.text, start);
        let colon = self.next_at(key_end, |byte| byte == b':')?;
        let value = self.next_at(colon + 1, |byte| !byte.is_ascii_whitespace())?;
        let end = end_of_value(self.text, value);
        self.at = end;
        Some(Spans { key: start..key_end, value: value..end })
    }
}

impl Members<'_> {
    fn next_at(&self, from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        let rest = self.text.get(from..)?;
        rest.iter().position(|byte| wanted(*byte)).map(|position| from + position)
    }
}

/// Where the value ends that starts at `start`: a string behind its quote, an object or list behind its bracket,
/// anything else before what cannot be of it.
fn end_of_value(text: &[u8], start: usize) -> usize {
    let (mut depth, mut in_string) = (0usize, false);
    let mut at = start;
    while let Some(byte) = text.get(at) {
        at += 1;
        match (in_string, byte) {
            (true, b'\\') => at += 1,
            (true, b'"') => in_string = false,
            (true, _) => continue,
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth == 0 => return at - 1,
            (false, b'}' | b']') => depth -= 1,
            (false, b',') if depth == 0 => return at - 1,
            (false, byte) if depth == 0 && byte.is_ascii_whitespace() => return at - 1,
            (false, _) => continue,
        }
        let ends = depth == 0 && !in_string && matches!(byte, b'"' | b'}' | b']');
        if ends {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_lie_inside_any_text(text in "[a{}\\[\\]\",:\\\\ ]{0,40}") {
            let mut end = 0;
            for Spans { key, value } in members(text.as_bytes()).take(100) {
                prop_assert!(end <= key.start && key.end <= value.start);
                prop_assert!(text.as_bytes().get(key).is_some() && text.as_bytes().get(value.clone()).is_some());
                end = value.end;
            }
        }
    }
}
