//! Threads that Python stores need for their answers: the thread that takes requests, the threads of event loops, and
//! the holder of an adapter's lock.
//!
//! If a call on such a thread waits for a Python store, no thread answers. The collector of garbage runs finalizers on any
//! thread, and a method of a store may call zarrow too. So the call is an error:
//!
//! 1. Such a thread marks itself.
//! 2. A call that waits passes the mark to all threads that work for it.
//! 3. A request for a marked call fails.

use pyo3::prelude::*;
use std::cell::Cell;
use zarrow::ErrorKind;
use zarrow::store::remote::{CallMark, call_mark};

/// Every store needs this thread.
const ALL_STORES: usize = 0;

thread_local! {
    /// The address of the adapter that needs this thread, or [`ALL_STORES`].
    static SERVES: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Marks this thread as needed by the adapter at this address (step 1), or takes the mark away; returns the mark before.
/// A thread that every store needs stays so.
#[pyfunction]
#[pyo3(signature = (adapter))]
pub fn _serves_stores(adapter: Option<usize>) -> Option<usize> {
    let before = SERVES.get();
    if before != Some(ALL_STORES) {
        SERVES.set(adapter);
    }
    before
}

/// Begins a call on this thread that may wait for a store (step 2).
pub fn begin_call() -> CallMark {
    CallMark::set(SERVES.get().or(call_mark()))
}

/// Checks that a request to the adapter at this address can be answered (step 3).
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub fn check_request(adapter: usize) -> zarrow::Result<()> {
    if call_mark().is_none_or(|serves| serves != ALL_STORES && serves != adapter) {
        return Ok(());
    }
    let text = "a store written in Python was used on the thread that answers for it";
    let error = zarrow::Error::from(ErrorKind::Unsupported(text.into()));
    Err(error.with_hint("a finalizer or a method of a store called zarrow there: let another thread do it"))
}
