//! NumPy's `__array_interface__`, version 3.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarrow_array::SharedTensor;

/// The description of the memory by its address.
///
/// A type that NumPy has no code for is an `AttributeError`: NumPy would take `V2` for it, and never ask
/// `__array__`.
pub fn describe<'py>(py: Python<'py>, tensor: &SharedTensor) -> PyResult<Bound<'py, PyDict>> {
    let Some(code) = tensor.dtype().numpy_code() else {
        let message = format!("NumPy has no type code for {}: call .numpy()", tensor.dtype());
        return Err(PyAttributeError::new_err(message));
    };
    let order = match tensor.dtype().word_size() {
        1 => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    let item_size = tensor.item_size() as i64;
    let strides = tensor.strides().iter().map(|stride| stride * item_size);
    let description = PyDict::new(py);
    description.set_item("version", 3)?;
    description.set_item("typestr", format!("{order}{code}"))?;
    description.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
    description.set_item("strides", PyTuple::new(py, strides.collect::<Vec<i64>>())?)?;
    description.set_item("data", (tensor.pointer().as_ptr().addr(), tensor.is_read_only()))?;
    Ok(description)
}
