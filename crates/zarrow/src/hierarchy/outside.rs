//! Chunks outside of an array's shape and at its edges, which are found by listing what is stored: a grid may have more
//! cells than anybody can look at.
//!
//! 1. Keys of chunks are numbers, joined by `/` or `.`; what else lies below the array is let alone.
//! 2. With `/` each axis has a level of its own: where a number is outside along its axis, all below goes at once, and a
//!    level below which nothing can be wanted is not listed.

use super::document::writer;
use crate::array::Array;
use crate::error::Result;
use crate::metadata::ChunkKeyEncoding;
use crate::store::join;

/// Erases the chunks that hold no element of the array.
pub(super) fn erase_outside(array: &Array) -> Result<()> {
    let counts = array.metadata().chunk_grid.grid_shape(array.shape());
    let is_outside = |cell: &[u64]| cell.iter().zip(&counts).any(|(index, count)| index >= count);
    let erase =
        |path: &str| writer(&**array.store())?.erase_prefix(path, array.options().durability).map(drop);
    walk(array, &|cell| is_outside(cell) || cell.len() < counts.len(), &mut |cell, path| {
        if is_outside(cell) { erase(path).map(|()| false) } else { Ok(true) }
    })
}

/// The cells of the stored chunks whose index along an axis is the one that `edge` has for it.
pub(super) fn stored_at(array: &Array, edge: &[Option<u64>]) -> Result<Vec<Vec<u64>>> {
    let mut found = Vec::new();
    let is_at = |cell: &[u64]| cell.iter().zip(edge).any(|(index, edge)| *edge == Some(*index));
    let may_be = |cell: &[u64]| edge[cell.len().min(edge.len())..].iter().any(Option::is_some);
    walk(array, &|cell| is_at(cell) || may_be(cell), &mut |cell, _| {
        if cell.len() == edge.len() && is_at(cell) {
            found.push(cell.to_vec());
        }
        Ok(true)
    })?;
    Ok(found)
}

/// What is asked of a cell, or of its first indices.
type Wanted<'a> = dyn Fn(&[u64]) -> bool + 'a;
/// What becomes of a cell, or of all with its first indices, at a path; says whether to go on below it.
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
        if let Some(Some(cell)) = numbers
            && cell.len() == ndim
            && wanted(&cell)
        {
            visit(&cell, &join(&folder, &name))?;
        }
    }
    Ok(())
}

fn walk_below(
    array: &Array,
    folder: &str,
    cell: &mut Vec<u64>,
    wanted: &Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if cell.len() == array.shape().len() {
        return Ok(());
    }
    for name in array.store().list(folder)? {
        let Some(index) = index(&name) else { continue };
        cell.push(index);
        let path = join(folder, &name);
        if wanted(cell) && visit(cell, &path)? {
            walk_below(array, &path, cell, wanted, visit)?;
        }
        cell.pop();
    }
    Ok(())
}

/// Step 1: a number as keys have it, without zeros before it.
fn index(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
