//! Long work without the GIL that Ctrl-C can stop.
//!
//! 1. The work runs detached from the interpreter, and asks now and then whether to stop.
//! 2. To answer, the calling thread attaches again and lets Python's signal handlers run, a few times a second:
//!    each time costs the GIL.
//! 3. What a handler raised, usually `KeyboardInterrupt`, is raised in the end, whatever the work returned.

use crate::error::Raise;
use pyo3::prelude::*;
use std::cell::Cell;

/// Runs `work` without the GIL; what it is given says whether to stop, and is called on this thread only.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> zarrow::Result<T> + Send,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let raised = Cell::new(None);
        // The engine asks a few times a second, and not at all in short work.
        let interrupt = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
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
