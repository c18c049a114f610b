//! `__cuda_array_interface__`, version 3, of a device tensor.
//!
//! The call waits for the device, since some consumers ignore the stream in the dictionary (PyTorch). The
//! dictionary owns nothing: the consumer must keep the tensor alive while it uses the memory, and does not name its
//! stream.
//!
//! Source: Numba, "CUDA Array Interface (Version 3)".

use crate::export::array_interface;
use crate::python::error::Raise;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarrow_cuda::DeviceTensor;

/// Describes the memory by its address.
pub fn describe<'py>(py: Python<'py>, tensor: &DeviceTensor) -> PyResult<Bound<'py, PyDict>> {
    let Some(description) = array_interface::elements(py, tensor.dtype(), tensor.item_size())? else {
        let message = format!("__cuda_array_interface__ has no type code for {}: use DLPack", tensor.dtype());
        return Err(PyAttributeError::new_err(message));
    };
    let strides = match tensor.is_c_contiguous() {
        true => None,
        false => Some(PyTuple::new(py, tensor.byte_strides())?),
    };
    // The protocol requires address 0 for empty arrays.
    let address = if tensor.size() == 0 { 0 } else { tensor.address() };
    description.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
    description.set_item("strides", strides)?;
    description.set_item("data", (address, tensor.is_read_only()))?;
    description.set_item("stream", py.None())?;
    tensor.lend_unordered();
    py.detach(|| tensor.device().synchronize()).raise(py)?;
    Ok(description)
}
