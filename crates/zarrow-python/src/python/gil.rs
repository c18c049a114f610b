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

/// As [`with`], for work that takes `value`; gives `value` back where the interpreter has ended.
pub fn with_value<V>(value: V, work: impl FnOnce(Python<'_>, V)) -> Option<V> {
    let mut value = Some(value);
    with(|py| {
        if let Some(value) = value.take() {
            work(py, value);
        }
    });
    value
}

/// Runs `work` without the GIL, whoever has it: work whose other threads may need it.
///
/// PyO3 takes the thread for one that has it still: in `work` only [`with`] may take it.
pub fn without<T>(work: impl FnOnce() -> T) -> T {
    struct Taken(ffi::PyGILState_STATE);
    impl Drop for Taken {
        fn drop(&mut self) {
            // SAFETY: the state was given on this thread, which has the GIL again.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    struct LetGo(*mut ffi::PyThreadState);
    impl Drop for LetGo {
        fn drop(&mut self) {
            // SAFETY: the state is that which this thread has let go, where `work` unwinds too.
            unsafe { ffi::PyEval_RestoreThread(self.0) };
        }
    }
    // SAFETY: the function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return work();
    }
    // Whether the thread has the GIL cannot be asked for in the stable ABI: taken here, it has it.
    // SAFETY: the interpreter is there.
    let _taken = Taken(unsafe { ffi::PyGILState_Ensure() });
    // SAFETY: this thread has the GIL.
    let _let_go = LetGo(unsafe { ffi::PyEval_SaveThread() });
    work()
}
