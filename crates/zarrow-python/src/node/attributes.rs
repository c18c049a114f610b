//! Attributes of arrays and groups: changes from Python are written at once.

use crate::python::importing::import;
use crate::python::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zarrow::AttributeChange;

/// Returns the live mapping of `node`, a `zarrow.groups.attributes.Attributes`.
pub fn live<'py>(node: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    import(node.py(), "zarrow.groups.attributes")?.getattr("Attributes")?.call1((node,))
}

/// Parses a change: "replace", "update", "remove", "extend" or "shorten", and the attributes.
pub fn change(how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<AttributeChange> {
    let attributes = json::attributes(attributes)?;
    match how {
        "replace" => Ok(AttributeChange::Replace(attributes)),
        "update" => Ok(AttributeChange::Update(attributes)),
        "remove" => Ok(AttributeChange::Remove(attributes)),
        "extend" => Ok(AttributeChange::Extend(attributes)),
        "shorten" => Ok(AttributeChange::Shorten(attributes)),
        _ => Err(PyValueError::new_err(format!("unknown change {how:?}"))),
    }
}
