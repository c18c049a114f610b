//! Opens arrays and groups.

use crate::error::{ErrorKind, Result};
use crate::metadata::{Attributes, ZarrFormat};
use crate::node::absent::explained;
use crate::node::any::{Members, Node, node_with_document};
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::hierarchy::{Existing, create_group};
use crate::node::known_documents;
use crate::node::listed::{ListedMembers, PendingList};
use crate::node::node_documents::{find_metadata, read_metadata};
use crate::node::open_options::OpenOptions;
use crate::store::{FilesystemStore, Store, normalize_path, open_path_with, open_url};
use std::path::Path;
use std::sync::Arc;

impl Array {
    /// Opens the array in the folder or zip archive `path`, or at a URL after
    /// [`open_urls_by`](crate::store::open_urls_by).
    ///
    /// # Errors
    /// As [`open`], and [`ErrorKind::WrongNode`] for a group.
    pub fn open(path: impl AsRef<Path>) -> Result<Array> {
        open_path_with(path.as_ref(), |store| open(store, ""))?.into_array()
    }
}

impl Group {
    /// Opens the group in the folder or zip archive `path`, or at a URL after
    /// [`open_urls_by`](crate::store::open_urls_by).
    ///
    /// # Errors
    /// As [`open`], and [`ErrorKind::WrongNode`] for an array.
    pub fn open(path: impl AsRef<Path>) -> Result<Group> {
        open_path_with(path.as_ref(), |store| open(store, ""))?.into_group()
    }

    /// Creates a group of Zarr version 3 in the folder `path`, and the missing folders above it.
    ///
    /// # Errors
    /// As [`create_group`](crate::create_group).
    pub fn create(path: impl AsRef<Path>) -> Result<Group> {
        Group::create_with(path, Existing::Refuse)
    }

    /// As [`create`](Group::create); `existing` says what to do with an existing node.
    ///
    /// # Errors
    /// As [`create_group`](crate::create_group).
    ///
    /// ```
    /// use zarrow::{Existing, Group};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("data.zarr");
    /// Group::create(&path)?;
    /// assert!(Group::create(&path).is_err());
    /// Group::create_with(&path, Existing::Erase)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_with(path: impl AsRef<Path>, existing: Existing) -> Result<Group> {
        let store = match open_url(path.as_ref()) {
            Some(opened) => opened?,
            None => Arc::new(FilesystemStore::create(path)?),
        };
        let options = OpenOptions::default();
        create_group(store, "", ZarrFormat::V3, Attributes::default(), existing, &options)
    }
}

/// Opens the array or group at `path` of `store`, version 3 before version 2; `""` is the root.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is neither, [`ErrorKind::BadKey`] for a path that leaves the store,
/// [`ErrorKind::Metadata`], and errors in the array's codecs; with store and path.
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

/// As [`open`], with the caller's options, such as limits and a cache.
///
/// # Errors
/// As [`open`].
pub fn open_with(store: Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let path = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
    open_node(&store, &path, options)
        .map_err(|error| explained(error, &*store, &path, &options.limits.metadata, None))
}

/// As [`open_with`], for a node that may be missing: then returns `None`, after one round trip to a remote store.
///
/// # Errors
/// As [`open`], except [`ErrorKind::NotFound`].
///
/// ```
/// # use std::sync::Arc;
/// # use zarrow::{OpenOptions, store::MemoryStore};
/// let store = Arc::new(MemoryStore::default());
/// assert!(zarrow::find(store, "rain", &OpenOptions::default())?.is_none());
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn find(store: Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Option<Node>> {
    let path = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
    existing(find_node(&store, &path, options))
}

/// Returns `None` for a node that does not exist.
pub(crate) fn existing(opened: Result<Node>) -> Result<Option<Node>> {
    match opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
        opened => opened.map(Some),
    }
}

/// As [`open_with`], together with the names and nodes directly below a group, as [`Group::children`] returns them. In
/// a remote store the group's documents and its listing are requested concurrently. An array has no members.
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
    let listing = PendingList::begin(&*store, &place, true);
    let node = open_with(Arc::clone(&store), path, options)?;
    let members = match &node {
        Node::Group(group) if group.is_consolidated() || store.remote().is_none() => group.children()?,
        Node::Group(group) => {
            listing.finish(group).and_then(ListedMembers::into_members).map_err(|error| group.place(error))?
        }
        Node::Array(_) => Vec::new(),
    };
    Ok((node, members))
}

/// Says that the node at `path` of a remote store is likely of this version, so that opening it requests fewer
/// documents. A wrong guess is not an error.
pub fn expect_format(store: &dyn Store, path: &str, zarr_format: ZarrFormat) {
    if let Ok(path) = normalize_path(path) {
        known_documents::expect(store, &path, zarr_format);
    }
}

pub(crate) fn open_node(store: &Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let metadata = read_metadata(&**store, path, &options.limits.metadata)
        .map_err(|error| error.in_array(store.name(), path))?;
    node_with_document(store, path.to_owned(), metadata, options)
}

/// As [`open_node`], for a node that may be missing.
pub(crate) fn find_node(store: &Arc<dyn Store>, path: &str, options: &OpenOptions) -> Result<Node> {
    let metadata = find_metadata(&**store, path, &options.limits.metadata)
        .map_err(|error| error.in_array(store.name(), path))?;
    node_with_document(store, path.to_owned(), metadata, options)
}
