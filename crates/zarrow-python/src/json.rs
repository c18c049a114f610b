//! JSON of the metadata as Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// A new dict of the object.
pub fn object<'py>(py: Python<'py>, object: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(object).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}
