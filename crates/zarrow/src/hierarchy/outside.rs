//! Chunks outside of an array's shape, which are found by listing what is stored: a grid may have more cells than anybody
//! can look at.
//!
//! 1. Keys of chunks are numbers, joined by `/` or `.`; what else lies below the array is let alone.
//! 2. With `/` each axis has a level of its own: where a number is outside along its axis, all below goes at once, else
//!    the search goes on below it.

use super::document::writer;
use crate::array::Array;
use crate::error::Result;
use crate::metadata::ChunkKeyEncoding;
use crate::store::join;

/// Erases the chunks that hold no element of the array.
pub(super) fn erase_outside(array: &Array) -> Result<()> {
    let metadata = array.metadata();
    let counts = metadata.chunk_grid.grid_shape(&metadata.shape);
    let (folder, prefix) = match metadata.chunk_key_encoding {
        ChunkKeyEncoding::Default { separator: '/' } => (join(array.path(), "c"), ""),
        ChunkKeyEncoding::Default { .. } => (array.path().to_owned(), "c."),
        ChunkKeyEncoding::V2 { .. } => (array.path().to_owned(), ""),
    };
    if counts.is_empty() {
        return Ok(());
    }
    if metadata.chunk_key_encoding.separator() == '/' {
        return erase_below(array, &folder, &counts);
    }
    for name in array.store().list(&folder)? {
        let numbers =
            name.strip_prefix(prefix).map(|name| name.split('.').map(index).collect::<Option<Vec<u64>>>());
        if let Some(Some(indices)) = numbers
            && indices.len() == counts.len()
            && indices.iter().zip(&counts).any(|(index, count)| index >= count)
        {
            erase(array, &join(&folder, &name))?;
        }
    }
    Ok(())
}

/// Step 2.
fn erase_below(array: &Array, folder: &str, counts: &[u64]) -> Result<()> {
    let Some((count, inner)) = counts.split_first() else { return Ok(()) };
    for name in array.store().list(folder)? {
        let Some(index) = index(&name) else { continue };
        let path = join(folder, &name);
        if index >= *count {
            erase(array, &path)?;
        } else {
            erase_below(array, &path, inner)?;
        }
    }
    Ok(())
}

fn erase(array: &Array, path: &str) -> Result<()> {
    writer(&**array.store())?.erase_prefix(path, array.options().durability).map(drop)
}

/// Step 1: a number as keys have it, without zeros before it.
fn index(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
