//! Paths at which a node may be created.

use super::document::DOCUMENTS;
use crate::error::{ErrorKind, Result};
use crate::store::normalize_path;

/// The longest name that file systems take, in bytes.
const LONGEST: usize = 255;

/// The path of a node that is to be created, without the slashes around it; `""` is the root.
///
/// Stricter than what is opened: names that the specification reserves (Zarr core 3.1, node names) are refused, and
/// those of documents.
///
/// # Errors
/// [`ErrorKind::BadKey`].
///
/// ```
/// assert_eq!(zarrow::new_path("/model/rain/")?, "model/rain");
/// assert!(zarrow::new_path("model/__rain").is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn new_path(path: &str) -> Result<String> {
    let path = normalize_path(path)?;
    let sound = |name: &str| {
        name.bytes().any(|byte| byte != b'.')
            && !name.starts_with("__")
            && !DOCUMENTS.contains(&name)
            && name.len() <= LONGEST
    };
    if path.is_empty() || path.split('/').all(sound) {
        return Ok(path);
    }
    Err(ErrorKind::BadKey(path).into())
}

/// The paths of the groups above `path`, from the root down.
pub(super) fn ancestors(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let root = (!path.is_empty()).then_some("");
    root.into_iter().chain(ends.into_iter().map(|end| &path[..end]))
}
