//! Chooses the number of threads of a read, and divides its chunks among them: into tasks, and shards into shares.
//!
//! A remote read uses all threads of the pool, since they only work while answers arrive (`read/staged/driver.rs`).

use crate::codec::{InnerChunks, Layout};
use crate::decode::reader::Reader;
use crate::decode::shard::inner_count;
use crate::error::Result;
use crate::metadata::ChunkGrid;
use crate::plan::axis_grid::AxisGrid;
use crate::plan::axis_part::{AxisPart, PerAxis, share_of};
use crate::plan::chunk_parts::ChunkParts;
use crate::pool;

/// Minimum number of tasks per thread, which keeps all threads busy until the end.
pub const TASKS_PER_THREAD: u64 = 4;

/// Minimum size in bytes of a share of an uncompressed chunk.
const SHARE_NBYTES: u64 = 1 << 20;

impl<'a> Reader<'a> {
    /// Returns the index of the only chunk touched by `part` on a grid of equal chunks, and makes `part` relative to
    /// that chunk: a small read is worth no larger plan.
    pub fn single_chunk(&self, part: &mut [AxisPart<'_>]) -> Option<PerAxis<u64>> {
        let ChunkGrid::Regular { chunk_shape } = &self.metadata.chunk_grid else { return None };
        let mut chunk_index = PerAxis::new();
        for (axis, extent) in part.iter().zip(chunk_shape) {
            let index = axis.start / extent;
            if axis.list.is_some() || axis.last() / extent != index {
                return None;
            }
            chunk_index.push(index);
        }
        for ((axis, extent), index) in part.iter_mut().zip(chunk_shape).zip(&chunk_index) {
            axis.start -= extent * index;
        }
        Some(chunk_index)
    }

    /// Returns the chunks touched by `part` of the array.
    ///
    /// # Errors
    /// As [`ChunkParts::new`].
    pub fn chunk_parts(&self, part: &[AxisPart<'a>]) -> Result<ChunkParts<'a>> {
        ChunkParts::new(part, |axis| AxisGrid::new(&self.metadata.chunk_grid, axis))
    }

    /// Returns the number of threads worth using for `part`: waking a thread costs as much as decoding some elements.
    /// Decoded elements are counted, not selected ones: reading one line through compressed chunks decodes every
    /// chunk completely.
    pub fn threads(&self, part: &[AxisPart<'_>]) -> usize {
        /// Minimum work per thread, in bytes.
        const THREAD_NBYTES: u64 = 128 << 10;
        let selected = self.nbytes(part.iter().map(|axis| axis.count));
        let worth = selected.max(self.decoded_nbytes(part)) / THREAD_NBYTES + 1;
        usize::try_from(worth).unwrap_or(usize::MAX).min(pool::num_threads())
    }

    /// Estimates the decoded size in bytes of the chunks touched by `part`, inner chunks if sharded; 0 for a single
    /// chunk, or if chunks are not decoded as a whole. Chunk extents are at least 1, as the metadata check guarantees.
    fn decoded_nbytes(&self, part: &[AxisPart<'_>]) -> u64 {
        let (chunk, chain) = match (self.chain.stored_layout(), &self.metadata.chunk_grid) {
            (Layout::InnerChunks(inner_chunks), _) if self.chain.order.is_none() => {
                (&inner_chunks.chunk_shape, &inner_chunks.chain)
            }
            (_, ChunkGrid::Regular { chunk_shape }) => (chunk_shape, self.chain),
            _ => return 0,
        };
        if matches!(chain.stored_layout(), Layout::Elements(_)) {
            return 0;
        }
        let touched = part.iter().zip(chunk).fold(1, |touched: u64, (axis, extent)| {
            touched.saturating_mul(match axis.list {
                // Points are counted on their output axis.
                Some(list) if list.vectorized && axis.output.is_none() => 1,
                Some(list) if list.vectorized => axis.count,
                _ => (axis.last() / extent - axis.start / extent + 1).min(axis.count),
            })
        });
        if touched == 1 { 0 } else { self.nbytes(chunk.iter().copied()).saturating_mul(touched) }
    }

    /// Decoded size in bytes of elements with these extents.
    fn nbytes(&self, extents: impl Iterator<Item = u64>) -> u64 {
        /// Assumed size in bytes of an element without a fixed size.
        const VARIABLE_NBYTES: u64 = 16;
        let item_size = self.chain.item_size().map_or(VARIABLE_NBYTES, |size| size as u64);
        extents.fold(item_size, u64::saturating_mul)
    }

    /// Narrows a chunk's part to what a share, given by number and count, reads of it; returns false if that is nothing.
    /// For a shard it is the whole part, since the shares of a shard differ in their inner chunks.
    pub fn narrow(&self, part: &mut PerAxis<AxisPart<'_>>, (number, count): (u64, u64)) -> bool {
        if count == 1 || self.is_sharded() {
            return true;
        }
        let own = share_of(part, number, count);
        let has_own = own.is_some();
        *part = own.unwrap_or_default();
        has_own
    }

    /// Estimates the decoded size in bytes of a chunk of `shape`.
    pub fn likely_nbytes(&self, shape: &[u64]) -> u64 {
        self.nbytes(shape.iter().copied())
    }

    /// Returns the inner chunks, if chunks are shards that were not compressed as a whole.
    pub fn inner_chunks(&self) -> Option<&'a InnerChunks> {
        match self.chain.stored_layout() {
            Layout::InnerChunks(inner_chunks) => Some(inner_chunks),
            _ => None,
        }
    }

    /// Whether chunks are shards that were not compressed as a whole.
    pub fn is_sharded(&self) -> bool {
        self.inner_chunks().is_some()
    }

    /// Returns the number of tasks per chunk, for `chunks` chunks with `part` as a typical piece: one, unless there are
    /// few chunks and a section of each can be read separately.
    pub fn shares(&self, chunks: u64, part: &[AxisPart<'_>], threads: usize) -> u64 {
        let wanted = threads as u64 * TASKS_PER_THREAD;
        let large = self.nbytes(part.iter().map(|axis| axis.count)) / SHARE_NBYTES;
        if threads == 1 || chunks >= wanted {
            return 1;
        }
        let shares = wanted.div_ceil(chunks.max(1));
        match (self.chain.layout(), self.chain.bytes_to_bytes.as_slice()) {
            (Layout::InnerChunks(_), []) => shares.min(inner_count(self.chain, part)).max(1),
            (Layout::Elements(_), []) => shares.min(large).max(1),
            // Each share decompresses its own blocks and loads the others too: worth it only if threads would otherwise
            // be idle.
            (Layout::Elements(_), [only])
                if only.decodes_ranges() && chunks < threads as u64 && self.chunks.is_none() =>
            {
                (threads as u64).div_ceil(chunks.max(1))
            }
            _ => 1,
        }
    }
}
