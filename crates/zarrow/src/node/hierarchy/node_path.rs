//! Paths of new nodes.

use super::document_names::DOCUMENTS;
use crate::error::{ErrorKind, Result};
use crate::store::normalize_path;

/// Maximum length in bytes of a name in file systems.
const LONGEST: usize = 255;

/// Returns the path of a node to be created, without the slashes around it; `""` is the root.
///
/// Stricter than opening: refuses names reserved by the specification (Zarr core 3.1, node names), and names of
/// documents.
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

/// Returns the paths of the groups above `path`, from the root down.
pub(crate) fn ancestors(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
    let root = (!path.is_empty()).then_some("");
    root.into_iter().chain(ends.into_iter().map(|end| &path[..end]))
}
