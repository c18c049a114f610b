//! Python objects that are created once and kept.
//!
//! PyO3's own cell is locked while the value is created. In a process forked by another thread at that moment it
//! stays locked, and the first use of the cell would never end. Here every thread that finds the cell empty creates
//! a value, and the first one is kept.

use pyo3::prelude::*;
use zarrow_array::fork::OnceCell;

/// Returns the value of the cell, calling `make` if it is empty.
pub fn made_once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
    match cell.get() {
        Some(value) => Ok(value),
        None => make().map(|value| cell.set(value)),
    }
}

/// An interned Python name, created once.
macro_rules! name {
    ($py:expr, $text:literal) => {{
        static NAME: zarrow_array::fork::OnceCell<pyo3::Py<pyo3::types::PyString>> =
            zarrow_array::fork::OnceCell::new();
        let make = || Ok(pyo3::types::PyString::intern($py, $text).unbind());
        $crate::python::made_once::made_once(&NAME, make)?.bind($py)
    }};
}
pub(crate) use name;
