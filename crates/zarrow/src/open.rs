//! Opening: from a path in a store to an array or a group.

use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::metadata::{MetadataLimits, NodeMetadata, parse_v2_array, parse_v2_group, parse_v3};
use crate::options::OpenOptions;
use crate::store::{Store, join, normalize_path};
use std::sync::Arc;

/// A node of a hierarchy.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Array),
    /// A group.
    Group(Group),
}

/// Opens the array or group at `path` of `store`, version 3 before version 2; `""` is the root.
///
/// # Errors
/// [`ErrorKind::NotFound`] where there is neither, [`ErrorKind::BadKey`] for a path that leaves the store,
/// [`ErrorKind::Metadata`], and what the array's codecs give; with store and path.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// let root = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "rain"}}"#;
/// let store = Arc::new(MemoryStore::new([("zarr.json", root.to_vec())])?);
/// let zarrow::Node::Group(group) = zarrow::open(store.clone(), "/")? else { panic!() };
/// assert_eq!(group.attributes()["title"], "rain");
/// assert_eq!(zarrow::open(store, "missing").unwrap_err().kind().code(), "not_found");
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn open(store: Arc<dyn Store>, path: &str) -> Result<Node> {
    open_with(store, path, &OpenOptions::default())
}

/// As [`open`], with limits and a cache of the caller's.
///
/// # Errors
/// As [`open`].
pub fn open_with(store: Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let path = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
    open_node(&store, &path, options)
}

pub(crate) fn open_node(store: &Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let metadata = read_metadata(&**store, path, &options.limits.metadata)
        .map_err(|error| error.in_array(store.name(), path))?;
    node(store, path.to_owned(), metadata, options)
}

pub(crate) fn node(
    store: &Arc<dyn Store>,
    path: String,
    metadata: NodeMetadata,
    options: &OpenOptions,
) -> Result<Node> {
    match metadata {
        NodeMetadata::Array(metadata) => {
            Ok(Node::Array(Array::new(Arc::clone(store), path, metadata, options)?))
        }
        NodeMetadata::Group(metadata) => {
            Ok(Node::Group(Group::new(Arc::clone(store), path, metadata, *options)))
        }
    }
}

pub(crate) fn read_metadata(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Result<NodeMetadata> {
    let document = |name: &str, limit: u64| store.get(&join(path, name), limit);
    let small = |name: &str| document(name, limits.max_metadata_nbytes);
    if let Some(bytes) = document("zarr.json", limits.max_consolidated_nbytes)? {
        return Ok(parse_v3(&bytes, limits)?);
    }
    if let Some(zarray) = small(".zarray")? {
        return Ok(NodeMetadata::Array(parse_v2_array(&zarray, small(".zattrs")?.as_deref(), limits)?));
    }
    if let Some(zgroup) = small(".zgroup")? {
        let zmetadata = document(".zmetadata", limits.max_consolidated_nbytes)?;
        let zattrs = small(".zattrs")?;
        return Ok(NodeMetadata::Group(parse_v2_group(
            &zgroup,
            zattrs.as_deref(),
            zmetadata.as_deref(),
            limits,
        )?));
    }
    Err(Error::from(ErrorKind::NotFound))
}
