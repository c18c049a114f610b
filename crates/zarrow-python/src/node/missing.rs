//! The argument `mask`: values that mark missing elements.

use crate::export::numpy;
use crate::node::fill_value;
use crate::python::error::Raise;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use zarrow::MissingValues;
use zarrow::arrow::MaskChoice;
use zarrow::metadata::ArrayMetadata;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::{DataType, Number};

/// Parses `mask`: `"cf"`, `"fill"`, a value, or a list or NumPy array of values.
pub fn values(metadata: &ArrayMetadata, mask: &Bound<'_, PyAny>) -> PyResult<MissingValues> {
    let py = mask.py();
    let given = match mask.extract::<&str>() {
        Ok("cf") => MissingValues::cf(metadata),
        Ok("fill") => MissingValues::fill(metadata),
        _ => {
            let element = metadata.data_type.without_optional();
            let is_list = mask.is_instance_of::<PyList>()
                || numpy::is_array(mask)? && mask.getattr("ndim")?.extract::<usize>()? == 1;
            let mut values = Vec::new();
            if is_list {
                for value in mask.try_iter()? {
                    values.try_push(bytes(&value?, element)?).raise(py)?;
                }
            } else {
                values.push(bytes(mask, element)?);
            }
            MissingValues::new(element, values)
        }
    };
    given.raise(py)
}

/// Parses a `mask` that applies to several arrays: `"cf"`, `"fill"` or None.
pub fn choice(mask: Option<&str>) -> PyResult<Option<MaskChoice>> {
    match mask {
        None => Ok(None),
        Some("cf") => Ok(Some(MaskChoice::Cf)),
        Some("fill") => Ok(Some(MaskChoice::Fill)),
        Some(other) => {
            Err(PyValueError::new_err(format!("mask is {other:?}, expected 'cf', 'fill' or None")))
        }
    }
}

/// Returns the in-memory bytes of an element with this `value`.
fn bytes(value: &Bound<'_, PyAny>, element: &DataType) -> PyResult<Vec<u8>> {
    let py = value.py();
    let refused = |wanted: &str| {
        let message = format!("mask is {value}, expected {wanted} for elements of type {element}");
        Err(PyTypeError::new_err(message))
    };
    let of_bools = *element == DataType::Number(Number::Bool);
    if !of_bools && value.get_type().name()?.to_str()?.starts_with("bool") {
        return refused("'cf', 'fill' or a value, and not a bool,");
    }
    match element {
        DataType::String => match value.cast::<PyString>() {
            Ok(text) => return allocation::copied(text.to_str()?.as_bytes()).raise(py),
            Err(_) => return refused("strings"),
        },
        DataType::Bytes => match value.cast::<PyBytes>() {
            Ok(_) => return fill_value::bytes(value),
            Err(_) => return refused("bytes"),
        },
        // NumPy would parse it as a number.
        DataType::Number(_) if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() => {
            return refused("'cf', 'fill' or a value");
        }
        _ => {}
    }
    let made = numpy::module(py)?
        .getattr("array")?
        .call1((PyList::new(py, [value])?, numpy::dtype(py, element)?))?;
    let kind: String = made.getattr("dtype")?.getattr("kind")?.extract()?;
    // Floats are rounded to the type; any other change by NumPy would give another value.
    let exact = "biuUS".contains(&kind);
    if exact && !made.call_method0("item")?.eq(value)? {
        return Err(PyValueError::new_err(format!("mask is {value}, expected a value of type {element}")));
    }
    fill_value::bytes(&made.call_method0("tobytes")?)
}
