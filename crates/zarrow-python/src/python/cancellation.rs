//! Calls on worker threads that another thread can cancel, for event loops.
//!
//! 1. `_Cancellation.run` calls a function, and registers this cancellation on its thread: the engine checks it in
//!    addition to signals.
//! 2. `_Cancellation.cancel`, from any thread, soon stops that work: it ends as interrupted.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Cancellations of the calls on this thread, innermost last.
    static OF_THREAD: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether a call on this thread was cancelled.
pub fn is_cancelled() -> bool {
    OF_THREAD.with_borrow(|all| all.iter().any(|flag| flag.load(Ordering::Relaxed)))
}

/// Cancels the calls that run under it.
#[pyclass(frozen, name = "_Cancellation", module = "zarrow")]
pub struct Cancellation(Arc<AtomicBool>);

/// Removes the innermost cancellation, also when the call unwinds.
struct Innermost;

impl Drop for Innermost {
    fn drop(&mut self) {
        OF_THREAD.with_borrow_mut(|all| drop(all.pop()));
    }
}

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Cancellation {
        Cancellation(Arc::default())
    }

    /// Call `function` so that `cancel` stops its work; raise an error if already cancelled.
    fn run<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("the call was cancelled before it began"));
        }
        OF_THREAD.with_borrow_mut(|all| all.push(Arc::clone(&self.0)));
        let _innermost = Innermost;
        function.call0()
    }

    /// Stop the work of calls under this cancellation soon.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
