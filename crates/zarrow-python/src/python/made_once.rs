//! Python objects that are made once and kept.
//!
//! PyO3's own cell counts as being filled while the value is made. A process that another thread forks just then finds it
//! so for ever, and its first use of the cell would never end. Here every thread that comes before the value is there makes
//! one, and the first one stays.

use pyo3::prelude::*;
use zarrow_array::fork::OnceCell;

/// The value of the cell, which `make` gives where there is none yet.
pub fn made_once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
    match cell.get() {
        Some(value) => Ok(value),
        None => make().map(|value| cell.set(value)),
    }
}

/// A name as Python has it, made once.
macro_rules! name {
    ($py:expr, $text:literal) => {{
        static NAME: zarrow_array::fork::OnceCell<pyo3::Py<pyo3::types::PyString>> =
            zarrow_array::fork::OnceCell::new();
        let make = || Ok(pyo3::types::PyString::intern($py, $text).unbind());
        $crate::python::made_once::made_once(&NAME, make)?.bind($py)
    }};
}
pub(crate) use name;
