//! Changes of a group and of the nodes below it.

use crate::error::Result;
use crate::metadata::{ArrayMetadata, Attributes, NodeMetadata};
use crate::node::any::Node;
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::hierarchy::attributes::StoredNode;
use crate::node::hierarchy::consolidate::consolidate;
use crate::node::hierarchy::{
    AttributeChange, Existing, Members, NewNode, Source, create_all, create_array, create_array_from,
    create_array_with, create_group, create_group_with, erase,
};
use crate::store::{check_key, join, normalize_path};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::sync::Arc;

impl Group {
    /// Changes the attributes. Afterwards this handle has the attributes as stored, including changes by others.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly), [`ErrorKind::Write`](crate::ErrorKind::Write),
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the group was erased in the meantime.
    pub fn change_attributes(&mut self, change: &AttributeChange) -> Result<()> {
        let node = StoredNode {
            store: &*self.store,
            path: &self.path,
            zarr_format: self.zarr_format(),
            array: None,
            is_consolidated: false,
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

    /// As [`create_group`](Group::create_group), with the members that `members` creates.
    ///
    /// # Errors
    /// As [`create_group_with`](crate::create_group_with).
    pub fn create_group_with(
        &mut self,
        path: &str,
        attributes: impl Into<Attributes>,
        members: &Members<'_>,
        existing: Existing,
    ) -> Result<Option<Group>> {
        let (path, store, zarr_format) = (self.below(path)?, Arc::clone(&self.store), self.zarr_format());
        let group =
            create_group_with(store, &path, zarr_format, attributes, members, existing, &self.options)?;
        self.reopen_consolidated()?;
        Ok(group)
    }

    /// Creates nodes at or below the group, as [`create_all`](crate::create_all) does. The paths are relative to it, as is
    /// `consolidated`.
    ///
    /// # Errors
    /// As [`create_all`](crate::create_all).
    pub fn create_all(
        &self,
        nodes: Vec<NewNode>,
        consolidated: Option<&str>,
        write: &WriteOptions<'_>,
    ) -> Result<Vec<Node>> {
        let nodes = nodes.into_iter().map(|node| node.below(&self.path)).collect();
        let consolidated = consolidated.map(|path| join(&self.path, path.trim_matches('/')));
        create_all(&self.store, nodes, consolidated.as_deref(), &self.options, write)
    }

    /// Erases the array or group at `path` below the group, with everything below it. Folders and values without a
    /// Zarr document are kept.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for a path without a node,
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) if another program made its document,
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey), [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly),
    /// [`ErrorKind::Write`](crate::ErrorKind::Write).
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
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly), [`ErrorKind::Write`](crate::ErrorKind::Write),
    /// [`ErrorKind::Metadata`](crate::ErrorKind::Metadata) if a document below is not JSON,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if a node below has another Zarr version.
    pub fn consolidate_metadata(&mut self) -> Result<()> {
        consolidate(&*self.store, &self.path, self.zarr_format(), &self.options)
            .map_err(|error| self.place(error))?;
        self.refresh()
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
}
