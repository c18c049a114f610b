//! Where a path or URL becomes an array or a group, and how many threads read it.

use crate::array::Array;
use crate::error::{Raise, unsupported};
use crate::group::Group;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use zarrow::store::FilesystemStore;
use zarrow::{DecodeLimits, Node, OpenOptions};

/// Open the array or group at a path of a store, which is a folder or a file:// URL.
#[pyfunction]
#[pyo3(signature = (store, path = "", *, cache_bytes = 0, limits = None))]
pub fn open<'py>(
    store: &Bound<'py, PyAny>,
    path: &str,
    cache_bytes: usize,
    limits: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let folder = folder(store)?;
    let limits = limits.map_or(Ok(DecodeLimits::default()), |limits| decode_limits(&limits))?;
    let options = OpenOptions { limits, cache_nbytes: cache_bytes, ..OpenOptions::default() };
    let opened = py.detach(|| zarrow::open_with(Arc::new(FilesystemStore::open(&folder)?), path, &options));
    node(py, opened.raise(py)?)
}

/// The limits that a `zarrow.DecodeLimits` sets; None leaves one as it is.
fn decode_limits(limits: &Bound<'_, PyAny>) -> PyResult<DecodeLimits> {
    let get = |name: &str| limits.getattr(name)?.extract::<Option<u64>>();
    let size = |nbytes: u64| usize::try_from(nbytes).unwrap_or(usize::MAX);
    let mut chosen = DecodeLimits::default();
    chosen.metadata.max_chunk_nbytes = get("max_chunk_nbytes")?.unwrap_or(chosen.metadata.max_chunk_nbytes);
    chosen.metadata.max_ndim = get("max_ndim")?.map_or(chosen.metadata.max_ndim, size);
    chosen.metadata.max_metadata_nbytes =
        get("max_metadata_nbytes")?.unwrap_or(chosen.metadata.max_metadata_nbytes);
    chosen.max_variable_nbytes = get("max_variable_nbytes")?.map_or(chosen.max_variable_nbytes, size);
    chosen.max_ratio = get("max_ratio")?.unwrap_or(chosen.max_ratio);
    Ok(chosen)
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
