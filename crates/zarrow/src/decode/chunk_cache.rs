//! The cache of an array's decoded chunks: in memory, and behind it on disk.
//!
//! 1. A chunk that memory drops goes to the disk, and one that is found there comes back to memory. Memory forgets it
//!    only when the disk has it.
//! 2. A chunk that is too large for memory goes to the disk at once.

use crate::decode::cache::{Cache, Key};
use crate::decode::disk_cache::DiskCache;
use crate::error::Result;
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
        ChunkCache {
            memory,
            pool: SlabPool::new(chunk_nbytes.unwrap_or(0), limit),
            disk,
            hits,
            misses,
            disk_hits,
        }
    }

    /// Returns memory for the elements of a chunk that will be stored here.
    ///
    /// # Errors
    /// [`ErrorKind::Array`](crate::ErrorKind::Array) for too little memory.
    pub fn buffer(&self, nbytes: usize) -> Result<UninitBuffer> {
        Ok(UninitBuffer::from_pool(&self.pool, nbytes)?)
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
        let found = Arc::new(self.disk.as_ref()?.get(key, &self.pool)?);
        self.disk_hits.fetch_add(1, Ordering::Relaxed);
        self.insert(key, Arc::clone(&found), found.held_nbytes());
        Some(found)
    }

    /// Stores elements under `key`. `nbytes` is the size of the memory that they own.
    pub fn insert(&self, key: &Key, elements: Arc<Buffer>, nbytes: usize) {
        let dropped = self.memory.insert(key, elements, nbytes);
        let Some(disk) = &self.disk else { return };
        for (key, elements) in dropped {
            disk.insert(&key.to_vec(), &elements);
            self.memory.forget(&key);
        }
    }
}
