//! The chunk grid along one axis: which chunk holds a position.

use crate::metadata::ChunkGrid;

/// The grid along one axis.
#[derive(Debug, Clone, Copy)]
pub enum AxisGrid<'a> {
    /// Chunks of one extent.
    Equal(u64),
    /// Chunks of this grid along this axis.
    Of(&'a ChunkGrid, usize),
}

impl<'a> AxisGrid<'a> {
    /// The grid of an array's chunks along `axis`.
    pub fn new(grid: &'a ChunkGrid, axis: usize) -> AxisGrid<'a> {
        match grid {
            ChunkGrid::Regular { chunk_shape } => AxisGrid::Equal(chunk_shape[axis]),
            grid => AxisGrid::Of(grid, axis),
        }
    }

    /// The chunk that holds `position`, with its origin and its extent.
    pub fn locate(self, position: u64) -> (u64, u64, u64) {
        match self {
            AxisGrid::Equal(extent) => (position / extent, position / extent * extent, extent),
            AxisGrid::Of(grid, axis) => {
                let chunk = grid.locate(axis, position);
                let (origin, extent) = grid.chunk_extent(axis, chunk);
                (chunk, origin, extent)
            }
        }
    }
}
