//! The argument `out=`: another library's array to fill.
//!
//! Its shape and type must be those of the result; its memory must be writable, without overlapping elements.

use crate::export::{data_type, numpy};
use crate::import;
use crate::index::field::ElementPart;
use crate::layout::decoded_array::wrap;
use crate::python::error::{data_type_error, exchange, unsupported};
use crate::python::interrupt::interruptible;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use zarrow::{Selection, Strided};
use zarrow_array::{DataType, SharedTensor};

/// Target memory and its owner.
pub struct Out {
    /// The memory.
    pub strided: Strided,
    tensor: SharedTensor,
}

impl Out {
    /// Returns the memory of `object`, for a result of this type and shape.
    pub fn new(object: &Bound<'_, PyAny>, dtype: &DataType, shape: &[u64]) -> PyResult<Out> {
        let out = Out::with_any_shape(object, dtype)?;
        let extents: Vec<u64> = out.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        if extents != shape {
            let message = format!("out has shape {extents:?}, but the selection has shape {shape:?}");
            return Err(PyValueError::new_err(message));
        }
        Ok(out)
    }

    /// Returns the memory of `object`, for elements of this type.
    pub fn with_any_shape(object: &Bound<'_, PyAny>, dtype: &DataType) -> PyResult<Out> {
        let py = object.py();
        if dtype.item_size().is_none() || matches!(dtype, DataType::Optional(_)) {
            return Err(unsupported(py, format!("reading elements of {dtype} into out=")));
        }
        let tensor = import::tensor(object).map_err(|error| named(py, error, object))?;
        if tensor.is_read_only() {
            return Err(exchange(py, "read_only", "out is read-only, or does not declare itself writable"));
        }
        if tensor.dtype() != dtype && !is_same_to_numpy(py, tensor.dtype(), dtype)? {
            let message = format!(
                "out has type {own}, but the array has type {dtype}: pass dtype=out.dtype too to convert numbers \
                 as they are read",
                own = tensor.dtype()
            );
            return Err(data_type_error(py, message));
        }
        Ok(Out { strided: strided(&tensor)?, tensor })
    }

    /// Returns the extents.
    pub fn shape(&self) -> &[i64] {
        self.tensor.shape()
    }
}

/// Adds the name of the argument to the error of unsuitable memory.
fn named(py: Python<'_>, error: PyErr, object: &Bound<'_, PyAny>) -> PyErr {
    if !error.get_type(py).is(py.get_type::<PyTypeError>()) {
        // One of our exceptions, with store and kind.
        return match error.value(py).call_method1("add_note", ("while processing 'out'",)) {
            Ok(_) => error,
            Err(other) => other,
        };
    }
    let kind = object.get_type();
    let message = format!(
        "out is {kind}, expected an array with writable memory: from NumPy, PyTorch, or anything that exposes a \
         buffer, DLPack or __array_interface__"
    );
    PyTypeError::new_err(message)
}

/// Returns whether `found` is NumPy's structure for a complex number `dtype` unknown to NumPy and `ml_dtypes`.
fn is_same_to_numpy(py: Python<'_>, found: &DataType, dtype: &DataType) -> PyResult<bool> {
    if !matches!((found, dtype), (DataType::Struct(_), DataType::Number(_))) {
        return Ok(false);
    }
    let element = data_type::from_numpy(&numpy::dtype(py, dtype)?)?;
    Ok(element.is_some_and(|element| element.dtype == *found))
}

/// Returns the elements, which must not overlap, from the lowest address on.
fn strided(tensor: &SharedTensor) -> PyResult<Strided> {
    let overlap = || {
        PyValueError::new_err(
            "elements of out overlap, as in a broadcast view: pass an array without overlap",
        )
    };
    let item_size = tensor.item_size() as isize;
    let strides: Option<Vec<isize>> =
        tensor.strides().iter().map(|stride| (*stride as isize).checked_mul(item_size)).collect();
    let strides = strides.ok_or_else(overlap)?;
    if tensor.size() == 0 {
        return Ok(Strided::new(std::ptr::null_mut(), 0, 0, strides));
    }
    let mut axes: Vec<(isize, isize)> = tensor
        .shape()
        .iter()
        .zip(&strides)
        .filter(|(extent, _)| **extent > 1)
        .map(|(extent, stride)| (*stride, *extent as isize - 1))
        .collect();
    axes.sort_by_key(|(stride, _)| stride.unsigned_abs());
    let (mut low, mut span) = (0isize, item_size);
    for (stride, gaps) in axes {
        // Each axis must step over the whole span of the faster axes.
        if (stride.unsigned_abs() as isize) < span {
            return Err(overlap());
        }
        let reach = stride.checked_mul(gaps).ok_or_else(overlap)?;
        low = low.checked_add(reach.min(0)).ok_or_else(overlap)?;
        span = span.checked_add(reach.checked_abs().ok_or_else(overlap)?).ok_or_else(overlap)?;
    }
    let pointer = tensor.pointer().as_ptr().wrapping_offset(low);
    Ok(Strided::new(pointer, span.unsigned_abs(), low.unsigned_abs(), strides))
}

/// Reads a selection, into `out` if given.
pub fn read_selection<'py>(
    py: Python<'py>,
    elements: &ElementPart,
    selection: &Selection,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(object) = out else {
        return wrap(
            py,
            interruptible(py, |interrupt| elements.request(selection)?.cancel(interrupt).read())?,
        );
    };
    let out = Out::new(&object, elements.data_type(), &selection.shape())?;
    interruptible(py, |interrupt| {
        // SAFETY: `Out` checked that the memory is writable and that elements do not overlap, and keeps it alive.
        // The caller of `out=` must not use the memory during the call, as with NumPy.
        unsafe { elements.request(selection)?.cancel(interrupt).out(out.strided.clone()) }.read()
    })?;
    Ok(object)
}
