//! Blocks: the chunks of an array's grid, by their positions in it.

use crate::error::{ErrorKind, Result};
use crate::metadata::ChunkGrid;
use crate::selection::basic::{Index, one_an_axis};
use crate::selection::{AxisSelection, Selection};

impl Selection {
    /// Returns the elements of the chunks selected by `indices` in the chunk grid of an array of `shape`. No axis is
    /// dropped: an integer selects one chunk. In a sharded array this is the grid of the shards.
    ///
    /// ```
    /// use zarrow::metadata::ChunkGrid;
    /// use zarrow::{Index, Selection};
    /// let grid = ChunkGrid::Regular { chunk_shape: vec![4, 10] };
    /// let selection = Selection::blocks(&grid, &[10, 30], &[Index::At(-1), Index::ALL])?;
    /// assert_eq!(selection.shape(), [2, 30]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] as [`Selection::new`], and for a slice with a step other than 1.
    pub fn blocks(grid: &ChunkGrid, shape: &[u64], indices: &[Index]) -> Result<Selection> {
        let counts = grid.grid_shape(shape);
        let indices = one_an_axis(shape.len(), indices, &Index::ALL, |index| *index == Index::Ellipsis)?;
        let axes = indices.zip(&counts).zip(shape).enumerate().map(|(axis, ((index, count), extent))| {
            if matches!(index, Index::Slice { step: Some(step), .. } if *step != 1) {
                let text = "expected integers or slices with a step of 1 as indices of blocks";
                return Err(ErrorKind::Index(text.into()).into());
            }
            let blocks = AxisSelection::new(axis, *count, *index)?;
            let Some(last) = blocks.count().checked_sub(1) else { return Ok(AxisSelection::whole(0)) };
            let (start, _) = grid.chunk_extent(axis, blocks.position(0));
            let (origin, length) = grid.chunk_extent(axis, blocks.position(last));
            let count = origin.saturating_add(length).min(*extent) - start;
            Ok(AxisSelection::Even { start, step: 1, count, dropped: false })
        });
        Ok(Selection { axes: axes.collect::<Result<_>>()?, points: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_slices_of_whole_chunks() {
        let grid = ChunkGrid::Regular { chunk_shape: vec![3] };
        let slice = |start, stop| Index::Slice { start, stop, step: None };
        for (index, start, count) in [
            (Index::At(0), 0, 3),
            (Index::At(2), 6, 1),
            (Index::At(-2), 3, 3),
            (slice(Some(1), None), 3, 4),
            (slice(None, Some(-1)), 0, 6),
            (slice(Some(2), Some(1)), 0, 0),
            (Index::Ellipsis, 0, 7),
        ] {
            let selection = Selection::blocks(&grid, &[7], &[index]).unwrap();
            assert_eq!(selection.axes(), [AxisSelection::Even { start, step: 1, count, dropped: false }]);
        }
        for index in [Index::At(3), Index::At(-4), Index::Slice { start: None, stop: None, step: Some(2) }] {
            assert!(Selection::blocks(&grid, &[7], &[index]).is_err(), "{index:?}");
        }
    }
}
