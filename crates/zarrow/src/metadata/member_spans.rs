//! Members of a JSON object as spans of its text.
//!
//! The text was parsed before, so this only needs to find where members begin and end. Nothing here is recursive: a
//! text may be nested as deep as its parser allows.
//!
//! A key is bytes: UTF-8, with three bytes (WTF-8) for each half of a surrogate pair, which only an escape can
//! express. So different keys stay different.

use std::ops::Range;

use zarrow_array::allocation::{self, Grow};

use super::MetadataError;
use super::lenient_json::{Surrogate, escaped_surrogate};

/// Member of an object.
pub(super) struct Member {
    /// Unescaped key.
    pub(super) key: Vec<u8>,
    /// ByteRange from the key to the end of the value.
    pub(super) span: Range<usize>,
    /// ByteRange of the value.
    pub(super) value: Range<usize>,
    key_end: usize,
}

impl Member {
    /// Returns the span of the key with its quotes.
    pub(super) fn name(&self) -> Range<usize> {
        self.span.start..self.key_end
    }
}

/// Returns the members of the object `text`, in order and with repetitions.
pub(super) fn members(text: &[u8]) -> Vec<Member> {
    let mut members = Vec::new();
    let mut at = find(text, 0, |byte| byte == b'{').map_or(0, |brace| brace + 1);
    while let Some(start) = find(text, at, |byte| byte == b'"' || byte == b'}') {
        if text[start] == b'}' {
            break;
        }
        let key_end = end_of_value(text, start);
        let Some(colon) = find(text, key_end, |byte| byte == b':') else { break };
        let Some(value) = find(text, colon + 1, |byte| !byte.is_ascii_whitespace()) else { break };
        let end = end_of_value(text, value);
        let key = unescaped(&text[start..key_end]);
        members.push(Member { key, span: start..end, value: value..end, key_end });
        at = end;
    }
    members
}

/// Returns the value of `key` in the object `text`: the last one, as in parsers.
pub(super) fn member<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let found = members(text).into_iter().rfind(|member| member.key == key)?;
    text.get(found.value)
}

/// Returns a key as text, with U+FFFD for invalid characters, as in the parser.
pub(super) fn key_text(mut key: Vec<u8>) -> String {
    for at in 0..key.len() {
        if let [0xed, 0xa0..=0xbf, ..] = key[at..] {
            key.splice(at..(at + 3).min(key.len()), "\u{fffd}".bytes());
        }
    }
    String::from_utf8_lossy(&key).into_owned()
}

/// Unescapes a string with its quotes.
fn unescaped(string: &[u8]) -> Vec<u8> {
    let inside = string.get(1..string.len().saturating_sub(1)).unwrap_or_default();
    if !inside.contains(&b'\\') {
        return inside.to_vec();
    }
    let mut key = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            key.push(byte);
            rest = after;
        } else if let Surrogate::Half(unit) = escaped_surrogate(rest) {
            let [high, low] = unit.to_be_bytes();
            key.extend([0xed, 0x80 | (high & 0x0f) << 2 | low >> 6, 0x80 | low & 0x3f]);
            rest = &rest[6..];
        } else {
            let length = match (after.first(), escaped_surrogate(rest)) {
                (_, Surrogate::Pair) => 12,
                (Some(b'u'), _) => 6,
                _ => 2,
            }
            .min(rest.len());
            let escape = [b"\"", &rest[..length], b"\""].concat();
            key.extend(serde_json::from_slice::<String>(&escape).unwrap_or_default().into_bytes());
            rest = &rest[length..];
        }
    }
    key
}

/// Formats `json` with each member and item on a separate line, two spaces deeper per level, as `serde_json` does.
pub(super) fn indented(json: &str) -> Result<Vec<u8>, MetadataError> {
    let text = json.as_bytes();
    let mut indented: Vec<u8> = allocation::with_capacity(json.len())?;
    let (mut depth, mut at) = (0usize, 0);
    let line = |indented: &mut Vec<u8>, depth: usize| {
        indented.try_push(b'\n')?;
        indented.try_extend(std::iter::repeat_n(b' ', 2 * depth))
    };
    while let Some(&byte) = text.get(at) {
        let end = match byte {
            b'"' => end_of_value(text, at),
            _ => at + 1,
        };
        match byte {
            b'{' | b'[' => {
                indented.try_push(byte)?;
                let next = find(text, end, |byte| !byte.is_ascii_whitespace());
                if let Some(close) = next.filter(|next| matches!(text[*next], b'}' | b']')) {
                    indented.try_push(text[close])?;
                    at = close + 1;
                    continue;
                }
                depth += 1;
                line(&mut indented, depth)?;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut indented, depth)?;
                indented.try_push(byte)?;
            }
            b',' => {
                indented.try_push(byte)?;
                line(&mut indented, depth)?;
            }
            b':' => indented.try_append(b": ")?,
            byte if byte.is_ascii_whitespace() => {}
            _ => indented.try_append(text.get(at..end).unwrap_or_default())?,
        }
        at = end;
    }
    Ok(indented)
}

/// Removes insignificant white space from `json`.
pub(super) fn compact(json: &str) -> String {
    let mut in_string = false;
    let mut after_backslash = false;
    let means = |character: &char| {
        let means = in_string || !character.is_ascii_whitespace();
        in_string ^= *character == '"' && !after_backslash;
        after_backslash = *character == '\\' && !after_backslash;
        means
    };
    json.chars().filter(means).collect()
}

fn find(text: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.iter().position(|byte| wanted(*byte)).map(|position| from + position)
}

/// Returns the end of the value at `start`: for a string after its quote, for an object or list after its bracket,
/// else before the first character that cannot belong to it.
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
    use serde_json::{Value, json};

    #[test]
    fn keys_are_unescaped_and_halves_of_pairs_stay_apart() {
        let text = br#"{"a\u0041\n": 1, "\ud800": 2, "\ud801": 3, "\ud83d\ude00\udc00": [4], "": {}}"#;
        let found = members(text);
        let keys: Vec<&[u8]> = found.iter().map(|member| &member.key[..]).collect();
        let expected: [&[u8]; 5] =
            [b"aA\n", b"\xed\xa0\x80", b"\xed\xa0\x81", b"\xf0\x9f\x98\x80\xed\xb0\x80", b""];
        assert_eq!(keys, expected);
        assert_eq!(member(text, b"\xed\xa0\x81"), Some(&b"3"[..]));
        assert_eq!(key_text(expected[3].to_vec()), "\u{1f600}\u{fffd}");
    }

    #[test]
    fn indented_text_is_that_of_the_parser() {
        let values =
            [json!(null), json!({}), json!([{}, [], {"a\"}": [1, "b, :{", {"c": []}]}]), json!("[ ]")];
        for value in values {
            for text in [value.to_string(), format!("{value:#}"), value.to_string().replace(':', " :\t ")] {
                if serde_json::from_str::<Value>(&text).is_ok_and(|again| again == value) {
                    assert_eq!(indented(&text).unwrap(), format!("{value:#}").into_bytes());
                    assert_eq!(compact(&text), value.to_string());
                }
            }
        }
        assert_eq!(indented("{\"a\": [NaN,1e400]}").unwrap(), b"{\n  \"a\": [\n    NaN,\n    1e400\n  ]\n}");
    }
}
