//! The lock under which the documents of a node change, and nodes are created, replaced and erased.
//!
//! 1. A node has one lock, for both versions and however many documents it has. The lock lies in the node's folder,
//!    under the name of `zarr.json`.
//! 2. A change of a node holds the locks of all groups above it, from the store's root down, and the node's own last. So
//!    no group above is erased or replaced meanwhile, and consolidated metadata change together with their originals.
//!    Changes of documents in one store happen one after the other; each takes as long as a few small files.
//! 3. To create, replace or erase a node, the locks of the groups above are enough (at the root, its own): other changes
//!    that go through these groups wait. A process that opened the node as the root of its own store goes on in the old
//!    folder.
//! 4. Shapes change under a separate lock, held as long as appending takes. The order of all locks: the shape of the
//!    array, then the nodes from the root down, then a chunk. Nothing is locked under the lock of a chunk.
//! 5. A folder above in which this process may not write has no lock for it. A process that may write there can still
//!    remove the node.
//! 6. A store whose locks keep nobody out has none for nodes: each document is set on the condition that it is still the
//!    one that was read, and a new node on the condition that none is there.
//! 7. A file system with neither `flock` nor links has no locks. Nodes are created, replaced and erased there in one
//!    step each. Changing a node is an error.

use super::document::{node_at, writer};
use super::node_path::ancestors;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::ZARR_JSON;
use crate::store::{Durability, Lock, Store, Version, join};
use std::time::{Duration, Instant};

/// How long to wait for a lock, which is held for as long as some small files take, or the documents of a hierarchy that
/// is consolidated.
const PATIENCE: Duration = Duration::from_secs(600);

/// The locks of a node and of the groups above it, or of these alone, until it is dropped.
pub(super) struct NodeLock<'a> {
    store: &'a dyn Store,
    held: Vec<Box<dyn Lock + 'a>>,
}

impl<'a> NodeLock<'a> {
    /// The locks that a change of the node at `path` needs, which has to be there.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Write`] where another holds a lock for ten minutes; and what the store gives.
    pub(super) fn of(store: &'a dyn Store, path: &str) -> Result<NodeLock<'a>> {
        // Looked at before the root is locked, which would write to a store without need.
        let is_there = || match node_at(store, path)? {
            Some(_) => Ok(()),
            None => Err(Error::from(ErrorKind::NotFound)),
        };
        is_there()?;
        let mut lock = NodeLock { store, held: Vec::new() };
        for group in ancestors(path).chain([path]) {
            lock.add(group, group == path)?;
            if group.is_empty() {
                // Nobody takes the node away now. Looked at before other locks, which would make folders for themselves.
                is_there()?;
            }
        }
        Ok(lock)
    }

    /// The locks that creating, replacing or erasing the node at `path` needs: of the folders above it that are there, and
    /// at the root its own.
    ///
    /// # Errors
    /// As [`of`](NodeLock::of).
    pub(super) fn above(store: &'a dyn Store, path: &str) -> Result<NodeLock<'a>> {
        let mut lock = NodeLock { store, held: Vec::new() };
        lock.add_if_any("", path.is_empty())?;
        for group in ancestors(path).skip(1) {
            // Only folders can be seen so; where there are none the root's lock keeps all apart. A store elsewhere has none, and
            // some servers fail when they are asked for one.
            if store.remote().is_some() || store.version_of(group)? == Version::Missing {
                break;
            }
            lock.add_if_any(group, false)?;
        }
        Ok(lock)
    }

    /// Sets the document `key` of a node whose lock this has: where the lock is of that very key, in the folder that was
    /// there when it was taken, so that a node which was taken away does not come back.
    ///
    /// # Errors
    /// What the store gives.
    pub(super) fn set(&self, key: &str, document: &[u8], durability: Durability) -> Result<()> {
        let writer = writer(self.store)?;
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
        if writer(self.store)?.is_optimistic() {
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
        match writer(self.store)?.lock(&key, &pass) {
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
        // From below up.
        while self.held.pop().is_some() {}
    }
}
