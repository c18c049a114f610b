//! The order of this process's changes of documents.
//!
//! 1. Each change counts up when its document is set, under the node's lock. So a handle that knows a higher number knows
//!    a later state: of two threads that change one handle, the later change stays.
//! 2. A handle that knows the present number has missed no change of this process.

use std::sync::atomic::{AtomicU64, Ordering};

static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The number of the last change. What is read after asking is at least as new.
pub(crate) fn present() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Counts a change that was made, and gives its number.
pub(super) fn count() -> u64 {
    CHANGES.fetch_add(1, Ordering::AcqRel) + 1
}
