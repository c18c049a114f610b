//! An open chunk: its bytes, and a shard's index, all of one version.
//!
//! 1. A read opens each chunk once, however many tasks share the chunk: the first task opens it, the others wait, and
//!    all read from the same open chunk. So no task sees a concurrent write, and a chunk that appears or vanishes is
//!    missing for all tasks or for none; a missing one gets the fill value ([`missing_chunk`]).
//! 2. An index kept from an earlier read is used only if it belongs to exactly the open version.
//! 3. A chunk with cached elements is not opened if the store knows a cheaper way to its version.
//! 4. The last task closes the chunk. Tasks begin in the order of their chunks, so that at most one chunk more is open
//!    than threads are working.
//!
//! This holds for stores that replace whole values, as ours do, and for files that another program replaces by a new
//! file. A file overwritten in place cannot be detected.

use crate::codec::{Input, ShardIndex, Worker};
use crate::decode::chunk::{Chunk, Slot};
use crate::decode::missing_chunk;
use crate::decode::reader::Reader;
use crate::decode::shard_share::Share;
use crate::decode::stage_times::TimedValue;
use crate::error::Result;
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::pool::job::Checkpoint;
use crate::store::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::fork::ProcessMutex;

/// An open chunk; `None` if it is not stored.
pub struct OpenChunk<'a>(Option<Stored<'a>>);

struct Stored<'a> {
    value: Box<dyn Value + 'a>,
    /// The index, for a shard.
    index: Option<Arc<ShardIndex>>,
}

/// Location of a separately decoded chunk's bytes.
pub struct Located<'a> {
    /// The value that contains them.
    pub value: &'a dyn Value,
    /// Offset and length of an inner chunk in the value; `None` for the whole value.
    pub range: Option<(u64, u64)>,
}

impl OpenChunk<'_> {
    /// Whether the chunk is stored.
    pub fn is_stored(&self) -> bool {
        self.0.is_some()
    }

    /// Locates the inner chunk `number` of a shard, or the whole chunk if it is not a shard; `None` if it is not
    /// stored.
    pub fn locate(&self, number: u64) -> Option<Located<'_>> {
        let Stored { value, index } = self.0.as_ref()?;
        let range = match index {
            Some(index) => Some(index.get(usize::try_from(number).ok()?)?),
            None => None,
        };
        Some(Located { value: &**value, range })
    }
}

/// A chunk that several tasks read (step 1).
pub struct SharedChunk<'a> {
    open: ProcessMutex<Option<Arc<OpenChunk<'a>>>>,
    tasks: u64,
    /// The number of unfinished tasks.
    left: AtomicU64,
}

impl<'a> SharedChunk<'a> {
    /// A chunk shared by `tasks` tasks.
    pub fn new(tasks: u64) -> SharedChunk<'a> {
        SharedChunk { open: ProcessMutex::new(None), tasks, left: AtomicU64::new(tasks) }
    }

    /// Returns the chunk; the first task opens it by calling `open`.
    pub fn get(&self, open: impl FnOnce() -> Result<OpenChunk<'a>>) -> Result<Arc<OpenChunk<'a>>> {
        let mut opened = self.open.lock()?;
        match &*opened {
            Some(chunk) => Ok(Arc::clone(chunk)),
            None => Ok(Arc::clone(opened.insert(Arc::new(open()?)))),
        }
    }

    /// Ends a successful task (step 4). After an error no task begins, and the read closes all chunks.
    pub fn leave(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            // In a forked child the chunk is its parent's, and stays open until the read ends.
            if let Ok(mut open) = self.open.lock() {
                *open = None;
            }
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads the selected parts of the chunk at `chunk_index`: all parts, or one task's share, by number, if several
    /// tasks share the chunk.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind), with chunk and codec.
    pub fn chunk(
        &self,
        chunk_index: &[u64],
        claims: &mut [OutputClaim<'_>],
        share: Option<(u64, &SharedChunk<'a>)>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        self.task(|clock| {
            let shape = self.chunk_shape(chunk_index);
            let chunk = Chunk { clock, ..self.chunk_of(&shape, checkpoint) };
            for claim in &*claims {
                claim.sink().provide_pages(claim.part(), &|| checkpoint.pass())?;
            }
            let read = |claims: &mut [OutputClaim<'_>], worker: &mut Worker| match share {
                None => {
                    if let Some(slot) = self.cached_chunk(&chunk, chunk_index, claims, worker)? {
                        let nothing = Input::from_bytes(&[]);
                        return Chunk { slot: Some(&slot), ..chunk }.read(&nothing, claims, None, worker);
                    }
                    let open = self.open_chunk(&chunk, chunk_index, worker)?;
                    self.read_open(&chunk, chunk_index, &open, claims, (0, 1), worker)
                }
                Some((number, shared)) => {
                    let open = shared.get(|| self.open_chunk(&chunk, chunk_index, worker))?;
                    self.read_open(&chunk, chunk_index, &open, claims, (number, shared.tasks), worker)
                }
            };
            read(claims, worker).map_err(|error| error.in_chunk(chunk_index))
        })
    }

    /// Returns the slot of a chunk with cached elements (step 3).
    fn cached_chunk(
        &self,
        chunk: &Chunk<'_>,
        chunk_index: &[u64],
        claims: &[OutputClaim<'_>],
        worker: &mut Worker,
    ) -> Result<Option<Slot<'a>>> {
        let is_handed_over = || claims.iter().any(|claim| matches!(claim.sink(), Sink::Chunks(_)));
        let Some(cache) = self.chunks.filter(|_| self.chain.caches_whole_chunks() && !is_handed_over())
        else {
            return Ok(None);
        };
        worker.key.clear();
        self.write_key(chunk_index, &mut worker.key);
        let find = || {
            let version = self.store.version_without_opening(&worker.key)?;
            Ok(version.and_then(|version| {
                let key = [chunk_index, &version].concat();
                let kept = cache.get(&key)?;
                Some(Slot { cache, key, kept: Some(kept) })
            }))
        };
        match chunk.clock {
            Some(clock) => clock.in_store(find),
            None => find(),
        }
    }

    /// Opens the chunk at `chunk_index`.
    pub fn open(
        &self,
        chunk_index: &[u64],
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<OpenChunk<'a>> {
        let shape = self.chunk_shape(chunk_index);
        let chunk = self.chunk_of(&shape, checkpoint);
        self.open_chunk(&chunk, chunk_index, worker).map_err(|error| error.in_chunk(chunk_index))
    }

    /// The only place where a read of a fast store opens a chunk.
    fn open_chunk(
        &self,
        chunk: &Chunk<'_>,
        chunk_index: &[u64],
        worker: &mut Worker,
    ) -> Result<OpenChunk<'a>> {
        worker.key.clear();
        self.write_key(chunk_index, &mut worker.key);
        let value = match chunk.clock {
            Some(clock) => clock.in_store(|| self.store.open(&worker.key))?,
            None => self.store.open(&worker.key)?,
        };
        let Some(value) = value else {
            self.note_missing(chunk_index);
            return Ok(OpenChunk(None));
        };
        let index = match self.is_sharded() {
            true => {
                let read = |input: &Input<'_>| chunk.shard_index(input, worker);
                Some(self.index(chunk_index, &*value, read)?)
            }
            false => None,
        };
        Ok(OpenChunk(Some(Stored { value, index })))
    }

    /// Reads from an open chunk: for a shard, a share given by number and count; for any other chunk, all of `claims`.
    fn read_open(
        &self,
        chunk: &Chunk<'_>,
        chunk_index: &[u64],
        open: &OpenChunk<'_>,
        claims: &mut [OutputClaim<'_>],
        (number, count): (u64, u64),
        worker: &mut Worker,
    ) -> Result<()> {
        let Some(Stored { value, index }) = &open.0 else {
            // All shares of a shard select the same part.
            let is_first = number == 0 || !self.is_sharded();
            let claims = if is_first { claims } else { &mut [] };
            return missing_chunk::fill(claims, chunk.fill);
        };
        let slot = self.slot(chunk_index, &**value)?;
        let timed = chunk.clock.map(|clock| TimedValue { value: &**value, clock });
        let input = match &timed {
            Some(timed) => Input::from_value(timed),
            None => Input::from_value(&**value),
        };
        let share = index.as_deref().map(|index| Share { number, count, index });
        Chunk { slot: slot.as_ref(), ..*chunk }.read(&input, claims, share, worker)
    }

    /// Returns the index of the shard `value` at `chunk_index`: from the cache if this exact version was read before,
    /// else by calling `read`.
    pub fn index(
        &self,
        chunk_index: &[u64],
        value: &dyn Value,
        read: impl FnOnce(&Input<'_>) -> Result<ShardIndex>,
    ) -> Result<Arc<ShardIndex>> {
        let key = value.version()?.map(|version| [chunk_index, &version].concat());
        if let Some(index) = key.as_ref().and_then(|key| self.indexes.get(key)) {
            return Ok(index);
        }
        let index = Arc::new(read(&Input::from_value(value))?);
        if let Some(key) = key {
            self.indexes.insert(&key, Arc::clone(&index), index.nbytes());
        }
        Ok(index)
    }

    /// Returns the cache slot of the decoded chunk of `value`, if caching is enabled.
    fn slot(&self, chunk_index: &[u64], value: &dyn Value) -> Result<Option<Slot<'_>>> {
        let Some(cache) = self.chunks else { return Ok(None) };
        Ok(value.version()?.map(|version| Slot { cache, key: [chunk_index, &version].concat(), kept: None }))
    }

    /// The key of the chunk at `chunk_index`.
    pub fn key(&self, chunk_index: &[u64]) -> String {
        let mut key = String::with_capacity(self.path.len() + 32);
        self.write_key(chunk_index, &mut key);
        key
    }

    /// Appends the key of the chunk at `chunk_index` to `key`.
    fn write_key(&self, chunk_index: &[u64], key: &mut String) {
        if !self.path.is_empty() {
            key.push_str(self.path);
            key.push('/');
        }
        self.metadata.chunk_key_encoding.encode(chunk_index, key);
    }

    /// Returns the chunk of `shape`, without a cache slot.
    pub fn chunk_of<'c>(&'c self, shape: &'c [u64], checkpoint: &'c Checkpoint<'c>) -> Chunk<'c> {
        Chunk {
            chain: self.chain,
            fill: &self.metadata.fill_value,
            shape,
            slot: None,
            checkpoint,
            clock: None,
        }
    }

    /// The part of the chunk at `chunk_index` that is inside the array.
    pub fn part_inside(&self, chunk_index: &[u64]) -> PerAxis<AxisPart<'static>> {
        let axes = chunk_index.iter().zip(&self.metadata.shape).enumerate();
        axes.map(|(axis, (index, array_extent))| {
            let (start, extent) = self.metadata.chunk_grid.chunk_extent(axis, *index);
            let count = extent.min(array_extent.saturating_sub(start)).max(1);
            let (output, list) = (Some(axis), None);
            AxisPart { start: 0, step: 1, count, place: 0, reversed: false, output, list }
        })
        .collect()
    }

    /// The shape of the chunk at `chunk_index`.
    pub fn chunk_shape(&self, chunk_index: &[u64]) -> PerAxis<u64> {
        let grid = &self.metadata.chunk_grid;
        chunk_index.iter().enumerate().map(|(axis, index)| grid.chunk_extent(axis, *index).1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_first_task_opens_and_the_last_one_closes() {
        let shared = SharedChunk::new(3);
        let open = || Ok(OpenChunk(None));
        let failed = shared.get(|| Err(ErrorKind::NotFound.into()));
        assert!(failed.is_err(), "who could not open it leaves it to the next");
        let first = shared.get(open).unwrap();
        let again = shared.get(|| panic!("it is open")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        drop(again);
        shared.leave();
        shared.leave();
        assert_eq!(Arc::strong_count(&first), 2);
        shared.leave();
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
