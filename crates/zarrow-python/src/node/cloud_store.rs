//! Cloud stores: by URL, with fsspec's `storage_options`.

use crate::node::remote_zip::{self, beneath};
use crate::node::zip_url;
use crate::python::argument::dict;
use crate::python::error::Raise;
use crate::python::json;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use zarrow::store::Store;
use zarrow::store::remote::RemoteAdapter;
use zarrow_cloud::{StorageOptions, is_cloud_url};

#[doc = help!("CloudStore")]
#[pyclass(frozen, module = "zarrow")]
pub struct CloudStore {
    store: Arc<dyn Store>,
}

impl CloudStore {
    fn open(py: Python<'_>, url: &str, options: StorageOptions) -> PyResult<CloudStore> {
        let store = zarrow_cloud::CloudStore::new(url, options).raise(py)?;
        Ok(CloudStore { store: Arc::new(RemoteAdapter::new(Arc::new(store))) })
    }

    /// Returns the Python object of `store`, or of the archive in it; `None` for other stores.
    pub fn over(store: &Arc<dyn Store>) -> Option<CloudStore> {
        if beneath(&**store).is_some() {
            return Some(CloudStore { store: Arc::clone(store) });
        }
        let (url, options) = remote_zip::source(&**store)?;
        let store = zarrow_cloud::CloudStore::new(&url, options).ok()?;
        Some(CloudStore { store: Arc::new(RemoteAdapter::new(Arc::new(store))) })
    }

    /// Returns the engine's store.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Opens the store named by a URL; `None` if it is not a cloud URL.
    pub fn from_url(object: &Bound<'_, PyAny>) -> PyResult<Option<Arc<dyn Store>>> {
        let Some(url) = object.extract::<&str>().ok().filter(|text| is_cloud_url(text)) else {
            return Ok(None);
        };
        CloudStore::open(object.py(), url, StorageOptions::default()).map(|store| Some(store.store))
    }
}

#[pymethods]
impl CloudStore {
    #[new]
    #[pyo3(signature = (url, /, storage_options = None))]
    fn new(py: Python<'_>, url: &str, storage_options: Option<&Bound<'_, PyAny>>) -> PyResult<CloudStore> {
        let storage_options = storage_options.map(|options| dict(options, "storage_options")).transpose()?;
        let options = match storage_options {
            Some(options) => {
                let map = serde_json::Value::Object(json::map(&plain(options)?)?);
                StorageOptions::from_json(&map.to_string()).raise(py)?
            }
            None => StorageOptions::default(),
        };
        CloudStore::open(py, url, options)
    }

    #[doc = help!("CloudStore.name")]
    #[getter]
    fn name(&self) -> &str {
        self.store.name()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let Some(store) = beneath(&*slf.get().store) else {
            return Err(PyTypeError::new_err("this store cannot be pickled"));
        };
        let options = pyo3::types::PyString::new(py, &store.options().to_json());
        let options = crate::python::importing::import(py, "json")?.call_method1("loads", (options,))?;
        let arguments = (store.url(), options).into_pyobject(py)?;
        PyTuple::new(py, [slf.get_type().into_any(), arguments.into_any()])
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<CloudStore>().is_ok_and(|other| {
            match (beneath(&*self.store), beneath(&*other.get().store)) {
                (Some(own), Some(other)) => own.url() == other.url() && own.options() == other.options(),
                _ => false,
            }
        })
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.store.name().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<zarrow.CloudStore {}>", self.store.name())
    }
}

/// Converts paths in the options to text, for JSON.
fn plain<'py>(options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let copy = PyDict::new(options.py());
    for (name, value) in options {
        let value = if value.hasattr("__fspath__")? { value.str()?.into_any() } else { value };
        copy.set_item(name, value)?;
    }
    Ok(copy)
}

/// Return the store named by `store`, with options if there are any.
#[pyfunction]
pub fn _with_options<'py>(
    store: &Bound<'py, PyAny>,
    storage_options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let Some(options) = storage_options else { return Ok(store.clone()) };
    let archive = zip_url::remote_archive(store)?;
    let store = archive.as_ref().unwrap_or(store);
    let options = dict(options, "storage_options")?;
    match store.extract::<&str>() {
        Ok(url) if is_cloud_url(url) => {
            Ok(Bound::new(py, CloudStore::new(py, url, Some(options.as_any()))?)?.into_any())
        }
        _ if options.is_empty() => Ok(store.clone()),
        _ => Err(PyValueError::new_err(
            "storage_options need the URL of a cloud store, such as \"s3://bucket/data.zarr\": leave them \
             out, or give such a URL",
        )),
    }
}
