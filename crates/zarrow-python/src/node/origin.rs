//! Where an Array or a Group comes from: what it is pickled as, and what it is compared by.
//!
//! It is pickled as the arguments of `zarrow.open` that give it again: a folder or a zip archive by its absolute path, a
//! store or an archive in the cloud by its URL and options, a store in memory with all of its values, a store of Python's by
//! itself. Two are the same where they have one path in one store, however each was opened.

use crate::node::array_input;
use crate::node::cloud_store::{self, CloudStore};
use crate::node::remote_zip;
use crate::node::store::MemoryStore;
use crate::python::importing::import;
use crate::python_store;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{IntoPyDict, PyBool, PyTuple};
use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use zarrow::store::{FilesystemStore, ReadOnlyStore, Store, ZipStore};
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
    /// The URL of a store in the cloud, and its options as JSON.
    Cloud(Cow<'a, str>, String),
    /// A folder in a zip archive.
    Archive(&'a Path, &'a str),
    /// The address of the object that a store of Python's is, kept by whoever compares.
    Object(usize),
    /// The address of a store that is kept in memory by whoever compares.
    Memory(usize),
}

impl<'a> Origin<'a> {
    /// The origin of the node at `path` of `store`.
    pub fn new(store: &'a Arc<dyn Store>, path: &'a str) -> Origin<'a> {
        let store = beneath(store);
        let any = as_any(store);
        let store = match (any.downcast_ref::<FilesystemStore>(), any.downcast_ref::<ZipStore>()) {
            (Some(folder), _) => Identity::Folder(folder.path()),
            (_, Some(archive)) => Identity::Archive(archive.path(), archive.prefix()),
            _ => match (cloud_store::beneath(&**store), python_store::beneath(&**store)) {
                (Some(cloud), _) => Identity::Cloud(cloud.url().into(), cloud.options().to_json()),
                (_, Some(object)) => Identity::Object(object.address()),
                _ => match remote_zip::source(&**store) {
                    Some((url, options)) => Identity::Cloud(url.into(), options.to_json()),
                    None => Identity::Memory(Arc::as_ptr(store).addr()),
                },
            },
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
    let durability = array_input::durability_name(options.durability);
    let limits = limits(py, &options.limits)?;
    let store = beneath(store);
    let any = as_any(store);
    let place = match (any.downcast_ref::<FilesystemStore>(), any.downcast_ref::<ZipStore>()) {
        (Some(folder), _) => folder.path().as_os_str().into_pyobject(py)?.into_any(),
        (_, Some(archive)) if archive.prefix().is_empty() => {
            archive.path().as_os_str().into_pyobject(py)?.into_any()
        }
        (_, Some(archive)) => archive.url().into_pyobject(py)?.into_any(),
        _ => match (CloudStore::over(store), python_store::beneath(&**store)) {
            (Some(cloud), _) => Bound::new(py, cloud)?.into_any(),
            (_, Some(object)) => object.source(py)?,
            _ => Bound::new(py, MemoryStore::over(store)?)?.into_any(),
        },
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
