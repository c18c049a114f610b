//! Exceptions of Python code called by the engine, as causes of the engine's errors.

use crate::python::gil::Kept;
use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyPermissionError, PyTimeoutError};
use pyo3::prelude::*;
use std::fmt;
use std::io;

/// An exception.
#[derive(Debug)]
pub struct PythonFailure {
    error: Kept<PyErr>,
    text: String,
}

impl PythonFailure {
    /// Stores `error` and its text.
    pub fn new(error: PyErr) -> PythonFailure {
        let text = error.to_string();
        PythonFailure { error: Kept::new(error), text }
    }

    /// Converts the failure to a store's error.
    pub fn into_io(self, py: Python<'_>) -> io::Error {
        let is = |class: &Bound<'_, pyo3::types::PyType>| self.error.is_instance(py, class);
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
        let code = self.error.value(py).getattr("errno").and_then(|errno| errno.extract());
        match code.map(|code| io::Error::from_raw_os_error(code).kind()) {
            Ok(io::ErrorKind::NotFound) | Err(_) => io::ErrorKind::Other,
            Ok(kind) => kind,
        }
    }

    /// Returns the exception to raise: `raised` with the original exception as its cause. `MemoryError` and
    /// exceptions that end the program (Ctrl-C, `SystemExit`) are raised unchanged.
    pub fn cause(&self, py: Python<'_>, raised: PyErr) -> PyErr {
        let cause = self.error.clone_ref(py);
        if !cause.is_instance_of::<PyException>(py) || cause.is_instance_of::<PyMemoryError>(py) {
            return cause;
        }
        raised.set_cause(py, Some(cause));
        raised
    }
}

impl fmt::Display for PythonFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for PythonFailure {}
