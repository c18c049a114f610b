//! The arguments `device=` and `stream=`.

use crate::python::error::{Attempt, Raise};
use crate::python::importing::import;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use zarrow_cuda::{Device, Stream};

/// Parses `device=`: `"cuda:1"`, `"cuda"` (the first device), 1, or a `torch.device`; `None` for `"cpu"`.
pub fn device(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Device>> {
    match ordinal(object)? {
        Some(ordinal) => object.py().detach(|| Device::get(ordinal)).raise(object.py()).map(Some),
        None => Ok(None),
    }
}

/// Like [`device`], but refuses `"cpu"`; None is the first device.
pub fn cuda_device(py: Python<'_>, object: Option<&Bound<'_, PyAny>>) -> PyResult<&'static Device> {
    match object.filter(|object| !object.is_none()) {
        None => py.detach(|| Device::get(0)).raise(py),
        Some(object) => device(object)?.ok_or_else(|| {
            PyValueError::new_err(
                "device=\"cpu\" is not a GPU: expected \"cuda:0\" (or another number) or \"cuda\"",
            )
        }),
    }
}

fn ordinal(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return object.extract().map(Some).map_err(|_| unknown(object));
    }
    // PyTorch's devices have this text form.
    let text = match object.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_owned(),
        Err(_) if object.hasattr("index")? && object.hasattr("type")? => {
            match (object.getattr("index")?.is_none(), object.str()?.to_str()?) {
                // Without an index it is PyTorch's current device.
                (true, "cuda") => {
                    let cuda = import(object.py(), "torch.cuda")?;
                    return cuda.call_method0("current_device")?.extract().map(Some);
                }
                (_, text) => text.to_owned(),
            }
        }
        Err(_) => return Err(unknown(object)),
    };
    match text.split_once(':').unwrap_or((&text, "0")) {
        ("cpu", "0") => Ok(None),
        ("cuda" | "gpu", number) => number.parse().map(Some).map_err(|_| unknown(object)),
        _ => Err(unknown(object)),
    }
}

fn unknown(object: &Bound<'_, PyAny>) -> PyErr {
    let shown = object.repr().map_or_else(|_| "not shown".to_owned(), |text| text.to_string());
    PyValueError::new_err(format!(
        "device is {shown}, expected \"cuda:0\" (or another number), \"cuda\" or \"cpu\""
    ))
}

/// Parses `stream=`: a number as in DLPack, or an object with a stream handle (from PyTorch, CuPy, Numba or
/// cuda.core).
pub fn stream(object: &Bound<'_, PyAny>) -> PyResult<Stream> {
    if object.is_instance_of::<PyBool>() {
        return Err(no_stream(object));
    }
    if object.is_instance_of::<PyInt>() {
        return numbered(object);
    }
    if let Some(handle) = object.getattr_opt("cuda_stream")? {
        let stream = from_handle(&handle)?;
        // PyTorch's own streams are never destroyed; an external stream belongs to another library.
        let is_own = object.get_type().name()? == "Stream";
        return Ok(if is_own { stream.that_lasts() } else { stream });
    }
    if let Some(handle) = object.getattr_opt("ptr")? {
        return from_handle(&handle);
    }
    match object.getattr_opt("__cuda_stream__")? {
        Some(method) => from_handle(&method.call0()?.get_item(1)?),
        None => Err(no_stream(object)),
    }
}

/// Returns the stream for a number as in DLPack and `__cuda_array_interface__`.
pub fn numbered(number: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let refused = |error: String| PyValueError::new_err(error);
    let handle: i64 = number
        .extract::<i64>()
        .attempt(number.py())?
        .ok_or_else(|| refused(format!("stream {number} is out of range")))?;
    Stream::from_number(handle).map_err(|error| refused(error.to_string()))
}

/// Marks a consumer's numbered stream as permanent if it is PyTorch's current one.
pub fn from_pytorch(py: Python<'_>, stream: Stream, device: &Device) -> PyResult<Stream> {
    if stream.lasts() {
        return Ok(stream);
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(cuda) = modules.get_item("torch.cuda")? else { return Ok(stream) };
    if !cuda.call_method0("is_initialized")?.is_truthy()? {
        return Ok(stream);
    }
    let current = cuda.call_method1("current_stream", (device.ordinal(),))?;
    let is_current = current.getattr("cuda_stream")?.extract::<usize>()? == stream.number();
    let is_own = current.get_type().name()? == "Stream";
    Ok(if is_current && is_own { stream.that_lasts() } else { stream })
}

/// Returns the stream for a driver handle; 0 is the legacy default stream.
pub fn from_handle(handle: &Bound<'_, PyAny>) -> PyResult<Stream> {
    match handle.extract::<i64>()? {
        0 => Ok(Stream::LEGACY),
        _ => numbered(handle),
    }
}

fn no_stream(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "stream is {}, expected a number (1 is the default stream), or a stream of PyTorch or CuPy",
        object.get_type()
    ))
}
