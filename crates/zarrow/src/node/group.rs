//! Groups: nodes with nodes below them.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{
    ArrayMetadata, Attributes, GroupMetadata, NodeMetadata, ZARR_JSON, ZMETADATA, ZarrFormat,
};
use crate::node::absent::explained;
use crate::node::array::Array;
use crate::node::hierarchy::attributes::StoredNode;
use crate::node::hierarchy::consolidate::consolidate;
use crate::node::hierarchy::stored::fingerprint;
use crate::node::hierarchy::{
    AttributeChange, Existing, Source, create_array, create_array_from, create_array_with, create_group,
    erase, revision,
};
use crate::node::listed::is_member;
use crate::node::open::{Node, existing, find_node, node, open_node};
use crate::node::open_options::OpenOptions;
use crate::node::table::anndata::{EncodedArray, table_columns};
use crate::node::table::arrow::{Column, Table, TableOptions};
use crate::store::remote::pass_now_and_then;
use crate::store::{Store, Version, check_key, join, normalize_path};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::allocation::{self, Grow};

/// Nodes directly below a group, by name. A node that cannot be opened is replaced by its error.
pub type Members = Vec<(String, Result<Node>)>;

/// A Zarr group.
///
/// ```
/// # use zarrow::{ArrayBuilder, Existing, Number};
/// use zarrow::Group;
/// # let folder = tempfile::tempdir()?;
/// let mut root = Group::create(folder.path())?; // or Group::open, of one that is there
/// let metadata = ArrayBuilder::new([365, 721], Number::Float32).chunk_shape([30, 721]).build()?;
/// let rain = root.create_array("model/rain", metadata, Existing::Refuse)?;
/// rain.write(0, &vec![1.5f32; 721])?;
/// let first = root.array("model/rain")?.read((0, ..3))?.into_tensor()?;
/// assert_eq!(first.as_slice::<f32>()?, [1.5; 3]);
/// assert_eq!(root.group("model")?.array("rain")?.shape(), [365, 721]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If the metadata of everything below it were consolidated, the group takes them from there and lists no folder. It
/// still sees this process's changes below it, by any handle ([`changed`](Group::changed)).
#[derive(Clone)]
pub struct Group {
    store: Arc<dyn Store>,
    path: String,
    metadata: Arc<GroupMetadata>,
    options: OpenOptions,
    /// Revision that the metadata reflect.
    revision: u64,
    /// Last revision without a change to the document of a consolidated group, and the version of the document.
    unchanged: Arc<[AtomicU64; 2]>,
}

impl fmt::Debug for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Group")
            .field("store", &self.store.name())
            .field("path", &self.path)
            .field("zarr_format", &self.zarr_format())
            .finish_non_exhaustive()
    }
}

impl Group {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: String,
        metadata: GroupMetadata,
        options: OpenOptions,
    ) -> Group {
        let revision = revision::present();
        Group { store, path, metadata: Arc::new(metadata), options, revision, unchanged: Arc::default() }
    }

    /// Returns the revision of this process's changes that this handle reflects, as [`Array::revision`].
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the current group if its metadata were consolidated and this process, by any handle, has changed
    /// something in it since; `None` if nothing has changed. [`refresh`](Group::refresh) also sees changes of other
    /// processes.
    ///
    /// This looks at the store once after a change, and never without one.
    ///
    /// # Errors
    /// As [`refresh`](Group::refresh).
    pub fn changed(&self) -> Result<Option<Group>> {
        let present = revision::present();
        let [seen, version] = &*self.unchanged;
        if !self.is_consolidated() || seen.load(Ordering::Relaxed).max(self.revision) >= present {
            return Ok(None);
        }
        let found = self.document_version().map_err(|error| self.place(error))?;
        if found != 0 && version.load(Ordering::Relaxed) == found {
            seen.store(present, Ordering::Relaxed);
            return Ok(None);
        }
        let mut group = self.clone();
        group.refresh()?;
        // The version was requested before the document was read: if it is old, the next call reads once more.
        group.unchanged[1].store(found, Ordering::Relaxed);
        Ok(Some(group))
    }

    /// Returns the version of the document with the consolidated metadata, as a number; 0 if it is unknown.
    fn document_version(&self) -> Result<u64> {
        let name = match self.zarr_format() {
            ZarrFormat::V3 => ZARR_JSON,
            ZarrFormat::V2 => ZMETADATA,
        };
        Ok(match self.store.version_of(&join(&self.path, name))? {
            Version::Of(version) => fingerprint(&version),
            Version::Missing | Version::Unknown => 0,
        })
    }

    /// Returns the group's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the options that the group was opened with.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Returns the path in the store, `""` for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the attributes that the user stored with the group.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.metadata.attributes
    }

    /// Returns the Zarr version that the group is stored in.
    #[must_use]
    pub fn zarr_format(&self) -> ZarrFormat {
        self.metadata.zarr_format
    }

    /// Whether the group has the metadata of everything below it from one document.
    #[must_use]
    pub fn is_consolidated(&self) -> bool {
        self.metadata.consolidated.is_some()
    }

    /// Changes the attributes. Afterwards this handle has the attributes as stored, including changes by others.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], [`ErrorKind::NotFound`] if the group was erased in the meantime.
    pub fn change_attributes(&mut self, change: &AttributeChange) -> Result<()> {
        let node = StoredNode {
            store: &*self.store,
            path: &self.path,
            zarr_format: self.zarr_format(),
            array: None,
            options: &self.options,
        };
        let changed = node.change_attributes(change).map_err(|error| self.place(error))?;
        if let (NodeMetadata::Group(metadata), revision) = changed {
            let metadata = Arc::new(metadata);
            *self = Group { metadata, revision, unchanged: Arc::default(), ..self.clone() };
        }
        Ok(())
    }

    /// Creates an array at `path` below the group; `metadata` should have the group's Zarr version.
    ///
    /// # Errors
    /// As [`create_array`](crate::create_array).
    pub fn create_array(&mut self, path: &str, metadata: ArrayMetadata, existing: Existing) -> Result<Array> {
        let path = self.below(path)?;
        let array = create_array(Arc::clone(&self.store), &path, metadata, existing, &self.options)?;
        self.reopen_consolidated()?;
        Ok(array)
    }

    /// As [`create_array`](Group::create_array), and writes `values` to it with the options `write`.
    ///
    /// # Errors
    /// As [`create_array_with`](crate::create_array_with).
    pub fn create_array_with(
        &mut self,
        path: &str,
        metadata: ArrayMetadata,
        values: &Values<'_>,
        existing: Existing,
        write: &WriteOptions<'_>,
    ) -> Result<Array> {
        let (path, store) = (self.below(path)?, Arc::clone(&self.store));
        let array = create_array_with(store, &path, metadata, values, existing, &self.options, write)?;
        self.reopen_consolidated()?;
        Ok(array)
    }

    /// As [`create_array_with`](Group::create_array_with), with the elements supplied part by part by `source`.
    ///
    /// # Errors
    /// As [`create_array_from`](crate::create_array_from).
    pub fn create_array_from(
        &mut self,
        path: &str,
        metadata: ArrayMetadata,
        source: &Source<'_>,
        existing: Existing,
        write: &WriteOptions<'_>,
    ) -> Result<Array> {
        let (path, store) = (self.below(path)?, Arc::clone(&self.store));
        let array = create_array_from(store, &path, metadata, source, existing, &self.options, write)?;
        self.reopen_consolidated()?;
        Ok(array)
    }

    /// Creates a group of the same Zarr version at `path` below this one.
    ///
    /// # Errors
    /// As [`create_group`](crate::create_group).
    pub fn create_group(
        &mut self,
        path: &str,
        attributes: impl Into<Attributes>,
        existing: Existing,
    ) -> Result<Group> {
        let path = self.below(path)?;
        let store = Arc::clone(&self.store);
        let group = create_group(store, &path, self.zarr_format(), attributes, existing, &self.options)?;
        self.reopen_consolidated()?;
        Ok(group)
    }

    /// Erases the array or group at `path` below the group, with everything below it. Folders and values without a
    /// Zarr document are kept.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a path without a node, [`ErrorKind::Foreign`] if another program made its document,
    /// [`ErrorKind::BadKey`], [`ErrorKind::ReadOnly`], [`ErrorKind::Write`].
    pub fn erase(&mut self, path: &str) -> Result<()> {
        let path = self.below(path)?;
        let is_listed = match (&self.metadata.consolidated, path.strip_prefix(&self.path)) {
            (Some(listed), Some(below)) => listed.get(below.trim_start_matches('/')).is_some(),
            _ => false,
        };
        erase(&*self.store, &path, is_listed, &self.options)
            .map_err(|error| error.in_array(self.store.name(), &path))?;
        self.reopen_consolidated()
    }

    /// Copies the metadata of everything below the group into the group's own, so that nodes below it can be opened
    /// without access to the store. zarrow updates the copies when it changes a node below; programs that do not make
    /// them stale.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], [`ErrorKind::Metadata`] if a document below is not JSON.
    pub fn consolidate_metadata(&mut self) -> Result<()> {
        consolidate(&*self.store, &self.path, self.zarr_format(), &self.options)
            .map_err(|error| self.place(error))?;
        self.refresh()
    }

    /// Reads the metadata again.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn refresh(&mut self) -> Result<()> {
        let revision = revision::present();
        let group = open_node(&self.store, &self.path, &self.options)?.into_group()?;
        *self = Group { revision, ..group };
        Ok(())
    }

    /// Reopens a consolidated group after a change below it.
    fn reopen_consolidated(&mut self) -> Result<()> {
        if self.is_consolidated() { self.refresh() } else { Ok(()) }
    }

    /// Joins the group's path and a non-empty path below it.
    fn below(&self, path: &str) -> Result<String> {
        let below = normalize_path(path)
            .and_then(|path| check_key(&path).map(|()| path))
            .map_err(|error| self.place(error))?;
        Ok(join(&self.path, &below))
    }

    pub(crate) fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }

    /// Opens the array or group at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::BadKey`], and errors in the node's metadata.
    pub fn get(&self, path: &str) -> Result<Node> {
        self.opened(path, open_node)
    }

    /// As [`get`](Group::get), for a node that may be missing: then returns `None`, after one round trip to a remote
    /// store.
    ///
    /// # Errors
    /// As [`get`](Group::get), except [`ErrorKind::NotFound`].
    pub fn find(&self, path: &str) -> Result<Option<Node>> {
        existing(self.opened(path, find_node))
    }

    fn opened(
        &self,
        path: &str,
        open: fn(&Arc<dyn Store>, &str, &OpenOptions) -> Result<Node>,
    ) -> Result<Node> {
        let below = normalize_path(path).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        if below.is_empty() {
            return Ok(Node::Group(self.clone()));
        }
        if let Some(changed) = self.changed()? {
            return changed.opened(&below, open);
        }
        let path = join(&self.path, &below);
        match &self.metadata.consolidated {
            None => open(&self.store, &path, &self.options),
            Some(consolidated) => {
                let missing = || Error::from(ErrorKind::NotFound).in_array(self.store.name(), &path);
                let metadata = consolidated.get(&below).ok_or_else(missing)?;
                let metadata =
                    metadata.map_err(|error| Error::from(error).in_array(self.store.name(), &path))?;
                node(&self.store, path, metadata, &self.options)
            }
        }
    }

    /// As [`get`](Group::get), for a name typed by a person: if there is no such node, the error's [hint](Error::hint)
    /// says what the store has there instead, or lists similar names.
    ///
    /// # Errors
    /// As [`get`](Group::get).
    pub fn get_named(&self, path: &str) -> Result<Node> {
        self.get(path).map_err(|error| {
            let group = &self.path;
            let names = self.metadata.consolidated.as_ref().map(|consolidated| consolidated.children(""));
            let names = names.and_then(std::result::Result::ok);
            let listed = names.as_deref().map(|names| (group.as_str(), names));
            let path = join(group, path.trim_matches('/'));
            explained(error, &*self.store, &path, &self.options.limits.metadata, listed)
        })
    }

    /// Opens the array at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// As [`get`](Group::get); [`ErrorKind::WrongNode`] for a group.
    pub fn array(&self, path: &str) -> Result<Array> {
        self.get(path)?.into_array()
    }

    /// Opens the group at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// As [`get`](Group::get); [`ErrorKind::WrongNode`] for an array.
    pub fn group(&self, path: &str) -> Result<Group> {
        self.get(path)?.into_group()
    }

    /// Returns the arrays at `columns`, or the groups that stand for an array ([`EncodedArray`]), as a table. If
    /// `columns` is `None`: the columns of an AnnData table, in their order; in other groups, all arrays directly
    /// below that have an axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the lengths differ, or there are no columns; [`ErrorKind::WrongNode`] if a column is a
    /// group; and as [`get`](Group::get).
    pub fn table(&self, columns: Option<&[String]>, options: TableOptions) -> Result<Table> {
        let of_table = if columns.is_none() { table_columns(self)? } else { None };
        let columns = match columns.or(of_table.as_deref()) {
            Some(names) => allocation::try_collected(
                names.iter().map(|name| Column::of_node(name, self.get_named(name)?)),
            ),
            None => {
                let mut found = Vec::new();
                for (name, child) in self.children()? {
                    match child? {
                        Node::Array(array) if array.shape().is_empty() => {}
                        Node::Group(group) if EncodedArray::of_group(&group)?.is_none() => {}
                        node => found.try_push(Column::of_node(&name, node)?)?,
                    }
                }
                Ok(found)
            }
        };
        let table =
            Table::new(columns?, options).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        Ok(table.with_attributes(self.metadata.attributes.clone()))
    }

    /// Returns the names and nodes directly below, sorted by name. Folders that are not nodes are left out; a node
    /// that cannot be opened is an error in its place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the store cannot be listed.
    pub fn children(&self) -> Result<Members> {
        if let Some(changed) = self.changed()? {
            return changed.children();
        }
        let names = match &self.metadata.consolidated {
            Some(consolidated) => consolidated.children("").map_err(|error| self.place(error.into()))?,
            None if self.store.remote().is_some() => return self.listed()?.into_members(),
            None => self.store.list(&self.path).map_err(|error| self.place(error))?,
        };
        let names = names.into_iter().filter(|name| is_member(name));
        let mut found = Vec::new();
        for name in names {
            pass_now_and_then()?;
            match self.get(&name) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
                node => found.try_push((name, node)).map_err(|error| self.place(error.into()))?,
            }
        }
        Ok(found)
    }
}
