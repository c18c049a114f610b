//! Long work without the GIL that Ctrl-C can stop.
//!
//! 1. The work runs detached from the interpreter, and checks from time to time whether to stop.
//! 2. For this check, the calling thread attaches again and runs Python's signal handlers, a few times a second:
//!    each check needs the GIL.
//! 3. An exception of a handler, usually `KeyboardInterrupt`, is raised at the end, whatever the work returned.
//! 4. Handlers only run on the main thread. Other threads must not attach for this, since a daemon thread may
//!    outlive the interpreter.

use crate::python::cancellation;
use crate::python::error::{Raise, warning};
use crate::python::gil;
use crate::python::importing::import;
use crate::python::interpreter_exit;
use crate::python::serving_thread::begin_call;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::thread::ThreadId;
use zarrow::store::remote::{interrupted_by, set_signal_check};
use zarrow::with_warnings;
use zarrow_array::fork::{OnceCell, generation};

/// Main thread of the process that imported the module.
static MAIN: OnceCell<(u64, ThreadId)> = OnceCell::new();

thread_local! {
    /// Exception of a handler that ran during a system call, or of a report, until the work around the call ends.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Records the main thread, and sets the check of interrupted system calls; called on the thread that imports the
/// module.
pub fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    set_signal_check(|| match check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    });
    let threading = import(py, "threading")?;
    if threading.call_method0("main_thread")?.is(threading.call_method0("current_thread")?) {
        MAIN.set((generation(), std::thread::current().id()));
    }
    Ok(())
}

/// Runs Python's signal handlers, if this thread can (step 4). In a forked child any thread may be the main thread.
fn check_signals() -> PyResult<()> {
    let is_other = MAIN
        .get()
        .is_some_and(|(process, main)| *process == generation() && *main != std::thread::current().id());
    if is_other { Ok(()) } else { Python::attach(|py| py.check_signals()) }
}

/// Calls a function of Python with how much is done, and how much there is; returns whether the work has to stop.
pub fn report(function: &Py<PyAny>, done: u64, count: u64) -> bool {
    match Python::attach(|py| function.call1(py, (done, count)).map(drop)) {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    }
}

/// Runs `work` without the GIL. Its argument returns whether to stop, and must be called on this thread.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> zarrow::Result<T> + Send,
) -> PyResult<T> {
    interruptible_with(py, work)
}

/// Like [`interruptible`], for other error types.
pub fn interruptible_with<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, E> + Send,
) -> PyResult<T>
where
    Result<T, E>: Raise<T>,
{
    interpreter_exit::guard_thread();
    let _call = begin_call(py);
    let (result, raised) = py.detach(|| {
        let raised = Cell::new(None);
        // The engine checks a few times a second, and never during short work.
        let interrupt = || match check_signals() {
            Ok(()) => cancellation::is_cancelled(),
            Err(error) => {
                raised.set(Some(error));
                true
            }
        };
        let result = work(&interrupt);
        (result, raised.into_inner().or_else(|| RAISED.take()))
    });
    match raised {
        Some(error) => Err(error),
        None => result.raise(py),
    }
}

/// Runs `work` without the GIL; it may wait for a remote store, and checks for Ctrl-C while it waits.
pub fn waiting<T: Send>(py: Python<'_>, work: impl FnOnce() -> zarrow::Result<T> + Send) -> PyResult<T> {
    changing(py, |_| work())
}

/// Runs `work` like [`interruptible`] and [`waiting`], and raises the warnings of its changes in Python.
pub fn changing<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> zarrow::Result<T> + Send,
) -> PyResult<T> {
    interpreter_exit::guard_thread();
    let _call = begin_call(py);
    let (result, warnings, raised) = py.detach(|| {
        let raised = Rc::new(Cell::new(None));
        let own = Rc::clone(&raised);
        let interrupt: Rc<dyn Fn() -> bool> = Rc::new(move || match check_signals() {
            Ok(()) => cancellation::is_cancelled(),
            Err(error) => {
                own.set(Some(error));
                true
            }
        });
        let shared = Rc::clone(&interrupt);
        let (result, warnings) = with_warnings(|| interrupted_by(interrupt, || work(&*shared)));
        (result, warnings, raised.take().or_else(|| RAISED.take()))
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let result = result.raise(py)?;
    warnings.iter().try_for_each(|message| warning(py, message))?;
    Ok(result)
}

/// Returns a check for work that another library starts later, on any thread and with or without the GIL.
///
/// Only the thread that calls this function checks for signals: it may take the GIL, since it either holds it or
/// has released it, while another thread could deadlock. The calling library does not know Python's exceptions, and
/// raises its own; an interrupt is raised after it, as soon as Python continues.
pub fn for_this_thread() -> Box<dyn Fn() -> bool + Send> {
    let own = std::thread::current().id();
    Box::new(move || {
        if std::thread::current().id() != own {
            return false;
        }
        let stop = gil::with(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                // SAFETY: this function may be called at any time: it sets a flag, like a signal.
                unsafe { ffi::PyErr_SetInterrupt() };
                true
            }
            Err(error) => {
                error.write_unraisable(py, None);
                true
            }
        });
        stop.unwrap_or(true)
    })
}
