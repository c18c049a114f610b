//! Origin of an Array or a Group, for pickling and comparison.
//!
//! It is pickled as arguments of `zarrow.open`: a folder or a zip archive by its absolute path, a cloud store or an
//! archive in it by its URL and options, a memory store with all of its values, a Python store as itself. Two nodes
//! are equal if they have the same path in the same store, however they were opened.

use crate::node::array_input;
use crate::node::cloud_store::CloudStore;
use crate::node::remote_zip;
use crate::node::store::MemoryStore;
use crate::python::importing::import;
use crate::python_store;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{IntoPyDict, PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::any::Any;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use zarrow::store::{FilesystemStore, ReadOnlyStore, Store, ZipStore};
use zarrow::{DecodeLimits, OpenOptions};

/// A node's path in its store.
#[derive(PartialEq, Eq, Hash)]
pub struct Origin<'a> {
    store: Identity<'a>,
    path: &'a str,
}

/// Identity of a store.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'a> {
    Folder(&'a Path),
    /// URL of a cloud store, and its options as JSON.
    Cloud(Cow<'a, str>, String),
    /// A folder in a zip archive.
    Archive(&'a Path, &'a str),
    /// Address of a Python store's object; the code that compares keeps it alive.
    Object(usize),
    /// Address of a memory store; the code that compares keeps it alive.
    Memory(usize),
}

impl<'a> Origin<'a> {
    /// Creates the origin of the node at `path` of `store`.
    pub fn new(store: &'a Arc<dyn Store>, path: &'a str) -> Origin<'a> {
        let store = beneath(store);
        let any = as_any(store);
        let store = match (any.downcast_ref::<FilesystemStore>(), any.downcast_ref::<ZipStore>()) {
            (Some(folder), _) => Identity::Folder(folder.path()),
            (_, Some(archive)) => Identity::Archive(archive.path(), archive.prefix()),
            _ => match (remote_zip::beneath(&**store), python_store::beneath(&**store)) {
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

    /// Returns the hash of Python's `hash`.
    pub fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the result of Python's `==` or `!=`; there is no order.
    pub fn compare(&self, py: Python<'_>, other: &Origin<'_>, operation: CompareOp) -> Py<PyAny> {
        let holds = match operation {
            CompareOp::Eq => self == other,
            CompareOp::Ne => self != other,
            _ => return py.NotImplemented(),
        };
        PyBool::new(py, holds).to_owned().into_any().unbind()
    }
}

/// Refuses to compare a node with values, since its elements are not compared; `text` says what to do.
///
/// Objects with `__array__` compare themselves with the elements.
pub fn refuse_values(other: &Bound<'_, PyAny>, text: &'static str) -> PyResult<()> {
    let is_value = other.is_instance_of::<PyInt>()
        || other.is_instance_of::<PyFloat>()
        || other.is_instance_of::<PyString>()
        || other.is_instance_of::<PyBytes>()
        || other.is_instance_of::<PyList>();
    if is_value && !other.hasattr("__array__")? { Err(PyTypeError::new_err(text)) } else { Ok(()) }
}

/// A reduced object for pickling: a function and its arguments.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// Returns the function and arguments that recreate the node.
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
            (_, Some(object)) => object.source(py),
            _ => Bound::new(py, MemoryStore::over(store)?)?.into_any(),
        },
    };
    let arguments = (place, path, mode, options.cache_nbytes, limits, durability).into_pyobject(py)?;
    Ok((import(py, "zarrow.interchange.pickling")?.getattr("load_node")?, arguments))
}

/// Returns the `zarrow.DecodeLimits` of these limits; None for the defaults.
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
    import(py, "zarrow.api.limits")?.getattr("DecodeLimits")?.call((), Some(&set.into_py_dict(py)?)).map(Some)
}

/// Returns the store inside read-only wrappers.
fn beneath(store: &Arc<dyn Store>) -> &Arc<dyn Store> {
    as_any(store).downcast_ref::<ReadOnlyStore>().map_or(store, |store| beneath(store.inner()))
}

fn as_any(store: &Arc<dyn Store>) -> &dyn Any {
    &**store
}
