//! Threads that Python stores need for their answers: the thread that takes requests, the threads of event loops, and
//! the holder of an adapter's lock.
//!
//! If a call on such a thread waits for a store that needs the thread, no thread answers. The collector of garbage runs
//! finalizers on any thread, and a method of a store may call zarrow too. So the call is an error:
//!
//! 1. Such a thread marks itself. A forked child has other such threads, and ignores the mark.
//! 2. A call that waits passes the mark to all threads that work for it.
//! 3. A request for a marked call fails, if its adapter needs the thread.

use crate::python::gil;
use pyo3::prelude::*;
use std::cell::Cell;
use zarrow::ErrorKind;
use zarrow::store::remote::{CallMark, call_mark};
use zarrow_array::fork::generation;

/// The mark of the thread that takes requests: every store needs it.
const ALL_STORES: usize = 0;

thread_local! {
    /// The process, and the address of the loop or the lock.
    static SERVES: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
}

fn serves() -> Option<usize> {
    SERVES.get().filter(|(process, _)| *process == generation()).map(|(_, mark)| mark)
}

/// Marks this thread (step 1) as that of a loop or a lock at this address, or takes the mark away; returns the mark
/// before. The thread that takes requests stays marked.
#[pyfunction]
#[pyo3(signature = (mark))]
pub fn _serves_stores(mark: Option<usize>) -> Option<usize> {
    let before = serves();
    if before != Some(ALL_STORES) {
        SERVES.set(mark.map(|mark| (generation(), mark)));
    }
    before
}

/// Begins a call on this thread that may wait for a store (step 2).
pub fn begin_call() -> CallMark {
    CallMark::set(serves().or(call_mark()))
}

/// Checks that a request of this kind to an adapter can be answered (step 3).
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub fn check_request(adapter: &Py<PyAny>, kind: &str) -> zarrow::Result<()> {
    let Some(mark) = call_mark() else { return Ok(()) };
    let needs = |py: Python<'_>| adapter.call_method1(py, "needs", (mark, kind))?.extract::<bool>(py);
    if mark != ALL_STORES && !matches!(gil::with(needs), Some(Ok(true))) {
        return Ok(());
    }
    let text = "a store written in Python was used on the thread that answers for it";
    let error = zarrow::Error::from(ErrorKind::Unsupported(text.into()));
    Err(error.with_hint("a finalizer or a method of a store called zarrow there: let another thread do it"))
}
