//! Targets of references, opened from the stores that Python names.

use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use crate::python_store::references::ReferenceTarget;
use pyo3::prelude::*;

/// Return the objects of a folder in a store. Declare with `is_immutable` that an object never changes under its name.
#[pyfunction]
#[pyo3(signature = (store, folder = String::new(), is_immutable = false))]
pub fn _reference_target(
    py: Python<'_>,
    store: &Bound<'_, PyAny>,
    folder: String,
    is_immutable: bool,
) -> PyResult<ReferenceTarget> {
    let store = StoreLocation::from_python(store)?.open().raise(py)?;
    Ok(ReferenceTarget::new(store, folder, is_immutable))
}
