//! Chunks outside an array's shape and at its edges. They are found by listing the stored chunks, since a grid may have
//! too many chunks to check each.
//!
//! 1. Keys of chunks are numbers, one per axis, joined by `/` or `.`. Everything else below the array is kept: files
//!    with other names, folders named like a chunk, and folders with a Zarr document.
//! 2. With `/` each axis is one level of folders. A level is listed only if `wanted` accepts its numbers, the
//!    first of a chunk's. A remote store lists all levels with one request, unless that fails.

use super::document_names::DOCUMENTS;
use crate::error::Result;
use crate::metadata::ChunkKeyEncoding;
use crate::node::array::Array;
use crate::node::link_loops::FoldersAbove;
use crate::store::remote::{AheadStore, wait};
use crate::store::{join, writer_of};
use std::any::Any;
use std::collections::HashSet;
use zarrow_array::allocation::{self, Grow};

/// The keys below an array of a remote store, listed once for several uses; `None` if levels are listed one by one.
pub(super) struct Below(Option<Vec<String>>);

impl Below {
    pub(super) fn new(array: &Array) -> Below {
        Below(Below::keys(array))
    }

    fn keys(array: &Array) -> Option<Vec<String>> {
        let store = &**array.store();
        let (folder, is_nested) = (folder(array), array.metadata().chunk_key_encoding.separator() == '/');
        let remote = store.remote().filter(|_| is_nested && !array.shape().is_empty())?;
        let listed = (store as &dyn Any).downcast_ref::<AheadStore>().and_then(|own| own.take_below(&folder));
        let listing = match listed {
            Some(listing) => listing,
            // A list of all levels may exceed the limit of names.
            None => wait(|done| remote.list(&folder, true, done), &|| Ok(())).ok()?,
        };
        Some(listing.values.into_iter().map(|value| value.key).collect())
    }
}

/// Erases the chunks without elements of the array.
pub(super) fn erase_outside(array: &Array, below: &Below) -> Result<()> {
    let counts = array.metadata().chunk_grid.grid_shape(array.shape());
    let is_outside =
        |chunk_index: &[u64]| chunk_index.iter().zip(&counts).any(|(index, count)| index >= count);
    erase_where(array, below, &|chunk_index| chunk_index.len() < counts.len() || is_outside(chunk_index))
}

/// Erases the chunks of the array, inside its shape and outside.
pub(super) fn erase_chunks(array: &Array) -> Result<()> {
    if array.shape().is_empty() {
        let mut key = String::new();
        array.metadata().chunk_key_encoding.encode(&[], &mut key);
        return writer_of(&**array.store())?
            .erase_each(vec![join(array.path(), &key)], array.options().durability);
    }
    erase_where(array, &Below::new(array), &|_| true)
}

fn erase_where(array: &Array, below: &Below, wanted: &IndexFilter<'_>) -> Result<()> {
    let ndim = array.shape().len();
    let mut keys = Vec::new();
    walk(array, below, wanted, &mut |chunk_index, key| {
        if chunk_index.len() == ndim {
            keys.try_push(allocation::text(key)?)?;
        }
        Ok(())
    })?;
    if keys.is_empty() {
        return Ok(());
    }
    writer_of(&**array.store())?.erase_each(keys, array.options().durability)
}

/// Returns the indices of stored chunks on an edge: along at least one axis, the index equals the number in `edge`.
pub(super) fn stored_at(array: &Array, below: &Below, edge: &[Option<u64>]) -> Result<Vec<Vec<u64>>> {
    let mut found = Vec::new();
    let is_at = |chunk_index: &[u64]| chunk_index.iter().zip(edge).any(|(index, edge)| *edge == Some(*index));
    let may_be = |chunk_index: &[u64]| edge[chunk_index.len().min(edge.len())..].iter().any(Option::is_some);
    walk(array, below, &|chunk_index| is_at(chunk_index) || may_be(chunk_index), &mut |chunk_index, _| {
        if chunk_index.len() == edge.len() && is_at(chunk_index) {
            found.try_push(chunk_index.to_vec())?;
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the number of stored chunks with elements of the array.
pub(crate) fn stored_count(array: &Array) -> Result<u64> {
    let counts = array.metadata().chunk_grid.grid_shape(array.shape());
    if counts.is_empty() {
        let mut key = String::new();
        array.metadata().chunk_key_encoding.encode(&[], &mut key);
        return Ok(array.store().open(&join(array.path(), &key))?.is_some().into());
    }
    let is_inside = |chunk_index: &[u64]| chunk_index.iter().zip(&counts).all(|(index, count)| index < count);
    let mut found = 0;
    walk(array, &Below::new(array), &is_inside, &mut |chunk_index, _| {
        found += u64::from(chunk_index.len() == counts.len());
        Ok(())
    })?;
    Ok(found)
}

/// Condition on a chunk index, or on the first numbers of one.
type IndexFilter<'a> = dyn Fn(&[u64]) -> bool + 'a;
/// Callback with a chunk index, or the first numbers of one, and its key.
type Visit<'a> = dyn FnMut(&[u64], &str) -> Result<()> + 'a;

/// Visits stored chunks accepted by `wanted` (steps 1 and 2).
fn walk(array: &Array, below: &Below, wanted: &IndexFilter<'_>, visit: &mut Visit<'_>) -> Result<()> {
    let (metadata, ndim) = (array.metadata(), array.shape().len());
    let folder = folder(array);
    let prefix = match metadata.chunk_key_encoding {
        ChunkKeyEncoding::Default { separator } if separator != '/' => "c.",
        _ => "",
    };
    if ndim == 0 {
        return Ok(());
    }
    if let Below(Some(keys)) = below {
        return walk_listed(&folder, ndim, keys, wanted, visit);
    }
    if metadata.chunk_key_encoding.separator() == '/' {
        return walk_below(array, &folder, &mut Vec::new(), wanted, visit);
    }
    for name in array.store().list(&folder)? {
        let numbers =
            name.strip_prefix(prefix).map(|name| name.split('.').map(index).collect::<Option<Vec<u64>>>());
        if let Some(Some(chunk_index)) = numbers
            && chunk_index.len() == ndim
            && wanted(&chunk_index)
        {
            visit(&chunk_index, &join(&folder, &name))?;
        }
    }
    Ok(())
}

/// Returns the folder of the chunks.
pub(super) fn folder(array: &Array) -> String {
    match array.metadata().chunk_key_encoding {
        ChunkKeyEncoding::Default { separator: '/' } => join(array.path(), "c"),
        _ => array.path().to_owned(),
    }
}

/// Works like [`walk_below`], for the chunks among `keys`.
fn walk_listed(
    folder: &str,
    ndim: usize,
    keys: &[String],
    wanted: &IndexFilter<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let relative = |key: &'_ str| -> Option<usize> {
        let rest = if folder.is_empty() { key } else { key.strip_prefix(folder)?.strip_prefix('/')? };
        Some(key.len() - rest.len())
    };
    // Folders below with a document.
    let nodes: HashSet<&str> = keys
        .iter()
        .filter_map(|key| {
            let (above, name) = key[relative(key)?..].rsplit_once('/')?;
            DOCUMENTS.contains(&name).then_some(above)
        })
        .collect();
    let mut chunk_index = Vec::with_capacity(ndim);
    for key in keys {
        let Some(start) = relative(key) else { continue };
        let rest = &key[start..];
        chunk_index.clear();
        chunk_index.extend(rest.split('/').map_while(index));
        let is_chunk = chunk_index.len() == ndim && rest.matches('/').count() + 1 == ndim;
        let is_in_node =
            || rest.match_indices('/').any(|(end, _)| !nodes.is_empty() && nodes.contains(&rest[..end]));
        if is_chunk && wanted(&chunk_index) && !is_in_node() {
            visit(&chunk_index, key)?;
        }
    }
    Ok(())
}

fn walk_below(
    array: &Array,
    folder: &str,
    chunk_index: &mut Vec<u64>,
    wanted: &IndexFilter<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let names = array.store().list(folder)?;
    if !chunk_index.is_empty() && names.iter().any(|name| DOCUMENTS.contains(&name.as_str())) {
        return Ok(());
    }
    let mut above = FoldersAbove::new(&**array.store(), folder);
    for name in names {
        let Some(index) = index(&name) else { continue };
        chunk_index.push(index);
        let path = join(folder, &name);
        if wanted(chunk_index) {
            visit(chunk_index, &path)?;
            if chunk_index.len() < array.shape().len() && above.check(&path).is_ok() {
                walk_below(array, &path, chunk_index, wanted, visit)?;
            }
        }
        chunk_index.pop();
    }
    Ok(())
}

/// Step 1: parses a number as written in keys, without leading zeros.
fn index(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
