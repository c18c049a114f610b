//! The buffer protocol, from the side of the one who asks.
//!
//! 1. A view of any strides is asked for, with its format; the object may refuse, as NumPy's dates do.
//! 2. The format says what an element is, or nothing that is known here.
//! 3. What it says of its memory is checked.
//!
//! Source: PEP 3118 and "Buffer Protocol" of the C API.

use super::owner::BufferView;
use super::{Lent, Odd};
use crate::python::error::Raise;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ffi::CStr;
use std::sync::Arc;
use zarrow_array::import::element::Element;
use zarrow_array::{Error, ForeignMemory, ForeignStrides, SharedBytes, SharedTensor};

/// The most axes of a buffer, as in C Python.
const MAX_NDIM: usize = 64;

// What a buffer says of its axes is read as it lies.
const _: () = assert!(size_of::<ffi::Py_ssize_t>() == size_of::<i64>());

/// Whether `object` has a buffer that is memory: text has one too, which is a value.
pub fn is_lent(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached, with a live object.
    let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    has_buffer && !object.is_instance_of::<PyBytes>() && !object.is_instance_of::<PyString>()
}

/// The memory of `object`, which is lent; `None` where it refuses, or where its elements have no type here.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<Lent>> {
    let view = match BufferView::new(object, ffi::PyBUF_RECORDS_RO) {
        Ok(view) => view,
        Err(refused) if is_refusal(object.py(), &refused) => return Ok(None),
        Err(other) => return Err(other),
    };
    of_view(object.py(), view)
}

/// Whether an object said that it has no buffer of this kind.
fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
}

/// Steps 2 and 3.
fn of_view(py: Python<'_>, view: Arc<BufferView>) -> PyResult<Option<Lent>> {
    let buffer = view.get();
    let format = match buffer.format.is_null() {
        true => b"B",
        // SAFETY: a format is a string of C that lives as long as the view.
        false => unsafe { CStr::from_ptr(buffer.format) }.to_bytes(),
    };
    let element = usize::try_from(buffer.itemsize).ok().and_then(|size| Element::of_format(format, size));
    let Some(element) = element.filter(|_| buffer.suboffsets.is_null()) else { return Ok(None) };
    if element.is_swapped {
        return Ok(Some(Lent::Odd(Odd::ByteOrder)));
    }
    let ndim = usize::try_from(buffer.ndim).ok().filter(|ndim| *ndim <= MAX_NDIM);
    let ndim = ndim.ok_or_else(|| {
        PyBufferError::new_err(format!("expected a buffer of 0 to 64 axes, got {}", buffer.ndim))
    })?;
    // SAFETY: a shape and strides that are not null have `ndim` numbers, and live as long as the view.
    let axes = |axes: *mut ffi::Py_ssize_t| unsafe {
        (!axes.is_null()).then(|| std::slice::from_raw_parts(axes.cast_const().cast::<i64>(), ndim))
    };
    let line = [buffer.len as i64 / buffer.itemsize as i64];
    let shape = match axes(buffer.shape) {
        Some(shape) => shape,
        // Without extents there is one axis, or none.
        None => &line[..ndim.min(1)],
    };
    let strides = axes(buffer.strides).map_or(ForeignStrides::COrder, ForeignStrides::Bytes);
    let (pointer, read_only) = (buffer.buf.cast(), buffer.readonly != 0);
    match ForeignMemory::check(pointer, shape, strides, element.dtype, read_only) {
        Err(Error::UnevenStride { .. }) => Ok(Some(Lent::Odd(Odd::Strides))),
        memory => {
            let memory = memory.raise(py)?;
            // SAFETY: the object keeps the memory of its view, as it described it, until it is released, and allows
            // writing unless it says otherwise.
            let tensor = unsafe { SharedTensor::from_foreign(memory, view.clone()) };
            Ok(Some(Lent::Shared(tensor)))
        }
    }
}

/// The bytes of an object whose buffer is contiguous.
pub fn bytes(object: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    let view = BufferView::new(object, ffi::PyBUF_SIMPLE)?;
    let (pointer, length) = (view.get().buf.cast_const().cast(), view.get().len.max(0) as usize);
    // SAFETY: the object keeps the bytes of its view until it is released. A program that writes to them meanwhile
    // is seen as with NumPy: some bytes old, some new.
    unsafe { SharedBytes::from_foreign(view, pointer, length) }.raise(object.py())
}
