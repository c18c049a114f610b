//! Reading one selection.
//!
//! 1. Memory for the result is allocated, one piece for each part of its layout, and not filled.
//! 2. The selection is cut along the chunk grid; each chunk that it touches is a task. Where there are few
//!    chunks and they are shards, a task is a share of a shard's inner chunks.
//! 3. A chunk that is not stored gives the fill value; any other is read as [`chunk`](super::chunk) says.
//! 4. When all tasks have succeeded the memory is filled, and becomes the result.

use crate::codec::{ArrayToBytes, Chain};
use crate::error::{ErrorKind, Result};
use crate::exec::chunk::{Chunk, Share, Want};
use crate::exec::input::Input;
use crate::exec::part::{AxisPart, Cells, whole_part};
use crate::exec::pool;
use crate::exec::result::ResultMemory;
use crate::exec::scratch::Worker;
use crate::exec::sink::Sink;
use crate::metadata::{ArrayMetadata, ChunkGrid};
use crate::selection::Selection;
use crate::store::Store;
use zarrow_array::DecodedArray;

/// Tasks for each thread, at least: so that no thread waits long for the others at the end.
const TASKS_PER_THREAD: u64 = 4;

/// What a read reads from.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The array's path in the store.
    pub path: &'a str,
    /// What the array is.
    pub metadata: &'a ArrayMetadata,
    /// Its codecs.
    pub chain: &'a Chain,
}

/// Reads `selection` into fresh memory.
///
/// # Errors
/// Any [`ErrorKind`], with chunk and codec; nothing of a failed read is visible.
pub fn read(
    reader: Reader<'_>,
    selection: &Selection,
    interrupted: &dyn Fn() -> bool,
) -> Result<DecodedArray> {
    let shape = selection.shape();
    let mut memory = ResultMemory::new(&reader.metadata.data_type, &[], &shape)?;
    for sink in memory.sinks(1, &shape) {
        reader.read_into(selection, &sink, interrupted)?;
    }
    // SAFETY: the parts of all chunks cover the selection (a property test of `AxisPart::cut` says so), and every
    // part was placed or filled, else there was an error.
    unsafe { memory.finish(&reader.metadata.fill_value, interrupted) }
}

impl Reader<'_> {
    /// Reads `selection` into a sink of its shape (steps 2 and 3).
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec; some elements may have been written then.
    pub fn read_into(
        &self,
        selection: &Selection,
        sink: &Sink<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(part) = whole_part(selection) else { return Ok(()) };
        let cells = self.cells(&part)?;
        let threads = self.threads(&part);
        let shares = self.shares(&cells, threads);
        let tasks = cells.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, threads, interrupted, &|task, worker| {
            let (mut cell, mut part) = (Vec::new(), Vec::new());
            cells.get(task / shares, &mut cell, &mut part);
            let share = Share { number: task % shares, count: shares };
            self.chunk(&cell, &[Want { part: &part, sink }], share, worker)
        })
    }

    /// The chunks that `part` of the array touches.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where there are more than can be counted.
    pub fn cells(&self, part: &[AxisPart]) -> Result<Cells> {
        let grid = &self.metadata.chunk_grid;
        let axes = part.iter().enumerate().map(|(axis, part)| match grid {
            ChunkGrid::Regular { chunk_shape } => part.cut_regular(chunk_shape[axis]),
            grid => part.cut(|position| {
                let cell = grid.locate(axis, position);
                let (origin, extent) = grid.chunk_extent(axis, cell);
                (cell, origin, extent)
            }),
        });
        Ok(Cells::new(axes.collect()).ok_or_else(too_many)?)
    }

    /// How many threads the elements of `part` are worth: waking one costs as much as decoding some of them.
    pub fn threads(&self, part: &[AxisPart]) -> usize {
        /// Bytes that a thread should have to do.
        const WORTH: u64 = 128 << 10;
        /// What an element of no fixed size is taken for, in bytes.
        const VARIABLE: u64 = 16;
        let item_size = self.metadata.data_type.item_size().map_or(VARIABLE, |size| size as u64);
        let elements = part.iter().fold(1u64, |product, axis| product.saturating_mul(axis.count));
        let worth = elements.saturating_mul(item_size) / WORTH + 1;
        usize::try_from(worth).unwrap_or(usize::MAX).min(pool::num_threads())
    }

    /// How many tasks a chunk is: one, unless there are few and each is a shard of many.
    fn shares(&self, cells: &Cells, threads: usize) -> u64 {
        let sharded = matches!(self.chain.array_to_bytes, ArrayToBytes::Sharding(_))
            && self.chain.bytes_to_bytes.is_empty();
        let wanted = threads as u64 * TASKS_PER_THREAD;
        if !sharded || threads == 1 || cells.count() >= wanted {
            return 1;
        }
        wanted.div_ceil(cells.count().max(1))
    }

    /// Reads what is wanted of the chunk at `cell` (step 3).
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec.
    pub fn chunk(&self, cell: &[u64], wants: &[Want<'_>], share: Share, worker: &mut Worker) -> Result<()> {
        self.stored_chunk(cell, wants, share, worker).map_err(|error| error.in_chunk(cell))
    }

    fn stored_chunk(
        &self,
        cell: &[u64],
        wants: &[Want<'_>],
        share: Share,
        worker: &mut Worker,
    ) -> Result<()> {
        let fill = &self.metadata.fill_value;
        let mut key = String::with_capacity(self.path.len() + 32);
        if !self.path.is_empty() {
            key.push_str(self.path);
            key.push('/');
        }
        self.metadata.chunk_key_encoding.encode(cell, &mut key);
        let Some(value) = self.store.open(&key)? else {
            return match share.number {
                0 => wants.iter().try_for_each(|want| want.sink.fill(want.part, fill)),
                _ => Ok(()),
            };
        };
        let grid = &self.metadata.chunk_grid;
        let shape: Vec<u64> =
            cell.iter().enumerate().map(|(axis, index)| grid.chunk_extent(axis, *index).1).collect();
        let input = Input::of_value(&*value)?;
        Chunk { chain: self.chain, fill, shape: &shape, wants }.read(&input, share, worker)
    }
}

fn too_many() -> ErrorKind {
    ErrorKind::Internal("more chunks than can be counted".into())
}
