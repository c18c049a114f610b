//! Creating arrays and groups.
//!
//! 1. Groups above that are not there are to be created, as zarr-python does; an array above is an error.
//! 2. A node that is there already is an error, or to be erased where that is asked for.
//! 3. Under the lock of the node's document, what is there is looked at again, and the documents are set.

use super::consolidate;
use super::document::{check_nbytes, lock, writer};
use super::node_path::{ancestors, new_path};
use crate::array::Array;
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::metadata::{
    ArrayMetadata, Document, GroupMetadata, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA,
    ZarrFormat,
};
use crate::open::read_metadata;
use crate::options::OpenOptions;
use crate::store::{Store, join, normalize_path};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The documents that a node can have.
pub(super) const DOCUMENTS: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// What becomes of a node that is where one is to be created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and creating is an error.
    #[default]
    Refuse,
    /// It is erased, with everything below it.
    Erase,
}

/// Creates an array at `path`, `""` for the root, and the groups above it that are not there.
///
/// # Errors
/// [`ErrorKind::Exists`] where a node is there, or chunks of one; [`ErrorKind::WrongNode`] where one above is an array,
/// [`ErrorKind::Unsupported`] where a group above is of the other version; [`ErrorKind::BadKey`];
/// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`]. Nothing was changed then, except where the store cannot be written.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::{MemoryStore, Store};
/// use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array};
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
/// let metadata = ArrayBuilder::new([100, 100], zarrow_array::Number::Int16).build()?;
/// let array = create_array(store.clone(), "model/rain", metadata, Existing::Refuse, &OpenOptions::default())?;
/// assert_eq!((array.path(), array.shape()), ("model/rain", &[100, 100][..]));
/// assert_eq!(store.list("model")?, ["rain", "zarr.json"]);
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn create_array(
    store: Arc<dyn Store>,
    path: &str,
    metadata: ArrayMetadata,
    existing: Existing,
    options: &OpenOptions,
) -> Result<Array> {
    let path = new_path(path).map_err(|error| error.in_array(store.name(), path))?;
    // The codecs are compiled before anything is written.
    let array = Array::new(Arc::clone(&store), path.clone(), metadata, options)?;
    let metadata = array.metadata();
    let documents = metadata.documents()?;
    create(&*store, &path, metadata.zarr_format, &documents, true, existing, options)
        .map_err(|error| error.in_array(store.name(), &path))?;
    Ok(array)
}

/// Creates a group at `path`, `""` for the root, and the groups above it that are not there.
///
/// Nodes below a path that is no node yet stay, and are in the group then.
///
/// # Errors
/// As [`create_array`].
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// use zarrow::{Existing, OpenOptions, ZarrFormat, create_group};
/// let store = Arc::new(MemoryStore::default());
/// let attributes = serde_json::Map::from_iter([("title".to_owned(), "rain".into())]);
/// let options = OpenOptions::default();
/// let group = create_group(store, "", ZarrFormat::V3, attributes, Existing::Refuse, &options)?;
/// assert_eq!(group.attributes()["title"], "rain");
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn create_group(
    store: Arc<dyn Store>,
    path: &str,
    zarr_format: ZarrFormat,
    attributes: Map<String, Value>,
    existing: Existing,
    options: &OpenOptions,
) -> Result<Group> {
    let path = new_path(path).map_err(|error| error.in_array(store.name(), path))?;
    let metadata = GroupMetadata { zarr_format, attributes, consolidated: None };
    let documents = metadata.documents()?;
    let limit = options.limits.metadata.max_metadata_nbytes;
    documents
        .iter()
        .try_for_each(|(_, document)| check_nbytes(document, limit))
        .and_then(|()| create(&*store, &path, zarr_format, &documents, false, existing, options))
        .map_err(|error| error.in_array(store.name(), &path))?;
    Ok(Group::new(store, path, metadata, *options))
}

fn create(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    documents: &[Document],
    is_array: bool,
    existing: Existing,
    options: &OpenOptions,
) -> Result<()> {
    let writer = writer(store)?;
    let missing = missing_groups(store, path, zarr_format, options)?;
    check_free(store, path, is_array, existing)?;
    for group in &missing {
        let metadata = GroupMetadata { zarr_format, attributes: Map::new(), consolidated: None };
        let _lock = lock(store, &join(group, node_document(zarr_format, false)))?;
        // Another may have come before the lock, and set attributes already.
        if node_at(store, group)?.is_none() {
            set(store, group, &metadata.documents()?, options)?;
        }
    }
    loop {
        if existing == Existing::Erase {
            erase_contents(store, path, options)?;
        }
        let _lock = lock(store, &join(path, node_document(zarr_format, is_array)))?;
        check_free(store, path, is_array, existing)?;
        if !path.is_empty() && node_at(store, path)?.is_some() {
            // Another has created a node since this was erased.
            continue;
        }
        set(store, path, documents, options)?;
        if existing == Existing::Erase {
            for name in DOCUMENTS.into_iter().filter(|name| documents.iter().all(|(set, _)| set != name)) {
                writer.erase(&join(path, name), options.durability)?;
            }
        }
        break;
    }
    for group in &missing {
        consolidate::refresh(store, group, options)?;
    }
    consolidate::refresh(store, path, options)
}

/// The document that makes a node.
pub(super) fn node_document(zarr_format: ZarrFormat, is_array: bool) -> &'static str {
    match (zarr_format, is_array) {
        (ZarrFormat::V3, _) => ZARR_JSON,
        (ZarrFormat::V2, true) => ZARRAY,
        (ZarrFormat::V2, false) => ZGROUP,
    }
}

/// What kind of node is at `path`, without a look at whether it can be opened.
fn node_at(store: &dyn Store, path: &str) -> Result<Option<&'static str>> {
    for (name, found) in [(ZARR_JSON, "a node"), (ZARRAY, "an array"), (ZGROUP, "a group")] {
        if store.open(&join(path, name))?.is_some() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Step 2.
fn check_free(store: &dyn Store, path: &str, is_array: bool, existing: Existing) -> Result<()> {
    let found = node_at(store, path)?;
    if let Some(found) = found {
        return match existing {
            Existing::Erase => Ok(()),
            Existing::Refuse => Err(ErrorKind::Exists(found).into()),
        };
    }
    // Chunks without their array would become those of the new one. Below the root they may be erased; all of a folder
    // that holds no node is not ours to erase.
    let is_chunk = |name: &String| name == "c" || name.starts_with(|first: char| first.is_ascii_digit());
    let may_stay = !is_array || existing == Existing::Erase && !path.is_empty();
    if !may_stay && store.list(path)?.iter().any(is_chunk) {
        return Err(ErrorKind::Exists("something that looks like chunks of an array").into());
    }
    Ok(())
}

/// Step 1: the groups above `path` that are not there, from the root down.
fn missing_groups(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for above in ancestors(path) {
        match read_metadata(store, above, &options.limits.metadata) {
            Ok(NodeMetadata::Group(group)) if group.zarr_format == zarr_format => {}
            Ok(NodeMetadata::Group(_)) => {
                let text = format!("a node of another version of Zarr than the group {above:?} above it");
                return Err(ErrorKind::Unsupported(text).into());
            }
            Ok(NodeMetadata::Array(_)) => {
                let (expected, found) = ("a group that can have members", "an array");
                return Err(crate::Error::from(ErrorKind::WrongNode { expected, found })
                    .in_array(store.name(), above));
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => missing.push(above.to_owned()),
            Err(error) => return Err(error.in_array(store.name(), above)),
        }
    }
    Ok(missing)
}

/// Erases all below `path`; at the root the documents of the node itself stay, so that a process that is killed here
/// leaves a node that can be overwritten again.
fn erase_contents(store: &dyn Store, path: &str, options: &OpenOptions) -> Result<()> {
    let writer = writer(store)?;
    if !path.is_empty() {
        consolidate::forget(store, path, options)?;
        writer.erase_prefix(path, options.durability)?;
        return Ok(());
    }
    for name in store.list(path)? {
        if !DOCUMENTS.contains(&name.as_str()) {
            writer.erase_prefix(&name, options.durability)?;
        }
    }
    Ok(())
}

fn set(store: &dyn Store, path: &str, documents: &[Document], options: &OpenOptions) -> Result<()> {
    for (name, document) in documents {
        writer(store)?.set(&join(path, name), &[document], options.durability)?;
    }
    Ok(())
}

/// Erases the node at `path` with everything below it; says whether there was anything.
///
/// # Errors
/// [`ErrorKind::BadKey`], [`ErrorKind::ReadOnly`], [`ErrorKind::Write`].
pub(crate) fn erase(store: &dyn Store, path: &str, options: &OpenOptions) -> Result<bool> {
    let path = normalize_path(path)?;
    let writer = writer(store)?;
    consolidate::forget(store, &path, options)?;
    writer.erase_prefix(&path, options.durability)
}
