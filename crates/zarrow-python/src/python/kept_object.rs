//! Objects of Python that live in the engine, and are dropped with the GIL.

use crate::python::gil;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An object of Python's. Where the GIL was let go by another library PyO3 does not know it: so [`gil::with_value`] takes it
/// to drop the object.
#[derive(Debug)]
pub struct KeptObject(Option<Py<PyAny>>);

impl KeptObject {
    /// Keeps `object`.
    pub fn new(object: Py<PyAny>) -> KeptObject {
        KeptObject(Some(object))
    }

    /// The object.
    pub fn bind<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        let object = self.0.as_ref().ok_or_else(|| PyValueError::new_err("the object was dropped"))?;
        Ok(object.bind(py))
    }

    /// The object's address, which tells it from others that live.
    pub fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |object| object.as_ptr().addr())
    }
}

impl Drop for KeptObject {
    fn drop(&mut self) {
        let object = self.0.take();
        // Where the interpreter has ended the object has too.
        if let Some(object) = gil::with_value(object, |_, object| drop(object)) {
            std::mem::forget(object);
        }
    }
}
