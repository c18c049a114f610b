//! Fill values: from Python, and to Python.

use crate::export::numpy;
use crate::python::error::{Attempt, Raise};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zarrow::metadata::FillValue;
use zarrow_array::{Buffer, DataType, Tensor, allocation};

/// Converts `value` to an element of `data_type`. None means the default: a missing element, NaT for times, else
/// zero.
///
/// NumPy converts the value to bytes. A number out of range is refused; only floating-point rounding is allowed.
pub fn from_python(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<FillValue> {
    if value.is_none() {
        return Ok(FillValue::open(data_type));
    }
    match data_type {
        DataType::Optional(inner) => Ok(FillValue::Present(Box::new(from_python(value, inner)?))),
        DataType::String => {
            let text =
                value.cast::<PyString>().map_err(|_| PyTypeError::new_err(refusal(value, data_type)))?;
            allocation::copied(text.to_str()?.as_bytes()).raise(value.py()).map(FillValue::Variable)
        }
        DataType::Bytes => {
            if value.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err(refusal(value, data_type)));
            }
            let copied = bytes(value).attempt(value.py())?;
            copied.map(FillValue::Variable).ok_or_else(|| PyTypeError::new_err(refusal(value, data_type)))
        }
        fixed => item(value, fixed).map(FillValue::Fixed),
    }
}

/// Converts a fill value of `data_type` to a NumPy scalar, `str`, `bytes`, or `None` for a missing element.
pub fn to_python<'py>(
    py: Python<'py>,
    value: &FillValue,
    data_type: &DataType,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        FillValue::Missing => Ok(py.None().into_bound(py)),
        FillValue::Present(inner) => to_python(py, inner, data_type),
        FillValue::Variable(bytes) if *data_type == DataType::String => {
            Ok(PyString::from_bytes(py, bytes)?.into_any())
        }
        FillValue::Variable(bytes) => Ok(crate::layout::variable::bytes_of(py, bytes)?.into_any()),
        FillValue::Fixed(bytes) => {
            let tensor = Tensor::new(Buffer::copy_of(bytes).raise(py)?, Vec::new(), data_type.clone());
            numpy::scalar(py, tensor.and_then(Tensor::into_shared).raise(py)?)
        }
    }
}

fn refusal(value: &Bound<'_, PyAny>, data_type: &DataType) -> String {
    let shown = value.repr().map(|text| text.to_string()).unwrap_or_else(|_| "not shown".into());
    format!("fill_value is {shown}, expected a value of type {data_type}")
}

/// Copies the bytes of `object`.
pub fn bytes(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => allocation::copied(bytes.as_bytes()).raise(object.py()),
        Err(_) => object.extract(),
    }
}

/// Returns the bytes of one element.
fn item(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<Vec<u8>> {
    let py = value.py();
    let numpy = numpy::module(py)?;
    let dtype = numpy::dtype(py, data_type)?;
    let refused = || PyValueError::new_err(refusal(value, data_type));
    let array = numpy.call_method1("array", (value, &dtype)).map_err(|error| {
        // NumPy's message does not name the argument.
        let message = refusal(value, data_type);
        match () {
            () if error.is_instance_of::<PyOverflowError>(py) => PyOverflowError::new_err(message),
            () if error.is_instance_of::<PyTypeError>(py) => PyTypeError::new_err(message),
            () if error.is_instance_of::<PyValueError>(py) => PyValueError::new_err(message),
            () => error,
        }
    })?;
    let kind: char = dtype.getattr("kind")?.extract()?;
    let is_exact = match kind {
        'b' | 'i' | 'u' => array.eq(value)?,
        // NumPy truncates longer text.
        'S' | 'U' => array.call_method0("item")?.eq(value)? || value.hasattr("dtype")? && array.eq(value)?,
        _ => true,
    };
    let ndim: usize = array.getattr("ndim")?.extract()?;
    if ndim != 0 || !is_exact {
        return Err(refused());
    }
    let bytes = bytes(&array.call_method0("tobytes")?)?;
    if data_type.item_size() == Some(bytes.len()) { Ok(bytes) } else { Err(refused()) }
}
