//! Paths of nodes passed from Python.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyInt, PyList, PyTuple};
use std::ops::Deref;

/// The path of an array or a group in a store. Anything but a str is refused with advice.
pub struct NodePath(PyBackedStr);

impl Deref for NodePath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for NodePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<NodePath> {
        if let Ok(path) = object.extract::<PyBackedStr>() {
            return Ok(NodePath(path));
        }
        let instead = match () {
            () if object.is_instance_of::<PyList>()
                || object.extract::<(PyBackedStr, PyBackedStr)>().is_ok() =>
            {
                ": use group.to_arrow([\"a\", \"b\"]) to read several arrays"
            }
            () if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyInt>() => {
                ": pass a shape by keyword, as shape=(3,), and index the array, as group[\"rain\"][0]"
            }
            () => "",
        };
        let found = object.get_type().name()?;
        let message = format!(
            "expected the path of an array or a group as a str, such as \"model/rain\", got {found}{instead}"
        );
        Err(PyTypeError::new_err(message))
    }
}
