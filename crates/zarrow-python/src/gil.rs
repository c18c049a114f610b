//! The GIL for what other libraries call: they may have let it go.
//!
//! PyO3 takes a thread that one of its functions is running on for one that has the GIL. Such a function may have called
//! a library that let it go and then calls us: for a batch of a stream, or to drop what it borrowed. Only Python itself
//! knows then.

use pyo3::ffi;
use pyo3::prelude::*;

/// Runs `work` with the GIL, whoever let it go; `None` where the interpreter has ended.
pub fn with<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: the function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: the interpreter is there, and the state is released below on this thread.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // Now PyO3 is right, or takes the GIL once more.
    let result = Python::try_attach(work);
    // SAFETY: the state was given above, and nothing of `work` is left but its result.
    unsafe { ffi::PyGILState_Release(state) };
    result
}
