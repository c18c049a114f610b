//! One document of a node: read, changed and set, under the node's lock.

use super::node_lock::NodeLock;
use crate::error::{ErrorKind, Result};
use crate::metadata::{JsonText, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::store::remote::AheadStore;
use crate::store::{Durability, Store, StoreWriter, Version, join, until_no_conflict, whole};
use zarrow_array::allocation;

/// The documents that a node can have: the attributes first, that which makes the node last.
pub(super) const DOCUMENTS: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// What changes the store.
///
/// # Errors
/// [`ErrorKind::ReadOnly`].
pub(super) fn writer(store: &dyn Store) -> Result<&dyn StoreWriter> {
    store.writer().ok_or_else(|| ErrorKind::ReadOnly.into())
}

/// The document that makes a node.
pub(super) fn node_document(zarr_format: ZarrFormat, is_array: bool) -> &'static str {
    match (zarr_format, is_array) {
        (ZarrFormat::V3, _) => ZARR_JSON,
        (ZarrFormat::V2, true) => ZARRAY,
        (ZarrFormat::V2, false) => ZGROUP,
    }
}

/// The document that makes a node of what is at `path`, without a look at whether it can be opened.
pub(super) fn node_at(store: &dyn Store, path: &str) -> Result<Option<&'static str>> {
    for name in [ZARR_JSON, ZARRAY, ZGROUP] {
        if store.version_of(&join(path, name))? != Version::Missing {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Reads the document under `key`, has it changed, and sets it where it changed.
///
/// `held` are the locks of its node. Where another was faster in a store that is optimistic, `change` is called again with what
/// is there then. It gets `None` where there is no document, and gives `None` to leave it as it
/// is.
///
/// # Errors
/// What `change` and the store give, and [`ErrorKind::Metadata`] for a document that is no JSON object.
pub(super) fn update(
    store: &dyn Store,
    held: &NodeLock<'_>,
    key: &str,
    limit: u64,
    durability: Durability,
    mut change: impl FnMut(Option<JsonText>) -> Result<Option<JsonText>>,
) -> Result<()> {
    let writer = writer(store)?;
    until_no_conflict(&|| Ok(()), || {
        // Where locks keep nobody out, the version counts that is there when the document is read.
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

/// Refuses a document that would not be read again.
///
/// # Errors
/// [`ErrorKind::Limit`].
pub(super) fn check_nbytes(document: &[u8], limit: u64) -> Result<()> {
    check_size(document.len(), limit)
}

/// As [`check_nbytes`], for a document of so many bytes.
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
