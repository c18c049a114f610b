//! The documents of a node, by name.

use crate::error::Result;
use crate::metadata::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::store::{Store, Version, join};

/// All documents of a node: the attributes, and last the document that makes it a node.
pub(super) const DOCUMENTS: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// Returns the name of the document that makes a node.
pub(super) fn node_document(zarr_format: ZarrFormat, is_array: bool) -> &'static str {
    match (zarr_format, is_array) {
        (ZarrFormat::V3, _) => ZARR_JSON,
        (ZarrFormat::V2, true) => ZARRAY,
        (ZarrFormat::V2, false) => ZGROUP,
    }
}

/// Returns the name of the document that makes a node at `path`, without checking whether the node can be opened.
pub(super) fn node_at(store: &dyn Store, path: &str) -> Result<Option<&'static str>> {
    for name in [ZARR_JSON, ZARRAY, ZGROUP] {
        if store.version_of(&join(path, name))? != Version::Missing {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
