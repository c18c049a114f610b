//! Chunks outside an array's shape and at its edges. They are found by listing what is stored, since a grid may have too
//! many chunks to look at each.
//!
//! 1. Keys of chunks are numbers, joined by `/` or `.`. Everything else below the array is left alone.
//! 2. With `/` each axis has a level of its own. Where a number lies outside along its axis, everything below is erased
//!    at once. A level below which nothing can be wanted is not listed.

use super::document::writer;
use crate::array::Array;
use crate::error::Result;
use crate::metadata::ChunkKeyEncoding;
use crate::store::join;

/// Erases the chunks that hold no element of the array.
pub(super) fn erase_outside(array: &Array) -> Result<()> {
    let counts = array.metadata().chunk_grid.grid_shape(array.shape());
    let is_outside =
        |chunk_index: &[u64]| chunk_index.iter().zip(&counts).any(|(index, count)| index >= count);
    let erase =
        |path: &str| writer(&**array.store())?.erase_prefix(path, array.options().durability).map(drop);
    walk(
        array,
        &|chunk_index| is_outside(chunk_index) || chunk_index.len() < counts.len(),
        &mut |chunk_index, path| {
            if is_outside(chunk_index) { erase(path).map(|()| false) } else { Ok(true) }
        },
    )
}

/// The indices of the stored chunks whose index along an axis is the one that `edge` has for it.
pub(super) fn stored_at(array: &Array, edge: &[Option<u64>]) -> Result<Vec<Vec<u64>>> {
    let mut found = Vec::new();
    let is_at = |chunk_index: &[u64]| chunk_index.iter().zip(edge).any(|(index, edge)| *edge == Some(*index));
    let may_be = |chunk_index: &[u64]| edge[chunk_index.len().min(edge.len())..].iter().any(Option::is_some);
    walk(array, &|chunk_index| is_at(chunk_index) || may_be(chunk_index), &mut |chunk_index, _| {
        if chunk_index.len() == edge.len() && is_at(chunk_index) {
            found.push(chunk_index.to_vec());
        }
        Ok(true)
    })?;
    Ok(found)
}

/// How many chunks that hold elements of the array are stored.
pub(crate) fn stored_count(array: &Array) -> Result<u64> {
    let counts = array.metadata().chunk_grid.grid_shape(array.shape());
    if counts.is_empty() {
        let mut key = String::new();
        array.metadata().chunk_key_encoding.encode(&[], &mut key);
        return Ok(array.store().open(&join(array.path(), &key))?.is_some().into());
    }
    let is_inside = |chunk_index: &[u64]| chunk_index.iter().zip(&counts).all(|(index, count)| index < count);
    let mut found = 0;
    walk(array, &is_inside, &mut |chunk_index, _| {
        found += u64::from(chunk_index.len() == counts.len());
        Ok(true)
    })?;
    Ok(found)
}

/// What is asked of the index of a chunk, or of its first numbers.
type Wanted<'a> = dyn Fn(&[u64]) -> bool + 'a;
/// What becomes of a chunk, or of all whose index begins so, at a path; says whether to go on below it.
type Visit<'a> = dyn FnMut(&[u64], &str) -> Result<bool> + 'a;

/// Visits what is stored and `wanted` (steps 1 and 2).
fn walk(array: &Array, wanted: &Wanted<'_>, visit: &mut Visit<'_>) -> Result<()> {
    let (metadata, ndim) = (array.metadata(), array.shape().len());
    let (folder, prefix) = match metadata.chunk_key_encoding {
        ChunkKeyEncoding::Default { separator: '/' } => (join(array.path(), "c"), ""),
        ChunkKeyEncoding::Default { .. } => (array.path().to_owned(), "c."),
        ChunkKeyEncoding::V2 { .. } => (array.path().to_owned(), ""),
    };
    if ndim == 0 {
        return Ok(());
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

fn walk_below(
    array: &Array,
    folder: &str,
    chunk_index: &mut Vec<u64>,
    wanted: &Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if chunk_index.len() == array.shape().len() {
        return Ok(());
    }
    for name in array.store().list(folder)? {
        let Some(index) = index(&name) else { continue };
        chunk_index.push(index);
        let path = join(folder, &name);
        if wanted(chunk_index) && visit(chunk_index, &path)? {
            walk_below(array, &path, chunk_index, wanted, visit)?;
        }
        chunk_index.pop();
    }
    Ok(())
}

/// Step 1: a number as keys have it, without zeros before it.
fn index(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
