//! Numbers, times and structures with None in lists and arrays of Python objects.
//!
//! The other elements get the type that they would have without None. Missing elements are filled with one of them,
//! or with zero if there is no other element.

use super::{array, text};
use crate::export::data_type;
use crate::export::numpy;
use crate::python::error::{Raise, data_type_mismatch};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, Mask};

/// Returns the masked layout of `object`, with the `expected` type if given; `None` if no element is None, or if
/// there is text and no expected type.
pub fn masked(object: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Option<Imported>> {
    let py = object.py();
    let is_objects = numpy::is_array(object)? && data_type::kind(object)? == 'O';
    if !(object.is_none()
        || is_objects
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>())
    {
        return Ok(None);
    }
    let numpy = numpy::module(py)?;
    let objects = numpy.call_method1("asarray", (object, "O"))?;
    let elements = objects.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast_into::<PyList>()?;
    let Some(first) = elements.iter().position(|element| element.is_none()) else { return Ok(None) };
    let mut missing = Buffer::zeroed(elements.len()).raise(py)?;
    let present = elements.iter().find(|element| !element.is_none());
    let shape = objects.getattr("shape")?;
    let present = match (present, expected) {
        (Some(present), Some(_)) => present,
        (Some(present), None)
            if !present.is_instance_of::<PyString>() && !present.is_instance_of::<PyBytes>() =>
        {
            present
        }
        (None, Some(expected)) => {
            missing.fill(1);
            let zeros = numpy.call_method1("zeros", (shape, numpy::dtype(py, expected)?))?;
            return joined(py, array(&zeros, Some(expected), None)?, missing, Some(expected));
        }
        _ => return Ok(None),
    };
    for at in first..elements.len() {
        if elements.get_item(at)?.is_none() {
            missing[at] = 1;
            elements.set_item(at, &present)?;
        }
    }
    // One by one, since elements may be tuples (values of structures).
    let filled = numpy.call_method1("empty", (elements.len(), "O"))?;
    for (at, element) in elements.iter().enumerate() {
        filled.set_item(at, element)?;
    }
    let filled = filled.call_method1("reshape", (shape,))?.call_method0("tolist")?;
    joined(py, text::from_python(&filled, expected)?, missing, expected)
}

fn joined(
    py: Python<'_>,
    elements: Imported,
    missing: Buffer,
    expected: Option<&DataType>,
) -> PyResult<Option<Imported>> {
    match (elements, expected) {
        (Imported::Tensor(tensor), _) if tensor.size() == missing.len() => {
            Ok(Some(Imported::MaskedTensor(tensor, Mask::new(vec![missing]).raise(py)?)))
        }
        // Elements of an unexpected type, such as text, do not match the mask.
        (other, Some(expected)) => Err(data_type_mismatch(py, expected, other.dtype())),
        _ => Ok(None),
    }
}
