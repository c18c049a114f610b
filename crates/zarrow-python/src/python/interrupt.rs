//! Long work without the GIL that Ctrl-C can stop.
//!
//! 1. The work runs detached from the interpreter, and asks now and then whether to stop.
//! 2. To answer, the calling thread attaches again and lets Python's signal handlers run, a few times a second:
//!    each time costs the GIL.
//! 3. What a handler raised, usually `KeyboardInterrupt`, is raised in the end, whatever the work returned.
//! 4. Handlers run on the main thread alone. Others have no reason to attach, and might do so when the interpreter is gone:
//!    a daemon thread may outlive it.

use crate::python::cancellation;
use crate::python::error::{Raise, warning};
use crate::python::gil;
use crate::python::importing::import;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::thread::ThreadId;
use zarrow::store::remote::interrupted_by;
use zarrow::with_warnings;
use zarrow_array::fork::{OnceCell, generation};

/// The main thread of the process that imported the module.
static MAIN: OnceCell<(u64, ThreadId)> = OnceCell::new();

/// Notes which thread is the main one; called on the thread that imports the module.
pub fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    let threading = import(py, "threading")?;
    if threading.call_method0("main_thread")?.is(threading.call_method0("current_thread")?) {
        MAIN.set((generation(), std::thread::current().id()));
    }
    Ok(())
}

/// Lets Python's signal handlers run, where they can on this thread (step 4). In a forked child any thread may be the main
/// one.
fn check_signals() -> PyResult<()> {
    let is_other = MAIN
        .get()
        .is_some_and(|(process, main)| *process == generation() && *main != std::thread::current().id());
    if is_other { Ok(()) } else { Python::attach(|py| py.check_signals()) }
}

/// Runs `work` without the GIL; what it is given says whether to stop, and is called on this thread only.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> zarrow::Result<T> + Send,
) -> PyResult<T> {
    interruptible_with(py, work)
}

/// As [`interruptible`], for work with errors of its own.
pub fn interruptible_with<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, E> + Send,
) -> PyResult<T>
where
    Result<T, E>: Raise<T>,
{
    let (result, raised) = py.detach(|| {
        let raised = Cell::new(None);
        // The engine asks a few times a second, and not at all in short work.
        let interrupt = || match check_signals() {
            Ok(()) => cancellation::is_cancelled(),
            Err(error) => {
                raised.set(Some(error));
                true
            }
        };
        let result = work(&interrupt);
        (result, raised.into_inner())
    });
    match raised {
        Some(error) => Err(error),
        None => result.raise(py),
    }
}

/// Runs `work` without the GIL, in which this thread may wait for a store that is far away: as long as it waits it looks for
/// Ctrl-C.
pub fn waiting<T: Send>(py: Python<'_>, work: impl FnOnce() -> zarrow::Result<T> + Send) -> PyResult<T> {
    changing(py, |_| work())
}

/// Runs `work` as [`interruptible`] and [`waiting`] do, and raises the warnings of its changes in Python.
pub fn changing<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> zarrow::Result<T> + Send,
) -> PyResult<T> {
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
        let asked = Rc::clone(&interrupt);
        let (result, warnings) = with_warnings(|| interrupted_by(interrupt, || work(&*asked)));
        (result, warnings, raised.take())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let result = result.raise(py)?;
    warnings.iter().try_for_each(|message| warning(py, message))?;
    Ok(result)
}

/// Whether to stop, for work that another library starts later, from whichever thread and with or without the GIL.
///
/// Only the thread that this is called on is asked for signals: it may take the GIL, since it either has it or lets it
/// go, where another thread could wait for one that waits for it. The library that called knows
/// nothing of Python's exceptions, and raises its own; an interruption is raised after it, as soon as Python goes on.
pub fn of_this_thread() -> Box<dyn Fn() -> bool + Send> {
    let own = std::thread::current().id();
    Box::new(move || {
        if std::thread::current().id() != own {
            return false;
        }
        let stop = gil::with(|py| match py.check_signals() {
            Ok(()) => false,
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                // SAFETY: the function may be called at any time: it sets a flag, as a signal would.
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
