//! Erasing nodes.

use super::ahead;
use super::consolidate;
use super::document_names::{DOCUMENTS, node_at};
use super::node_lock::NodeLock;
use super::revision;
use crate::error::{Error, ErrorKind, Result};
use crate::node::open_options::OpenOptions;
use crate::store::{Store, Version, join, normalize_path, writer_of};

/// Erases the node at `path` with everything below it. `is_listed` means that consolidated metadata contain it, so that
/// it needs no document.
///
/// # Errors
/// [`ErrorKind::NotFound`] without a node, [`ErrorKind::Foreign`] if another program made its document,
/// [`ErrorKind::BadKey`], [`ErrorKind::ReadOnly`], [`ErrorKind::Write`].
pub(crate) fn erase(store: &dyn Store, path: &str, is_listed: bool, options: &OpenOptions) -> Result<()> {
    let path = normalize_path(path)?;
    let ahead = ahead::for_erasing(store, &path, &options.limits.metadata);
    let store = ahead.as_ref().map_or(store, |ahead| ahead as &dyn Store);
    let writer = writer_of(store)?;
    // Check before locking, which creates files in folders that may not belong to a node.
    check_erasable(store, &path, is_listed, options)?;
    let held = NodeLock::above(store, &path)?;
    if !writer.is_optimistic() {
        check_erasable(store, &path, is_listed, options)?;
    }
    let detach = || writer.detach(&path, options.durability, &DOCUMENTS);
    let (detached, forgotten) = consolidate::without_copies(store, &held, &[&path], options, true, detach)?;
    revision::count();
    let clear = || detached.map_or(Err(ErrorKind::NotFound.into()), |detached| detached.clear());
    if forgotten.is_ok() {
        drop(held);
        return clear();
    }
    // Erasing may make room for the copies.
    let cleared = clear();
    consolidate::forget_late(store, &held, &path, options);
    cleared
}

/// Erases the documents of the group at `path`, unless it has members. Other processes that create members wait for its
/// lock, and then create the group again.
///
/// # Errors
/// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], and the store's errors.
pub(super) fn erase_if_empty(store: &dyn Store, path: &str, options: &OpenOptions) -> Result<()> {
    let _held = match NodeLock::new(store, path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => return Ok(()),
        held => held?,
    };
    if store.list(path)?.iter().any(|name| !DOCUMENTS.contains(&name.as_str())) {
        return Ok(());
    }
    let writer = writer_of(store)?;
    for name in DOCUMENTS {
        writer.erase(&join(path, name), options.durability)?;
    }
    revision::count();
    Ok(())
}

/// Checks that `path` holds a node.
fn check_erasable(store: &dyn Store, path: &str, is_listed: bool, options: &OpenOptions) -> Result<()> {
    match node_at(store, path)? {
        Some(name) if is_of_zarr(store, path, name, options)? => Ok(()),
        Some(name) => Err(ErrorKind::Foreign(first(&[name.to_owned()])).into()),
        None if is_listed => Ok(()),
        None => {
            let error = Error::from(ErrorKind::NotFound);
            let is_empty = store.list(path)?.is_empty() && store.version_of(path)? == Version::Missing;
            Err(if is_empty {
                error
            } else {
                error.with_hint(
                    "no Zarr document describes the files at this path: zarrow erases only arrays and groups",
                )
            })
        }
    }
}

/// Formats the first of these names for a message.
pub(super) fn first(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Whether the document `name` of a node says that it is Zarr's, even if it is otherwise invalid.
pub(super) fn is_of_zarr(store: &dyn Store, path: &str, name: &str, options: &OpenOptions) -> Result<bool> {
    let document = store.get(&join(path, name), options.limits.metadata.max_consolidated_nbytes)?;
    // Another process may have erased the node since.
    Ok(document.is_none_or(|document| crate::metadata::is_of_zarr(&document)))
}
