//! Consumer side of the buffer protocol.
//!
//! 1. A strided view with its format is requested; the object may refuse, as NumPy does for dates.
//! 2. The format decides the element type; for unknown formats, other protocols are tried.
//! 3. The view's description is checked.
//!
//! Source: PEP 3118 and "Buffer Protocol" of the C API.

use super::buffer_view::BufferView;
use super::{NotShareable, SharedMemory};
use crate::python::error::Raise;
use crate::python::interpreter_exit;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ffi::CStr;
use std::sync::Arc;
use zarrow_array::import::element::Element;
use zarrow_array::{Error, ForeignMemory, ForeignStrides, SharedBytes, SharedTensor};

/// Maximum number of axes of a buffer, as in CPython.
const MAX_NDIM: usize = 64;

// Shape and strides of a buffer are read as `i64` slices.
const _: () = assert!(size_of::<ffi::Py_ssize_t>() == size_of::<i64>());

/// Returns whether `object` has a buffer that is memory: that of text or bytes counts as a value.
pub fn is_borrowed(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached, with a live object.
    let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    has_buffer && !object.is_instance_of::<PyBytes>() && !object.is_instance_of::<PyString>()
}

/// Returns the memory of `object`; `None` if it refuses, or if its element type is not supported.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<SharedMemory>> {
    let view = match BufferView::new(object, ffi::PyBUF_RECORDS_RO) {
        Ok(view) => view,
        Err(refused) if is_refusal(object.py(), &refused) => return Ok(None),
        Err(other) => return Err(other),
    };
    from_view(object.py(), view)
}

/// Returns whether the object refused to export a buffer of the requested kind.
fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
}

/// Steps 2 and 3.
fn from_view(py: Python<'_>, view: Arc<BufferView>) -> PyResult<Option<SharedMemory>> {
    let buffer = view.get();
    let format = match buffer.format.is_null() {
        true => b"B",
        // SAFETY: a format is a C string that lives as long as the view.
        false => unsafe { CStr::from_ptr(buffer.format) }.to_bytes(),
    };
    let element = usize::try_from(buffer.itemsize).ok().and_then(|size| Element::from_format(format, size));
    let Some(element) = element.filter(|_| buffer.suboffsets.is_null()) else { return Ok(None) };
    if element.is_swapped {
        return Ok(Some(SharedMemory::NotShareable(NotShareable::ByteOrder)));
    }
    let ndim = usize::try_from(buffer.ndim).ok().filter(|ndim| *ndim <= MAX_NDIM);
    let ndim = ndim.ok_or_else(|| {
        PyBufferError::new_err(format!("expected a buffer with 0 to 64 axes, got {}", buffer.ndim))
    })?;
    // SAFETY: a non-null shape and non-null strides have `ndim` numbers, and live as long as the view.
    let axes = |axes: *mut ffi::Py_ssize_t| unsafe {
        (!axes.is_null()).then(|| std::slice::from_raw_parts(axes.cast_const().cast::<i64>(), ndim))
    };
    let line = [buffer.len as i64 / buffer.itemsize as i64];
    let shape = match axes(buffer.shape) {
        Some(shape) => shape,
        // Without a shape there is at most one axis.
        None => &line[..ndim.min(1)],
    };
    let strides = axes(buffer.strides).map_or(ForeignStrides::COrder, ForeignStrides::Bytes);
    let (pointer, read_only) = (buffer.buf.cast(), buffer.readonly != 0);
    match ForeignMemory::check(pointer, shape, strides, element.dtype, read_only) {
        Err(Error::UnevenStride { .. }) => Ok(Some(SharedMemory::NotShareable(NotShareable::Strides))),
        memory => {
            let memory = memory.raise(py)?;
            // SAFETY: the object keeps the memory of its view, as described, until the view is released, and allows
            // writing unless the view is read-only.
            let tensor = unsafe { SharedTensor::from_foreign(memory, view.clone()) };
            Ok(Some(SharedMemory::Shared(tensor)))
        }
    }
}

/// Returns the bytes of an object with a contiguous buffer.
pub fn bytes(object: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    interpreter_exit::guard_thread();
    let view = BufferView::new(object, ffi::PyBUF_SIMPLE)?;
    let (pointer, length) = (view.get().buf.cast_const().cast(), view.get().len.max(0) as usize);
    // SAFETY: the object keeps the bytes of its view until the view is released. If a program writes to them
    // concurrently, readers see a mixture of old and new bytes, as with NumPy.
    unsafe { SharedBytes::from_foreign(view, pointer, length) }.raise(object.py())
}
