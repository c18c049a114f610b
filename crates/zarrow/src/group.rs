//! A group: a node that has nodes below it.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{GroupMetadata, ZarrFormat};
use crate::open::{Node, node, open_node};
use crate::options::OpenOptions;
use crate::store::{Store, join, normalize_path};
use serde_json::{Map, Value};
use std::sync::Arc;

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

    /// The names and nodes directly below, sorted by name. Folders that are no nodes are left out; a node that
    /// cannot be opened is an error in its place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the store cannot be listed.
    pub fn children(&self) -> Result<Vec<(String, Result<Node>)>> {
        let names = match &self.metadata.consolidated {
            Some(consolidated) => consolidated.children(""),
            None => self
                .store
                .list(&self.path)
                .map_err(|error| error.in_array(self.store.name(), &self.path))?
                .into_iter()
                .filter(|name| !name.starts_with(".z") && name != "zarr.json")
                .collect(),
        };
        let found = names.into_iter().map(|name| {
            let node = self.get(&name);
            (name, node)
        });
        let is_node =
            |node: &Result<Node>| !matches!(node, Err(error) if matches!(error.kind(), ErrorKind::NotFound));
        Ok(found.filter(|(_, node)| is_node(node)).collect())
    }
}
