//! The cache of an array's decoded chunks: in memory, and behind it on disk.
//!
//! 1. A chunk that memory drops goes to the disk, and one that is found there comes back to memory. Memory forgets it
//!    only when the disk has it.
//! 2. A chunk that is too large for memory goes to the disk at once.
//! 3. Chunks are decoded to slabs, which stay allocated, after older ones have made room. If the slabs are full, older
//!    ones are dropped. Other threads may still copy these: then a chunk is decoded to other memory, and goes to the disk.
//!    So chunks that are being decoded take a part of the limit. A cache of few chunks has no slabs.

use crate::decode::cache::{Cache, Dropped, Key, Room};
use crate::decode::disk_cache::DiskCache;
use crate::error::Result;
use crate::pool::num_threads;
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

/// The least number of chunks for each reading thread in a cache with slabs.
const LEAST_OF_EACH_THREAD: usize = 8;
/// Threads of callers, which read beside the pool.
const CALLERS: usize = 2;
/// The most chunks that are dropped to free memory for one: other threads may still copy a dropped chunk.
const MOST_DROPPED: usize = 2;
/// Bytes of an entry beside its elements, with many axes.
const ENTRY_NBYTES: usize = 640;

/// Where the elements of a chunk are stored.
pub enum Place<'a> {
    /// In memory, in room that was made for them.
    Memory(Option<Room<'a, Buffer>>),
    /// On the disk, if there is a cache on the disk.
    Disk,
}

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
        let is_large = entries / LEAST_OF_EACH_THREAD >= num_threads() + CALLERS;
        let pool = SlabPool::new(chunk_nbytes, if is_large { entries } else { 0 });
        ChunkCache { memory, pool, disk, hits, misses, disk_hits }
    }

    /// Returns memory for the elements of the chunk `key`, and their place in the cache (step 3).
    ///
    /// # Errors
    /// [`ErrorKind::Array`](crate::ErrorKind::Array) for too little memory.
    pub fn buffer(&self, key: &Key, nbytes: usize) -> Result<(UninitBuffer, Place<'_>)> {
        if !self.pool.serves(nbytes) {
            return Ok((UninitBuffer::new(nbytes)?, Place::Memory(None)));
        }
        let (room, dropped) = self.memory.make_room(key, nbytes);
        self.write_to_disk(dropped);
        for attempt in 0..=MOST_DROPPED {
            if room.is_none() {
                break;
            }
            if let Some(memory) = UninitBuffer::from_pool(&self.pool, nbytes) {
                return Ok((memory, Place::Memory(room)));
            }
            if attempt < MOST_DROPPED {
                self.write_to_disk(self.memory.pop_oldest().into_iter().collect());
            }
        }
        Ok((UninitBuffer::new(nbytes)?, Place::Disk))
    }

    /// Stores the elements of a chunk at a place that [`buffer`](ChunkCache::buffer) returned.
    pub fn store(&self, key: &Key, elements: Buffer, place: Place<'_>) -> Arc<Buffer> {
        let (nbytes, elements) = (elements.held_nbytes(), Arc::new(elements));
        match (place, &self.disk) {
            (Place::Memory(room), _) => {
                drop(room);
                self.write_to_disk(self.memory.insert(key, Arc::clone(&elements), nbytes));
            }
            (Place::Disk, Some(disk)) => disk.insert(key, &elements),
            (Place::Disk, None) => {}
        }
        elements
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
        let mut place = Place::Disk;
        let found = self.disk.as_ref()?.get(key, &mut |nbytes| {
            let (memory, own) = self.buffer(key, nbytes).ok()?;
            place = own;
            Some(memory)
        });
        let found = found?;
        self.disk_hits.fetch_add(1, Ordering::Relaxed);
        Some(self.store(key, found, place))
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
