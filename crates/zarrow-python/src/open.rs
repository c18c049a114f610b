//! Where a path or URL becomes an array or a group, and how many threads read it.

use crate::array::Array;
use crate::error::{Raise, unsupported};
use crate::group::Group;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use zarrow::Node;
use zarrow::store::FilesystemStore;

/// Open the array or group at a path of a store, which is a folder or a file:// URL.
#[pyfunction]
#[pyo3(signature = (store, path = ""))]
pub fn open<'py>(store: &Bound<'py, PyAny>, path: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let folder = folder(store)?;
    let opened = py.detach(|| zarrow::open(Arc::new(FilesystemStore::open(&folder)?), path));
    node(py, opened.raise(py)?)
}

/// Set how many threads a read may use, the calling one among them.
#[pyfunction]
pub fn set_num_threads(count: usize) -> PyResult<()> {
    if count == 0 {
        return Err(PyValueError::new_err("a read needs at least one thread"));
    }
    zarrow::set_num_threads(count);
    Ok(())
}

/// Tell how many threads a read may use, the calling one among them.
#[pyfunction]
pub fn num_threads() -> usize {
    zarrow::num_threads()
}

/// The Python object of a node.
pub fn node(py: Python<'_>, node: Node) -> PyResult<Bound<'_, PyAny>> {
    Ok(match node {
        Node::Array(array) => Bound::new(py, Array::new(array))?.into_any(),
        Node::Group(group) => Bound::new(py, Group::new(group))?.into_any(),
    })
}

/// The folder that a path or a `file://` URL names.
fn folder(store: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = store.py();
    let Some((scheme, rest)) = store.extract::<&str>().ok().and_then(|text| text.split_once("://")) else {
        return store.extract();
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(unsupported(py, format!("there are no stores for {scheme}:// URLs yet, only folders")));
    }
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(PyValueError::new_err(format!("a file:// URL has an absolute path, and not {rest:?}")));
    }
    py.import("urllib.parse")?.call_method1("unquote", (path,))?.extract()
}
