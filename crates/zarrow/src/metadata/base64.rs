//! Base64 (RFC 4648 §4), the encoding of bytes in metadata.

/// Digits by their six bits.
pub(crate) const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes `text`; returns `None` if it is not base64. Padding is optional.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0u32;
        for position in 0..4 {
            let digit = group.get(position).map_or(Some(0), |byte| digit(*byte))?;
            bits = bits << 6 | digit;
        }
        // Two digits hold one byte, three hold two, four hold three.
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

/// Encodes `bytes` with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().chain([0; 3].iter()).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        for position in 0..4 {
            // One byte takes two digits, two take three, three take four.
            let digit = char::from(DIGITS[bits >> (18 - 6 * position) & 63]);
            text.push(if position <= group.len() { digit } else { '=' });
        }
    }
    text
}

/// Returns the six bits of a digit.
pub(crate) fn digit(byte: u8) -> Option<u32> {
    let digit = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(digit))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn decodes_the_vectors_of_the_rfc() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg", b"foob"),
            ("+/+/", b"\xfb\xff\xbf"),
        ] {
            assert_eq!(decode(text).unwrap(), bytes);
            assert_eq!(encode(bytes).trim_end_matches('='), text.trim_end_matches('='));
            assert_eq!(encode(bytes).len() % 4, 0);
        }
    }

    #[test]
    fn refuses_what_is_not_base64() {
        for text in ["Z", "Zm9vY", "Zm 9", "Zm9-", "Zg=v", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
