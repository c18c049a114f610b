//! Errors of the crates below as the exceptions of `zarrow.errors`.
//!
//! The classes are written in Python, so that they pickle and each derives from the builtin that people catch.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarrow::{Context, ErrorKind};

/// A result whose error becomes a Python exception.
pub trait Raise<T> {
    /// The value, or the exception that says the same as the error.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for zarrow::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| {
            let class = class_of(error.kind());
            exception(py, class, error.kind().code(), error.to_string(), error.context())
        })
    }
}

impl<T> Raise<T> for zarrow_array::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| {
            use zarrow_array::Error;
            let (class, kind) = match &error {
                Error::OutOfMemory { .. } => ("OutOfMemoryError", "out_of_memory"),
                Error::NoSuchType { .. } => ("ExchangeError", "no_such_type"),
                Error::ReadOnly { .. } => ("ExchangeError", "read_only"),
                Error::NeedsCopy { .. } => ("ExchangeError", "needs_copy"),
                _ => ("ShapeError", "shape"),
            };
            let hint = if kind == "needs_copy" { ": call .copy() first" } else { "" };
            exception(py, class, kind, format!("{error}{hint}"), &Context::default())
        })
    }
}

/// An array that cannot go where it was asked to go: a `BufferError`, and a `ValueError` too.
pub fn exchange(py: Python<'_>, kind: &str, message: impl Into<String>) -> PyErr {
    exception(py, "ExchangeError", kind, message.into(), &Context::default())
}

/// An index that cannot be used: an `IndexError`.
pub fn indexing(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "IndexingError", "index", message.into(), &Context::default())
}

/// Something valid that is not there: a `NotImplementedError`.
pub fn unsupported(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "UnsupportedError", "unsupported", message.into(), &Context::default())
}

fn class_of(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Exists(_) => "NodeExistsError",
        ErrorKind::WrongNode { .. } => "NodeTypeError",
        ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => "NotFoundError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Write(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => "ReadOnlyError",
        ErrorKind::Io(_) | ErrorKind::Write(_) => "StoreError",
        ErrorKind::BadKey(_) => "InvalidKeyError",
        ErrorKind::Metadata(_) => "MetadataError",
        ErrorKind::UnknownCodec(_)
        | ErrorKind::BadCodec(_)
        | ErrorKind::Corrupt(_)
        | ErrorKind::Checksum { .. }
        | ErrorKind::WrongSize { .. } => "CodecError",
        ErrorKind::Limit { .. } => "LimitError",
        ErrorKind::Index(_) => "IndexingError",
        ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }) => "OutOfMemoryError",
        // What a chunk holds does not make an array of its type: offsets that run backwards, broken UTF-8.
        ErrorKind::Array(_) => "CodecError",
        ErrorKind::Unsupported(_) => "UnsupportedError",
        ErrorKind::Internal(_) => "InternalError",
        _ => "ZarrowError",
    }
}

fn exception(py: Python<'_>, class: &str, kind: &str, message: String, context: &Context) -> PyErr {
    let build = || {
        let place = PyDict::new(py);
        place.set_item("kind", kind)?;
        place.set_item("store", &context.store)?;
        place.set_item("path", &context.path)?;
        place.set_item("chunk", context.chunk.as_ref().map(|chunk| PyTuple::new(py, chunk)).transpose()?)?;
        place.set_item("codec", &context.codec)?;
        py.import("zarrow.errors")?.getattr(class)?.call((message,), Some(&place))
    };
    match build() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
