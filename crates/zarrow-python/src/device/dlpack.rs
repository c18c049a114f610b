//! The method `__dlpack__` of a device tensor.
//!
//! 1. `dl_device` of the CPU asks for a host copy, which waits for the device.
//! 2. Otherwise the consumer names the stream in which it uses the memory: None and 1 are the legacy default
//!    stream, 2 is the per-thread default stream, -1 asks for no synchronization, and other numbers are handles.
//!    The consumer's work is ordered after all earlier work on the memory, and the memory is not freed before it is
//!    done.
//!
//! Source: array API, `__dlpack__`.

use super::arguments;
use crate::python::capsule;
use crate::python::error::{Raise, exchange};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use zarrow_array::export::dlpack as host;
use zarrow_cuda::{DeviceTensor, Stream, export};
use zarrow_dlpack::DLDevice;

/// Returns the tensor in a capsule.
pub fn capsule<'py>(
    py: Python<'py>,
    tensor: &DeviceTensor,
    stream: Option<&Bound<'py, PyAny>>,
    is_versioned: bool,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let stream =
        consumer(stream)?.map(|stream| arguments::from_pytorch(py, stream, tensor.device())).transpose()?;
    let here = tensor.device().dlpack();
    match dl_device.map(|(kind, number)| DLDevice::new(kind, number)) {
        Some(DLDevice::CPU) => return on_host(py, tensor, is_versioned, copy),
        Some(other) if other != here => {
            let message =
                format!("the memory is on {here}, not on {other}: zarrow.gpu.asarray(x, device=) copies");
            return Err(exchange(py, "device", message));
        }
        _ => {}
    }
    let borrowed = match copy {
        Some(true) => py.detach(|| tensor.copy()).raise(py)?,
        _ => tensor.clone(),
    };
    let capsule = match (is_versioned, copy) {
        (true, Some(true)) => capsule::dlpack(py, export::versioned_copy(&borrowed).raise(py)?),
        (true, _) => capsule::dlpack(py, export::versioned(&borrowed).raise(py)?),
        (false, _) => capsule::dlpack(py, export::legacy(&borrowed).raise(py)?),
    }?;
    match stream {
        Some(stream) => py.detach(|| borrowed.lend_to(stream)).raise(py)?,
        None => borrowed.lend_unordered(),
    }
    Ok(capsule)
}

/// Step 2: returns the stream; `None` for no synchronization.
fn consumer(stream: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Stream>> {
    match stream {
        None => Ok(Some(Stream::LEGACY)),
        Some(number) if number.is_instance_of::<PyInt>() && !number.is_instance_of::<PyBool>() => {
            if number.eq(-1)? { Ok(None) } else { arguments::numbered(number).map(Some) }
        }
        Some(other) => {
            let message = format!("expected stream=None or an integer, got {}", other.get_type());
            Err(PyTypeError::new_err(message))
        }
    }
}

/// Step 1: returns a host copy in a capsule.
fn on_host<'py>(
    py: Python<'py>,
    tensor: &DeviceTensor,
    is_versioned: bool,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if copy == Some(false) {
        let message =
            "the memory is on a GPU, and exporting it to the CPU needs a copy, which copy=False forbids";
        return Err(exchange(py, "needs_copy", message));
    }
    let copied = py.detach(|| tensor.to_host()).raise(py)?;
    match is_versioned {
        true => capsule::dlpack(py, host::versioned_copy(&copied).raise(py)?),
        false => capsule::dlpack(py, host::legacy(&copied).raise(py)?),
    }
}
