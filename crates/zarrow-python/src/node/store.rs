//! Stores passed from Python: a folder, a URL, or a store object.

use crate::node::cloud_store::CloudStore;
use crate::node::remote_zip;
use crate::node::zip_url::{self, ZipUrl};
use crate::python::argument::refused;
use crate::python::error::{Attempt, Raise};
use crate::python::importing::import;
use crate::python::interpreter_exit;
use crate::python_store::PythonStore;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zarrow::store::{
    Durability, FilesystemStore, ReadOnlyStore, Store, StoreWriter, join, open_path, open_path_with,
};

#[doc = help!("MemoryStore")]
#[pyclass(frozen, module = "zarrow")]
pub struct MemoryStore {
    store: Arc<zarrow::store::MemoryStore>,
}

impl MemoryStore {
    /// Returns the Python object of `store`, which must be a memory store.
    pub fn over(store: &Arc<dyn Store>) -> PyResult<MemoryStore> {
        let store: Arc<dyn Any + Send + Sync> = Arc::clone(store) as Arc<dyn Any + Send + Sync>;
        match store.downcast() {
            Ok(store) => Ok(MemoryStore { store }),
            Err(_) => Err(PyTypeError::new_err("only folders and memory stores can be pickled")),
        }
    }

    /// Collects the keys below `prefix` and their bytes.
    fn collect<'py>(&self, py: Python<'py>, prefix: &str, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        for name in self.store.list(prefix).raise(py)? {
            let key = join(prefix, &name);
            match self.store.get(&key, u64::MAX).raise(py)? {
                Some(bytes) => dict.set_item(key, crate::layout::variable::bytes_of(py, &bytes)?)?,
                None => self.collect(py, &key, dict)?,
            }
        }
        Ok(())
    }
}

#[pymethods]
impl MemoryStore {
    #[new]
    #[pyo3(signature = (values = None, /))]
    fn new(py: Python<'_>, values: Option<&Bound<'_, PyAny>>) -> PyResult<MemoryStore> {
        let store = zarrow::store::MemoryStore::default();
        let expected = "a dict of bytes by key";
        let values = values.map(|values| values.cast::<PyDict>().map_err(|_| refused(values, expected)));
        for (key, value) in values.transpose()?.into_iter().flatten() {
            let key: String = key.extract().map_err(|_| refused(&key, "keys of type str"))?;
            match value.cast::<PyBytes>() {
                Ok(value) => store.set(&key, &[value.as_bytes()], Durability::None),
                Err(_) => {
                    let value = value.extract::<Vec<u8>>().map_err(|_| refused(&value, "bytes as values"))?;
                    store.set(&key, &[&value], Durability::None)
                }
            }
            .map_err(|error| error.in_array(store.name(), &key))
            .raise(py)?;
        }
        Ok(MemoryStore { store: Arc::new(store) })
    }

    #[doc = help!("MemoryStore.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.collect(py, "", &dict)?;
        Ok(dict)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let values = slf.get().to_dict(py)?;
        PyTuple::new(py, [slf.get_type().into_any(), PyTuple::new(py, [values])?.into_any()])
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let nbytes = self.store.nbytes("").raise(py)?;
        Ok(format!("<zarrow.MemoryStore of {nbytes} bytes>"))
    }
}

/// A named store; it may not exist yet.
pub enum StoreLocation {
    /// A folder, or a zip archive.
    Folder(PathBuf),
    /// A zip archive, or a folder in it.
    Archive(ZipUrl),
    /// An existing store.
    Store(Arc<dyn Store>),
    /// A location that must not be written to.
    ReadOnly(Box<StoreLocation>),
}

impl StoreLocation {
    /// Parses `object`.
    pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<StoreLocation> {
        interpreter_exit::guard_thread();
        if let Ok(memory) = object.cast::<MemoryStore>() {
            return Ok(StoreLocation::Store(Arc::clone(&memory.get().store) as Arc<dyn Store>));
        }
        if let Ok(cloud) = object.cast::<CloudStore>() {
            return Ok(StoreLocation::Store(cloud.get().store()));
        }
        if !object.is_instance_of::<PyString>() && object.hasattr("__fspath__")? {
            return path(object).map(StoreLocation::Folder);
        }
        if let Some(url) = zip_url::remote_archive(object)? {
            return StoreLocation::from_python(&url);
        }
        if let Some(archive) = ZipUrl::from_python(object)? {
            return Ok(StoreLocation::Archive(archive));
        }
        if let Some(store) = CloudStore::from_url(object)? {
            return Ok(StoreLocation::Store(store));
        }
        match object.extract::<&str>() {
            Ok(text) if text.starts_with("reference://") => StoreLocation::from_object(object),
            _ if object.is_instance_of::<PyString>() => folder(object).map(StoreLocation::Folder),
            _ => StoreLocation::from_object(object),
        }
    }

    /// Resolves an object that is not a path: a store of another library, or a mapping.
    fn from_object(object: &Bound<'_, PyAny>) -> PyResult<StoreLocation> {
        let resolve = import(object.py(), "zarrow.store_objects")?.getattr("resolve")?;
        let Some((found, is_read_only)) =
            resolve.call1((object,))?.extract::<Option<(Bound<'_, PyAny>, bool)>>()?
        else {
            return Err(unknown(object));
        };
        let location = match found.hasattr("submit")? {
            true => StoreLocation::Store(PythonStore::from_python(&found)?),
            false => StoreLocation::from_python(&found)?,
        };
        Ok(if is_read_only { StoreLocation::ReadOnly(Box::new(location)) } else { location })
    }

    /// Opens an existing store.
    pub fn open(self) -> zarrow::Result<Arc<dyn Store>> {
        match self {
            StoreLocation::Folder(folder) => open_path(folder),
            StoreLocation::Archive(archive) => archive.open(),
            StoreLocation::Store(store) => remote_zip::open(store),
            StoreLocation::ReadOnly(location) => Ok(Arc::new(ReadOnlyStore::new(location.open()?))),
        }
    }

    /// Opens an existing store and calls `open`. Repeats both if another process replaces the folder.
    pub fn open_node<T>(self, open: &dyn Fn(Arc<dyn Store>) -> zarrow::Result<T>) -> zarrow::Result<T> {
        match self {
            StoreLocation::Folder(folder) => open_path_with(&folder, open),
            StoreLocation::ReadOnly(location) => {
                location.open_node(&|store| open(Arc::new(ReadOnlyStore::new(store))))
            }
            location => open(location.open()?),
        }
    }

    /// Returns the store if it is asynchronous. An archive is not: opening it reads its directory.
    pub fn into_remote(self) -> Option<Arc<dyn Store>> {
        match self {
            StoreLocation::Store(store) => {
                Some(store).filter(|store| store.remote().is_some() && !remote_zip::is_archive(&**store))
            }
            StoreLocation::ReadOnly(location) => {
                location.into_remote().map(|store| Arc::new(ReadOnlyStore::new(store)) as Arc<dyn Store>)
            }
            StoreLocation::Folder(_) | StoreLocation::Archive(_) => None,
        }
    }

    /// Opens the store for a node at `path`, creating it if necessary.
    pub fn create(self, path: &str) -> zarrow::Result<Arc<dyn Store>> {
        match self {
            StoreLocation::Folder(folder) if zip_url::is_named_so(&folder) && !folder.is_dir() => {
                ZipUrl::from_archive(folder).create()
            }
            StoreLocation::Archive(archive) => archive.create(),
            StoreLocation::Folder(folder) => {
                // A refused path must not create a folder.
                zarrow::new_path(path)
                    .map_err(|error| error.in_array(&folder.display().to_string(), path))?;
                Ok(Arc::new(FilesystemStore::create(folder)?))
            }
            StoreLocation::Store(store) => remote_zip::create(store),
            location @ StoreLocation::ReadOnly(_) => location.open(),
        }
    }
}

/// Returns the error for an object that is not a store.
fn unknown(store: &Bound<'_, PyAny>) -> PyErr {
    let found = store.get_type();
    let found = found.fully_qualified_name().map_or_else(|_| String::from("?"), |name| name.to_string());
    PyTypeError::new_err(format!(
        "a store is a folder or a zip file (str or os.PathLike), a URL (file://, zip://, s3://, gs://, az://, https://, \
         reference://), a zarrow.CloudStore, a zarrow.MemoryStore, a store of zarr-python, obstore, fsspec, icechunk or VirtualiZarr, or a \
         mapping of keys to bytes, got {found}"
    ))
}

/// Returns the path of an object.
fn path(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path: PathBuf = object.extract().attempt(object.py())?.ok_or_else(|| unknown(object))?;
    if !object.is_instance_of::<PyString>()
        && let Some(url) = url_of_path(&path)
    {
        return Err(PyValueError::new_err(format!(
            "{:?} is a URL that pathlib changed: pass it as a str, {url:?}",
            path.display().to_string()
        )));
    }
    Ok(path)
}

/// Returns the original URL of a path, if pathlib removed one of its two slashes.
fn url_of_path(path: &Path) -> Option<String> {
    let (scheme, rest) = path.to_str()?.split_once(":/")?;
    let url = format!("{scheme}://{}", rest.trim_start_matches('/'));
    let is_url = zarrow_cloud::is_cloud_url(&url) || matches!(scheme, "file" | "zip");
    (is_url && !path.exists()).then_some(url)
}

/// Returns the folder named by a path or a `file://` URL.
fn folder(store: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = store.py();
    let Some((scheme, rest)) = store.extract::<&str>().ok().and_then(|text| text.split_once("://")) else {
        return path(store);
    };
    zip_url::path_of_url(py, scheme, rest)
}
