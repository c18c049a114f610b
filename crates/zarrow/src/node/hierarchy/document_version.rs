//! Versions of documents, as the numbers that handles remember.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns a nonzero number for a version.
pub(crate) fn fingerprint(version: &[u64; 4]) -> u64 {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    hasher.finish().max(1)
}
