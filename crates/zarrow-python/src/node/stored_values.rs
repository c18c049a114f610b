//! The class `_StoredValues`: values of a store by key, for the documents that `zarrow.xarray` prepares.

use crate::layout::variable::bytes_of;
use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use crate::python::interrupt::interruptible;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use zarrow::store::{Durability, Store, StoreWriter, check_key};
use zarrow::{Error, ErrorKind};

/// Maximum size of a value that is read.
const MOST_NBYTES: u64 = 1 << 30;

/// An existing store.
#[pyclass(frozen, name = "_StoredValues", module = "zarrow")]
pub struct StoredValues {
    store: Arc<dyn Store>,
}

impl StoredValues {
    fn writer(&self) -> zarrow::Result<&dyn StoreWriter> {
        self.store.writer().ok_or_else(|| ErrorKind::ReadOnly.into())
    }

    fn named(&self, error: Error, key: &str) -> Error {
        error.in_array(self.store.name(), key)
    }
}

#[pymethods]
impl StoredValues {
    /// Open a store; with `create`, create a missing folder.
    #[new]
    #[pyo3(signature = (store, *, create))]
    fn new(store: &Bound<'_, PyAny>, create: bool) -> PyResult<StoredValues> {
        let py = store.py();
        let location = StoreLocation::from_python(store)?;
        let store = py.detach(|| if create { location.create("") } else { location.open() });
        Ok(StoredValues { store: store.raise(py)? })
    }

    /// Raise an error for an invalid key.
    #[staticmethod]
    fn check_key(py: Python<'_>, key: &str) -> PyResult<()> {
        check_key(key).map_err(|error| error.in_array("", key)).raise(py)
    }

    /// Return whether the store answers immediately, such as a folder.
    fn is_local(&self) -> bool {
        self.store.remote().is_none()
    }

    /// Return the values of several keys, None for missing ones. A remote store gets all requests at once.
    fn get_each<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<String>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let found = interruptible(py, |_| {
            let wanted: Vec<(String, u64)> = keys.into_iter().map(|key| (key, MOST_NBYTES)).collect();
            let found = self.store.get_each(&wanted).into_iter().zip(&wanted);
            found
                .map(|(got, (key, _))| got.map_err(|error| self.named(error, key)))
                .collect::<zarrow::Result<Vec<_>>>()
        })?;
        found.into_iter().map(|value| value.map(|bytes| bytes_of(py, &bytes)).transpose()).collect()
    }

    /// List the names directly below a prefix.
    fn list(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<String>> {
        interruptible(py, |_| self.store.list(prefix).map_err(|error| self.named(error, prefix)))
    }

    /// Set a value in one step.
    fn set(&self, py: Python<'_>, key: &str, value: &[u8]) -> PyResult<()> {
        interruptible(py, |_| {
            check_key(key)
                .and_then(|()| self.writer()?.set(key, &[value], Durability::None))
                .map_err(|error| self.named(error, key))
        })
    }

    /// Erase a value; return whether there was one.
    fn erase(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        interruptible(py, |_| {
            check_key(key)
                .and_then(|()| self.writer()?.erase(key, Durability::None))
                .map_err(|error| self.named(error, key))
        })
    }

    /// Erase all values below a prefix.
    fn erase_prefix(&self, py: Python<'_>, prefix: &str) -> PyResult<bool> {
        interruptible(py, |_| {
            self.writer()
                .and_then(|writer| writer.erase_prefix(prefix, Durability::None))
                .map_err(|error| self.named(error, prefix))
        })
    }
}
