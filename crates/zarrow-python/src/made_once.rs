//! Python objects that are made once and kept.
//!
//! PyO3's own `get_or_init` lets the GIL go and takes it again while the cell counts as being filled. A process that
//! another thread forks just then finds it so for ever, and its first use of the cell would never end. Here:
//!
//! 1. The value is made while the cell is empty, by every thread that comes before it is there.
//! 2. It is put into the cell without letting the GIL go, and so between no fork's halves; the first one stays.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The value of the cell, which `make` gives where there is none yet.
pub fn made_once<'a, T>(
    cell: &'a PyOnceLock<T>,
    py: Python<'_>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    if let Some(value) = cell.get(py) {
        return Ok(value);
    }
    // Where another thread was first, this one's is dropped.
    let _ = cell.set(py, make()?);
    cell.get(py).ok_or_else(|| PyRuntimeError::new_err("a value that was made is not there"))
}

/// A name as Python has it, made once.
macro_rules! name {
    ($py:expr, $text:literal) => {{
        static NAME: pyo3::sync::PyOnceLock<pyo3::Py<pyo3::types::PyString>> = pyo3::sync::PyOnceLock::new();
        let make = || Ok(pyo3::types::PyString::intern($py, $text).unbind());
        $crate::made_once::made_once(&NAME, $py, make)?.bind($py)
    }};
}
pub(crate) use name;
