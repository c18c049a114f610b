//! One document of a node: read, changed and set under the node's lock.

use super::node_lock::NodeLock;
use crate::error::{ErrorKind, Result};
use crate::metadata::JsonText;
use crate::store::remote::AheadStore;
use crate::store::{Durability, Store, until_no_conflict, whole, writer_of};
use zarrow_array::allocation;

/// Reads the document under `key`, calls `change` with it, and sets it if it changed.
///
/// `held` are the locks of its node. In an optimistic store, if another writer was faster, `change` is called again
/// with the new document. It gets `None` if there is no document, and returns `None` to leave the document unchanged.
///
/// # Errors
/// Errors of `change` and of the store, and [`ErrorKind::Metadata`] for a document that is not a JSON object.
pub(super) fn update(
    store: &dyn Store,
    held: &NodeLock<'_>,
    key: &str,
    limit: u64,
    durability: Durability,
    mut change: impl FnMut(Option<JsonText>) -> Result<Option<JsonText>>,
) -> Result<()> {
    let writer = writer_of(store)?;
    until_no_conflict(&|| Ok(()), || {
        // Under optimistic locks, the version of the document that is read here counts.
        let (own, before) = if writer.is_optimistic() {
            let (lock, value) = writer.lock_and_open(store, key, &|| Ok(()))?;
            (Some(lock), value.map(|value| whole(&*value, limit)).transpose()?)
        } else {
            (None, store.get(key, limit)?)
        };
        let text = match &before {
            Some(bytes) => Some(JsonText::parse(allocation::copied(bytes)?, limit)?),
            None => None,
        };
        let after = match change(text) {
            Err(_) if AheadStore::doubt(store) => return Err(ErrorKind::Conflict.into()),
            after => after?.map(JsonText::into_bytes),
        };
        let after = after.filter(|after| before.as_ref() != Some(after));
        if after.is_none() && AheadStore::doubt(store) {
            return Err(ErrorKind::Conflict.into());
        }
        if let Some(after) = after {
            check_nbytes(&after, limit)?;
            match &own {
                Some(lock) => writer.set_under(&**lock, &[&after], durability)?,
                None => held.set(key, &after, durability)?,
            }
        }
        Ok(())
    })
}

/// Refuses a document that could not be read again.
///
/// # Errors
/// [`ErrorKind::Limit`].
pub(super) fn check_nbytes(document: &[u8], limit: u64) -> Result<()> {
    check_size(document.len(), limit)
}

/// Checks as [`check_nbytes`] does, for a document of `nbytes` bytes.
///
/// # Errors
/// [`ErrorKind::Limit`].
pub(super) fn check_size(nbytes: usize, limit: u64) -> Result<()> {
    let actual = nbytes as u64;
    if actual > limit {
        return Err(ErrorKind::Limit { what: "the size of a document", actual, limit }.into());
    }
    Ok(())
}
