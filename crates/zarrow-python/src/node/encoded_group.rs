//! Groups that stand for a matrix, a table or an array, by AnnData's attribute `encoding-type`.

use crate::node::origin;
use pyo3::prelude::*;
use zarrow::ErrorKind;

/// Whether the group is a sparse matrix in AnnData's format.
pub fn is_sparse(group: &zarrow::Group) -> bool {
    let encoding = group.attributes().get("encoding-type").and_then(serde_json::Value::as_str);
    matches!(encoding, Some("csr_matrix" | "csc_matrix"))
}

/// Refuses to compare values with a group that stands for an array, such as a categorical.
pub fn refuse_values(group: &zarrow::Group, other: &Bound<'_, PyAny>) -> PyResult<()> {
    let encoding = group.attributes().get("encoding-type").and_then(serde_json::Value::as_str);
    if !encoding.is_some_and(|encoding| encoding == "categorical" || encoding.starts_with("nullable-")) {
        return Ok(());
    }
    let text = "comparing a Group with a value compares no elements: read it by group.read() first";
    origin::refuse_values(other, text)
}

/// Returns the message for a group that `read` does not accept, depending on its AnnData encoding.
pub fn not_an_array(group: &zarrow::Group) -> ErrorKind {
    let attributes = group.attributes();
    let encoding = attributes.get("encoding-type").and_then(serde_json::Value::as_str);
    let (found, expected) = match encoding {
        Some("anndata") => (
            "an AnnData object",
            "an array: type zarrow.load(path), or group[\"obs\"].to_pandas() for one of its tables",
        ),
        None if attributes.get("column-order").is_none() => (
            "a group",
            "an array, or a group that stands for one: type group[\"name\"][...], or zarrow.load(path) for all \
             of its arrays",
        ),
        Some("dataframe") | None => (
            "a table",
            "an array: type group.to_pandas() or group.to_arrow(), or group[\"name\"] for a column",
        ),
        Some(_) => ("a group", "an array, or a group that stands for one: type group[\"name\"][...]"),
    };
    ErrorKind::WrongNode { expected, found }
}
