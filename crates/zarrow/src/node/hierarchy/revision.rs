//! The order of this process's changes of documents.
//!
//! 1. Each change increments the revision when its document is set, under the node's lock. So a handle with a higher
//!    revision has a later state: if two threads change one handle, the later change remains.
//! 2. A handle with the present revision has missed no change of this process.

use std::sync::atomic::{AtomicU64, Ordering};

static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Returns the present revision. Values read afterwards are at least as new.
pub(crate) fn present() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Counts a change that was made, and returns its revision.
pub(super) fn count() -> u64 {
    CHANGES.fetch_add(1, Ordering::AcqRel) + 1
}
