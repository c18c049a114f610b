//! Exceptions of Python code called by the engine, as causes of the engine's errors.

use crate::python::gil;
use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyPermissionError, PyTimeoutError};
use pyo3::prelude::*;
use std::fmt;
use std::io;

/// An exception, dropped with the GIL.
#[derive(Debug)]
pub struct PythonFailure {
    error: Option<PyErr>,
    text: String,
}

impl PythonFailure {
    /// Stores `error` and its text.
    pub fn new(error: PyErr) -> PythonFailure {
        let text = error.to_string();
        PythonFailure { error: Some(error), text }
    }

    /// Converts the failure to a store's error.
    pub fn into_io(self, py: Python<'_>) -> io::Error {
        let is = |class: &Bound<'_, pyo3::types::PyType>| {
            self.error.as_ref().is_some_and(|error| error.is_instance(py, class))
        };
        let kind = if is(&py.get_type::<PyPermissionError>()) {
            io::ErrorKind::PermissionDenied
        } else if is(&py.get_type::<PyTimeoutError>()) {
            io::ErrorKind::TimedOut
        } else if is(&py.get_type::<PyOSError>()) {
            self.os_error_kind(py)
        } else {
            io::ErrorKind::Other
        };
        io::Error::new(kind, self)
    }

    /// Returns the disk's error kind from an `OSError`. A missing file is an error of the store, not a missing
    /// node.
    fn os_error_kind(&self, py: Python<'_>) -> io::ErrorKind {
        let code =
            self.error.as_ref().and_then(|error| error.value(py).getattr("errno").ok()?.extract().ok());
        match code.map(|code| io::Error::from_raw_os_error(code).kind()) {
            Some(io::ErrorKind::NotFound) | None => io::ErrorKind::Other,
            Some(kind) => kind,
        }
    }

    /// Returns the exception to raise: `raised` with the original exception as its cause. `MemoryError` and
    /// exceptions that end the program (Ctrl-C, `SystemExit`) are raised unchanged.
    pub fn cause(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        let Some(cause) = self.error.as_ref().map(|error| error.clone_ref(py)) else { return raised };
        if !cause.is_instance_of::<PyException>(py) || cause.is_instance_of::<PyMemoryError>(py) {
            return cause;
        }
        raised.set_cause(py, Some(cause));
        raised
    }
}

impl Drop for PythonFailure {
    fn drop(&mut self) {
        let error = self.error.take();
        if let Some(error) = gil::with_value(error, |_, error| drop(error)) {
            std::mem::forget(error);
        }
    }
}

impl fmt::Display for PythonFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for PythonFailure {}
