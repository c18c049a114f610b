//! JSON of the metadata as Python objects, and the other way round.

use crate::error::Raise;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Deeper than anything that metadata hold: a list may hold itself.
const MAX_DEPTH: usize = 100;

/// A new dict of the object.
pub fn object<'py>(py: Python<'py>, object: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    loads(py, object)
}

/// The value as a Python object.
pub fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::String(text) => Ok(PyString::new(py, text).into_any()),
        other => loads(py, other),
    }
}

fn loads<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = zarrow::metadata::json_text(value).map_err(zarrow::Error::from).raise(py)?;
    let text = PyString::from_bytes(py, &text)?;
    py.import("json")?.call_method1("loads", (text,))
}

/// The JSON object that `dict` stands for: None, numbers, text, lists, tuples, dicts, and what NumPy has of these.
///
/// What JSON cannot say is refused: NaN and infinity, integers beyond 64 bits, keys that are no text.
pub fn map(dict: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    nested_map(dict, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("this is nested more than {MAX_DEPTH} levels deep")));
    }
    let list = |items: Vec<Bound<'_, PyAny>>| items.iter().map(|item| nested(item, depth + 1)).collect();
    if object.is_none() {
        Ok(Value::Null)
    } else if let Ok(value) = object.cast::<PyBool>() {
        Ok(value.is_true().into())
    } else if object.cast::<PyInt>().is_ok() {
        let value =
            object.extract::<i64>().map(Value::from).or_else(|_| object.extract::<u64>().map(Value::from));
        value.map_err(|_| PyValueError::new_err(format!("{object} has more than 64 bits")))
    } else if let Ok(value) = object.cast::<PyFloat>() {
        let number = Number::from_f64(value.value()).map(Value::Number);
        number.ok_or_else(|| PyValueError::new_err(format!("JSON has no {object}: store it as text")))
    } else if let Ok(text) = object.cast::<PyString>() {
        Ok(text.to_str()?.into())
    } else if let Ok(dict) = object.cast::<PyDict>() {
        nested_map(dict, depth).map(Value::Object)
    } else if let Ok(items) = object.cast::<PyList>() {
        list(items.iter().collect())
    } else if let Ok(items) = object.cast::<PyTuple>() {
        list(items.iter().collect())
    } else if object.hasattr("dtype")? && object.hasattr("tolist")? {
        // A scalar or an array of NumPy's, as Python has it.
        nested(&object.call_method0("tolist")?, depth + 1)
    } else {
        Err(PyTypeError::new_err(format!("JSON has no {}", object.get_type().name()?)))
    }
}

fn nested_map(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Map<String, Value>> {
    let member = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = key.cast::<PyString>().map_err(|_| PyTypeError::new_err("the keys of JSON are text"))?;
        Ok((key.to_str()?.to_owned(), nested(&value, depth + 1)?))
    };
    dict.iter().map(member).collect()
}
