//! Writing one selection.
//!
//! 1. The selection is cut along the chunk grid, as for a read. Each touched chunk is a task. If there are few chunks
//!    and they are shards, a task is a share of a shard's inner chunks.
//! 2. A chunk covered by the selection is encoded and overwritten. Any other chunk is locked, read, changed and
//!    replaced: two writers of parts of one chunk wait for each other, in any thread or process. So does a writer of a
//!    chunk at the array's edge, since another writer may be appending to the rest of that chunk.
//! 3. A shard is always written under its lock, piece by piece. Its shares encode concurrently and write in order. The
//!    last share adds the index and publishes the shard.
//! 4. A chunk with only fill values is erased, unless the caller asks for it. If the array has no fill value, as in
//!    version 2, the chunk is always stored: other readers choose their own value for a missing chunk.
//! 5. If each task is a chunk, threads work on separate runs of chunks.
//! 6. If locks do not exclude other writers (`StoreWriter::is_optimistic`), steps 2 and 3 are retried when another
//!    writer was faster. A shard is one task there. A chunk that was read is stored even if it has only fill values,
//!    since no store supports conditional deletes.
//! 7. If requests are slow, a write is [staged](staged).
//!
//! There is no deadlock: a task holds at most one lock, a shard's shares start before the next shard's, and the share
//! that writes next waits for no other.

pub(crate) mod body;
pub(crate) mod cast;
pub(crate) mod chunk;
pub(crate) mod chunk_elements;
pub(crate) mod fill;
#[cfg(feature = "ndarray")]
pub(crate) mod ndarray_values;
pub(crate) mod options;
pub(crate) mod shard;
pub(crate) mod shard_share;
pub(crate) mod staged;
pub(crate) mod typed_values;
pub(crate) mod values;

pub use staged::Guard;
pub use values::Values;

use crate::codec::{InnerChunks, Input, Worker};
use crate::decode::chunk::stored_part;
use crate::decode::reader::Reader;
use crate::decode::shard::read_index;
use crate::error::{ErrorKind, Result};
use crate::plan::axis_part::{AxisPart, PerAxis, whole_part};
use crate::plan::chunk_parts::ChunkParts;
use crate::pool;
use crate::pool::job::Checkpoint;
use crate::read::thread_count::TASKS_PER_THREAD;
use crate::selection::Selection;
use crate::store::{Durability, StoreWriter, until_no_conflict};
use crate::write::options::WriteOptions;
use chunk::Target;
use shard::{Entries, ShardTarget};
use shard_share::{OpenShard, Shard, Share, share_of};
use zarrow_array::allocation;

/// The target of a write.
pub struct Writer<'a> {
    /// The array, and its old chunks.
    pub reader: Reader<'a>,
    /// The store.
    pub store: &'a dyn StoreWriter,
    durability: Durability,
    write_empty_chunks: bool,
    replace_edges: bool,
    /// Whether the write only clears elements, by the fill value: a missing chunk is then skipped, and a chunk or inner
    /// chunk that cannot be decoded, otherwise an error, is left unchanged.
    only_clears: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer over the array of `reader`.
    pub fn new(
        reader: Reader<'a>,
        store: &'a dyn StoreWriter,
        options: &WriteOptions<'_>,
        only_clears: bool,
    ) -> Writer<'a> {
        let WriteOptions { durability, write_empty_chunks, replace_edges, .. } = *options;
        Writer { reader, store, durability, write_empty_chunks, replace_edges, only_clears }
    }
}

impl Writer<'_> {
    /// Writes `values`, of the selection's shape and the array's type, to `selection`. If the store is remote, `guard`
    /// is checked before the first chunk is put and after the last.
    ///
    /// # Errors
    /// Any [`ErrorKind`], with chunk and codec; chunks are old or new then, each whole.
    pub fn write(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        guard: Option<&dyn Guard>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let values = &values.for_selection(selection);
        if self.reader.store.remote().is_some() {
            return staged::write(self, selection, values, guard, interrupted);
        }
        let Some(part) = whole_part(selection) else { return Ok(()) };
        let chunk_parts = self.reader.chunk_parts(&part)?;
        let threads = self.reader.threads(&part);
        let inner_chunks = self.inner_chunks();
        let shares = match inner_chunks {
            Some(inner_chunks) if !self.store.is_optimistic() => {
                self.shares(inner_chunks, chunk_parts.count(), threads)
            }
            _ => 1,
        };
        let shards: Vec<OpenShard<'_>> = match inner_chunks {
            Some(_) if shares > 1 => {
                allocation::collected((0..chunk_parts.count()).map(|_| OpenShard::default()))?
            }
            _ => Vec::new(),
        };
        let too_many = || ErrorKind::Internal("more chunks than can be counted".into());
        let tasks = chunk_parts.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, threads, interrupted, &|task, worker, checkpoint| {
            let task = if shares == 1 { apart(task, tasks, threads as u64) } else { task };
            let (open, share) = (shards.get((task / shares) as usize), (task % shares, shares));
            self.write_target(&chunk_parts, task / shares, values, share, open, worker, checkpoint)
        })
    }

    /// Returns the inner chunks, if chunks are shards.
    fn inner_chunks(&self) -> Option<&InnerChunks> {
        self.reader.inner_chunks()
    }

    /// Calls `work` with the index of a chunk in `chunk_parts`, the chunk, and its written part.
    fn with_target<'p, T>(
        &self,
        chunk_parts: &'p ChunkParts<'_>,
        number: u64,
        checkpoint: &Checkpoint<'_>,
        work: impl FnOnce(&[u64], &Target<'_>, &[AxisPart<'p>]) -> Result<T>,
    ) -> Result<T> {
        let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
        chunk_parts.get(number, &mut chunk_index, &mut part);
        let (shape, bounds) = self.extents(&chunk_index);
        let mut target = Target {
            chain: self.reader.chain,
            fill: &self.reader.metadata.fill_value,
            shape: &shape,
            bounds: &bounds,
            field: self.reader.field,
            keep_filled: self.write_empty_chunks || !self.reader.metadata.has_fill_value,
            only_clears: self.only_clears,
            replace_edges: self.replace_edges,
            checkpoint,
        };
        // Step 6.
        target.keep_filled |= self.store.is_optimistic() && !target.replaces_old(&part);
        work(&chunk_index, &target, &part).map_err(|error| error.in_chunk(&chunk_index))
    }

    /// Writes one chunk, or a share of a shard, and waits for the store. `open` is the shard, if it has several shares;
    /// otherwise each attempt opens it anew.
    #[allow(clippy::too_many_arguments, reason = "a share is what a task is, and all of these say which")]
    fn write_target<'s>(
        &'s self,
        chunk_parts: &ChunkParts<'_>,
        number: u64,
        values: &Values<'_>,
        share: (u64, u64),
        open: Option<&OpenShard<'s>>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        self.with_target(chunk_parts, number, checkpoint, |chunk_index, target, part| {
            let written = until_no_conflict(&|| checkpoint.pass(), || match self.inner_chunks() {
                None => self.chunk(chunk_index, target, part, values, worker),
                Some(inner_chunks) => {
                    let own = OpenShard::default();
                    let open = open.unwrap_or(&own);
                    open.at_turn(share.0, pool::num_threads(), checkpoint, || {
                        self.share(chunk_index, target, inner_chunks, part, values, share, open, worker)
                    })
                }
            });
            match written {
                Err(error) if self.only_clears && error.is_of_stored_bytes() => Ok(()),
                written => written,
            }
        })
    }

    /// Returns the number of tasks per shard, for `shards` shards: if there are few shards, enough to keep all threads
    /// busy, and enough that little is encoded before its turn to be written.
    fn shares(&self, inner_chunks: &InnerChunks, shards: u64, threads: usize) -> u64 {
        /// Maximum decoded size in bytes of a share, if its inner chunks are smaller.
        const SHARE_NBYTES: u64 = 4 << 20;
        let wanted = threads as u64 * TASKS_PER_THREAD;
        if threads == 1 || shards >= wanted {
            return 1;
        }
        let elements =
            |shape: &[u64]| shape.iter().fold(1u64, |product, extent| product.saturating_mul(*extent));
        let shard = elements(&self.reader.metadata.chunk_grid.largest_chunk());
        let inner = shard / elements(&inner_chunks.chunk_shape).max(1);
        let item_size = self.reader.metadata.data_type.item_size().unwrap_or(1) as u64;
        wanted.div_ceil(shards.max(1)).max(shard.saturating_mul(item_size) / SHARE_NBYTES).min(inner).max(1)
    }

    /// Returns the shape of the chunk at `chunk_index`, and the extents of its section inside the array.
    fn extents(&self, chunk_index: &[u64]) -> (PerAxis<u64>, PerAxis<u64>) {
        let metadata = self.reader.metadata;
        let axes = chunk_index.iter().zip(&metadata.shape).enumerate();
        axes.map(|(axis, (index, extent))| {
            let (start, length) = metadata.chunk_grid.chunk_extent(axis, *index);
            (length, length.min(extent.saturating_sub(start)))
        })
        .unzip()
    }

    /// Step 2.
    fn chunk(
        &self,
        chunk_index: &[u64],
        target: &Target<'_>,
        part: &[AxisPart<'_>],
        values: &Values<'_>,
        worker: &mut Worker,
    ) -> Result<()> {
        let (key, durability) = (self.reader.key(chunk_index), self.durability);
        let pass = || target.checkpoint.pass();
        let held = if target.replaces_old(part) {
            None
        } else {
            match self.store.lock_and_open(self.reader.store, &key, &pass) {
                // Without locks there are no concurrent appends, and nothing is stored beyond the edge.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unsupported(_))
                        && target.is_covered_inside(part) =>
                {
                    None
                }
                lock => Some(lock?),
            }
        };
        let Some((lock, old)) = held else {
            return match target.encode(part, values.level(), None, worker)? {
                Some(bytes) => {
                    let parts = [bytes.body.to_be_written(), &bytes.tail];
                    self.store.overwrite(&key, Some(&parts), durability, &pass)
                }
                None => self.store.overwrite(&key, None, durability, &pass),
            };
        };
        if old.is_none() && self.only_clears {
            return Ok(());
        }
        let old = old.as_ref().map(|value| Input::from_value(&**value));
        match target.encode(part, values.level(), old.as_ref(), worker)? {
            Some(bytes) => {
                let parts = [bytes.body.to_be_written(), &bytes.tail];
                self.store.set_under(&*lock, &parts, durability)
            }
            None => self.store.erase_under(&*lock, durability).map(drop),
        }
    }

    /// Step 3; returns whether the share has ended.
    #[allow(clippy::too_many_arguments, reason = "a share is what a task is, and all of these say which")]
    fn share<'s>(
        &'s self,
        chunk_index: &[u64],
        target: &Target<'_>,
        inner_chunks: &InnerChunks,
        part: &[AxisPart<'_>],
        values: &Values<'_>,
        (number, count): (u64, u64),
        open: &OpenShard<'s>,
        worker: &mut Worker,
    ) -> Result<bool> {
        let stored_part = stored_part(target.chain, part);
        let shape = target.in_stored_order(target.shape);
        let bounds = target.in_stored_order(target.bounds);
        let target = Target { shape: &shape, bounds: &bounds, ..*target };
        let shard = ShardTarget::new(target, inner_chunks, &stored_part)?;
        let open_shard = || self.open_shard(chunk_index, &target, &shard, inner_chunks, &stored_part, worker);
        let state = open.shard(open_shard)?;
        if state.old.is_none() && self.only_clears {
            return Ok(false);
        }
        let old = match &state.old {
            Some((value, index)) => Some((Input::from_value(&**value).measured()?, &**index)),
            None => None,
        };
        let old = old.as_ref().map(|(input, index)| (input, *index));
        let numbers = share_of(shard.count(), number, count);
        let mut share = Share::new(open, &state, number, numbers.end.saturating_sub(1));
        shard.encode_range(numbers, values.level(), old, worker, &mut share)?;
        share.end(inner_chunks, count)?;
        Ok(true)
    }

    /// Locks the shard at `chunk_index`, and opens the old shard unless it is fully covered.
    fn open_shard<'s>(
        &'s self,
        chunk_index: &[u64],
        target: &Target<'_>,
        shard: &ShardTarget<'_>,
        inner_chunks: &InnerChunks,
        part: &[AxisPart<'_>],
        worker: &mut Worker,
    ) -> Result<Shard<'s>> {
        let key = self.reader.key(chunk_index);
        let pass = || target.checkpoint.pass();
        let (held, old) = if target.replaces_old(part) {
            (self.store.lock_to_replace(&key, &pass)?, None)
        } else {
            self.store.lock_and_open(self.reader.store, &key, &pass)?
        };
        let old = match old {
            None => None,
            Some(value) => {
                let read = |input: &Input<'_>| read_index(inner_chunks, target.shape, input, worker);
                let index = self.reader.index(chunk_index, &*value, read);
                target.unless_replaced(part, index)?.map(|index| (value, index))
            }
        };
        let (start, index_at) = inner_chunks.data_start(shard.grid())?;
        let entries = Entries::new(shard.grid(), start)?;
        Ok(Shard::new((self.store, self.durability), old, entries, index_at, held))
    }
}

/// Returns the task for turn `turn`: each thread works on a run of neighbouring tasks, because two threads that create
/// files in one folder wait for each other.
fn apart(turn: u64, tasks: u64, threads: u64) -> u64 {
    let (own, rest) = (tasks / threads.max(1), tasks % threads.max(1));
    let (thread, done) = (turn % threads.max(1), turn / threads.max(1));
    thread * own + thread.min(rest) + done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_done_once_and_threads_work_on_separate_runs() {
        for (tasks, threads) in [(0, 2), (1, 4), (7, 1), (7, 2), (64, 2), (65, 3), (3, 5)] {
            let mut order: Vec<u64> = (0..tasks).map(|turn| apart(turn, tasks, threads)).collect();
            let first: Vec<u64> = order.iter().step_by(threads as usize).copied().collect();
            assert!(first.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{first:?}");
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..tasks), "{tasks} by {threads}: {order:?}");
        }
    }
}
