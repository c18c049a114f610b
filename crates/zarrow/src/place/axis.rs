//! The axes of a move between two strided places.

/// One axis of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis<'a> {
    /// Positions with a fixed distance.
    Even {
        /// The number of positions.
        count: usize,
        /// Bytes from one to the next in the source.
        source: isize,
        /// Bytes from one to the next in the destination.
        destination: isize,
    },
    /// Positions with individual offsets.
    Each {
        /// Byte offset of each position from the axis's start in the source.
        source: &'a [isize],
        /// Byte offset of each element from the axis's start in the destination; as many as in the source.
        destination: &'a [isize],
    },
}

impl Axis<'_> {
    /// Whether the axis is a run of items of `size` bytes on both sides.
    pub fn is_run(self, size: usize) -> bool {
        let step = size as isize;
        matches!(self, Axis::Even { source, destination, .. } if source == step && destination == step)
    }
}
