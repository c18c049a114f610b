//! Python's extensions of JSON, which occur in real stores.
//!
//! If a text is not JSON, it is parsed a second time with these rewritten as JSON. All other invalid JSON is refused.
//! 1. The bare words `NaN`, `Infinity` and `-Infinity` become strings, as the specification writes fill values.
//! 2. An escape that is half of a surrogate pair, such as `"\ud800"`, becomes U+FFFD: Rust strings cannot hold it.
//! 3. A number outside the range of floats, such as 1e400, becomes the string of an infinity, the float that it rounds
//!    to.
//!
//! So attributes have the nearest JSON values. Their text, kept by [`Attributes`](super::Attributes), is the original.

const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
/// Length of an escape such as `\u00e9`.
const ESCAPE: usize = 6;

/// Returns `text` with these extensions rewritten as JSON; `None` if it contains none.
pub(super) fn as_json(text: &[u8]) -> Option<Vec<u8>> {
    let mut json = Vec::new();
    // Three bytes become five at most. Without memory for that, the text is left unchanged, and is not JSON.
    json.try_reserve_exact(text.len().checked_mul(2)?).ok()?;
    let (mut position, mut in_string, mut found) = (0, false, false);
    while let Some(&byte) = text.get(position) {
        let rest = &text[position..];
        let (length, instead): (usize, Option<&[u8]>) = match (in_string, byte) {
            (true, b'\\') => match escaped_surrogate(rest) {
                Surrogate::None => (rest.len().min(2), None),
                Surrogate::Pair => (2 * ESCAPE, None),
                Surrogate::Half(_) => (ESCAPE, Some(b"\\ufffd")),
            },
            (_, b'"') => {
                in_string = !in_string;
                (1, None)
            }
            (true, _) => (1, None),
            (false, b'N' | b'I' | b'-' | b'0'..=b'9') => outside_string(rest),
            (false, _) => (1, None),
        };
        match instead {
            Some(instead) => {
                found = true;
                json.extend_from_slice(instead);
            }
            None => json.extend_from_slice(&rest[..length]),
        }
        position += length;
    }
    found.then_some(json)
}

/// Steps 1 and 3: returns the length of the first token of `text`, and its replacement.
fn outside_string(text: &[u8]) -> (usize, Option<&'static [u8]>) {
    const QUOTED: [&[u8]; 3] = [b"\"NaN\"", b"\"Infinity\"", b"\"-Infinity\""];
    if let Some(word) = WORDS.iter().position(|word| text.starts_with(word)) {
        return (WORDS[word].len(), Some(QUOTED[word]));
    }
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = text.iter().take_while(|byte| is_of_number(byte)).count().max(1);
    let number = str::from_utf8(&text[..length]).ok().filter(|text| is_number(text));
    match number.and_then(|number| number.parse::<f64>().ok()) {
        Some(f64::INFINITY) => (length, Some(QUOTED[1])),
        Some(f64::NEG_INFINITY) => (length, Some(QUOTED[2])),
        _ => (length, None),
    }
}

/// Whether `text` is a number in JSON's grammar: Rust's is larger.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// Relation of an escape to surrogate pairs.
#[derive(Debug, PartialEq)]
pub(super) enum Surrogate {
    None,
    /// Two escapes that are one character.
    Pair,
    /// One escape without the other half.
    Half(u16),
}

/// Classifies the escape at the start of `text`.
pub(super) fn escaped_surrogate(text: &[u8]) -> Surrogate {
    match code_unit(text) {
        Some(0xd800..=0xdbff) if matches!(text.get(ESCAPE..).and_then(code_unit), Some(0xdc00..=0xdfff)) => {
            Surrogate::Pair
        }
        Some(unit @ 0xd800..=0xdfff) => Surrogate::Half(unit),
        _ => Surrogate::None,
    }
}

/// Returns the number of an escape such as `\u00e9`.
fn code_unit(text: &[u8]) -> Option<u16> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        as_json(text.as_bytes()).map(|json| String::from_utf8(json).unwrap())
    }

    #[test]
    fn only_values_outside_json_change() {
        let text = r#"{"a": NaN, "NaN": [-Infinity, 1e400, -1E+400, 1e308], "b\"": "\ud800 \ud83d\ude00 NaN \udc00"}"#;
        let json = r#"{"a": "NaN", "NaN": ["-Infinity", "Infinity", "-Infinity", 1e308], "b\"": "\ufffd \ud83d\ude00 NaN \ufffd"}"#;
        assert_eq!(shown(text).unwrap(), json);
        let huge = format!("[1{}]", "0".repeat(400));
        assert_eq!(shown(&huge).unwrap(), "[\"Infinity\"]");
        assert_eq!(shown(r#"{"a": [1, -0.5e-3, "\u0041\\ud800"], "b": null}"#), None);
    }

    #[test]
    fn what_is_no_number_stays_refused() {
        for text in [
            "{NaN}", "nan", "1e400e", "-NaN", "01e999", "1.e999", "--1e999", "1e999e1", "+1e999", ".5e999",
            "-", "1e", "\\ud8", "\"\\ud80",
        ] {
            let json = shown(text).unwrap_or_else(|| text.to_owned());
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_err(), "{text}");
        }
    }
}
