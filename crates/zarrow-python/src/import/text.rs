//! Conversion of text and bytes in NumPy arrays of objects, or of `StringDType`, to offsets and data.

use crate::export::data_type;
use crate::export::numpy;
use crate::export::numpy_string::{self, Strings};
use crate::python::error::{Raise, data_type_mismatch};
use crate::python::interpreter_exit;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList, PyString};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, Mask, MaskedVariable, Variable};

/// Converts to a NumPy array of objects.
pub fn objects<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    interpreter_exit::guard_thread();
    numpy::module(object.py())?.call_method1("asarray", (object, "O"))
}

/// Returns the character of a NumPy array's kind of dtype.
pub fn kind(array: &Bound<'_, PyAny>) -> PyResult<char> {
    kind_of(&array.getattr("dtype")?)
}

/// Returns the character of a NumPy dtype's kind.
pub fn kind_of(dtype: &Bound<'_, PyAny>) -> PyResult<char> {
    dtype.getattr("kind")?.extract()
}

/// Copies the text or bytes of a NumPy array of objects or `StringDType`; None is a missing element.
pub fn array(array: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    let shape: Vec<u64> = array.getattr("shape")?.extract()?;
    let (strings, dtype) = match kind_of(&dtype)? {
        'T' => {
            let is_empty = shape.contains(&0);
            if let Some(expected) = expected.filter(|expected| **expected != DataType::String && !is_empty) {
                return Err(data_type_mismatch(py, expected, &DataType::String));
            }
            (numpy_string::load(array)?, expected.cloned().unwrap_or(DataType::String))
        }
        'O' => from_objects(array, expected)?,
        _ => return Err(data_type::unknown(&dtype)),
    };
    // A vector is only aligned for its elements, here bytes.
    let offsets = Buffer::copy_of(&strings.offsets).raise(py)?;
    let variable = Variable::new(offsets, Buffer::from(strings.data), shape, dtype).raise(py)?;
    if strings.missing.is_empty() {
        return Ok(Imported::Variable(variable));
    }
    let mask = Mask::new(vec![Buffer::from(strings.missing)]).raise(py)?;
    Ok(Imported::MaskedVariable(MaskedVariable::new(variable, mask).raise(py)?))
}

/// Copies the elements of an array of objects, and returns their common type: text or bytes.
fn from_objects(array: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<(Strings, DataType)> {
    let py = array.py();
    let elements = array.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast::<PyList>()?;
    let mut kind = expected.cloned();
    let mut strings = Strings::with_capacity(elements.len()).raise(py)?;
    for (index, element) in elements.iter().enumerate() {
        let (found, bytes) = match (element.cast::<PyString>(), element.cast::<PyBytes>()) {
            (Ok(text), _) => (DataType::String, text.to_str()?.as_bytes()),
            (_, Ok(bytes)) => (DataType::Bytes, bytes.as_bytes()),
            _ if is_missing(&element)? => {
                strings.push(None, index, elements.len()).raise(py)?;
                continue;
            }
            _ => return Err(no_text(index, &element)?),
        };
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(data_type_mismatch(py, expected, &found));
        }
        if *kind.get_or_insert(found.clone()) != found {
            return Err(PyTypeError::new_err(format!(
                "element {index} is {found}, unlike the elements before it: use one type for all elements"
            )));
        }
        strings.push(Some(bytes), index, elements.len()).raise(py)?;
    }
    match kind {
        Some(kind) => Ok((strings, kind)),
        // NaN alone is no text.
        None => match elements.iter().enumerate().find(|(_, element)| !element.is_none()) {
            Some((index, element)) => Err(no_text(index, &element)?),
            None => Ok((strings, DataType::String)),
        },
    }
}

fn no_text(index: usize, element: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let kind = element.get_type().name()?;
    let message = format!(
        "element {index} of an array of Python objects has type {kind}, expected text, bytes or None: convert the \
         values to one NumPy dtype by numpy.asarray(values, dtype)"
    );
    Ok(PyTypeError::new_err(message))
}

/// Tells whether an element is None, or what pandas puts where text is missing: NaN or `pandas.NA`.
fn is_missing(element: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_nan = || element.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    Ok(element.is_none() || is_nan() || element.get_type().name()? == "NAType")
}
