//! The cache of freed memory for new results.

use crate::python::argument::argument;
use crate::python::error::Raise;
use pyo3::prelude::*;

#[doc = help!("set_memory_cache")]
#[pyfunction]
pub fn set_memory_cache(#[pyo3(from_py_with = argument)] nbytes: usize) {
    zarrow_array::set_recycled_limit(nbytes);
}

#[doc = help!("release_memory")]
#[pyfunction]
pub fn release_memory(py: Python<'_>) -> PyResult<usize> {
    py.detach(zarrow_cuda::release_memory).raise(py)?;
    Ok(zarrow_array::release_recycled() + zarrow::release_idle())
}
