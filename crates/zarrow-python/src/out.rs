//! Memory of another library's array, to be filled: `out=`.
//!
//! 1. An object with `__array_interface__` (NumPy's arrays, and our tensors) says where its memory is.
//! 2. Any other is asked for a DLPack tensor (PyTorch's, pinned or not). A capsule of before DLPack 1.0 cannot say that
//!    its memory must not be written, as JAX's must not: it is refused.
//! 3. Shape and type must be those of the result, the memory writable, on the CPU, and each element's own.

use crate::capsule::{self, Consumed};
use crate::error::{exchange, unsupported};
use crate::numpy;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zarrow::Strided;
use zarrow_array::DataType;
use zarrow_array::export::dlpack;
use zarrow_dlpack::DLDevice;

/// Where to write, and what keeps that memory alive while it is written.
pub struct Out {
    /// The memory.
    pub strided: Strided,
    _tensor: Option<Consumed>,
}

/// Where the elements of an array lie.
struct Place {
    pointer: usize,
    shape: Vec<u64>,
    /// Bytes from one element to the next.
    strides: Vec<isize>,
}

impl Out {
    /// The memory of `object`, for a result of this type and shape.
    pub fn new(object: &Bound<'_, PyAny>, dtype: &DataType, shape: &[u64]) -> PyResult<Out> {
        let py = object.py();
        let refused = || unsupported(py, format!("reading {dtype} into other memory"));
        let item_size = dtype.item_size().ok_or_else(refused)?;
        let (place, tensor) = match object.getattr_opt("__array_interface__")? {
            Some(interface) => (of_interface(object, &interface, dtype, item_size)?, None),
            None => {
                let tensor = capsule::consume(object)?;
                let place = of_dlpack(py, &tensor, dtype, item_size)?;
                (place, Some(tensor))
            }
        };
        if place.strides.len() != place.shape.len() {
            return Err(PyValueError::new_err("out has not a stride for each axis"));
        }
        if place.shape != shape {
            let message = format!("out has shape {:?}, the selection has {shape:?}", place.shape);
            return Err(PyValueError::new_err(message));
        }
        Ok(Out { strided: strided(&place, item_size)?, _tensor: tensor })
    }
}

/// Step 1.
fn of_interface(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyAny>,
    dtype: &DataType,
    item_size: usize,
) -> PyResult<Place> {
    let py = object.py();
    // A scalar describes memory of an array that is gone at once; a mask would go on to hide what was read.
    if object.is_instance(&numpy::module(py)?.getattr("generic")?)? || object.hasattr("mask")? {
        let kind = object.get_type();
        return Err(PyTypeError::new_err(format!("out must be an array without a mask, and not {kind}")));
    }
    let interface = interface.cast::<PyDict>()?;
    let missing = |key: &str| PyTypeError::new_err(format!("__array_interface__ has no {key}"));
    let get = |key: &str| interface.get_item(key)?.ok_or_else(|| missing(key));
    let (pointer, read_only): (usize, bool) = get("data")?.extract()?;
    check_writable(py, read_only)?;
    let (expected, actual) = (numpy::dtype(py, dtype)?, object.getattr("dtype")?);
    if !expected.eq(&actual)? {
        return Err(wrong_type(&expected.to_string(), &actual.to_string()));
    }
    let shape: Vec<u64> = get("shape")?.extract()?;
    let strides: Option<Vec<isize>> =
        interface.get_item("strides")?.map(|strides| strides.extract()).transpose()?.flatten();
    let strides = strides.unwrap_or_else(|| c_strides(&shape, item_size));
    Ok(Place { pointer, shape, strides })
}

/// Step 2.
fn of_dlpack(py: Python<'_>, tensor: &Consumed, dtype: &DataType, item_size: usize) -> PyResult<Place> {
    let view = tensor.view();
    if matches!(tensor, Consumed::Legacy(_)) {
        let message = "out does not say whether it may be written to, by a DLPack of before 1.0: give a NumPy view of it";
        return Err(exchange(py, "read_only", message));
    }
    if view.device != DLDevice::CPU {
        return Err(exchange(py, "device", format!("out is on {:?}, and not in host memory", view.device)));
    }
    check_writable(py, view.read_only)?;
    if dlpack::dtype(dtype).ok() != Some(view.dtype) {
        return Err(wrong_type(&dtype.to_string(), &view.dtype.to_string()));
    }
    Ok(Place {
        pointer: view.data.addr(),
        shape: view.shape.iter().map(|extent| extent.unsigned_abs()).collect(),
        strides: view
            .strides
            .iter()
            .map(|stride| (*stride as isize).saturating_mul(item_size as isize))
            .collect(),
    })
}

fn check_writable(py: Python<'_>, read_only: bool) -> PyResult<()> {
    if read_only { Err(exchange(py, "read_only", "out is read-only")) } else { Ok(()) }
}

fn wrong_type(expected: &str, actual: &str) -> PyErr {
    PyTypeError::new_err(format!("out has type {actual}, the array has {expected}: nothing is cast"))
}

fn c_strides(shape: &[u64], item_size: usize) -> Vec<isize> {
    let mut strides = vec![0isize; shape.len()];
    let mut stride = item_size as isize;
    for (extent, place) in shape.iter().zip(&mut strides).rev() {
        *place = stride;
        stride = stride.saturating_mul(*extent as isize);
    }
    strides
}

/// Step 3: elements that do not overlap, from the lowest address on.
fn strided(place: &Place, item_size: usize) -> PyResult<Strided> {
    let overlap = || PyValueError::new_err("out has elements that overlap, as a broadcast view has");
    if place.shape.contains(&0) {
        return Ok(Strided::new(std::ptr::null_mut(), 0, 0, place.strides.clone()));
    }
    let mut axes: Vec<(isize, isize)> = place
        .shape
        .iter()
        .zip(&place.strides)
        .filter(|(extent, _)| **extent > 1)
        .map(|(extent, stride)| (*stride, *extent as isize - 1))
        .collect();
    axes.sort_by_key(|(stride, _)| stride.unsigned_abs());
    let (mut low, mut span) = (0isize, item_size as isize);
    for (stride, gaps) in axes {
        // Each axis steps over all that the axes before it reach.
        if (stride.unsigned_abs() as isize) < span {
            return Err(overlap());
        }
        let reach = stride.checked_mul(gaps).ok_or_else(overlap)?;
        low = low.checked_add(reach.min(0)).ok_or_else(overlap)?;
        span = span.checked_add(reach.checked_abs().ok_or_else(overlap)?).ok_or_else(overlap)?;
    }
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(place.pointer.wrapping_add_signed(low));
    Ok(Strided::new(pointer, span.unsigned_abs(), low.unsigned_abs(), place.strides.clone()))
}
