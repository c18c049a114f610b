//! A node of any kind: an array or a group.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::NodeMetadata;
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::hierarchy::revision;
use crate::node::open_options::OpenOptions;
use crate::store::Store;
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
    /// Whether this process has changed no document since the node was read.
    #[must_use]
    pub fn is_latest(&self) -> bool {
        let revision = match self {
            Node::Array(array) => array.revision(),
            Node::Group(group) => group.revision(),
        };
        revision >= revision::present()
    }

    /// Returns the node's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        match self {
            Node::Array(array) => array.store(),
            Node::Group(group) => group.store(),
        }
    }

    /// Returns the array.
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

    /// Returns the group.
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

/// Nodes directly below a group, by name. A node that cannot be opened is replaced by its error.
pub type Members = Vec<(String, Result<Node>)>;

/// Returns the node of metadata that were read from its own documents.
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

/// Returns the node of these metadata.
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
