//! Where an Array or a Group comes from: what it is pickled as, and what it is compared by.
//!
//! It is pickled as the arguments of `zarrow.open` that give it again: a folder by its absolute path, a store in memory with
//! all of its values. Two are the same where they have one path in one store, however each was opened.

use crate::importing::import;
use crate::store::MemoryStore;
use crate::written;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{IntoPyDict, PyBool, PyTuple};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use zarrow::store::{FilesystemStore, ReadOnlyStore, Store};
use zarrow::{DecodeLimits, OpenOptions};

/// A node's place in its store.
#[derive(PartialEq, Eq, Hash)]
pub struct Origin<'a> {
    store: Identity<'a>,
    path: &'a str,
}

/// What tells one store from another.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'a> {
    Folder(&'a Path),
    /// The address of a store that is kept in memory by whoever compares.
    Memory(usize),
}

impl<'a> Origin<'a> {
    /// The origin of the node at `path` of `store`.
    pub fn new(store: &'a Arc<dyn Store>, path: &'a str) -> Origin<'a> {
        let store = beneath(store);
        let store = match as_any(store).downcast_ref::<FilesystemStore>() {
            Some(folder) => Identity::Folder(folder.path()),
            None => Identity::Memory(Arc::as_ptr(store).addr()),
        };
        Origin { store, path }
    }

    /// What Python's `==` and `!=` give of two; they have no order.
    pub fn compare(&self, py: Python<'_>, other: &Origin<'_>, operation: CompareOp) -> Py<PyAny> {
        let holds = match operation {
            CompareOp::Eq => self == other,
            CompareOp::Ne => self != other,
            _ => return py.NotImplemented(),
        };
        PyBool::new(py, holds).to_owned().into_any().unbind()
    }
}

/// What makes an object anew when it is unpickled: a function, and its arguments.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// What makes the node anew.
pub fn reduce<'py>(
    py: Python<'py>,
    store: &Arc<dyn Store>,
    path: &str,
    options: &OpenOptions,
) -> PyResult<Reduced<'py>> {
    let mode = if store.writer().is_some() { "r+" } else { "r" };
    let durability = written::durability_name(options.durability);
    let limits = limits(py, &options.limits)?;
    let store = beneath(store);
    let place = match as_any(store).downcast_ref::<FilesystemStore>() {
        Some(folder) => folder.path().as_os_str().into_pyobject(py)?.into_any(),
        None => Bound::new(py, MemoryStore::over(store)?)?.into_any(),
    };
    let arguments = (place, path, mode, options.cache_nbytes, limits, durability).into_pyobject(py)?;
    Ok((import(py, "zarrow.pickling")?.getattr("load_node")?, arguments))
}

/// The `zarrow.DecodeLimits` of these limits; None where they are the usual ones.
fn limits<'py>(py: Python<'py>, limits: &DecodeLimits) -> PyResult<Option<Bound<'py, PyAny>>> {
    if *limits == DecodeLimits::default() {
        return Ok(None);
    }
    let set = [
        ("max_chunk_nbytes", limits.metadata.max_chunk_nbytes),
        ("max_variable_nbytes", limits.max_variable_nbytes as u64),
        ("max_ratio", limits.max_ratio),
        ("max_ndim", limits.metadata.max_ndim as u64),
        ("max_metadata_nbytes", limits.metadata.max_metadata_nbytes),
    ];
    import(py, "zarrow.limits")?.getattr("DecodeLimits")?.call((), Some(&set.into_py_dict(py)?)).map(Some)
}

/// The store that a store which is only read is of.
fn beneath(store: &Arc<dyn Store>) -> &Arc<dyn Store> {
    as_any(store).downcast_ref::<ReadOnlyStore>().map_or(store, |store| beneath(store.inner()))
}

fn as_any(store: &Arc<dyn Store>) -> &dyn Any {
    &**store
}
