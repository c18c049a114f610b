//! The class `_StoredValues`: values of a store by key, for documents that `zarrow.xarray` prepares, and for `verify`.

use crate::layout::variable::bytes_of;
use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use crate::python::interrupt::interruptible;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use zarrow::store::remote::{Condition, Fetched, ObjectVersion, Put, RemoteStore, fetch_each, wait};
use zarrow::store::{Durability, Store, StoreWriter, check_key};
use zarrow::{DocumentChange, Error, ErrorKind, WriteOptions, commit_documents};

/// Maximum size of a value that is read.
const MOST_NBYTES: u64 = 1 << 30;

/// A value and its version.
type Versioned<'py> = (Bound<'py, PyBytes>, String);

/// The key of a document, its content as it was read, and the content to store.
type ChangedDocument = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// An existing store.
#[pyclass(frozen, name = "_StoredValues", module = "zarrow")]
pub struct StoredValues {
    store: Arc<dyn Store>,
}

impl StoredValues {
    fn writer(&self) -> zarrow::Result<&dyn StoreWriter> {
        self.store.writer().ok_or_else(|| ErrorKind::ReadOnly.into())
    }

    fn remote(&self) -> zarrow::Result<&dyn RemoteStore> {
        let text = "only remote stores have versions";
        self.store.remote().ok_or_else(|| ErrorKind::Unsupported(text.into()).into())
    }

    fn put(&self, key: &str, value: &[u8], condition: Condition) -> zarrow::Result<Put> {
        check_key(key)?;
        let writer = self.remote()?.writer().ok_or(ErrorKind::ReadOnly)?;
        let condition = if writer.has_conditions() { condition } else { Condition::Always };
        let put = |condition: Condition| {
            let body = vec![value.to_vec()].into();
            wait(|done| writer.put(key, body, condition, done), &|| Ok(()))
        };
        match put(condition.clone()) {
            // The server turned out to have no conditions.
            Err(error)
                if matches!(error.kind(), ErrorKind::Unsupported(_)) && condition != Condition::Always =>
            {
                put(Condition::Always)
            }
            done => done,
        }
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

    /// Return the values of several keys of a remote store with their versions, None for missing ones. A version is
    /// empty if the store has none.
    fn get_versions<'py>(&self, py: Python<'py>, keys: Vec<String>) -> PyResult<Vec<Option<Versioned<'py>>>> {
        let found = interruptible(py, |_| {
            let wanted: Vec<(String, u64)> = keys.into_iter().map(|key| (key, MOST_NBYTES)).collect();
            let answers = fetch_each(self.remote()?, &wanted).into_iter().zip(&wanted);
            answers
                .map(|(answer, (key, limit))| {
                    answer.and_then(|fetched| versioned(fetched, *limit)).map_err(|e| self.named(e, key))
                })
                .collect::<zarrow::Result<Vec<_>>>()
        })?;
        let value = |(bytes, version): (Vec<u8>, String)| Ok((bytes_of(py, &bytes)?, version));
        found.into_iter().map(|found| found.map(value).transpose()).collect()
    }

    /// Set a value of a remote store if it still has this version, or if there is none and `version` is None. Return
    /// the new version, empty if it is unknown; None if the condition did not hold. A store without conditions is
    /// set anyway.
    #[pyo3(signature = (key, value, version))]
    fn set_if(
        &self,
        py: Python<'_>,
        key: &str,
        value: &[u8],
        version: Option<&str>,
    ) -> PyResult<Option<String>> {
        interruptible(py, |_| {
            let condition = match version {
                None => Condition::IfAbsent,
                Some("") => Condition::Always,
                Some(version) => Condition::IfVersion(ObjectVersion::new(version)),
            };
            let put = self.put(key, value, condition).map_err(|error| self.named(error, key))?;
            Ok(match put {
                Put::Done(version) => Some(version.map_or_else(String::new, |it| it.as_str().to_owned())),
                Put::Conflict => None,
            })
        })
    }

    /// Return whether the store keeps the conditions of puts: known of a server after the first one.
    fn has_conditions(&self) -> bool {
        let writer = self.store.remote().and_then(RemoteStore::writer);
        writer.is_some_and(|writer| writer.has_conditions())
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

    /// Store the documents of a local store together: a key, the content as it was read, and the content to store. If
    /// one was changed since, store nothing and return its key.
    fn commit(&self, py: Python<'_>, changes: Vec<ChangedDocument>) -> PyResult<Option<String>> {
        let change = |(key, before, after)| DocumentChange { key, before, after };
        let changes: Vec<DocumentChange> = changes.into_iter().map(change).collect();
        interruptible(py, |_| commit_documents(&*self.store, &changes).map_err(|error| self.named(error, "")))
    }

    /// Call `function` while no other writer appends to these arrays of a local store, or resizes them.
    fn with_fixed_shapes(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        function: Py<PyAny>,
    ) -> PyResult<Py<PyAny>> {
        interruptible(py, |interrupted| {
            let call = || Python::attach(|py| function.call0(py));
            zarrow::with_fixed_shapes(&*self.store, &paths, interrupted, call)
                .map_err(|error| self.named(error, ""))
        })?
    }

    /// Remove elements that a failed append stored behind the end of an array, up to this extent of its first axis.
    fn clear_behind(&self, py: Python<'_>, path: &str, extent: u64) -> PyResult<()> {
        interruptible(py, |interrupted| {
            let array = zarrow::open(Arc::clone(&self.store), path)?.into_array()?;
            let mut shape = array.shape().to_vec();
            if let Some(first) = shape.first_mut() {
                *first = (*first).max(extent);
            }
            array.clear_behind(&shape, &WriteOptions::default().cancel(interrupted))
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

/// Returns the bytes of a value and its version, empty if the store has none.
fn versioned(fetched: Fetched, limit: u64) -> zarrow::Result<Option<(Vec<u8>, String)>> {
    match fetched {
        Fetched::Body(body) => {
            let version = body.version.map_or_else(String::new, |version| version.as_str().to_owned());
            Ok(Some((body.bytes, version)))
        }
        Fetched::Missing => Ok(None),
        Fetched::TooLarge(actual) => {
            Err(ErrorKind::Limit { what: "the size of a document", actual, limit }.into())
        }
        Fetched::Changed => Err(ErrorKind::Conflict.into()),
    }
}
