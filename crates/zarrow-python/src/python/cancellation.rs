//! Calls in threads that another thread stops: what an event loop runs beside it, and cancels.
//!
//! 1. `_Cancellation.run` calls a function, and notes on its thread that this cancellation is asked by the work of the
//!    engine that the function does, beside signals.
//! 2. `_Cancellation.cancel`, from any thread, stops that work soon: it ends as interrupted.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The cancellations of the calls that this thread is in, the innermost one last.
    static OF_THREAD: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// Whether a call that this thread is in was cancelled.
pub fn is_cancelled() -> bool {
    OF_THREAD.with_borrow(|all| all.iter().any(|flag| flag.load(Ordering::Relaxed)))
}

/// Stops calls that run under it.
#[pyclass(frozen, name = "_Cancellation", module = "zarrow")]
pub struct Cancellation(Arc<AtomicBool>);

/// Forgets the innermost cancellation, where the call unwinds too.
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

    /// Call `function` so that `cancel` stops its work; after `cancel` raise an error instead.
    fn run<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("the call was cancelled before it began"));
        }
        OF_THREAD.with_borrow_mut(|all| all.push(Arc::clone(&self.0)));
        let _innermost = Innermost;
        function.call0()
    }

    /// Stop the work of calls under it soon.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
