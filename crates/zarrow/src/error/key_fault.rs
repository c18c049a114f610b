//! Reasons to refuse a key, for the message of its error.

/// Prefix of the names of locks and unfinished values, which are files beside values.
pub const RESERVED: &str = ".zarrow-";

/// Returns the reason why `key` is refused.
pub(crate) fn key_fault(key: &str) -> &'static str {
    if key.contains(['\0', '\\']) {
        return "a NUL or a backslash in it";
    }
    let fault = key.split('/').find_map(|part| match part {
        "" => Some("a name between its slashes is empty"),
        "." | ".." => Some("\".\" and \"..\" are not allowed as names"),
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
