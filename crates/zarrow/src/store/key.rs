//! Keys of a store: relative, slash-separated, and never outside the root.

use crate::error::{ErrorKind, Result};

/// How the names of locks and unfinished values begin, which lie beside values and are not values themselves.
pub(super) const RESERVED: &str = ".zarrow-";

/// Checks that `key` names something inside a store.
///
/// A key has parts between slashes; none is empty, `.` or `..`, none has a NUL or a backslash (which is a separator
/// on some systems), and none begins with `.zarrow-`, as the names of what writers need for a moment do.
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
            // Only a part that begins so can be one of these.
            [b'.', ..] => part != b"." && part != b".." && !part.starts_with(RESERVED.as_bytes()),
            _ => true,
        };
        plain && !part.iter().any(|byte| matches!(byte, 0 | b'\\'))
    };
    let all = key.as_bytes().split(|byte| *byte == b'/').all(sound);
    if all { Ok(()) } else { Err(ErrorKind::BadKey(key.to_owned()).into()) }
}

/// What is wrong with a key that is refused, for its error.
pub(crate) fn key_fault(key: &str) -> &'static str {
    if key.contains(['\0', '\\']) {
        return "a NUL or a backslash in it";
    }
    let fault = key.split('/').find_map(|part| match part {
        "" => Some("a name between its slashes is empty"),
        "." | ".." => Some("\".\" and \"..\" would leave their place in the store"),
        part if part.starts_with(RESERVED) => {
            Some("names that begin with \".zarrow-\" are reserved for writers")
        }
        part if part.bytes().all(|byte| byte == b'.') => Some("names of dots alone are reserved"),
        part if part.starts_with("__") => Some("names that begin with \"__\" are reserved by Zarr"),
        part if part.len() > 255 => Some("a name has more than 255 bytes"),
        _ => None,
    });
    fault.unwrap_or("the names of metadata documents are reserved")
}

/// The path of a node without the slashes that users put around it; `""` is the root.
///
/// # Errors
/// [`ErrorKind::BadKey`] as [`check_key`] says.
pub fn normalize_path(path: &str) -> Result<String> {
    let path = path.trim_matches('/');
    if !path.is_empty() {
        check_key(path)?;
    }
    Ok(path.to_owned())
}

/// The key of `name` below the node at `path`.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
