//! Lock for changes of a node's documents, and for creating, replacing and erasing nodes.
//!
//! 1. A node has one lock, for both versions and for any number of documents. The lock is in the node's folder, under
//!    the name of `zarr.json`.
//! 2. A change of a node holds the locks of all groups above it, from the store's root down, and the node's own last.
//!    So no group above is erased or replaced during the change, and consolidated metadata change together with their
//!    originals. Changes of documents in one store happen one after the other; each takes as long as a few small files.
//! 3. To create, replace or erase a node, the locks of the groups above are enough (at the root, its own): other
//!    changes that go through these groups wait. A process that opened the node as the root of a store keeps working in
//!    the old folder.
//! 4. Shapes change under a separate lock, held as long as appending takes. The order of all locks: the shape of the
//!    array, then the nodes from the root down, then a chunk. Nothing is locked under the lock of a chunk.
//! 5. If this process may not write in a folder above, it takes no lock there. A process that may write there can still
//!    remove the node.
//! 6. A store with optimistic locks has no locks for nodes: each document is set on the condition that it has not
//!    changed since it was read, and a new node on the condition that there is no node yet.
//! 7. A file system with neither `flock` nor links has no locks. Nodes are created, replaced and erased there in one
//!    step each. Changing a node is an error.

use super::document_names::node_at;
use super::node_path::ancestors;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::ZARR_JSON;
use crate::store::{Durability, Lock, Store, Version, join, writer_of};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum wait for a lock. It is held while a few small files are written, or the documents of a hierarchy are
/// consolidated.
const PATIENCE: Duration = Duration::from_secs(600);

/// The held locks of a node and of the groups above it, or of the groups alone.
pub(super) struct NodeLock<'a> {
    store: &'a dyn Store,
    held: Vec<Box<dyn Lock + 'a>>,
}

impl<'a> NodeLock<'a> {
    /// Takes the locks for a change of the node at `path`, which must exist.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Write`] if another writer holds a lock for ten minutes; errors of the
    /// store.
    pub(super) fn new(store: &'a dyn Store, path: &str) -> Result<NodeLock<'a>> {
        // Check before the root is locked, which would write to the store without need.
        let is_there = || match node_at(store, path)? {
            Some(_) => Ok(()),
            None => Err(Error::from(ErrorKind::NotFound)),
        };
        is_there()?;
        let mut lock = NodeLock { store, held: Vec::new() };
        for group in ancestors(path).chain([path]) {
            lock.add(group, group == path)?;
            if group.is_empty() {
                // From here on the node cannot be removed. Check before taking other locks, which would create folders.
                is_there()?;
            }
        }
        Ok(lock)
    }

    /// Takes the locks for creating, replacing or erasing the node at `path`: of the existing folders above it, or at
    /// the root its own.
    ///
    /// # Errors
    /// As [`of`](NodeLock::new).
    pub(super) fn above(store: &'a dyn Store, path: &str) -> Result<NodeLock<'a>> {
        let mut lock = NodeLock { store, held: Vec::new() };
        lock.add_if_any("", path.is_empty())?;
        for group in ancestors(path).skip(1) {
            // Only folders can be checked in this way; in a store without folders, the root's lock excludes all other
            // changes. Remote stores have no folders, and some servers fail on such a request.
            if store.remote().is_some() || store.version_of(group)? == Version::Missing {
                break;
            }
            lock.add_if_any(group, false)?;
        }
        Ok(lock)
    }

    /// Takes the locks of the nodes at these paths, and of the groups above them, as far as their folders exist: from
    /// the root down, siblings in the order of their names.
    ///
    /// # Errors
    /// As [`new`](NodeLock::new), except [`ErrorKind::NotFound`].
    pub(super) fn each(store: &'a dyn Store, paths: BTreeSet<&'a str>) -> Result<NodeLock<'a>> {
        let mut lock = NodeLock { store, held: Vec::new() };
        let all: BTreeSet<&str> = paths.iter().flat_map(|path| ancestors(path).chain([*path])).collect();
        for path in all {
            if path.is_empty() || store.version_of(path)? != Version::Missing {
                lock.add_if_any(path, paths.contains(path))?;
            }
        }
        Ok(lock)
    }

    /// Sets the document `key` of a node locked by this. If the lock is for this key, the document is set in the folder
    /// of the time of locking, so that a removed node does not come back.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) fn set(&self, key: &str, document: &[u8], durability: Durability) -> Result<()> {
        let writer = writer_of(self.store)?;
        match self.held.iter().find(|lock| lock.key() == key) {
            Some(lock) => writer.set_under(&**lock, &[document], durability),
            None => writer.set(key, &[document], durability),
        }
    }

    /// Step 7.
    fn add_if_any(&mut self, path: &str, is_own: bool) -> Result<()> {
        match self.add(path, is_own) {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => Ok(()),
            added => added,
        }
    }

    fn add(&mut self, path: &str, is_own: bool) -> Result<()> {
        // Step 6.
        if writer_of(self.store)?.is_optimistic() {
            return Ok(());
        }
        let key = join(path, ZARR_JSON);
        let start = Instant::now();
        let pass = || {
            if start.elapsed() < PATIENCE {
                return Ok(());
            }
            let text = format!("waited too long: another process holds the lock of {key}");
            Err(ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::TimedOut, text)).into())
        };
        match writer_of(self.store)?.lock(&key, &pass) {
            Ok(lock) => self.held.push(lock),
            // Step 5.
            Err(error) if !is_own && matches!(error.kind().code(), "permission" | "read_only") => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Drop for NodeLock<'_> {
    fn drop(&mut self) {
        // Unlock from the node up to the root.
        while self.held.pop().is_some() {}
    }
}
