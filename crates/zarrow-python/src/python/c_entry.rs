//! What stands between a function that C calls and the Rust that answers: errors become exceptions, panics too.
//!
//! PyO3 does this for its own methods; here it is for functions whose C signature PyO3 does not know.

use pyo3::panic::PanicException;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `body` returns; `None` with the exception set where it fails.
///
/// # Safety
/// The thread is attached to the interpreter, and `body` keeps nothing of its lifetime.
pub unsafe fn enter<'py, T>(body: impl FnOnce(Python<'py>) -> PyResult<T>) -> Option<T> {
    // SAFETY: the caller is attached. PyO3 does not know of it, so that objects that are dropped without a token are
    // freed with the next call through PyO3.
    let py = unsafe { Python::assume_attached() };
    let raised = match catch_unwind(AssertUnwindSafe(|| body(py))) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error,
        Err(payload) => {
            // Dropping the payload could panic again, with nobody to catch it.
            std::mem::forget(payload);
            PanicException::new_err("zarrow panicked: its standard error says where")
        }
    };
    // What an error before this one let go of: where nothing else calls through PyO3, it would never be freed.
    Python::try_attach(|_| ());
    raised.restore(py);
    None
}
