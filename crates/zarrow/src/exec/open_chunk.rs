//! A chunk that is open: its bytes, and of a shard its index, all of one version.
//!
//! 1. A read opens each chunk once, however many tasks the chunk is: the first of them opens it, while the others wait,
//!    and all read from what it opened. So none of them sees what another writer sets meanwhile, and a chunk that appears
//!    or vanishes is filled by all of them or by none.
//! 2. An index that was kept from an earlier read is that of the very version that is open.
//! 3. The last task closes the chunk. Tasks begin in the order of their chunks, so that at most one chunk more is open
//!    than threads are at work.
//!
//! What is promised for it: a store whose values are replaced whole, as those here are, and a file of which another
//! program puts a new one in the place of the old. Of a file that is overwritten in place nobody can tell.

use crate::codec::ShardIndex;
use crate::error::Result;
use crate::exec::chunk::{Chunk, Slot};
use crate::exec::input::Input;
use crate::exec::job::Checkpoint;
use crate::exec::part::PerAxis;
use crate::exec::read::Reader;
use crate::exec::scratch::Worker;
use crate::exec::shard::Share;
use crate::exec::turns::Turn;
use crate::exec::want::Want;
use crate::store::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::fork::ProcessMutex;

/// An open chunk; `None` where it is not stored.
pub struct OpenChunk<'a>(Option<Stored<'a>>);

struct Stored<'a> {
    value: Box<dyn Value + 'a>,
    /// Its index, where it is a shard.
    index: Option<Arc<ShardIndex>>,
}

/// Where the bytes of a chunk are that is decoded by itself.
pub struct Located<'a> {
    /// What holds them.
    pub value: &'a dyn Value,
    /// Offset and length there, of an inner chunk; else they are all of it.
    pub range: Option<(u64, u64)>,
}

impl OpenChunk<'_> {
    /// Where the inner chunk `number` of a shard is, or all of what is no shard; `None` where it is not stored.
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
    /// The tasks that have not ended.
    left: AtomicU64,
}

impl<'a> SharedChunk<'a> {
    /// A chunk that is so many tasks.
    pub fn new(tasks: u64) -> SharedChunk<'a> {
        SharedChunk { open: ProcessMutex::new(None), tasks, left: AtomicU64::new(tasks) }
    }

    /// The chunk, which the first task opens by `open`.
    ///
    /// # Errors
    /// What `open` gives.
    pub fn get(&self, open: impl FnOnce() -> Result<OpenChunk<'a>>) -> Result<Arc<OpenChunk<'a>>> {
        let mut opened = self.open.lock()?;
        match &*opened {
            Some(chunk) => Ok(Arc::clone(chunk)),
            None => Ok(Arc::clone(opened.insert(Arc::new(open()?)))),
        }
    }

    /// Ends a task that had no error (step 3). After an error no task begins, and the read closes all chunks.
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
    /// Reads what is wanted of the chunk at `cell`: all of that, or the share of one task, by number, among those that
    /// share the chunk.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind), with chunk and codec.
    pub fn chunk(
        &self,
        cell: &[u64],
        wants: &mut [Want<'_>],
        share: Option<(u64, &SharedChunk<'a>)>,
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<()> {
        let shape = self.chunk_shape(cell);
        let chunk = self.chunk_of(&shape, checkpoint);
        let read = |wants: &mut [Want<'_>], worker: &mut Worker| match share {
            None => {
                let open = self.open_chunk(&chunk, cell, Some(wants), worker)?;
                self.read_open(&chunk, cell, &open, wants, (0, 1), worker)
            }
            Some((number, shared)) => {
                let open = shared.get(|| self.open_chunk(&chunk, cell, Some(wants), worker))?;
                self.read_open(&chunk, cell, &open, wants, (number, shared.tasks), worker)
            }
        };
        read(wants, worker).map_err(|error| error.in_chunk(cell))
    }

    /// Opens the chunk at `cell`.
    ///
    /// # Errors
    /// As [`chunk`](Reader::chunk).
    pub fn open(
        &self,
        cell: &[u64],
        worker: &mut Worker,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<OpenChunk<'a>> {
        let shape = self.chunk_shape(cell);
        let chunk = self.chunk_of(&shape, checkpoint);
        self.open_chunk(&chunk, cell, None, worker).map_err(|error| error.in_chunk(cell))
    }

    /// The one place where a read opens a chunk. Where it is known what is wanted of it, a slow store fetches what is read
    /// first along.
    fn open_chunk(
        &self,
        chunk: &Chunk<'_>,
        cell: &[u64],
        wants: Option<&[Want<'_>]>,
        worker: &mut Worker,
    ) -> Result<OpenChunk<'a>> {
        let key = self.key(cell);
        let value = match wants.filter(|_| chunk.checkpoint.store_is_slow()) {
            None => self.store.open(&key)?,
            Some(wants) => {
                let first = chunk.first(wants)?;
                chunk.checkpoint.take(Turn::Fetch)?;
                self.store.open_for(&key, first)?
            }
        };
        let Some(value) = value else { return Ok(OpenChunk(None)) };
        let index = match self.is_sharded() {
            true => {
                let read = |input: &Input<'_>| chunk.shard_index(input, worker);
                Some(self.index(cell, &*value, Some(chunk.checkpoint), read)?)
            }
            false => None,
        };
        Ok(OpenChunk(Some(Stored { value, index })))
    }

    /// Reads what is wanted of an open chunk: a share, by number and count, of a shard; of another what `wants` say.
    fn read_open(
        &self,
        chunk: &Chunk<'_>,
        cell: &[u64],
        open: &OpenChunk<'_>,
        wants: &mut [Want<'_>],
        (number, count): (u64, u64),
        worker: &mut Worker,
    ) -> Result<()> {
        let Some(Stored { value, index }) = &open.0 else {
            // Shares of a shard want the same.
            let is_first = number == 0 || !self.is_sharded();
            let wants = if is_first { wants } else { &mut [] };
            return wants.iter_mut().try_for_each(|want| want.fill(chunk.fill));
        };
        let slot = self.slot(cell, &**value)?;
        let input = Input::of_value(&**value, Some(chunk.checkpoint))?;
        let share = index.as_deref().map(|index| Share { number, count, index });
        Chunk { slot: slot.as_ref(), ..*chunk }.read(&input, wants, share, worker)
    }

    /// The index of the shard `value` at `cell`: from the cache, where this very version was read before, else by `read`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), and what `read` gives.
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
            self.indexes.insert(&key, Arc::clone(&index), index.nbytes());
        }
        Ok(index)
    }

    /// Where the decoded chunk of `value` is kept, if it is.
    fn slot(&self, cell: &[u64], value: &dyn Value) -> Result<Option<Slot<'_>>> {
        let Some(cache) = self.chunks else { return Ok(None) };
        Ok(value.version()?.map(|version| Slot { cache, key: [cell, &version].concat() }))
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

    fn chunk_of<'c>(&'c self, shape: &'c [u64], checkpoint: &'c Checkpoint<'c>) -> Chunk<'c> {
        Chunk { chain: self.chain, fill: &self.metadata.fill_value, shape, slot: None, checkpoint }
    }

    fn chunk_shape(&self, cell: &[u64]) -> PerAxis<u64> {
        let grid = &self.metadata.chunk_grid;
        cell.iter().enumerate().map(|(axis, index)| grid.chunk_extent(axis, *index).1).collect()
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
