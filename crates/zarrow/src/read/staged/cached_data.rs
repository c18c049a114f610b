//! Cached data of earlier reads of an object: its version, and by version a shard's index and decoded chunks.

use crate::decode::chunk::Slot;
use crate::decode::reader::SeenVersion;
use crate::read::staged::object::ObjectPlan;
use crate::store::remote::{ObjectVersion, version_number};
use std::sync::Arc;
use zarrow_array::Buffer;

/// Returns the cache key of a shard index of this version.
pub fn index_key(plan: &ObjectPlan<'_>, version: &ObjectVersion) -> Vec<u64> {
    [&plan.chunk_index[..], &version_number(version)].concat()
}

/// Returns the cache slot of an object's decoded chunks, if caching is enabled.
pub fn slot<'c>(plan: &'c ObjectPlan<'_>, version: Option<&ObjectVersion>) -> Option<Slot<'c>> {
    let (cache, version) = (plan.reader.chunks?, version?);
    Some(Slot { cache, key: index_key(plan, version), kept: None })
}

/// Remembers the version of an object for later reads.
pub fn remember(plan: &ObjectPlan<'_>, version: &ObjectVersion, nbytes: u64) {
    let seen = SeenVersion { version: version.clone(), nbytes };
    let held = seen.version.as_str().len();
    plan.reader.versions.insert(&plan.chunk_index.to_vec(), Arc::new(seen), held);
}

/// Returns the remembered version of an object that is no shard, and its elements, if both are cached.
pub fn kept_whole(plan: &ObjectPlan<'_>) -> Option<(Arc<SeenVersion>, Arc<Buffer>)> {
    // Chunks that are handed over are encoded, and elements of no fixed size cannot be taken back from the result.
    let cache = plan.reader.chunks.filter(|_| !plan.is_handed_over && !plan.is_variable())?;
    let seen = plan.reader.versions.get(&plan.chunk_index.to_vec())?;
    let elements = cache.get(&index_key(plan, &seen.version))?;
    Some((seen, elements))
}

/// Returns the elements of an inner chunk, if cached.
pub fn kept(plan: &ObjectPlan<'_>, version: Option<&ObjectVersion>, number: u64) -> Option<Arc<Buffer>> {
    slot(plan, version)?.inner(number).get()
}
