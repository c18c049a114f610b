//! Stores as Python names them: a folder, a file:// URL, or a `MemoryStore`.

use crate::error::{Raise, unsupported};
use crate::importing::import;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use zarrow::store::{Durability, FilesystemStore, Store, StoreWriter, join};

/// A store in memory, for tests and for small hierarchies that never touch a disk.
#[pyclass(frozen, module = "zarrow")]
pub struct MemoryStore {
    store: Arc<zarrow::store::MemoryStore>,
}

impl MemoryStore {
    /// The Python side of `store`, which has to be one in memory.
    pub fn over(store: &Arc<dyn Store>) -> PyResult<MemoryStore> {
        let store: Arc<dyn Any + Send + Sync> = Arc::clone(store) as Arc<dyn Any + Send + Sync>;
        match store.downcast() {
            Ok(store) => Ok(MemoryStore { store }),
            Err(_) => Err(PyTypeError::new_err("this store cannot be pickled")),
        }
    }

    /// The keys below `prefix`, and their bytes.
    fn collect<'py>(&self, py: Python<'py>, prefix: &str, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        for name in self.store.list(prefix).raise(py)? {
            let key = join(prefix, &name);
            match self.store.get(&key, u64::MAX).raise(py)? {
                Some(bytes) => dict.set_item(key, crate::variable::bytes_of(py, &bytes)?)?,
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
    fn new(py: Python<'_>, values: Option<&Bound<'_, PyDict>>) -> PyResult<MemoryStore> {
        let store = zarrow::store::MemoryStore::default();
        for (key, value) in values.into_iter().flatten() {
            let key: String = key.extract()?;
            match value.cast::<PyBytes>() {
                Ok(value) => store.set(&key, &[value.as_bytes()], Durability::None),
                Err(_) => store.set(&key, &[&value.extract::<Vec<u8>>()?], Durability::None),
            }
            .raise(py)?;
        }
        Ok(MemoryStore { store: Arc::new(store) })
    }

    /// Give a copy of all values by their keys.
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

/// A store that is named, but need not exist.
pub enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A store that is there.
    Store(Arc<dyn Store>),
}

impl Place {
    /// What `object` names.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Place> {
        match object.cast::<MemoryStore>() {
            Ok(memory) => Ok(Place::Store(Arc::clone(&memory.get().store) as Arc<dyn Store>)),
            Err(_) => folder(object).map(Place::Folder),
        }
    }

    /// The store, which has to be there.
    pub fn open(self) -> zarrow::Result<Arc<dyn Store>> {
        match self {
            Place::Folder(folder) => Ok(Arc::new(FilesystemStore::open(folder)?)),
            Place::Store(store) => Ok(store),
        }
    }

    /// The store, which is made where it is not there, for a node at `path`.
    pub fn create(self, path: &str) -> zarrow::Result<Arc<dyn Store>> {
        match self {
            Place::Folder(folder) => {
                // A path that is refused makes no folder.
                zarrow::new_path(path)
                    .map_err(|error| error.in_array(&folder.display().to_string(), path))?;
                Ok(Arc::new(FilesystemStore::create(folder)?))
            }
            Place::Store(store) => Ok(store),
        }
    }
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
    import(py, "urllib.parse")?.call_method1("unquote", (path,))?.extract()
}
