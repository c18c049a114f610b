//! Where a path or URL becomes an array or a group, and how many threads read it.

use crate::array::Array;
use crate::error::Raise;
use crate::group::Group;
use crate::store::Place;
use crate::written;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use zarrow::metadata::Attributes;
use zarrow::store::ReadOnlyStore;
use zarrow::{DecodeLimits, ErrorKind, Existing, Node, OpenOptions, ZarrFormat};

/// Open the array or group at a path of a store: a folder, a file:// URL or a `MemoryStore`.
#[pyfunction]
#[pyo3(signature = (store, path = "", *, mode = "r+", cache_bytes = 0, limits = None, durability = "none"))]
pub fn open<'py>(
    store: &Bound<'py, PyAny>,
    path: &str,
    mode: &str,
    cache_bytes: usize,
    limits: Option<Bound<'py, PyAny>>,
    durability: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let place = Place::of(store)?;
    let limits = limits.map_or(Ok(DecodeLimits::default()), |limits| decode_limits(&limits))?;
    let options =
        OpenOptions { limits, cache_nbytes: cache_bytes, durability: written::durability(durability)? };
    let open = |store| zarrow::open_with(store, path, &options);
    let create = |store, existing| {
        zarrow::create_group(store, path, ZarrFormat::V3, Attributes::default(), existing, &options)
            .map(Node::Group)
    };
    let opened = match mode {
        "r" => py.detach(|| open(Arc::new(ReadOnlyStore::new(place.open()?)))),
        "r+" => py.detach(|| open(place.open()?)),
        "a" => py.detach(|| {
            let store = place.create(path)?;
            match open(Arc::clone(&store)) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => create(store, Existing::Refuse),
                opened => opened,
            }
        }),
        "w" => py.detach(|| create(place.create(path)?, Existing::Erase)),
        "w-" | "x" => py.detach(|| create(place.create(path)?, Existing::Refuse)),
        other => {
            let message = format!("mode is {other:?}, not \"r\", \"r+\", \"a\", \"w\" or \"w-\"");
            return Err(PyValueError::new_err(message));
        }
    };
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
