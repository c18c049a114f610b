//! The GIL in calls from other libraries, which may have released it.
//!
//! PyO3 assumes that a thread inside one of its functions holds the GIL. But such a function may have called a
//! library that released the GIL and then calls us: for a batch of a stream, or to drop borrowed memory. Only
//! Python itself knows then.
//!
//! A thread that releases the GIL while the interpreter ends never gets it back: up to Python 3.13 the thread is
//! killed as it waits, by unwinding its stack, and nothing may be dropped during that. [`Ended`] blocks the thread
//! first, as Python 3.14 does.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::generation;

/// Number of our threads that are calling Python.
static TELLING: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter has begun to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Guard of one of our threads that calls Python. The interpreter does not end while it lives: it would free the
/// state of a thread that is releasing the GIL.
pub struct Telling;

impl Telling {
    /// Creates the guard; `None` if the interpreter has begun to end.
    pub fn begin() -> Option<Telling> {
        TELLING.fetch_add(1, Ordering::SeqCst);
        let telling = Telling;
        (!ENDS.load(Ordering::SeqCst)).then_some(telling)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes the interpreter wait at exit until no [`Telling`] guard lives, for at most a second.
pub fn wait_at_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let process = generation();
    let wait = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        ENDS.store(true, Ordering::SeqCst);
        let start = Instant::now();
        arguments.py().detach(|| {
            // A forked child has none of the counted threads.
            while TELLING.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE && process == generation()
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    };
    let wait = PyCFunction::new_closure(module.py(), None, None, wait)?;
    module.py().import("atexit")?.call_method1("register", (wait,)).map(drop)
}

/// Blocks a thread that Python kills, until the process ends. On success it is forgotten.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        // A panic also unwinds, and must continue.
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

/// Runs `work` with the GIL, even if another library has released it; `None` if the interpreter has ended.
pub fn with<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: this function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: the interpreter is initialized, and the state is released below on this thread.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // Now PyO3's assumption holds, or it takes the GIL once more.
    let result = Python::try_attach(|py| {
        let ended = Ended;
        let result = work(py);
        std::mem::forget(ended);
        result
    });
    // SAFETY: the state was returned above, and only the result of `work` is left.
    unsafe { ffi::PyGILState_Release(state) };
    result
}

/// Calls `function`, which may release the GIL, on one of our threads or on a daemon thread: if Python kills the
/// thread during the call, no argument is dropped.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    call_with(function, arguments, None)
}

/// Like [`call`], with keyword arguments.
pub fn call_with<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Object = *mut ffi::PyObject;
    let call = ffi::PyObject_Call as unsafe extern "C" fn(Object, Object, Object) -> Object;
    // SAFETY: the two calling conventions differ only in that the second may unwind, which this call does at exit.
    let call: unsafe extern "C-unwind" fn(Object, Object, Object) -> Object =
        unsafe { std::mem::transmute(call) };
    // If the compiler could see which function this is, it would assume that it never unwinds.
    let call = std::hint::black_box(call);
    let ended = Ended;
    // SAFETY: both objects are alive, and this thread holds the GIL.
    let result = unsafe {
        call(function.as_ptr(), arguments.as_ptr(), named.map_or(std::ptr::null_mut(), Bound::as_ptr))
    };
    std::mem::forget(ended);
    // SAFETY: the call returned a new reference, or null and an error.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
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
