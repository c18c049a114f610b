//! The cache of an array's decoded chunks: in memory, and behind it on disk.
//!
//! 1. A chunk that memory drops goes to the disk, and one that is found there comes back to memory. Memory forgets it
//!    only when the disk has it.
//! 2. A chunk that is too large for memory goes to the disk at once.
//! 3. Chunks are decoded to slabs, which stay allocated, after older ones have made room. If the slabs are full, older
//!    ones are dropped. Other threads may still copy these: then a chunk is decoded to other memory, and not stored.

use crate::decode::cache::{Cache, Dropped, Key, Room};
use crate::decode::disk_cache::DiskCache;
use crate::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::{Buffer, SlabPool, UninitBuffer};

/// How many chunks reads found in a cache, and how many they decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Chunks found in the cache.
    pub hits: u64,
    /// Chunks that were decoded.
    pub misses: u64,
    /// Chunks found on disk, which are among the hits.
    pub disk_hits: u64,
}

/// Chunks that are dropped for one, in search of memory that no other thread uses.
const MOST_DROPPED: usize = 4;
/// Bytes of an entry beside its elements, with many axes.
const ENTRY_NBYTES: usize = 640;

/// Decoded chunks.
#[derive(Debug)]
pub struct ChunkCache {
    memory: Cache<Buffer>,
    pool: SlabPool,
    disk: Option<DiskCache>,
    hits: AtomicU64,
    misses: AtomicU64,
    disk_hits: AtomicU64,
}

impl ChunkCache {
    /// A cache of at most `limit` bytes of memory. `chunk_nbytes` is the size of the elements of each chunk, if all have
    /// one size.
    pub fn new(limit: usize, chunk_nbytes: Option<usize>, disk: Option<DiskCache>) -> ChunkCache {
        let [hits, misses, disk_hits] = [0; 3].map(AtomicU64::new);
        let memory = if disk.is_some() { Cache::in_front(limit) } else { Cache::new(limit) };
        let chunk_nbytes = chunk_nbytes.unwrap_or(0);
        let entries = limit / chunk_nbytes.saturating_add(ENTRY_NBYTES);
        let pool = SlabPool::new(chunk_nbytes, entries);
        ChunkCache { memory, pool, disk, hits, misses, disk_hits }
    }

    /// Returns memory for the elements of the chunk `key`, and their room, if they may be stored (step 3).
    ///
    /// # Errors
    /// [`ErrorKind::Array`](crate::ErrorKind::Array) for too little memory.
    pub fn buffer(&self, key: &Key, nbytes: usize) -> Result<(UninitBuffer, Option<Room<'_, Buffer>>)> {
        let (room, dropped) = self.memory.make_room(key, nbytes);
        self.write_to_disk(dropped);
        if !self.pool.serves(nbytes) {
            return Ok((UninitBuffer::new(nbytes)?, Some(room)));
        }
        for _ in 0..MOST_DROPPED {
            if let Some(memory) = UninitBuffer::from_pool(&self.pool, nbytes) {
                return Ok((memory, Some(room)));
            }
            self.write_to_disk(self.memory.pop_oldest().into_iter().collect());
        }
        Ok((UninitBuffer::new(nbytes)?, None))
    }

    /// Counts a chunk that was found, or not.
    pub fn count(&self, is_hit: bool) {
        let counter = if is_hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts.
    pub fn counts(&self) -> CacheCounts {
        let [hits, misses, disk_hits] =
            [&self.hits, &self.misses, &self.disk_hits].map(|counter| counter.load(Ordering::Relaxed));
        CacheCounts { hits, misses, disk_hits }
    }

    /// Returns the elements under `key`.
    pub fn get(&self, key: &Key) -> Option<Arc<Buffer>> {
        if let Some(found) = self.memory.get(key) {
            return Some(found);
        }
        let mut room = None;
        let found = self.disk.as_ref()?.get(key, &mut |nbytes| {
            let (memory, own) = self.buffer(key, nbytes).ok()?;
            room = own;
            Some(memory)
        });
        let found = Arc::new(found?);
        self.disk_hits.fetch_add(1, Ordering::Relaxed);
        if let Some(room) = room {
            drop(room);
            self.insert(key, Arc::clone(&found), found.held_nbytes());
        }
        Some(found)
    }

    /// Stores elements under `key`. `nbytes` is the size of the memory that they own.
    pub fn insert(&self, key: &Key, elements: Arc<Buffer>, nbytes: usize) {
        self.write_to_disk(self.memory.insert(key, elements, nbytes));
    }

    /// Step 1, for what memory dropped.
    fn write_to_disk(&self, dropped: SmallVec<[Dropped<Buffer>; 1]>) {
        let Some(disk) = &self.disk else { return };
        for (key, elements) in dropped {
            disk.insert(&key.to_vec(), &elements);
            self.memory.forget(&key);
        }
    }
}
