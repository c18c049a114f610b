//! Opening: from a path in a store to an array or a group.

use crate::absent::explained;
use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::group::{Group, Members};
use crate::hierarchy::unfinished::{is_unfinished, not_found};
use crate::hierarchy::{Existing, create_group};
use crate::metadata::{
    Attributes, MetadataLimits, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat,
    parse_v2_array, parse_v2_group, parse_v3,
};
use crate::options::OpenOptions;
use crate::store::{FilesystemStore, Got, Store, join, normalize_path};
use std::path::Path;
use std::sync::Arc;

/// A node of a hierarchy.
#[derive(Debug, Clone)]
pub enum Node {
    /// An array.
    Array(Array),
    /// A group.
    Group(Group),
}

impl Node {
    /// The array.
    ///
    /// # Errors
    /// [`ErrorKind::WrongNode`] for a group.
    pub fn into_array(self) -> Result<Array> {
        match self {
            Node::Array(array) => Ok(array),
            Node::Group(group) => {
                let (expected, found) = ("an array", "a group");
                let error = Error::from(ErrorKind::WrongNode { expected, found });
                Err(error.in_array(group.store().name(), group.path()))
            }
        }
    }

    /// The group.
    ///
    /// # Errors
    /// [`ErrorKind::WrongNode`] for an array.
    pub fn into_group(self) -> Result<Group> {
        match self {
            Node::Group(group) => Ok(group),
            Node::Array(array) => {
                let (expected, found) = ("a group", "an array");
                Err(array.place(ErrorKind::WrongNode { expected, found }.into()))
            }
        }
    }
}

impl Array {
    /// Opens the array in the folder `path`.
    ///
    /// # Errors
    /// As [`open`], and [`ErrorKind::WrongNode`] for a group.
    pub fn open(path: impl AsRef<Path>) -> Result<Array> {
        open(Arc::new(FilesystemStore::open(path)?), "")?.into_array()
    }
}

impl Group {
    /// Opens the group in the folder `path`.
    ///
    /// # Errors
    /// As [`open`], and [`ErrorKind::WrongNode`] for an array.
    pub fn open(path: impl AsRef<Path>) -> Result<Group> {
        open(Arc::new(FilesystemStore::open(path)?), "")?.into_group()
    }

    /// Creates a group of version 3 in the folder `path`, and the folders above it that are not there.
    ///
    /// # Errors
    /// As [`create_group`](crate::create_group).
    pub fn create(path: impl AsRef<Path>) -> Result<Group> {
        let store = Arc::new(FilesystemStore::create(path)?);
        let (existing, options) = (Existing::Refuse, OpenOptions::default());
        create_group(store, "", ZarrFormat::V3, Attributes::default(), existing, &options)
    }
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
/// let group = zarrow::open(store.clone(), "/")?.into_group()?;
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
        .map_err(|error| explained(error, &*store, &path, &options.limits.metadata, None))
}

/// As [`open_with`], with the names and nodes directly below a group, as [`Group::children`] gives them: its documents and
/// its listing are asked for at once, where a request takes long. Below an array there are none.
///
/// # Errors
/// As [`open`] and [`Group::children`].
///
/// ```
/// # use std::sync::Arc;
/// # use zarrow::{Existing, OpenOptions, ZarrFormat, create_group, store::MemoryStore};
/// # let (store, options) = (Arc::new(MemoryStore::default()), OpenOptions::default());
/// # let attributes = serde_json::Map::new();
/// create_group(store.clone(), "model/runs", ZarrFormat::V3, attributes, Existing::Refuse, &options)?;
/// let (_, members) = zarrow::open_members(store, "model", &options)?;
/// assert_eq!(members[0].0, "runs");
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn open_members(store: Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<(Node, Members)> {
    let place = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
    let listed = store.list_ahead(&place);
    let node = open_with(Arc::clone(&store), path, options)?;
    let members = match &node {
        Node::Group(group) => group.children_of(listed)?,
        Node::Array(_) => Vec::new(),
    };
    Ok((node, members))
}

pub(crate) fn open_node(store: &Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let metadata = read_metadata(&**store, path, &options.limits.metadata)
        .map_err(|error| error.in_array(store.name(), path))?;
    node_with_document(store, path.to_owned(), metadata, options)
}

/// The node of metadata that were read from its own documents.
pub(crate) fn node_with_document(
    store: &Arc<dyn Store>,
    path: String,
    metadata: NodeMetadata,
    options: &OpenOptions,
) -> Result<Node> {
    Ok(match node(store, path, metadata, options)? {
        Node::Array(array) => Node::Array(array.with_document()),
        group => group,
    })
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

/// The documents of a node, which are asked for at once where a request takes long.
pub(crate) fn read_metadata(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Result<NodeMetadata> {
    if store.remote().is_none() {
        return metadata_of(limits, &mut |name, limit| store.get(&join(path, name), limit));
    }
    let keys: Vec<(String, u64)> =
        DOCUMENTS.iter().map(|name| (join(path, name), limit_of(name, limits))).collect();
    metadata_of_fetched(store.get_each(&keys), limits)
}

/// The metadata of a node, of which these are the [`DOCUMENTS`].
fn metadata_of_fetched(mut fetched: Vec<Got>, limits: &MetadataLimits) -> Result<NodeMetadata> {
    metadata_of(limits, &mut |name, _| {
        let at = DOCUMENTS.iter().position(|document| *document == name);
        at.and_then(|at| fetched.get_mut(at)).map_or(Ok(None), |got| std::mem::replace(got, Ok(None)))
    })
}

/// The documents that a node may have.
const DOCUMENTS: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// How many bytes a document may have.
fn limit_of(name: &str, limits: &MetadataLimits) -> u64 {
    match name {
        ZARR_JSON | ZMETADATA => limits.max_consolidated_nbytes,
        _ => limits.max_metadata_nbytes,
    }
}

/// The metadata of each of the nodes at `paths`, directly below a group of this version, whose documents are asked for at once.
///
/// Below a group of version 3 that is one for each node. What has none is likely no node, and rarely one of version 2.
pub(crate) fn read_each(
    store: &dyn Store,
    paths: &[String],
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> Vec<Result<NodeMetadata>> {
    let fetched = |paths: &[&String], names: &[&str]| {
        let of_path = |path: &String| {
            let key = |name: &&str| (join(path, name), limit_of(name, limits));
            names.iter().map(key).collect::<Vec<_>>()
        };
        let keys: Vec<(String, u64)> = paths.iter().flat_map(|path| of_path(path)).collect();
        let mut found = store.get_each(&keys).into_iter();
        let each = paths.iter().map(|_| found.by_ref().take(names.len()).collect());
        each.collect::<Vec<Vec<Got>>>()
    };
    let all: Vec<&String> = paths.iter().collect();
    if zarr_format == ZarrFormat::V2 {
        return fetched(&all, &DOCUMENTS).into_iter().map(|own| metadata_of_fetched(own, limits)).collect();
    }
    let (first, others) = DOCUMENTS.split_at(1);
    let mut found = fetched(&all, first);
    let is_without = |own: &Vec<Got>| matches!(own[..], [Ok(None)]);
    let without = found.iter_mut().zip(&all).filter(|(own, _)| is_without(own));
    let (without, paths): (Vec<&mut Vec<Got>>, Vec<&String>) = without.unzip();
    for (own, others) in without.into_iter().zip(fetched(&paths, others)) {
        own.extend(others);
    }
    found.into_iter().map(|own| metadata_of_fetched(own, limits)).collect()
}

/// The metadata of a node by its documents, of which `document` gives those that are asked for.
fn metadata_of(limits: &MetadataLimits, document: &mut dyn FnMut(&str, u64) -> Got) -> Result<NodeMetadata> {
    let mut get = |name: &str| document(name, limit_of(name, limits));
    if let Some(bytes) = get(ZARR_JSON)? {
        let metadata = parse_v3(&bytes, limits)?;
        return if is_unfinished(&metadata) { Err(not_found()) } else { Ok(metadata) };
    }
    if let Some(zarray) = get(ZARRAY)? {
        return Ok(NodeMetadata::Array(parse_v2_array(&zarray, get(ZATTRS)?.as_deref(), limits)?));
    }
    if let Some(zgroup) = get(ZGROUP)? {
        let zmetadata = get(ZMETADATA)?;
        let zattrs = get(ZATTRS)?;
        return Ok(NodeMetadata::Group(parse_v2_group(
            &zgroup,
            zattrs.as_deref(),
            zmetadata.as_deref(),
            limits,
        )?));
    }
    Err(Error::from(ErrorKind::NotFound))
}
