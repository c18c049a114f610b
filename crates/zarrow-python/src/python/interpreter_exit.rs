//! What happens to threads when the interpreter ends.
//!
//! 1. Our function in `atexit` runs before the interpreter ends. It waits until zarrow's own threads have left Python.
//! 2. Up to Python 3.13 the interpreter then ends other threads: a thread that waits for the GIL calls `pthread_exit`,
//!    which unwinds its stack. Python code that Rust called also waits for the GIL. Unwinding Rust's frames below it
//!    drops objects without the GIL, or aborts the process.
//! 3. `pthread_exit` first calls the thread's cleanup handlers. [`guard_thread`] registers one that blocks the thread
//!    until the process ends, as Python 3.14 does. Every call that may run Python code registers it before.
//! 4. `glibc` calls a handler when unwinding has passed the address of its record. A record on the heap is not on the
//!    thread's stack, so `glibc` calls its handler before it unwinds the first frame. `musl` does not unwind.
//!
//! Source: `pthread_cleanup_push` in POSIX; `unwind_stop` in `nptl/unwind.c` of `glibc`; `pthread_exit` of `musl`.

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::generation;

/// Number of our threads that are calling Python.
static CALLERS: AtomicUsize = AtomicUsize::new(0);

/// Whether the interpreter has begun to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Whether the functions in `atexit` run, or have run.
pub fn has_begun() -> bool {
    ENDS.load(Ordering::Relaxed)
}

/// Guard of one of our threads that calls Python. The interpreter does not end while it lives: it would free the
/// state of a thread that is releasing the GIL.
pub struct PythonCaller;

impl PythonCaller {
    /// Creates the guard; `None` if the interpreter has begun to end.
    pub fn begin() -> Option<PythonCaller> {
        CALLERS.fetch_add(1, Ordering::SeqCst);
        let caller = PythonCaller;
        (!ENDS.load(Ordering::SeqCst)).then_some(caller)
    }
}

impl Drop for PythonCaller {
    fn drop(&mut self) {
        CALLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes the interpreter wait at exit until no [`PythonCaller`] guard lives, for at most a second.
pub fn wait_at_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let process = generation();
    let wait = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        ENDS.store(true, Ordering::SeqCst);
        let start = Instant::now();
        arguments.py().detach(|| {
            // A forked child has none of the counted threads.
            while CALLERS.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE && process == generation()
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    };
    let wait = PyCFunction::new_closure(module.py(), None, None, wait)?;
    module.py().import("atexit")?.call_method1("register", (wait,)).map(drop)
}

/// Record of a cleanup handler. The C library writes it: 4 words in `glibc`, 3 in `musl`.
type Record = UnsafeCell<[usize; 4]>;

type Push = unsafe extern "C" fn(*mut Record, extern "C" fn(*mut c_void), *mut c_void);
type Pop = unsafe extern "C" fn(*mut Record, i32);

/// The cleanup handler of a thread, until the thread ends.
struct Handler {
    record: Box<Record>,
    pop: Pop,
}

impl Handler {
    /// Registers the handler of this thread; `None` if the C library lacks these functions.
    fn register() -> Option<Handler> {
        // SAFETY: both names end with NUL, and this handle means all libraries of the process.
        let (push, pop) = unsafe {
            (
                libc::dlsym(libc::RTLD_DEFAULT, c"_pthread_cleanup_push".as_ptr()),
                libc::dlsym(libc::RTLD_DEFAULT, c"_pthread_cleanup_pop".as_ptr()),
            )
        };
        if push.is_null() || pop.is_null() {
            return None;
        }
        // SAFETY: `glibc` and `musl` export these functions with these signatures, for code compiled by C compilers.
        let (push, pop) = unsafe {
            (std::mem::transmute::<*mut c_void, Push>(push), std::mem::transmute::<*mut c_void, Pop>(pop))
        };
        let handler = Handler { record: Box::new(UnsafeCell::new([0; 4])), pop };
        // SAFETY: the record has the size of the C library's, lives on the heap, and stays until `drop` removes it.
        unsafe { push((&raw const *handler.record).cast_mut(), block_at_exit, std::ptr::null_mut()) };
        Some(handler)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: the thread ends, so its handlers registered later are gone; 0 means not to call the handler.
        unsafe { (self.pop)((&raw const *self.record).cast_mut(), 0) };
    }
}

/// Blocks the thread if the interpreter ends it (step 3).
extern "C" fn block_at_exit(_: *mut c_void) {
    while ENDS.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Makes this thread block when the interpreter ends it, instead of unwinding. Only a thread's first call takes time.
pub fn guard_thread() {
    thread_local! {
        static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
        static HANDLER: Option<Handler> = Handler::register();
    }
    if !IS_GUARDED.replace(true) {
        // An ending thread has no handler any more, and runs no Python code.
        let _ = HANDLER.try_with(|_| ());
    }
}
