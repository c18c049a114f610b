//! Reads one selection.
//!
//! 1. Memory for the result is allocated, one piece for each part of its layout, and not filled.
//! 2. The selection is cut along the chunk grid; each touched chunk is a task. If there are few chunks and they are
//!    shards, a task is a share of a shard's inner chunks.
//! 3. A chunk is opened once, as described in [`open_chunk`](crate::decode::open_chunk). A missing chunk gives the fill value;
//!    any other is read as described in [`chunk`](crate::decode::chunk).
//! 4. If a chunk was missing, the array may have been erased: [`presence`](crate::decode::presence).
//! 5. When all tasks have succeeded the memory is filled, and becomes the result.

pub(crate) mod batch;
pub(crate) mod chunk_list;
pub(crate) mod column_major;
pub(crate) mod options;
pub(crate) mod staged;

use crate::codec::{Layout, Sharding};
use crate::decode::open_chunk::SharedChunk;
use crate::decode::reader::Reader;
use crate::decode::shard::inner_count;
use crate::error::{ErrorKind, Result};
use crate::metadata::ChunkGrid;
use crate::place::output_claim::OutputClaim;
use crate::place::result::ResultMemory;
use crate::place::sink::Sink;
use crate::plan::chunk_parts::{AxisGrid, ChunkParts};
use crate::plan::part::{AxisPart, PerAxis, share_of, whole_part};
use crate::pool;
use crate::read::chunk_list::Item;
use crate::selection::Selection;
use std::sync::atomic::AtomicBool;
use zarrow_array::DecodedArray;
use zarrow_array::allocation;

/// Minimum number of tasks per thread, which keeps all threads busy until the end.
pub const TASKS_PER_THREAD: u64 = 4;

/// Minimum size in bytes of a share of an uncompressed chunk.
const SHARE_NBYTES: u64 = 1 << 20;

/// Reads `selection` into fresh memory.
///
/// # Errors
/// Any [`ErrorKind`], with chunk and codec; nothing of a failed read is visible.
pub fn read(
    reader: Reader<'_>,
    selection: &Selection,
    interrupted: &dyn Fn() -> bool,
) -> Result<DecodedArray> {
    let mut memory = ResultMemory::new(&reader.metadata.data_type, selection.shape(), reader.missing)?;
    for mut sink in memory.sinks(&[selection.flat_shape()]) {
        sink.set_field(reader.field);
        reader.read_into(selection, &sink, interrupted)?;
    }
    // SAFETY: the parts of all chunks cover the selection (tested by a property test of `ChunkParts`), and every part
    // was placed or filled, else there was an error.
    let decoded = unsafe { memory.finish(&reader.metadata.fill_value, interrupted) };
    decoded.map_err(|error| match error.kind() {
        ErrorKind::Array(zarrow_array::Error::NotUtf8 { index }) => {
            let chunk = reader.chunk_with(selection, *index as u64);
            error.in_codec(reader.chain.elements_codec()).in_chunk(&chunk)
        }
        _ => error,
    })
}

impl<'a> Reader<'a> {
    /// Returns the chunk that holds the element `index` (in C order) of a selection.
    fn chunk_with(&self, selection: &Selection, index: u64) -> Vec<u64> {
        let mut rest = index;
        let mut numbers: Vec<u64> = Vec::new();
        for extent in selection.flat_shape().iter().rev() {
            numbers.insert(0, rest % extent.max(&1));
            rest /= extent.max(&1);
        }
        let of_points = selection.axes_of_points().map(|(axis, _)| axis);
        let axes = selection.axes().iter().zip(selection.outputs()).enumerate();
        let chunk = axes.map(|(axis, (positions, output))| {
            let output = output.or(of_points.filter(|_| positions.count() > 1));
            let number = output.and_then(|output| numbers.get(output).copied()).unwrap_or(0);
            self.metadata.chunk_grid.locate(axis, positions.position(number))
        });
        chunk.collect()
    }

    /// Reads `selection` into a sink of its shape (steps 2 to 4).
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec; some elements may have been written then.
    pub fn read_into(
        &self,
        selection: &Selection,
        sink: &Sink<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let missed = AtomicBool::new(false);
        let read = match self.store.remote() {
            Some(_) => {
                let item = Item { array: 0, reader: *self, selection };
                staged::read_into(&[(item, sink)], &missed, interrupted)
            }
            None => {
                let reader = Reader { missed: Some(&missed), ..*self };
                reader.read_chunks(selection, sink, interrupted)
            }
        };
        self.if_present(read, &missed)
    }

    fn read_chunks(
        &self,
        selection: &Selection,
        sink: &Sink<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(mut part) = whole_part(selection) else { return Ok(()) };
        let threads = self.threads(&part);
        if threads == 1
            && let Some(chunk_index) = self.single_chunk(&mut part)
        {
            return pool::run(1, 1, interrupted, &|_, worker, checkpoint| {
                // SAFETY: it is the only claim on the sink.
                self.chunk(
                    &chunk_index,
                    &mut [unsafe { OutputClaim::new(&part, sink) }],
                    None,
                    worker,
                    checkpoint,
                )
            });
        }
        let chunk_parts = self.chunk_parts(&part)?;
        let shares = match threads {
            1 => 1,
            // A chunk is handed over once.
            _ if matches!(sink, Sink::Chunks(_)) && !self.is_sharded() => 1,
            _ => {
                // If the grid has a chunk that is not at an edge, the middle chunk is one.
                let (mut chunk_index, mut middle) = (PerAxis::new(), PerAxis::new());
                chunk_parts.get(chunk_parts.count() / 2, &mut chunk_index, &mut middle);
                self.shares(chunk_parts.count(), &middle, threads)
            }
        };
        let shared: Vec<SharedChunk<'_>> = match shares {
            1 => Vec::new(),
            _ => allocation::collected((0..chunk_parts.count()).map(|_| SharedChunk::new(shares)))?,
        };
        let tasks = chunk_parts.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, threads, interrupted, &|task, worker, checkpoint| {
            let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
            chunk_parts.get(task / shares, &mut chunk_index, &mut part);
            let share = task % shares;
            let shared = shared.get((task / shares) as usize);
            if let Some(part) = self.own_part(part, (share, shares)) {
                // SAFETY: the pieces of different chunks have no place in common (a property test of `ChunkParts` says
                // so), nor have different shares of an uncompressed one (another says so), and each is one task. Shares
                // of a shard claim the same part, and write through claims on their own inner chunks only.
                let mut claim = [unsafe { OutputClaim::new(&part, sink) }];
                self.chunk(
                    &chunk_index,
                    &mut claim,
                    shared.map(|shared| (share, shared)),
                    worker,
                    checkpoint,
                )?;
            }
            shared.inspect(|shared| shared.leave());
            Ok(())
        })
    }

    /// Returns the index of the only chunk touched by `part` on a grid of equal chunks, and makes `part` relative to
    /// that chunk: a small read is worth no larger plan.
    fn single_chunk(&self, part: &mut [AxisPart<'_>]) -> Option<PerAxis<u64>> {
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
    /// Decoded elements count, which may be far more than the selected ones: a line through compressed chunks decodes
    /// all of each chunk.
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
            (Layout::InnerChunks(sharding), _) if self.chain.order.is_none() => {
                (&sharding.chunk_shape, &sharding.inner)
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

    /// Returns what a share, given by number and count, reads of a chunk's part; `None` if that is nothing. For a shard
    /// it is the whole part, since the shares of a shard differ in their inner chunks.
    pub fn own_part<'p>(
        &self,
        part: PerAxis<AxisPart<'p>>,
        (number, count): (u64, u64),
    ) -> Option<PerAxis<AxisPart<'p>>> {
        if count == 1 || self.is_sharded() { Some(part) } else { share_of(&part, number, count) }
    }

    /// Estimates the decoded size in bytes of a chunk of `shape`.
    pub fn likely_nbytes(&self, shape: &[u64]) -> u64 {
        self.nbytes(shape.iter().copied())
    }

    /// Returns the sharding codec, if chunks are shards that were not compressed as a whole.
    pub fn sharding(&self) -> Option<&'a Sharding> {
        match self.chain.stored_layout() {
            Layout::InnerChunks(sharding) => Some(sharding),
            _ => None,
        }
    }

    /// Whether chunks are shards that were not compressed as a whole.
    pub fn is_sharded(&self) -> bool {
        self.sharding().is_some()
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

fn too_many() -> ErrorKind {
    ErrorKind::Internal("more chunks than can be counted".into())
}
