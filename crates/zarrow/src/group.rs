//! A group: a node that has nodes below it.

use crate::anndata::{EncodedArray, table_columns};
use crate::array::Array;
use crate::arrow::{Column, Table, TableOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::hierarchy::attributes::StoredNode;
use crate::hierarchy::consolidate::consolidate;
use crate::hierarchy::{AttributeChange, Existing, create_array, create_group, erase};
use crate::metadata::{ArrayMetadata, GroupMetadata, ZarrFormat};
use crate::open::{Node, node, open_node};
use crate::options::OpenOptions;
use crate::store::{Store, check_key, join, normalize_path};
use serde_json::{Map, Value};
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};

/// A Zarr group.
///
/// Where the metadata of everything below was consolidated, the group takes it from there and lists no folder.
#[derive(Debug, Clone)]
pub struct Group {
    store: Arc<dyn Store>,
    path: String,
    metadata: Arc<GroupMetadata>,
    options: OpenOptions,
}

impl Group {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: String,
        metadata: GroupMetadata,
        options: OpenOptions,
    ) -> Group {
        Group { store, path, metadata: Arc::new(metadata), options }
    }

    /// The store that the group is in.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// How the group was opened.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The path in the store, `""` for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the user stored beside the group.
    #[must_use]
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.metadata.attributes
    }

    /// The version that the group is stored in.
    #[must_use]
    pub fn zarr_format(&self) -> ZarrFormat {
        self.metadata.zarr_format
    }

    /// Whether the group knows everything below it from one document.
    #[must_use]
    pub fn is_consolidated(&self) -> bool {
        self.metadata.consolidated.is_some()
    }

    /// Changes the attributes; this handle has them as they are stored then, with the changes of others.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], [`ErrorKind::NotFound`] where the group was erased meanwhile.
    pub fn change_attributes(&mut self, change: &AttributeChange) -> Result<()> {
        let node = StoredNode {
            store: &*self.store,
            path: &self.path,
            zarr_format: self.zarr_format(),
            is_array: false,
            options: &self.options,
        };
        let attributes = node.change_attributes(change).map_err(|error| self.place(error))?;
        Arc::make_mut(&mut self.metadata).attributes = attributes;
        Ok(())
    }

    /// Creates an array at `path` below the group, which should be of the group's version.
    ///
    /// # Errors
    /// As [`create_array`](crate::create_array).
    pub fn create_array(&mut self, path: &str, metadata: ArrayMetadata, existing: Existing) -> Result<Array> {
        let path = self.below(path)?;
        let array = create_array(Arc::clone(&self.store), &path, metadata, existing, &self.options)?;
        self.reopen_consolidated()?;
        Ok(array)
    }

    /// Creates a group of this group's version at `path` below it.
    ///
    /// # Errors
    /// As [`create_group`](crate::create_group).
    pub fn create_group(
        &mut self,
        path: &str,
        attributes: Map<String, Value>,
        existing: Existing,
    ) -> Result<Group> {
        let path = self.below(path)?;
        let store = Arc::clone(&self.store);
        let group = create_group(store, &path, self.zarr_format(), attributes, existing, &self.options)?;
        self.reopen_consolidated()?;
        Ok(group)
    }

    /// Erases the array or group at `path` below the group, with everything below it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::BadKey`], [`ErrorKind::ReadOnly`], [`ErrorKind::Write`].
    pub fn erase(&mut self, path: &str) -> Result<()> {
        let path = self.below(path)?;
        let place = |error: Error| error.in_array(self.store.name(), &path);
        if !erase(&*self.store, &path, &self.options).map_err(place)? {
            return Err(place(ErrorKind::NotFound.into()));
        }
        self.reopen_consolidated()
    }

    /// Copies the metadata of everything below the group into the group's own, so that opening what is below needs no
    /// look at the store. zarrow keeps the copies true when it changes a node below; programs that do not make them
    /// stale.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], [`ErrorKind::Metadata`] where a document below is no JSON.
    pub fn consolidate_metadata(&mut self) -> Result<()> {
        consolidate(&*self.store, &self.path, self.zarr_format(), &self.options)
            .map_err(|error| self.place(error))?;
        self.refresh()
    }

    /// Reads the metadata again, so that the group is as the store has it now.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn refresh(&mut self) -> Result<()> {
        match open_node(&self.store, &self.path, &self.options)? {
            Node::Group(group) => *self = group,
            Node::Array(_) => {
                let (expected, found) = ("a group", "an array");
                return Err(self.place(ErrorKind::WrongNode { expected, found }.into()));
            }
        }
        Ok(())
    }

    /// Makes the handle of a consolidated group see what changed below it.
    fn reopen_consolidated(&mut self) -> Result<()> {
        if self.is_consolidated() { self.refresh() } else { Ok(()) }
    }

    /// The path from the root of a path below the group, which is not the group itself.
    fn below(&self, path: &str) -> Result<String> {
        let below = normalize_path(path)
            .and_then(|path| check_key(&path).map(|()| path))
            .map_err(|error| self.place(error))?;
        Ok(join(&self.path, &below))
    }

    fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }

    /// The array or group at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::BadKey`], and what its metadata gives.
    pub fn get(&self, path: &str) -> Result<Node> {
        let below = normalize_path(path).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        if below.is_empty() {
            return Ok(Node::Group(self.clone()));
        }
        let path = join(&self.path, &below);
        match &self.metadata.consolidated {
            None => open_node(&self.store, &path, &self.options),
            Some(consolidated) => {
                let missing = || Error::from(ErrorKind::NotFound).in_array(self.store.name(), &path);
                let metadata = consolidated.get(&below).ok_or_else(missing)?;
                let metadata =
                    metadata.map_err(|error| Error::from(error).in_array(self.store.name(), &path))?;
                node(&self.store, path, metadata, &self.options)
            }
        }
    }

    /// The arrays at `columns`, or groups that stand for an array ([`EncodedArray`]), as a table. Where none are given:
    /// the columns of a table of AnnData's, in their order; else all directly below that have an axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they differ in length, or there is none; [`ErrorKind::WrongNode`] for a group among
    /// `columns`; and as [`get`](Group::get).
    pub fn table(&self, columns: Option<&[String]>, options: TableOptions) -> Result<Table> {
        let of_table = if columns.is_none() { table_columns(self)? } else { None };
        let columns = match columns.or(of_table.as_deref()) {
            Some(names) => {
                allocation::try_collected(names.iter().map(|name| Column::of_node(name, self.get(name)?)))
            }
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

    /// The names and nodes directly below, sorted by name. Folders that are no nodes are left out; a node that
    /// cannot be opened is an error in its place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the store cannot be listed.
    pub fn children(&self) -> Result<Vec<(String, Result<Node>)>> {
        let names = match &self.metadata.consolidated {
            Some(consolidated) => consolidated.children("").map_err(|error| self.place(error.into()))?,
            None => self.store.list(&self.path).map_err(|error| self.place(error))?,
        };
        let mut found = Vec::new();
        for name in names.into_iter().filter(|name| !name.starts_with(".z") && name != "zarr.json") {
            match self.get(&name) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
                node => found.try_push((name, node)).map_err(|error| self.place(error.into()))?,
            }
        }
        Ok(found)
    }
}
