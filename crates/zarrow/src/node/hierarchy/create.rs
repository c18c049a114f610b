//! Creating and replacing arrays and groups.
//!
//! 1. Missing groups above are created, as in zarr-python. An array above is an error.
//! 2. If a node exists, creating is an error, unless the caller asks to replace it. A non-empty folder without a node
//!    is never erased.
//! 3. A node that replaces another, or is created with elements, is built in a hidden place (`StoreWriter::stage`). If
//!    that fails, or this process is killed, the store remains unchanged.
//! 4. Under the locks of the groups above, steps 1 and 2 are checked again, and the node is published in one step. At
//!    the root of a store this takes a few steps, and in between readers find no node. If two processes create a node, one
//!    succeeds.
//! 5. What was replaced or erased is removed after the locks are released.
//! 6. A store without hidden places also shows an array with elements only when it is complete: see
//!    [`unfinished`](super::unfinished).

use super::ahead::{self, Assumed};
use super::consolidate;
use super::contents::{Contents, Source};
use super::document::check_nbytes;
use super::document_names::{DOCUMENTS, node_at};
use super::new_place::{Existing, NewPlace};
use super::node_lock::NodeLock;
use super::node_path::{ancestors, new_path};
use super::resize::shape_lock;
use super::revision;
use super::unfinished::Unfinished;
use crate::error::warnings::warn;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{
    ArrayMetadata, Attributes, Document, GroupMetadata, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP,
    ZarrFormat,
};
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::node_documents::read_metadata;
use crate::node::open_options::OpenOptions;
use crate::selection::Selection;
use crate::store::remote::AheadStore;
use crate::store::{Detached, Stage, Store, join, writer_of};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::cell::Cell;
use std::sync::Arc;

/// Creates an array at `path` (`""` is the root), and missing groups above it.
///
/// # Errors
/// [`ErrorKind::Exists`] if there is already a node, or chunks of one; [`ErrorKind::Foreign`] if a non-empty folder
/// without a node would be erased; [`ErrorKind::WrongNode`] if there is an array above, [`ErrorKind::Unsupported`] if a
/// group above is of the other version; [`ErrorKind::BadKey`]; [`ErrorKind::ReadOnly`], [`ErrorKind::Write`]. After an
/// error the store is unchanged, except that the replaced node may remain beside the new one if it cannot be removed.
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
    created_array(store, path, metadata, None, existing, options)
}

/// Creates an array as [`create_array`] does, with `values` of the array's shape and type, written with the options
/// `write`. Readers see the array with all its elements or not at all, and an error leaves the store unchanged.
///
/// # Errors
/// As [`create_array`] and [`Array::write`].
///
/// ```
/// # use std::sync::Arc;
/// # use zarrow::store::MemoryStore;
/// # use zarrow::{ArrayBuilder, Existing, OpenOptions, Values, WriteOptions, create_array_with};
/// let metadata = ArrayBuilder::new([3], zarrow::Number::UInt8).build()?;
/// let values = Values::slice(&[1u8, 2, 3], &[3])?;
/// let (store, options) = (Arc::new(MemoryStore::default()), OpenOptions::default());
/// let write = WriteOptions::default();
/// let array = create_array_with(store, "x", metadata, &values, Existing::Refuse, &options, &write)?;
/// assert_eq!(array.read(..)?.into_tensor()?.bytes(), [1, 2, 3]);
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn create_array_with(
    store: Arc<dyn Store>,
    path: &str,
    metadata: ArrayMetadata,
    values: &Values<'_>,
    existing: Existing,
    options: &OpenOptions,
    write: &WriteOptions<'_>,
) -> Result<Array> {
    let all = Selection::all(&metadata.shape);
    create_array_from(store, path, metadata, &|put| put(&all, values), existing, options, write)
}

/// Creates an array as [`create_array_with`] does, with elements that `source` puts part by part: they need not be in
/// memory at once.
///
/// # Errors
/// As [`create_array_with`], and errors of `source`.
///
/// ```
/// # use std::sync::Arc;
/// # use zarrow::store::MemoryStore;
/// # use zarrow::{ArrayBuilder, Existing, OpenOptions, Selection, Values, WriteOptions, create_array_from};
/// let metadata = ArrayBuilder::new([4], zarrow::Number::UInt8).chunk_shape([2]).build()?;
/// let (store, options) = (Arc::new(MemoryStore::default()), OpenOptions::default());
/// let write = WriteOptions::default();
/// let array = create_array_from(store, "x", metadata, &|put| {
///     for start in [0u8, 2] {
///         let part = Selection::new(&[4], &[(u64::from(start)..u64::from(start) + 2).into()])?;
///         put(&part, &Values::slice(&[start, start + 1], &[2])?)?;
///     }
///     Ok(())
/// }, Existing::Refuse, &options, &write)?;
/// assert_eq!(array.read(..)?.into_tensor()?.bytes(), [0, 1, 2, 3]);
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn create_array_from(
    store: Arc<dyn Store>,
    path: &str,
    metadata: ArrayMetadata,
    source: &Source<'_>,
    existing: Existing,
    options: &OpenOptions,
    write: &WriteOptions<'_>,
) -> Result<Array> {
    created_array(store, path, metadata, Some(Contents::Elements(source, write)), existing, options)
}

fn created_array(
    store: Arc<dyn Store>,
    path: &str,
    metadata: ArrayMetadata,
    contents: Option<Contents<'_>>,
    existing: Existing,
    options: &OpenOptions,
) -> Result<Array> {
    let path = new_path(path).map_err(|error| error.in_array(store.name(), path))?;
    // The codecs are compiled before anything is written.
    created(&Array::new(store, path, metadata, options)?, contents, existing)
}

/// Creates `array`, and returns the stored one.
pub(super) fn created(array: &Array, contents: Option<Contents<'_>>, existing: Existing) -> Result<Array> {
    let metadata = array.metadata();
    let new = Creation {
        store: &**array.store(),
        path: array.path(),
        zarr_format: metadata.zarr_format,
        documents: &metadata.documents()?,
        array: Some(array),
        existing,
        options: array.options(),
    };
    new.create(contents, Assumed::Fresh).map_err(|error| array.place(error))?;
    Ok(array.renewed(metadata.clone(), revision::present()).with_document())
}

/// Creates a group at `path` (`""` is the root), and missing groups above it.
///
/// Existing nodes below a path without a node are kept and become members of the group.
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
    attributes: impl Into<Attributes>,
    existing: Existing,
    options: &OpenOptions,
) -> Result<Group> {
    created_group(store, path, zarr_format, attributes.into(), None, existing, Assumed::Fresh, options)
}

/// Creates a group as [`create_group`] does, without attributes, at a path where an open has just found no node: the
/// path is not checked again.
///
/// # Errors
/// As [`create_array`].
pub fn create_absent_group(
    store: Arc<dyn Store>,
    path: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<Group> {
    let attributes = Attributes::default();
    created_group(store, path, zarr_format, attributes, None, Existing::Refuse, Assumed::Absent, options)
}

#[allow(clippy::too_many_arguments, reason = "the arguments of three functions")]
pub(super) fn created_group(
    store: Arc<dyn Store>,
    path: &str,
    zarr_format: ZarrFormat,
    attributes: Attributes,
    members: Option<Contents<'_>>,
    existing: Existing,
    assumed: Assumed,
    options: &OpenOptions,
) -> Result<Group> {
    let path = new_path(path).map_err(|error| error.in_array(store.name(), path))?;
    let metadata = GroupMetadata { zarr_format, attributes, consolidated: None };
    let documents = metadata.documents()?;
    let limit = options.limits.metadata.max_metadata_nbytes;
    documents
        .iter()
        .try_for_each(|(_, document)| check_nbytes(document, limit))
        .and_then(|()| {
            let (store, path, documents) = (&*store, &*path, &*documents);
            Creation { store, path, zarr_format, documents, array: None, existing, options }
                .create(members, assumed)
        })
        .map_err(|error| error.in_array(store.name(), &path))?;
    Ok(Group::new(store, path, metadata, *options))
}

/// A new node, before the store is checked.
struct Creation<'a> {
    store: &'a dyn Store,
    path: &'a str,
    zarr_format: ZarrFormat,
    documents: &'a [Document],
    /// The array; `None` for a group.
    array: Option<&'a Array>,
    existing: Existing,
    options: &'a OpenOptions,
}

impl Creation<'_> {
    fn create(&self, contents: Option<Contents<'_>>, assumed: Assumed) -> Result<()> {
        let is_created = self.create_once(contents, assumed)?;
        // Another writer was faster: check the store.
        if is_created { Ok(()) } else { self.create_once(contents, Assumed::Nothing).map(drop) }
    }

    /// Creates the node; `false` if the store does not match `assumed`.
    fn create_once(&self, contents: Option<Contents<'_>>, assumed: Assumed) -> Result<bool> {
        let Creation { store, path, zarr_format, documents, array, existing, options } = *self;
        let (may_replace, limits) = (existing != Existing::Refuse, &options.limits.metadata);
        let ahead = ahead::for_creation(store, path, zarr_format, may_replace, assumed, limits);
        let assumes = ahead.as_ref().is_some_and(|(_, assumes)| *assumes);
        let ahead = ahead.as_ref().map(|(ahead, _)| ahead);
        let store = ahead.map_or(store, |ahead| ahead as &dyn Store);
        let is_published = Cell::new(false);
        let new = New { store, ahead, path, zarr_format, documents, array, existing, options, is_published };
        match new.create(contents) {
            Err(error)
                if assumes && !new.is_published.get() && matches!(error.kind(), ErrorKind::Exists(_)) =>
            {
                return Ok(false);
            }
            created => created.map_err(|error| new.renewed_copies(error))?,
        }
        if let (Some(ahead), None) = (ahead, array) {
            ahead.created_group(path);
        }
        Ok(true)
    }
}

/// A node to be created.
struct New<'a> {
    store: &'a dyn Store,
    /// The same store, if it is remote.
    ahead: Option<&'a AheadStore>,
    path: &'a str,
    zarr_format: ZarrFormat,
    documents: &'a [Document],
    /// The array; `None` for a group.
    array: Option<&'a Array>,
    existing: Existing,
    options: &'a OpenOptions,
    /// Whether the first document was put.
    is_published: Cell<bool>,
}

impl<'a> New<'a> {
    fn create(&self, contents: Option<Contents<'_>>) -> Result<()> {
        let writer = writer_of(self.store)?;
        let interrupted = contents.map_or_else(WriteOptions::default, Contents::write_options).interrupted();
        let mut stage = None;
        let mut is_staged = false;
        let mut made = Vec::new();
        if contents.is_some() {
            // Refuse before encoding the elements.
            self.missing_groups()?;
            self.replaces()?;
            (stage, is_staged) = (self.staged(contents)?, true);
        }
        let is_whole = stage.is_some();
        let unfinished = match contents {
            Some(_) if !is_whole && Unfinished::suits(writer, self.zarr_format) => {
                Some(Unfinished::new(self.store, self.path)?)
            }
            _ => None,
        };
        loop {
            // If chunks are found by key alone, appends to the replaced array have to finish first.
            let is_pinned = !self.path.is_empty() && self.store.subtree(self.path)?.is_some();
            let is_array = |name| name == ZARRAY || name != ZGROUP;
            let _shape = match node_at(self.store, self.path)? {
                Some(name) if !is_pinned && is_array(name) && self.existing != Existing::Refuse => {
                    Some(shape_lock(self.store, self.path, interrupted)?)
                }
                _ => None,
            };
            // Step 4.
            let held = NodeLock::above(self.store, self.path)?;
            let missing = self.missing_groups()?;
            let replaces = self.replaces()?;
            if replaces && !is_staged {
                drop(held);
                (stage, is_staged) = (self.staged(None)?, true);
                continue;
            }
            made.clear();
            let mut publish = || {
                self.set_groups(&missing, &mut made)?;
                let stage = stage.take();
                self.publish(stage, replaces, unfinished.as_ref())
            };
            // The copies above also describe the replacing array if its chunk layout is the same. Otherwise readers
            // must not use them: the array is missing there until the copies are renewed.
            let published = if replaces && (unfinished.is_some() || !self.is_alike()) {
                consolidate::without_copies(self.store, &held, &[self.path], self.options, false, publish)
                    .map(|(detached, _)| detached)
            } else {
                publish()
            };
            let detached = published.inspect_err(|_| self.take_back(&made))?;
            self.is_published.set(true);
            if let Some(ahead) = self.ahead {
                ahead.arrive();
            }
            let own = Some(self.path).filter(|_| unfinished.is_none());
            let new: Vec<&str> = if self.store.remote().is_none() {
                // Also the groups that a killed creation left without copies.
                with_groups(self.path)
                    .into_iter()
                    .filter(|path| *path != self.path || own.is_some())
                    .collect()
            } else {
                missing.iter().map(String::as_str).chain(own).collect()
            };
            consolidate::renew(self.store, &held, &new, self.options);
            if matches!(contents, Some(Contents::Members(_))) {
                consolidate::renew_members(self.store, &held, self.path, self.options);
            }
            revision::count();
            drop(held);
            // Step 5.
            detached.map_or(Ok(()), |detached| detached.clear())?;
            break;
        }
        match (self.array, contents) {
            (Some(array), Some(contents)) if !is_whole => match &unfinished {
                Some(unfinished) => {
                    self.finish(unfinished, array, contents).inspect_err(|_| self.take_back(&made))
                }
                None => contents.fill(array),
            },
            _ => Ok(()),
        }
    }

    /// Creates the missing groups above, and adds their paths to `made`.
    fn set_groups(&self, missing: &[String], made: &mut Vec<String>) -> Result<()> {
        for group in missing {
            let metadata = GroupMetadata {
                zarr_format: self.zarr_format,
                attributes: Attributes::default(),
                consolidated: None,
            };
            match self.set(group, &metadata.documents()?) {
                Ok(()) => made.push(group.clone()),
                // Another process has created it.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Publishes the node (step 4).
    fn publish(
        &self,
        stage: Option<Box<dyn Stage<'a> + 'a>>,
        replaces: bool,
        unfinished: Option<&Unfinished<'_>>,
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        if let Some(stage) = stage {
            return stage.publish(replaces, &DOCUMENTS).map(Some);
        }
        let (writer, durability) = (writer_of(self.store)?, self.options.durability);
        let detached = if replaces { writer.detach(self.path, durability, &DOCUMENTS)? } else { None };
        let first = unfinished.map_or(self.documents, Unfinished::documents);
        self.set(self.path, first).map_err(|error| match error.kind() {
            ErrorKind::Conflict => ErrorKind::Exists("a node").into(),
            _ => error,
        })?;
        Ok(detached)
    }

    /// Erases the groups in `made`, after their node could not be created. In stores without locks they are kept with a
    /// warning, since another writer may already use them.
    fn take_back(&self, made: &[String]) {
        let Ok(writer) = writer_of(self.store) else { return };
        if writer.is_optimistic() && !made.is_empty() {
            let groups: Vec<String> = made.iter().map(|group| format!("/{group}")).collect();
            warn(format!("creating a node failed, but its parent groups {groups:?} were created and remain"));
        }
        if !writer.is_optimistic() {
            for key in made.iter().rev().flat_map(|group| [ZARR_JSON, ZGROUP].map(|name| join(group, name))) {
                // Report the error that led here, not this one.
                let _ = writer.erase(&key, self.options.durability);
            }
        }
    }

    /// Step 6.
    fn finish(&self, unfinished: &Unfinished<'_>, array: &Array, contents: Contents<'_>) -> Result<()> {
        if let Err(error) = contents.fill(array) {
            if let Some(ahead) = self.ahead {
                ahead.forget();
            }
            unfinished.take_away(array, self.options);
            return Err(error);
        }
        let held = NodeLock::above(self.store, self.path)?;
        // The groups above may have been consolidated while the elements were written.
        let limits = &self.options.limits.metadata;
        let requests = self.ahead.map(|own| (own, ahead::again(own, self.path, self.zarr_format, limits)));
        for (_, document) in self.documents {
            unfinished.finish(&held, document, self.options)?;
        }
        if let Some((ahead, requests)) = requests {
            ahead.take(requests);
        }
        consolidate::renew(self.store, &held, &[self.path], self.options);
        revision::count();
        Ok(())
    }

    /// If a node exists, renews the copies in consolidated groups above: they may lack the node if a process was killed
    /// before it renewed them, or if another program created the node.
    fn renewed_copies(&self, error: Error) -> Error {
        if matches!(error.kind(), ErrorKind::Exists(_)) {
            let renewed = NodeLock::above(self.store, self.path).and_then(|held| {
                consolidate::refresh(self.store, &held, &with_groups(self.path), self.options)
            });
            if renewed.is_ok() {
                revision::count();
            }
        }
        error
    }

    /// Step 3; `None` if the store cannot stage.
    fn staged(&self, contents: Option<Contents<'_>>) -> Result<Option<Box<dyn Stage<'a> + 'a>>> {
        let Some(stage) = writer_of(self.store)?.stage(self.path, self.options.durability)? else {
            return Ok(None);
        };
        let inside = writer_of(&**stage.store())?;
        for (name, document) in self.documents {
            inside.set(name, &[document], self.options.durability)?;
        }
        contents.map_or(Ok(()), |contents| contents.stage(stage.store(), self.array))?;
        Ok(Some(stage))
    }

    fn set(&self, path: &str, documents: &[Document]) -> Result<()> {
        let (writer, durability) = (writer_of(self.store)?, self.options.durability);
        for (at, (name, document)) in documents.iter().enumerate() {
            // Attributes alone do not make a node.
            let set = if *name == ZATTRS {
                writer.set(&join(path, name), &[document], durability)
            } else {
                writer.set_new(&join(path, name), &[document], durability)
            };
            if let Err(error) = set {
                let is_alone = !writer.is_optimistic();
                for (name, _) in documents[..at].iter().filter(|_| is_alone) {
                    let _ = writer.erase(&join(path, name), durability);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Step 2.
    fn replaces(&self) -> Result<bool> {
        self.place().replaces()
    }

    /// Step 1.
    fn missing_groups(&self) -> Result<Vec<String>> {
        self.place().missing_groups()
    }

    fn place(&self) -> NewPlace<'_> {
        NewPlace {
            store: self.store,
            path: self.path,
            zarr_format: self.zarr_format,
            is_array: self.array.is_some(),
            existing: self.existing,
            options: self.options,
        }
    }

    /// Whether an array is replaced by one of the same layout.
    fn is_alike(&self) -> bool {
        let found = read_metadata(self.store, self.path, &self.options.limits.metadata);
        match (found, self.array) {
            (Ok(NodeMetadata::Array(found)), Some(array)) => found.has_layout_of(array.metadata()),
            _ => false,
        }
    }
}

/// Returns the paths of a node and of the groups above it, without the root.
fn with_groups(path: &str) -> Vec<&str> {
    ancestors(path).filter(|group| !group.is_empty()).chain([path]).collect()
}
