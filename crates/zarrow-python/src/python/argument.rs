//! Refusal of arguments with Python's wording; PyO3 adds the name of the parameter as a note.

use crate::python::error::indexing;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Parses a flag: `#[pyo3(from_py_with = flag)]`.
pub fn flag(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.extract() {
        Ok(flag) => Ok(flag),
        Err(_) => Err(refused(object, "True or False")),
    }
}

/// Casts an argument to a dict.
pub fn dict<'a, 'py>(object: &'a Bound<'py, PyAny>, name: &str) -> PyResult<&'a Bound<'py, PyDict>> {
    object.cast::<PyDict>().map_err(|_| refused(object, &format!("a dict as {name}")))
}

/// Returns the index of an axis, which may be counted from the end.
pub fn axis_to_append(py: Python<'_>, axis: isize, ndim: usize) -> PyResult<usize> {
    if ndim == 0 {
        return Err(indexing(py, "an array of shape () has no axis to append along"));
    }
    let counted = if axis < 0 { ndim.checked_add_signed(axis) } else { usize::try_from(axis).ok() };
    counted.filter(|axis| *axis < ndim).ok_or_else(|| {
        let most = ndim - 1;
        indexing(py, format!("axis {axis} of an array of {ndim} axes: expected -{ndim} to {most}"))
    })
}

fn refused(object: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    match object.get_type().name() {
        Ok(found) => PyTypeError::new_err(format!("expected {expected}, got {found}")),
        Err(error) => error,
    }
}
