//! Consumer side of NumPy's `__array_interface__`.
//!
//! The object that described its memory keeps it alive: the dictionary itself owns nothing.
//!
//! Source: NumPy, "The array interface protocol", version 3.

use super::{NotShareable, SharedMemory};
use crate::export::{data_type, numpy, numpy_api};
use crate::python::error::{Raise, exchange};
use crate::python::gil::Kept;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use zarrow_array::import::element::Element;
use zarrow_array::{DataType, Error, ForeignMemory, ForeignStrides, SharedTensor};

/// Returns the memory described by `object`; `None` without a description, or for unsupported elements.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<SharedMemory>> {
    let Some(interface) = object.getattr_opt("__array_interface__")? else { return Ok(None) };
    let interface = interface.cast::<PyDict>()?;
    let typestr: String = require(interface, "typestr")?.extract()?;
    let element = match Element::from_type_string(&typestr) {
        // NumPy describes structures, and types without a code, as raw bytes: the array's own dtype, or the
        // interface's `descr`, is more precise.
        Some(Element { dtype: DataType::RawBytes { length }, .. }) => match object.getattr_opt("dtype")? {
            Some(dtype) => data_type::from_numpy(&dtype)?,
            None => structure(interface, &typestr, length)?,
        },
        // Nor does the code of a time without a unit have its scale.
        Some(element) if element.dtype.is_without_unit() => match object.getattr_opt("dtype")? {
            Some(dtype) => data_type::from_numpy(&dtype)?,
            None => Some(element),
        },
        element => element,
    };
    match element {
        Some(element) => describe(object, interface, element),
        None => Ok(None),
    }
}

/// Returns the structured type described by `descr` for elements of `length` bytes; raw bytes if `descr` does not
/// match.
fn structure(interface: &Bound<'_, PyDict>, typestr: &str, length: u32) -> PyResult<Option<Element>> {
    let py = interface.py();
    let plain = Element::from_type_string(typestr);
    let Some(fields) = interface.get_item("descr")?.filter(|fields| !fields.is_none()) else {
        return Ok(plain);
    };
    if fields.eq([("", typestr)])? {
        return Ok(plain);
    }
    let dtype = numpy::module(py)?.call_method1("dtype", (fields,))?;
    match dtype.getattr("itemsize")?.extract::<u32>()? == length {
        true => data_type::from_numpy(&dtype),
        false => Ok(plain),
    }
}

/// Returns the memory of a `numpy.ndarray`; `None` if its type cannot be shared.
pub fn from_numpy(array: &Bound<'_, PyAny>) -> PyResult<Option<SharedMemory>> {
    let Some(element) = data_type::from_numpy(&array.getattr("dtype")?)? else { return Ok(None) };
    let interface = array.getattr("__array_interface__")?;
    describe(array, interface.cast()?, element)
}

/// Returns the memory of a `numpy.ndarray` of numbers; `None` for other elements, for subclasses, and until NumPy's
/// table is loaded.
pub fn from_numbers(array: &Bound<'_, PyAny>) -> PyResult<Option<SharedMemory>> {
    let Some(numbers) = numpy_api::numbers(array) else { return Ok(None) };
    if numbers.is_swapped {
        return Ok(Some(SharedMemory::NotShareable(NotShareable::ByteOrder)));
    }
    let strides = ForeignStrides::Bytes(numbers.strides);
    let dtype = numbers.number.into();
    let memory = ForeignMemory::check(numbers.pointer, numbers.shape, strides, dtype, numbers.read_only);
    kept_by(array, memory)
}

fn require<'py>(interface: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    let value = interface.get_item(key)?.filter(|value| !value.is_none());
    value.ok_or_else(|| PyTypeError::new_err(format!("__array_interface__ has no {key}")))
}

fn describe(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyDict>,
    element: Element,
) -> PyResult<Option<SharedMemory>> {
    let py = object.py();
    if interface.get_item("mask")?.is_some_and(|mask| !mask.is_none()) {
        return Err(exchange(
            py,
            "masked",
            "importing this __array_interface__ would drop its mask: pass the data and the mask separately",
        ));
    }
    // NumPy handles a buffer in place of an address.
    let data = require(interface, "data")?;
    let Ok(data) = data.cast::<PyTuple>() else { return Ok(None) };
    let (address, read_only): (usize, bool) = data.extract()?;
    let shape: Vec<i64> = require(interface, "shape")?.extract()?;
    if element.is_swapped {
        return Ok(Some(SharedMemory::NotShareable(NotShareable::ByteOrder)));
    }
    let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
    let strides: Option<Vec<i64>> = strides.map(|strides| strides.extract()).transpose()?;
    let strides = strides.as_deref().map_or(ForeignStrides::COrder, ForeignStrides::Bytes);
    let pointer = std::ptr::with_exposed_provenance_mut(address);
    kept_by(object, ForeignMemory::check(pointer, &shape, strides, element.dtype, read_only))
}

/// Returns the tensor over checked memory that `object` keeps alive.
fn kept_by(
    object: &Bound<'_, PyAny>,
    memory: zarrow_array::Result<ForeignMemory>,
) -> PyResult<Option<SharedMemory>> {
    match memory {
        Err(Error::UnevenStride { .. }) => Ok(Some(SharedMemory::NotShareable(NotShareable::Strides))),
        memory => {
            let memory = memory.raise(object.py())?;
            // SAFETY: the protocol requires the object to keep the memory alive, and to allow writing unless
            // flagged read-only; NumPy does both.
            let tensor =
                unsafe { SharedTensor::from_foreign(memory, Arc::new(Kept::new(object.clone().unbind()))) };
            Ok(Some(SharedMemory::Shared(tensor)))
        }
    }
}
