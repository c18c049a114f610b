//! The GIL for what other libraries call: they may have let it go.
//!
//! PyO3 takes a thread that one of its functions is running on for one that has the GIL. Such a function may have called
//! a library that let it go and then calls us: for a batch of a stream, or to drop what it borrowed. Only Python itself
//! knows then.

//!
//! A thread that lets the GIL go while the interpreter ends never gets it back: up to Python 3.13 it is ended where it waits,
//! by unwinding its stack, on which nothing may be dropped then. [`Ended`] stops it before, as Python 3.14 does.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::generation;

/// Threads of ours that tell Python something.
static TELLING: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter has begun to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Guard of a thread of ours that tells Python something. The interpreter does not end while it lives: it would free the state
/// of a thread that is just letting go of the GIL.
pub struct Telling;

impl Telling {
    /// The guard; `None` if the interpreter has begun to end.
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

/// Has the interpreter wait at its end until no thread is [`Telling`], for a second at most.
pub fn wait_at_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let process = generation();
    let wait = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        ENDS.store(true, Ordering::SeqCst);
        let start = Instant::now();
        arguments.py().detach(|| {
            // A forked child has none of the threads that are counted.
            while TELLING.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE && process == generation()
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    };
    let wait = PyCFunction::new_closure(module.py(), None, None, wait)?;
    module.py().import("atexit")?.call_method1("register", (wait,)).map(drop)
}

/// Holds a thread that Python ends, until the process ends. Where all goes well it is forgotten.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        // A panic unwinds too, and goes on.
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

/// Runs `work` with the GIL, whoever let it go; `None` where the interpreter has ended.
pub fn with<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: the function may be called at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: the interpreter is there, and the state is released below on this thread.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // Now PyO3 is right, or takes the GIL once more.
    let result = Python::try_attach(|py| {
        let ended = Ended;
        let result = work(py);
        std::mem::forget(ended);
        result
    });
    // SAFETY: the state was given above, and nothing of `work` is left but its result.
    unsafe { ffi::PyGILState_Release(state) };
    result
}

/// Calls `function`, which may let the GIL go, on a thread of ours or on a daemon thread: if Python ends the thread
/// meanwhile, none of the arguments is dropped.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    call_with(function, arguments, None)
}

/// As [`call`], with named arguments.
pub fn call_with<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Object = *mut ffi::PyObject;
    let call = ffi::PyObject_Call as unsafe extern "C" fn(Object, Object, Object) -> Object;
    // SAFETY: the two conventions differ only in that a call of the second may unwind, as this one does at the end.
    let call: unsafe extern "C-unwind" fn(Object, Object, Object) -> Object =
        unsafe { std::mem::transmute(call) };
    // Where the compiler sees which function this is, it takes it for one that never unwinds.
    let call = std::hint::black_box(call);
    let ended = Ended;
    // SAFETY: both objects are there, and this thread has the GIL.
    let result = unsafe {
        call(function.as_ptr(), arguments.as_ptr(), named.map_or(std::ptr::null_mut(), Bound::as_ptr))
    };
    std::mem::forget(ended);
    // SAFETY: the call gave a reference of its own, or null and an error.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
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
