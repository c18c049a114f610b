//! Python objects kept in the engine, and dropped with the GIL.

use crate::python::gil;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A Python object. PyO3 does not notice if another library has released the GIL, so [`gil::with_value`] takes it
/// to drop the object.
#[derive(Debug)]
pub struct KeptObject(Option<Py<PyAny>>);

impl KeptObject {
    /// Keeps `object`.
    pub fn new(object: Py<PyAny>) -> KeptObject {
        KeptObject(Some(object))
    }

    /// Returns the object.
    pub fn bind<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        let object = self.0.as_ref().ok_or_else(|| PyValueError::new_err("the object was dropped"))?;
        Ok(object.bind(py))
    }

    /// Returns the object's address, unique among live objects.
    pub fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |object| object.as_ptr().addr())
    }
}

impl Drop for KeptObject {
    fn drop(&mut self) {
        let object = self.0.take();
        // If the interpreter has ended, so has the object.
        if let Some(object) = gil::with_value(object, |_, object| drop(object)) {
            std::mem::forget(object);
        }
    }
}
