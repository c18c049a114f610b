//! Threads that Python stores need for their answers: the thread that takes requests, the threads of event loops, and
//! the holder of an adapter's lock.
//!
//! If a call on such a thread waits for a store that needs the thread, no thread answers. The collector of garbage runs
//! finalizers on any thread, and a method of a store may call zarrow too. So the call is an error:
//!
//! 1. Such a thread marks itself. A forked child has other such threads, and ignores the mark. A thread may run other
//!    loops later: the mark of a loop says only that a call has to look for it.
//! 2. A call that waits passes the mark to all threads that work for it.
//! 3. A request for a marked call fails, if its adapter needs the thread. So does a request of a finalizer after the
//!    interpreter has begun to end: the thread that takes requests is gone then.

use crate::python::gil;
use crate::python::importing::import;
use crate::python::interpreter_exit;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use zarrow::ErrorKind;
use zarrow::store::remote::{CallMark, call_mark};
use zarrow_array::fork::generation;

/// The mark of the thread that takes requests: every store needs it.
const ALL_STORES: usize = 0;

/// The mark of a thread that runs loops of stores. A call has the address of the running loop instead.
const LOOPS: usize = 1;

thread_local! {
    /// The process, and [`ALL_STORES`], [`LOOPS`] or the address of a lock.
    static SERVES: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
}

fn serves() -> Option<usize> {
    SERVES.get().filter(|(process, _)| *process == generation()).map(|(_, mark)| mark)
}

/// Marks this thread (step 1), or takes the mark away; returns the mark before. The thread that takes requests stays
/// marked.
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
pub fn begin_call(py: Python<'_>) -> CallMark {
    let own = match serves() {
        Some(LOOPS) => running_loop(py),
        own => own,
    };
    CallMark::set(own.or(call_mark()))
}

/// Returns the address of the event loop that this thread runs.
fn running_loop(py: Python<'_>) -> Option<usize> {
    let found = import(py, "asyncio").and_then(|asyncio| asyncio.call_method0("_get_running_loop"));
    found.ok().filter(|found| !found.is_none()).map(|found| found.as_ptr().addr())
}

/// Checks that a request of this kind to an adapter can be answered (step 3).
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub fn check_request(adapter: &Py<PyAny>, kind: &str) -> zarrow::Result<()> {
    if interpreter_exit::has_begun() && gil::with(|_| ()).is_none() {
        return Err(
            ErrorKind::Unsupported("a store written in Python was used while Python ends".into()).into()
        );
    }
    let Some(mark) = call_mark() else { return Ok(()) };
    let needs = |py: Python<'_>| match adapter.call_method1(py, "needs", (mark, kind)) {
        Ok(needs) => needs.is_truthy(py).unwrap_or(true),
        Err(error) => {
            if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // SAFETY: this function may be called at any time: it sets a flag, like a signal.
                unsafe { ffi::PyErr_SetInterrupt() };
            }
            true
        }
    };
    if mark != ALL_STORES && gil::with(needs) == Some(false) {
        return Ok(());
    }
    let text = "a store written in Python was used on the thread that answers for it";
    let error = zarrow::Error::from(ErrorKind::Unsupported(text.into()));
    Err(error.with_hint("a finalizer or a method of a store called zarrow there: let another thread do it"))
}
