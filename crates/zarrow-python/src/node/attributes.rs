//! Attributes of arrays and groups: what Python changes is written at once.

use crate::python::importing::import;
use crate::python::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zarrow::AttributeChange;

/// The live mapping of `node`, a `zarrow.attributes.Attributes`.
pub fn live<'py>(node: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    import(node.py(), "zarrow.attributes")?.getattr("Attributes")?.call1((node,))
}

/// The change that `zarrow.attributes` asks for: which of "replace", "update" and "remove", and the attributes.
pub fn change(how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<AttributeChange> {
    let attributes = json::attributes(attributes)?;
    match how {
        "replace" => Ok(AttributeChange::Replace(attributes)),
        "update" => Ok(AttributeChange::Update(attributes)),
        "remove" => Ok(AttributeChange::Remove(attributes)),
        _ => Err(PyValueError::new_err(format!("unknown change {how:?}"))),
    }
}
