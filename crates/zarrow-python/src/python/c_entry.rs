//! Entry points for C: converts errors and panics to exceptions.
//!
//! PyO3 does this for its own methods; this is for functions with C signatures that PyO3 does not know.

use crate::python::interpreter_exit;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the result of `body`, or `None` with the exception set.
///
/// # Safety
/// The thread must be attached to the interpreter, and `body` must not keep anything of its lifetime.
pub unsafe fn enter<'py, T>(body: impl FnOnce(Python<'py>) -> PyResult<T>) -> Option<T> {
    // SAFETY: the caller is attached. PyO3 does not know this, so objects dropped without a token are freed by the
    // next call through PyO3.
    let py = unsafe { Python::assume_attached() };
    interpreter_exit::guard_thread();
    let raised = match catch_unwind(AssertUnwindSafe(|| body(py))) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error,
        Err(payload) => {
            // Dropping the payload could panic again, uncaught.
            std::mem::forget(payload);
            PanicException::new_err("zarrow panicked: see its standard error")
        }
    };
    // Frees objects dropped by earlier errors; without another call through PyO3 they would leak.
    Python::try_attach(|_| ());
    raised.restore(py);
    None
}
