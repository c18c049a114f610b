//! Cached data of earlier reads of an object, keyed by the version of its value: a shard's index, and decoded chunks.

use crate::decode::chunk::Slot;
use crate::read::staged::object::ObjectPlan;
use crate::store::remote::{ObjectVersion, version_number};
use std::sync::Arc;

/// Returns the cache key of a shard index of this version.
pub fn index_key(plan: &ObjectPlan<'_>, version: &ObjectVersion) -> Vec<u64> {
    [&plan.chunk_index[..], &version_number(version)].concat()
}

/// Returns the cache slot of an object's decoded chunks, if caching is enabled.
pub fn slot<'c>(plan: &'c ObjectPlan<'_>, version: Option<&ObjectVersion>) -> Option<Slot<'c>> {
    let (cache, version) = (plan.reader.chunks?, version?);
    Some(Slot { cache, key: index_key(plan, version), kept: None })
}

/// Returns the elements of an inner chunk, if cached.
pub fn kept(
    plan: &ObjectPlan<'_>,
    version: Option<&ObjectVersion>,
    number: u64,
) -> Option<Arc<zarrow_array::Buffer>> {
    slot(plan, version)?.inner(number).get()
}
