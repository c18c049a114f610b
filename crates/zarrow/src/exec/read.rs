//! Reading one selection.
//!
//! 1. Memory for the result is allocated, one piece for each part of its layout, and not filled.
//! 2. The selection is cut along the chunk grid; each chunk that it touches is a task. Where there are few
//!    chunks and they are shards, a task is a share of a shard's inner chunks.
//! 3. A chunk that is not stored gives the fill value; any other is read as [`chunk`](super::chunk) says.
//! 4. When all tasks have succeeded the memory is filled, and becomes the result.

use crate::codec::{ArrayToBytes, BytesToBytes, Chain, ShardIndex};
use crate::error::{ErrorKind, Result};
use crate::exec::cache::Cache;
use crate::exec::cells::{AxisGrid, Cells};
use crate::exec::chunk::{Chunk, Slot};
use crate::exec::field::FieldPlace;
use crate::exec::input::Input;
use crate::exec::job::Checkpoint;
use crate::exec::part::{AxisPart, PerAxis, share_of, whole_part};
use crate::exec::pool;
use crate::exec::result::ResultMemory;
use crate::exec::scratch::Worker;
use crate::exec::shard::{GROUP, Share, inner_count};
use crate::exec::sink::Sink;
use crate::exec::turns::Turn;
use crate::exec::want::Want;
use crate::metadata::{ArrayMetadata, ChunkGrid};
use crate::missing::MissingValues;
use crate::selection::Selection;
use crate::store::{Store, Value};
use std::sync::Arc;
use zarrow_array::fork::ProcessMutex;
use zarrow_array::{Buffer, DecodedArray};

/// Tasks for each thread, at least: so that no thread waits long for the others at the end.
pub const TASKS_PER_THREAD: u64 = 4;

/// Bytes that a share of an uncompressed chunk has at least.
const SHARE_NBYTES: u64 = 1 << 20;

/// The most bytes of chunks that are fetched and not decoded yet, taken for as large as they decode to, unless it is a
/// single one: where the store is slow.
const UNDER_WAY: u64 = 256 << 20;

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
    /// The indexes of its shards.
    pub indexes: &'a Cache<ShardIndex>,
    /// Its decoded chunks, where they are kept.
    pub chunks: Option<&'a Cache<Buffer>>,
    /// The field of each element that is read or written, where that is not all of it. For a read, `metadata` tell of the
    /// field then.
    pub field: Option<&'a FieldPlace>,
    /// Which values mean that an element is missing, where some do.
    pub missing: Option<&'a MissingValues>,
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
    let mut memory = ResultMemory::new(&reader.metadata.data_type, selection.shape(), reader.missing)?;
    for sink in memory.sinks(&[selection.flat_shape()]) {
        reader.read_into(selection, &sink.of_field(reader.field), interrupted)?;
    }
    // SAFETY: the parts of all chunks cover the selection (a property test of `Cells` says so), and every part was
    // placed or filled, else there was an error.
    let decoded = unsafe { memory.finish(&reader.metadata.fill_value, interrupted) };
    decoded.map_err(|error| match error.kind() {
        ErrorKind::Array(zarrow_array::Error::NotUtf8 { index }) => {
            let chunk = reader.chunk_of(selection, *index as u64);
            error.in_codec("vlen-utf8").in_chunk(&chunk)
        }
        _ => error,
    })
}

impl<'a> Reader<'a> {
    /// The chunk that gave the element `index` (in C order) of a selection.
    fn chunk_of(&self, selection: &Selection, index: u64) -> Vec<u64> {
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
        let Some(mut part) = whole_part(selection) else { return Ok(()) };
        let threads = self.threads(&part);
        if threads == 1
            && let Some(cell) = self.single_cell(&mut part)
        {
            return pool::run(1, 1, interrupted, &|_, worker, checkpoint| {
                // SAFETY: it is the only claim on the sink.
                self.chunk(&cell, &mut [unsafe { Want::new(&part, sink) }], worker, checkpoint)
            });
        }
        let cells = self.cells(&part)?;
        let shares = match threads {
            1 => 1,
            _ => {
                // A chunk in the middle is no edge, where there is one that is not.
                let (mut cell, mut middle) = (PerAxis::new(), PerAxis::new());
                cells.get(cells.count() / 2, &mut cell, &mut middle);
                self.shares(cells.count(), &middle, threads)
            }
        };
        let sharded = self.is_sharded();
        let open: Vec<OpenShard<'_>> = match sharded && shares > 1 {
            true => (0..cells.count()).map(|_| OpenShard::default()).collect(),
            false => Vec::new(),
        };
        let tasks = cells.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, threads, interrupted, &|task, worker, checkpoint| {
            let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
            cells.get(task / shares, &mut cell, &mut part);
            let share = task % shares;
            let Some(part) = self.own_part(part, (share, shares)) else { return Ok(()) };
            // SAFETY: the pieces of different chunks have no place in common (a property test of `Cells` says
            // so), nor have different shares of an uncompressed one (another says so), and each is one task. Shares of a
            // shard claim the same part, and write through claims on their own inner chunks only.
            let mut want = [unsafe { Want::new(&part, sink) }];
            match open.get((task / shares) as usize) {
                None => self.chunk(&cell, &mut want, worker, checkpoint),
                Some(open) => self.share(&cell, &mut want, (share, shares), open, worker, checkpoint),
            }
        })
    }

    /// The one cell of a grid of equal chunks that `part` touches, from whose start the part is counted then: the plan of
    /// a small read, which is worth no other.
    fn single_cell(&self, part: &mut [AxisPart<'_>]) -> Option<PerAxis<u64>> {
        let ChunkGrid::Regular { chunk_shape } = &self.metadata.chunk_grid else { return None };
        let mut cell = PerAxis::new();
        for (axis, extent) in part.iter().zip(chunk_shape) {
            let index = axis.start / extent;
            if axis.picks.is_some() || axis.last() / extent != index {
                return None;
            }
            cell.push(index);
        }
        for ((axis, extent), index) in part.iter_mut().zip(chunk_shape).zip(&cell) {
            axis.start -= extent * index;
        }
        Some(cell)
    }

    /// The chunks that `part` of the array touches.
    ///
    /// # Errors
    /// As [`Cells::new`].
    pub fn cells(&self, part: &[AxisPart<'a>]) -> Result<Cells<'a>> {
        Cells::new(part, |axis| AxisGrid::new(&self.metadata.chunk_grid, axis))
    }

    /// How many threads `part` is worth: waking one costs as much as decoding some elements. Those that are decoded count,
    /// which may be many more than are selected: a line through compressed chunks decodes all of them.
    pub fn threads(&self, part: &[AxisPart<'_>]) -> usize {
        /// Bytes that a thread should have to do.
        const WORTH: u64 = 128 << 10;
        if self.store.concurrency().is_some() {
            return self.most_threads();
        }
        let selected = self.nbytes(part.iter().map(|axis| axis.count));
        let worth = selected.max(self.decoded_nbytes(part)) / WORTH + 1;
        usize::try_from(worth).unwrap_or(usize::MAX).min(pool::num_threads())
    }

    /// About how many bytes the chunks that `part` touches decode to, inner ones where there are shards; 0 where it is one
    /// chunk, or where chunks are not decoded as a whole. Extents of chunks are at least 1, as the metadata's check says.
    fn decoded_nbytes(&self, part: &[AxisPart<'_>]) -> u64 {
        let (chunk, chain) = match (&self.chain.array_to_bytes, &self.metadata.chunk_grid) {
            (ArrayToBytes::Sharding(sharding), _) if self.is_sharded() && self.chain.order.is_none() => {
                (&sharding.chunk_shape, &sharding.inner)
            }
            (_, ChunkGrid::Regular { chunk_shape }) => (chunk_shape, self.chain),
            _ => return 0,
        };
        if matches!(chain.array_to_bytes, ArrayToBytes::Bytes { .. }) && chain.bytes_to_bytes.is_empty() {
            return 0;
        }
        let touched = part.iter().zip(chunk).fold(1, |touched: u64, (axis, extent)| {
            touched.saturating_mul(match axis.picks {
                // Points count on the axis where their output is.
                Some(picks) if picks.joined && axis.output.is_none() => 1,
                Some(picks) if picks.joined => axis.count,
                _ => (axis.last() / extent - axis.start / extent + 1).min(axis.count),
            })
        });
        if touched == 1 { 0 } else { self.nbytes(chunk.iter().copied()).saturating_mul(touched) }
    }

    /// The most threads that a read has use for: those that decode, and where the store is slow those that wait for it.
    pub fn most_threads(&self) -> usize {
        let Some(requests) = self.store.concurrency() else { return pool::num_threads() };
        let fetched = match &self.chain.array_to_bytes {
            ArrayToBytes::Sharding(sharding) if self.is_sharded() => {
                self.nbytes(sharding.chunk_shape.iter().copied()).saturating_add(GROUP)
            }
            _ => self.nbytes(self.metadata.chunk_grid.largest_chunk().into_iter()),
        };
        let most = usize::try_from(UNDER_WAY / fetched.max(1)).unwrap_or(usize::MAX).max(1);
        pool::num_threads().saturating_add(requests.get().min(most))
    }

    /// The bytes that elements of such extents decode to.
    fn nbytes(&self, extents: impl Iterator<Item = u64>) -> u64 {
        /// What an element of no fixed size is taken for, in bytes.
        const VARIABLE: u64 = 16;
        let item_size = self.chain.item_size().map_or(VARIABLE, |size| size as u64);
        extents.fold(item_size, u64::saturating_mul)
    }

    /// What a share, by number and count, reads of a part of a chunk; `None` where that is nothing. It is all of the part
    /// where the chunk is a shard, whose shares differ in their inner chunks.
    pub fn own_part<'p>(
        &self,
        part: PerAxis<AxisPart<'p>>,
        (number, count): (u64, u64),
    ) -> Option<PerAxis<AxisPart<'p>>> {
        if count == 1 || self.is_sharded() { Some(part) } else { share_of(&part, number, count) }
    }

    /// Whether chunks are shards that were not compressed as a whole.
    pub fn is_sharded(&self) -> bool {
        matches!(self.chain.array_to_bytes, ArrayToBytes::Sharding(_)) && self.chain.bytes_to_bytes.is_empty()
    }

    /// How many tasks each of `chunks` chunks is, of which `part` is a typical piece: one, unless there are few and a
    /// part of each can be read by itself.
    pub fn shares(&self, chunks: u64, part: &[AxisPart<'_>], threads: usize) -> u64 {
        // Threads that wait for a store have nothing else to do, and a task is a request at least.
        let slow = self.store.concurrency().is_some();
        let wanted = threads as u64 * if slow { 1 } else { TASKS_PER_THREAD };
        let large = self.nbytes(part.iter().map(|axis| axis.count)) / SHARE_NBYTES;
        if threads == 1 || chunks >= wanted {
            return 1;
        }
        let shares = wanted.div_ceil(chunks.max(1));
        match (&self.chain.array_to_bytes, self.chain.bytes_to_bytes.as_slice()) {
            (ArrayToBytes::Sharding(_), []) if slow => {
                shares.min(inner_count(self.chain, part)).min(large).max(1)
            }
            (ArrayToBytes::Sharding(_), []) => shares.min(inner_count(self.chain, part)).max(1),
            (ArrayToBytes::Bytes { .. }, []) => shares.min(large).max(1),
            // Each share decompresses its blocks, and loads the others: worth it only where threads would do nothing.
            (ArrayToBytes::Bytes { .. }, [BytesToBytes::Blosc])
                if chunks < threads as u64 && self.chunks.is_none() && !slow =>
            {
                (threads as u64).div_ceil(chunks.max(1))
            }
            _ => 1,
        }
    }

    /// Reads what is wanted of the chunk at `cell` (step 3).
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec.
    pub fn chunk(
        &self,
        cell: &[u64],
        wants: &mut [Want<'_>],
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        if self.is_sharded() {
            return self.share(cell, wants, (0, 1), &OpenShard::default(), worker, checkpoint);
        }
        let read = |wants: &mut [Want<'_>], worker: &mut Worker| {
            let fill = &self.metadata.fill_value;
            let shape = self.chunk_shape(cell);
            let chunk = Chunk { chain: self.chain, fill, shape: &shape, slot: None, checkpoint };
            let Some(value) = self.open_for(cell, &chunk, wants)? else {
                return wants.iter_mut().try_for_each(|want| want.fill(fill));
            };
            let slot = self.slot(cell, &*value)?;
            let input = Input::of_value(&*value, Some(checkpoint))?;
            Chunk { slot: slot.as_ref(), ..chunk }.read(&input, wants, None, worker)
        };
        read(wants, worker).map_err(|error| error.in_chunk(cell))
    }

    /// Where the decoded chunk of `value` is kept, if it is.
    fn slot(&self, cell: &[u64], value: &dyn Value) -> Result<Option<Slot<'_>>> {
        let Some(cache) = self.chunks else { return Ok(None) };
        Ok(value.version()?.map(|version| Slot { cache, key: [cell, &version].concat() }))
    }

    /// Reads a share, by number and count, of what is wanted of the shard at `cell`.
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec.
    pub fn share(
        &self,
        cell: &[u64],
        wants: &mut [Want<'_>],
        share: (u64, u64),
        open: &OpenShard<'a>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let shape = self.chunk_shape(cell);
        let fill = &self.metadata.fill_value;
        let chunk = Chunk { chain: self.chain, fill, shape: &shape, slot: None, checkpoint };
        self.share_of(&chunk, cell, wants, share, open, worker).map_err(|error| error.in_chunk(cell))
    }

    fn share_of(
        &self,
        chunk: &Chunk<'_>,
        cell: &[u64],
        wants: &mut [Want<'_>],
        (number, count): (u64, u64),
        open: &OpenShard<'a>,
        worker: &mut Worker,
    ) -> Result<()> {
        let mut opened = open.0.lock()?;
        let shard = match &*opened {
            Some(shard) => Arc::clone(shard),
            None => {
                let stored = match self.open_for(cell, chunk, wants)? {
                    None => None,
                    Some(value) => {
                        let read = |input: &Input<'_>| chunk.shard_index(input, worker);
                        let index = self.index(cell, &*value, Some(chunk.checkpoint), read)?;
                        Some((index, value))
                    }
                };
                Arc::clone(opened.insert(Arc::new(Shard { stored })))
            }
        };
        drop(opened);
        match &shard.stored {
            Some((index, value)) => {
                let slot = self.slot(cell, &**value)?;
                let chunk = Chunk { slot: slot.as_ref(), ..*chunk };
                let input = Input::of_value(&**value, Some(chunk.checkpoint))?;
                chunk.read(&input, wants, Some(Share { number, count, index }), worker)
            }
            None if number == 0 => wants.iter_mut().try_for_each(|want| want.fill(chunk.fill)),
            None => Ok(()),
        }
    }

    /// The index of the shard `value` at `cell`: from the cache, where this very version was read before, else by `read`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and what `read` gives.
    pub fn index(
        &self,
        cell: &[u64],
        value: &dyn Value,
        checkpoint: Option<&Checkpoint<'_>>,
        read: impl FnOnce(&Input<'_>) -> Result<ShardIndex>,
    ) -> Result<Arc<ShardIndex>> {
        let key = value.version()?.map(|version| [cell, &version].concat());
        if let Some(index) = key.as_ref().and_then(|key| self.indexes.get(key)) {
            return Ok(index);
        }
        let index = Arc::new(read(&Input::of_value(value, checkpoint)?)?);
        if let Some(key) = key {
            self.indexes.insert(key, Arc::clone(&index), index.nbytes());
        }
        Ok(index)
    }

    /// Opens the chunk at `cell`; `None` where it is not stored.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn open(&self, cell: &[u64]) -> Result<Option<Box<dyn Value + 'a>>> {
        self.store.open(&self.key(cell))
    }

    /// Opens the chunk at `cell`, of which `wants` are wanted; a slow store fetches what is read first along.
    fn open_for(
        &self,
        cell: &[u64],
        chunk: &Chunk<'_>,
        wants: &[Want<'_>],
    ) -> Result<Option<Box<dyn Value + 'a>>> {
        if !chunk.checkpoint.store_is_slow() {
            return self.open(cell);
        }
        let first = chunk.first(wants)?;
        chunk.checkpoint.take(Turn::Fetch)?;
        self.store.open_for(&self.key(cell), first)
    }

    /// The key of the chunk at `cell`.
    pub fn key(&self, cell: &[u64]) -> String {
        let mut key = String::with_capacity(self.path.len() + 32);
        if !self.path.is_empty() {
            key.push_str(self.path);
            key.push('/');
        }
        self.metadata.chunk_key_encoding.encode(cell, &mut key);
        key
    }

    fn chunk_shape(&self, cell: &[u64]) -> PerAxis<u64> {
        let grid = &self.metadata.chunk_grid;
        cell.iter().enumerate().map(|(axis, index)| grid.chunk_extent(axis, *index).1).collect()
    }
}

/// A shard that several tasks read, once the first of them has opened it: all see the same, where one that appeared or
/// vanished meanwhile would be filled twice or not at all.
#[derive(Default)]
pub struct OpenShard<'a>(ProcessMutex<Option<Arc<Shard<'a>>>>);

struct Shard<'a> {
    /// Its index and its bytes, `None` where it is not stored.
    stored: Option<(Arc<ShardIndex>, Box<dyn Value + 'a>)>,
}

fn too_many() -> ErrorKind {
    ErrorKind::Internal("more chunks than can be counted".into())
}
