//! Stores documents that another library prepared, if they are unchanged since that library read them.
//!
//! 1. The locks of the changed nodes and of the groups above them are taken, from the root down and by name. Every
//!    change of a document by this crate holds such a lock.
//! 2. If a document differs from what the caller read, nothing is stored.
//! 3. Otherwise all are stored, in the order of the caller. After an error, the stored ones get their old content.

use super::node_lock::NodeLock;
use super::revision;
use crate::error::{ErrorKind, Result};
use crate::store::{Durability, Store, check_key, writer_of};
use std::collections::BTreeSet;

/// Largest document that is compared.
const MOST_NBYTES: u64 = 1 << 30;

/// A change of a document; `None` is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentChange {
    /// Key of the document, such as `rain/zarr.json`.
    pub key: String,
    /// Content that the caller has read.
    pub before: Option<Vec<u8>>,
    /// Content to store.
    pub after: Option<Vec<u8>>,
}

/// Stores documents of a local store together. Returns the key of a document that is no longer as the caller read it;
/// then nothing is stored.
///
/// # Errors
/// [`ErrorKind::BadKey`], [`ErrorKind::ReadOnly`], [`ErrorKind::Write`]; [`ErrorKind::Unsupported`] for a remote store.
///
/// ```
/// use zarrow::store::{MemoryStore, Store};
/// use zarrow::{DocumentChange, commit_documents};
/// let store = MemoryStore::default();
/// let change = |before: Option<&[u8]>, after: &[u8]| DocumentChange {
///     key: "zarr.json".into(),
///     before: before.map(<[u8]>::to_vec),
///     after: Some(after.to_vec()),
/// };
/// assert_eq!(commit_documents(&store, &[change(None, b"{}")])?, None);
/// assert_eq!(commit_documents(&store, &[change(None, b"[]")])?.as_deref(), Some("zarr.json"));
/// assert_eq!(store.get("zarr.json", 9)?, Some(b"{}".to_vec()));
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn commit_documents(store: &dyn Store, changes: &[DocumentChange]) -> Result<Option<String>> {
    if store.remote().is_some() {
        return Err(ErrorKind::Unsupported("documents of a remote store are put on conditions".into()).into());
    }
    changes.iter().try_for_each(|change| check_key(&change.key))?;
    let nodes: BTreeSet<&str> = changes.iter().map(|change| node_of(&change.key)).collect();
    let locks = NodeLock::each(store, nodes)?;
    for DocumentChange { key, before, .. } in changes {
        if store.get(key, MOST_NBYTES)? != *before {
            return Ok(Some(key.clone()));
        }
    }
    let set = |key: &str, content: Option<&[u8]>| match content {
        Some(content) => locks.set(key, content, Durability::None),
        None => writer_of(store)?.erase(key, Durability::None).map(drop),
    };
    for (at, change) in changes.iter().enumerate() {
        if let Err(error) = set(&change.key, change.after.as_deref()) {
            for stored in changes.get(..=at).unwrap_or_default().iter().rev() {
                // As far as possible: the first error is the caller's.
                let _ = set(&stored.key, stored.before.as_deref());
            }
            return Err(error);
        }
    }
    revision::count();
    Ok(None)
}

/// Returns the path of the node with this document.
fn node_of(key: &str) -> &str {
    key.rsplit_once('/').map_or("", |(path, _)| path)
}
