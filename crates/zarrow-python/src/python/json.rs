//! Conversion between the metadata's JSON and Python objects.
//!
//! Attributes are exchanged as the text that Python's own `json` writes and reads: with NaN and infinities,
//! integers of any size and lone surrogates. All other metadata of an array is strict JSON.

use crate::python::error::Raise;
use crate::python::importing::import;
use crate::python::interpreter_exit;
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};
use zarrow::metadata::{Attributes, MetadataLimits};
use zarrow_array::allocation::Grow;

/// More than the nesting of any metadata; a list may contain itself.
const MAX_DEPTH: usize = 100;

/// Converts the object to a new dict.
pub fn object<'py>(py: Python<'py>, object: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    loads(py, &text(py, object)?)
}

/// Converts the value to a Python object.
pub fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::String(text) => Ok(PyString::from_bytes(py, text.as_bytes())?.into_any()),
        other => loads(py, &text(py, other)?),
    }
}

fn text(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<Vec<u8>> {
    zarrow::metadata::json_text(value).map_err(zarrow::Error::from).raise(py)
}

/// Converts the attributes to a new dict.
pub fn from_attributes<'py>(py: Python<'py>, attributes: &Attributes) -> PyResult<Bound<'py, PyAny>> {
    loads(py, attributes.text().as_bytes())
}

fn loads<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let text = PyString::from_bytes(py, text)?;
    import(py, "json")?.call_method1("loads", (text,))
}

/// Converts `dict` to attributes: None, numbers, text, lists, tuples, dicts, and NumPy's equivalents.
///
/// Refuses values that Python's `json` refuses too, and keys other than strings.
pub fn attributes(dict: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    interpreter_exit::guard_thread();
    let mut writer = Writer { text: Vec::new(), is_plain: false };
    writer.dict(dict, 0)?;
    // The store applies its own limits when it stores the attributes.
    let limits = MetadataLimits::default().max_metadata_nbytes(u64::MAX);
    let attributes =
        Attributes::parse(&writer.text, &limits).map_err(zarrow::Error::from).raise(dict.py())?;
    import(dict.py(), "zarrow.groups.attribute_values")?.call_method1("note_stored", (dict,))?;
    Ok(attributes)
}

/// Converts `dict` to a JSON object, like [`attributes`].
///
/// Refuses values outside strict JSON: NaN and infinity, integers beyond 64 bits, lone surrogates.
pub fn map(dict: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    interpreter_exit::guard_thread();
    let mut writer = Writer { text: Vec::new(), is_plain: true };
    writer.dict(dict, 0)?;
    serde_json::from_slice(&writer.text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Writes Python objects as JSON.
struct Writer {
    text: Vec<u8>,
    /// Whether to write strict JSON.
    is_plain: bool,
}

impl Writer {
    fn push(&mut self, py: Python<'_>, text: &str) -> PyResult<()> {
        self.text.try_append(text.as_bytes()).raise(py)
    }

    fn any(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if depth > MAX_DEPTH {
            return Err(PyValueError::new_err(format!(
                "attributes are nested more than {MAX_DEPTH} levels deep"
            )));
        }
        if object.is_none() {
            self.push(object.py(), "null")?;
        } else if let Ok(value) = object.cast::<PyBool>() {
            self.push(object.py(), if value.is_true() { "true" } else { "false" })?;
        } else if let Ok(value) = object.cast::<PyInt>() {
            self.integer(value)?;
        } else if let Ok(value) = object.cast::<PyFloat>() {
            self.float(object.py(), value.value())?;
        } else if let Ok(text) = object.cast::<PyString>() {
            self.string(text)?;
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.dict(dict, depth)?;
        } else if let Ok(items) = object.cast::<PyList>() {
            self.list(object.py(), items.iter(), depth)?;
        } else if let Ok(items) = object.cast::<PyTuple>() {
            self.list(object.py(), items.iter(), depth)?;
        } else if object.hasattr("dtype")? && object.hasattr("tolist")? {
            // A NumPy scalar or array, converted to Python objects.
            self.any(&object.call_method0("tolist")?, depth + 1)?;
        } else {
            return Err(PyTypeError::new_err(format!(
                "JSON has no type for {}: store numbers, text, lists or dicts",
                object.get_type().name()?
            )));
        }
        Ok(())
    }

    /// Writes an int, or an instance of a subclass such as an enumeration.
    fn integer(&mut self, value: &Bound<'_, PyInt>) -> PyResult<()> {
        let py = value.py();
        let digits = py.get_type::<PyInt>().call_method1("__repr__", (value,))?;
        let digits = digits.extract::<&str>()?;
        if self.is_plain && digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err() {
            return Err(PyValueError::new_err(format!("{digits} does not fit 64 bits")));
        }
        self.push(py, digits)
    }

    fn float(&mut self, py: Python<'_>, value: f64) -> PyResult<()> {
        match Number::from_f64(value) {
            Some(number) => self.push(py, &number.to_string()),
            None if self.is_plain => {
                Err(PyValueError::new_err(format!("JSON has no {value}: store it as text")))
            }
            None if value.is_nan() => self.push(py, "NaN"),
            None => self.push(py, if value > 0.0 { "Infinity" } else { "-Infinity" }),
        }
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> PyResult<()> {
        let py = text.py();
        match text.to_str() {
            Ok(text) => {
                let quoted = self::text(py, &text)?;
                self.text.try_append(&quoted).raise(py)
            }
            // A lone surrogate, which Python's own `json` escapes.
            Err(error) if !self.is_plain && error.is_instance_of::<PyUnicodeEncodeError>(py) => {
                let escaped = import(py, "json")?.call_method1("dumps", (text.str()?,))?;
                self.push(py, escaped.extract::<&str>()?)
            }
            Err(error) => Err(error),
        }
    }

    fn list<'py>(
        &mut self,
        py: Python<'py>,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<()> {
        self.push(py, "[")?;
        for (number, item) in items.enumerate() {
            self.separate(py, number)?;
            self.any(&item, depth + 1)?;
        }
        self.push(py, "]")
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        let py = dict.py();
        self.push(py, "{")?;
        // Copied to a list: converting a value may run Python code that changes the dict.
        for (number, item) in dict.items().iter().enumerate() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let key = key
                .cast::<PyString>()
                .map_err(|_| PyTypeError::new_err("expected str as keys of attributes"))?;
            self.separate(py, number)?;
            self.string(key)?;
            self.push(py, ": ")?;
            self.any(&value, depth + 1)?;
        }
        self.push(py, "}")
    }

    fn separate(&mut self, py: Python<'_>, number: usize) -> PyResult<()> {
        if number > 0 { self.push(py, ", ") } else { Ok(()) }
    }
}
