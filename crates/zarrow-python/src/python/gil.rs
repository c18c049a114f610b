//! The GIL in calls from other libraries, which may have released it.
//!
//! PyO3 assumes that a thread inside one of its functions holds the GIL. But such a function may have called a
//! library that released the GIL and then calls us: for a batch of a stream, or to drop borrowed memory. Only
//! Python itself knows then.
//!
//! A thread that waits for the GIL while the interpreter ends never gets it: see [`interpreter_exit`].

use crate::python::interpreter_exit;
use pyo3::ffi;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A value with references to Python objects, which is dropped with the GIL. After the interpreter has ended, it is
/// leaked.
#[derive(Debug)]
pub struct Kept<T>(ManuallyDrop<T>);

impl<T> Kept<T> {
    /// Keeps `value`.
    pub fn new(value: T) -> Kept<T> {
        Kept(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: the value is taken here alone, once.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        std::mem::forget(with_value(value, |_, value| drop(value)));
    }
}

/// Runs `work` with the GIL, even if another library has released it; `None` if the interpreter has ended.
pub fn with<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: this function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    interpreter_exit::guard_thread();
    // SAFETY: the interpreter is initialized, and the state is released below on this thread.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // Now PyO3's assumption holds, or it takes the GIL once more.
    let result = Python::try_attach(work);
    // SAFETY: the state was returned above, and only the result of `work` is left.
    unsafe { ffi::PyGILState_Release(state) };
    result
}

/// Like [`with`], for work that takes `value`; returns `value` if the interpreter has ended.
pub fn with_value<V>(value: V, work: impl FnOnce(Python<'_>, V)) -> Option<V> {
    let mut value = Some(value);
    with(|py| {
        if let Some(value) = value.take() {
            work(py, value);
        }
    });
    value
}

/// Runs `work` without the GIL, because threads that it waits for may need it.
///
/// PyO3 assumes that this thread still holds the GIL: `work` may only take it by [`with`].
pub fn without<T>(work: impl FnOnce() -> T) -> T {
    struct Taken(ffi::PyGILState_STATE);
    impl Drop for Taken {
        fn drop(&mut self) {
            // SAFETY: the state was returned on this thread, which holds the GIL again.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    struct LetGo(*mut ffi::PyThreadState);
    impl Drop for LetGo {
        fn drop(&mut self) {
            // SAFETY: this thread saved the state below; this also holds if `work` unwinds.
            unsafe { ffi::PyEval_RestoreThread(self.0) };
        }
    }
    // SAFETY: this function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return work();
    }
    // The stable ABI cannot tell whether this thread holds the GIL; after taking it here, it does.
    // SAFETY: the interpreter is initialized.
    let _taken = Taken(unsafe { ffi::PyGILState_Ensure() });
    // SAFETY: this thread holds the GIL.
    let _let_go = LetGo(unsafe { ffi::PyEval_SaveThread() });
    work()
}
