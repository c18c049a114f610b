//! The inputs of a read of one array: its store, metadata and codecs, and what is cached of its chunks.

use crate::codec::{Chain, ShardIndex};
use crate::decode::cache::Cache;
use crate::decode::chunk_cache::ChunkCache;
use crate::decode::missing_chunk::{Presence, may_be_of_another};
use crate::decode::stage_times::{StageTimes, TaskClock};
use crate::error::Result;
use crate::metadata::ArrayMetadata;
use crate::metadata::missing_values::MissingValues;
use crate::plan::field::FieldPlace;
use crate::store::Store;
use crate::store::remote::{Coalescing, FetchPolicy, ObjectVersion, RemoteStore};
use std::sync::atomic::{AtomicBool, Ordering};

/// The inputs of a read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The array's path in the store.
    pub path: &'a str,
    /// The array's metadata.
    pub metadata: &'a ArrayMetadata,
    /// Its codecs.
    pub chain: &'a Chain,
    /// The indexes of its shards.
    pub indexes: &'a Cache<ShardIndex>,
    /// Versions of remote shards with a cached index, and of remote chunks with cached elements.
    pub versions: &'a Cache<SeenVersion>,
    /// Cache of decoded chunks, if enabled.
    pub chunks: Option<&'a ChunkCache>,
    /// The field to read or write in each element; `None` for whole elements. For a read of a field, `metadata`
    /// describe the field.
    pub field: Option<&'a FieldPlace>,
    /// The sentinel values that mark missing elements, if any.
    pub missing: Option<&'a MissingValues>,
    /// How requests for near ranges are merged; `None` for the store's own policy.
    pub coalescing: Option<Coalescing>,
    /// The array, which may have been erased.
    pub presence: &'a dyn Presence,
    /// Set by a read that finds a missing chunk.
    pub missed: Option<&'a AtomicBool>,
    /// Gets the time of the stages, if they are measured.
    pub times: Option<&'a StageTimes>,
}

impl Reader<'_> {
    /// Runs a task, with a clock if times are measured.
    pub fn task<T>(&self, run: impl FnOnce(Option<&TaskClock>) -> T) -> T {
        match self.times {
            Some(times) => times.task(|clock| run(Some(clock))),
            None => run(None),
        }
    }

    /// Returns how requests to the store are split and merged.
    pub fn policy(&self) -> FetchPolicy {
        let policy = self.store.remote().map(RemoteStore::policy).unwrap_or_default();
        policy.with_coalescing(self.coalescing)
    }

    /// Notes that a chunk is missing (step 1 of [`missing_chunk`](crate::decode::missing_chunk)).
    pub fn note_missing(&self, chunk_index: &[u64]) {
        self.presence.note_missing(chunk_index);
        if let Some(missed) = self.missed {
            missed.store(true, Ordering::Relaxed);
        }
    }

    /// Applies steps 2 and 3 of [`missing_chunk`](crate::decode::missing_chunk) to the result `read`; `missed` is the note
    /// of step 1.
    pub fn if_present<T>(&self, read: Result<T>, missed: &AtomicBool) -> Result<T> {
        let is_suspect = match &read {
            Ok(_) => missed.load(Ordering::Relaxed),
            Err(error) => may_be_of_another(error),
        };
        if is_suspect {
            self.presence.check()?;
        }
        read
    }
}

/// The version of a shard with a cached index, or of a chunk with cached elements.
#[derive(Debug)]
pub struct SeenVersion {
    /// The version.
    pub version: ObjectVersion,
    /// Size of the stored value in bytes.
    pub nbytes: u64,
}
