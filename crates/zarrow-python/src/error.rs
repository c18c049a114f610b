//! Errors of the crates below as the exceptions of `zarrow.errors`.
//!
//! The classes are written in Python, so that they pickle and each derives from the builtin that people catch.

use crate::importing::import;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarrow::{Context, ErrorKind, visible};
use zarrow_array::DataType;

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
                Error::UnknownType { .. } => ("ExchangeError", "no_such_type"),
                Error::LosesMeaning { .. } => ("ExchangeError", "loses_meaning"),
                Error::Device { .. } => ("ExchangeError", "device"),
                Error::Misaligned { .. } => ("ExchangeError", "misaligned"),
                Error::DLPack(_) => ("ExchangeError", "dlpack"),
                Error::BadArrow(_) => ("ExchangeError", "arrow"),
                _ => ("ShapeError", "shape"),
            };
            let hint = if kind == "needs_copy" { ": call .copy() first" } else { "" };
            exception(py, class, kind, format!("{error}{hint}"), &Context::default())
        })
    }
}

/// An attempt to take a Python object for something, which calls methods of the object's own.
pub trait Attempt<T> {
    /// The result; `None` where any ordinary exception says that the object is something else. Ctrl-C, `SystemExit` and
    /// `MemoryError` are raised as they are.
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>>;
}

impl<T> Attempt<T> for PyResult<T> {
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(error)
                if error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// An array that cannot go where it was asked to go: a `BufferError`, and a `ValueError` too.
pub fn exchange(py: Python<'_>, kind: &str, message: impl Into<String>) -> PyErr {
    exception(py, "ExchangeError", kind, message.into(), &Context::default())
}

/// An array of another data type than was asked for: an `ExchangeError`, and a `TypeError` too.
pub fn data_type_mismatch(py: Python<'_>, expected: &DataType, found: &DataType) -> PyErr {
    let message = format!("the data is of type {found}, and not {expected}: nothing is cast");
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Values that could change on their way to the stored type: the same error.
pub fn unsafe_cast(py: Python<'_>, found: &str, wanted: &DataType) -> PyErr {
    let message = format!(
        "values of {found} are not written as {wanted}, since only safe casts are made: cast them first"
    );
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Elements that are missing where the stored type has no such elements: the same error.
pub fn no_missing(py: Python<'_>, wanted: &DataType) -> PyErr {
    let message =
        format!("elements that are missing are not written as {wanted}: that takes an optional type");
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Elements in the byte order that the machine does not have, where they may not be copied: the same error.
pub fn byte_order(py: Python<'_>) -> PyErr {
    let message = "the elements are in a byte order that is not the machine's: zarrow.asarray(x) copies them";
    exception(py, "DataTypeError", "data_type", message.into(), &Context::default())
}

/// An index that cannot be used: an `IndexError`.
pub fn indexing(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "IndexingError", "index", message.into(), &Context::default())
}

/// An array where a group was asked for, or the other way round: a `TypeError`.
pub fn node_type(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "NodeTypeError", "wrong_node", message.into(), &Context::default())
}

/// Something valid that is not there: a `NotImplementedError`.
pub fn unsupported(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "UnsupportedError", "unsupported", message.into(), &Context::default())
}

fn class_of(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Exists(_) | ErrorKind::Foreign(_) => "NodeExistsError",
        ErrorKind::Stale(_) => "StaleHandleError",
        ErrorKind::WrongNode { .. } => "NodeTypeError",
        ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound => "NotFoundError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Write(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => "ReadOnlyError",
        ErrorKind::Io(error) | ErrorKind::Write(error)
            if error.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            "StorePermissionError"
        }
        ErrorKind::Io(_) | ErrorKind::Write(_) => "StoreError",
        ErrorKind::BadKey(_) => "InvalidKeyError",
        ErrorKind::Metadata(_) => "MetadataError",
        ErrorKind::UnknownCodec(_)
        | ErrorKind::BadCodec(_)
        | ErrorKind::Corrupt(_)
        | ErrorKind::BadValue(_)
        | ErrorKind::Checksum { .. }
        | ErrorKind::WrongSize { .. }
        | ErrorKind::TooLong { .. } => "CodecError",
        ErrorKind::Limit { .. } => "LimitError",
        ErrorKind::Index(_) => "IndexingError",
        ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }) => "OutOfMemoryError",
        ErrorKind::Array(zarrow_array::Error::NoSuchType { .. } | zarrow_array::Error::NeedsCopy { .. }) => {
            "ExchangeError"
        }
        // What a chunk holds does not make an array of its type: offsets that run backwards, broken UTF-8.
        ErrorKind::Array(_) => "CodecError",
        ErrorKind::Shape(_) => "ShapeError",
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
        import(py, "zarrow.errors")?.getattr(class)?.call((visible(&message),), Some(&place))
    };
    match build() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
