//! Keys of a store: relative, slash-separated, and never outside the root.

use crate::error::key_fault::RESERVED;
use crate::error::{ErrorKind, Result};

/// Checks that `key` names a value inside a store.
///
/// A key consists of parts separated by slashes. No part is empty, `.` or `..`, contains a NUL or a backslash (a
/// separator on some systems), or begins with `.zarrow-`, the prefix of writers' temporary files.
///
/// # Errors
/// [`ErrorKind::BadKey`].
///
/// ```
/// use zarrow::store::check_key;
/// assert!(check_key("a/c/0/0").is_ok());
/// for key in ["", "/etc/passwd", "../secret", "a/../../b", "a//b", "a/.", "a\0", "a\\..\\b", "a/.zarrow-1"] {
///     assert!(check_key(key).is_err(), "{key:?}");
/// }
/// ```
pub fn check_key(key: &str) -> Result<()> {
    let sound = |part: &[u8]| {
        let plain = match part {
            [] => false,
            // Only a part with a leading dot can be one of the reserved names.
            [b'.', ..] => part != b"." && part != b".." && !part.starts_with(RESERVED.as_bytes()),
            _ => true,
        };
        plain && !part.iter().any(|byte| matches!(byte, 0 | b'\\'))
    };
    let all = key.as_bytes().split(|byte| *byte == b'/').all(sound);
    if all { Ok(()) } else { Err(ErrorKind::BadKey(key.to_owned()).into()) }
}

/// Returns the path of a node without the slashes that users put around it; `""` is the root.
///
/// # Errors
/// [`ErrorKind::BadKey`], as in [`check_key`].
pub fn normalize_path(path: &str) -> Result<String> {
    let path = path.trim_matches('/');
    if !path.is_empty() {
        check_key(path)?;
    }
    Ok(path.to_owned())
}

/// Returns the key of `name` below the node at `path`.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// Splits a key into its folder (`""` is the root) and its name there.
pub fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('/').unwrap_or(("", key))
}
