//! Conversion of the crates' errors to the exceptions of `zarrow.errors`.
//!
//! The classes are written in Python, so that they can be pickled, and each derives from a builtin exception.

use crate::python::failure::PythonFailure;
use crate::python::importing::import;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zarrow::{Context, ErrorKind, visible};
use zarrow_array::DataType;

/// A result with an error that can become a Python exception.
pub trait Raise<T> {
    /// Returns the value, or raises the equivalent exception.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for zarrow::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| {
            let (kind, context) = (error.kind(), error.context());
            let mut message = error.to_string();
            if error.hint().is_none() {
                match hint(py, kind, context).attempt(py) {
                    Ok(Some(Some(hint))) => message = format!("{message}: {hint}"),
                    Ok(_) => {}
                    Err(interruption) => return interruption,
                }
            }
            let raised = exception(py, class_of(kind), kind.code(), message, context);
            if let ErrorKind::Io(error) | ErrorKind::Write(error) = kind
                && let Some(errno) = error.raw_os_error()
                && let Err(other) = raised.value(py).setattr("errno", errno)
            {
                return other;
            }
            let failure = match kind {
                ErrorKind::CodecFailed(failure) => failure.downcast_ref::<PythonFailure>(),
                ErrorKind::Io(error) | ErrorKind::Write(error) => {
                    error.get_ref().and_then(|failure| failure.downcast_ref::<PythonFailure>())
                }
                _ => None,
            };
            match failure {
                Some(failure) => failure.cause(py, raised),
                None => raised,
            }
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
            let hint = match kind {
                "needs_copy" => ": call .copy() first",
                "device" => ": call .cpu() first, or zarrow.gpu.asarray(x) for a tensor on a GPU",
                _ => "",
            };
            exception(py, class, kind, format!("{error}{hint}"), &Context::default())
        })
    }
}

impl<T> Raise<T> for zarrow_cuda::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        use zarrow_cuda::Error;
        let (class, kind) = match &self {
            Ok(_) | Err(Error::Array(_) | Error::Zarr(_)) => ("", ""),
            Err(Error::Unavailable { .. }) => ("DeviceError", "unavailable"),
            Err(Error::NoDevice { .. }) => ("DeviceError", "no_device"),
            Err(Error::Forked) => ("DeviceError", "forked"),
            Err(Error::ContextLost { .. }) => ("DeviceError", "context_lost"),
            Err(Error::OutOfMemory { .. }) => ("OutOfMemoryError", "out_of_memory"),
            Err(Error::Unsupported(_)) => ("UnsupportedError", "unsupported"),
            Err(Error::OtherType { .. }) => ("DataTypeError", "data_type"),
            Err(Error::InvalidStream { .. }) => ("DeviceError", "stream"),
            Err(Error::OtherDevice { .. }) => ("ExchangeError", "device"),
            Err(Error::ReadOnly) => ("ExchangeError", "read_only"),
            Err(_) => ("DeviceError", "driver"),
        };
        self.or_else(|error| match error {
            Error::Array(error) => Err(error).raise(py),
            Error::Zarr(error) => Err(error).raise(py),
            error => Err(exception(py, class, kind, error.to_string(), &Context::default())),
        })
    }
}

/// An attempt to interpret a Python object, which calls the object's own methods.
pub trait Attempt<T> {
    /// Returns the result; `None` if an ordinary exception shows that the object is something else. Ctrl-C,
    /// `SystemExit` and `MemoryError` are raised unchanged.
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>>;
}

impl<T> Attempt<T> for PyResult<T> {
    fn attempt(self, py: Python<'_>) -> PyResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_ordinary(py, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether an exception may be handled here: neither Ctrl-C nor `SystemExit` nor `MemoryError`.
pub fn is_ordinary(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py)
}

/// Returns an error of exchanging an array: a `BufferError` and `ValueError`.
pub fn exchange(py: Python<'_>, kind: &str, message: impl Into<String>) -> PyErr {
    exception(py, "ExchangeError", kind, message.into(), &Context::default())
}

/// Returns the error of an unexpected data type: an `ExchangeError` and `TypeError`.
pub fn data_type_mismatch(py: Python<'_>, expected: &DataType, found: &DataType) -> PyErr {
    let message = format!("the data has type {found}, expected {expected}: cast it first");
    data_type_error(py, message)
}

/// Like [`data_type_mismatch`], with the caller's message.
pub fn data_type_error(py: Python<'_>, message: String) -> PyErr {
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Returns the error of a cast that could change values, of the same class.
pub fn unsafe_cast(py: Python<'_>, found: &str, wanted: &DataType, casting: &str) -> PyErr {
    let message = format!(
        "cannot write {found} values to an array of {wanted} with casting={casting:?}: convert them first by \
         values.astype(), or call array.write(selection, values, casting=\"unsafe\")"
    );
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Returns the error of missing elements for a type that is not optional, of the same class.
pub fn no_missing(py: Python<'_>, wanted: &DataType) -> PyErr {
    let message = format!(
        "cannot write missing values (None, or masked) to an array of {wanted}: fill them first by values.filled(0), \
         or create the array with dtype=\"optional[{wanted}]\" or with missing=\"fill\""
    );
    exception(py, "DataTypeError", "data_type", message, &Context::default())
}

/// Returns the error of non-native-endian elements that must not be copied, of the same class.
pub fn byte_order(py: Python<'_>) -> PyErr {
    let message = "the elements are not native-endian and cannot be shared: copy them by zarrow.asarray(x)";
    exception(py, "DataTypeError", "data_type", message.into(), &Context::default())
}

/// Warns, attributed to the calling line.
pub fn warning(py: Python<'_>, message: &str) -> PyResult<()> {
    let class = import(py, "zarrow.errors")?.getattr("ZarrowWarning")?;
    import(py, "warnings")?.call_method1("warn", (message, class)).map(drop)
}

/// Returns the error of an invalid index: an `IndexError`.
pub fn indexing(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "IndexingError", "index", message.into(), &Context::default())
}

/// Returns the error of an array in place of a group, or the reverse: a `TypeError`.
pub fn node_type(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "NodeTypeError", "wrong_node", message.into(), &Context::default())
}

/// Returns the error of valid but unsupported data: a `NotImplementedError`.
pub fn unsupported(py: Python<'_>, message: impl Into<String>) -> PyErr {
    exception(py, "UnsupportedError", "unsupported", message.into(), &Context::default())
}

/// Returns advice that only Python can give: what exists at a path without a node, or the package of a codec.
fn hint(py: Python<'_>, kind: &ErrorKind, context: &Context) -> PyResult<Option<String>> {
    let found = match (kind, &context.store, &context.path) {
        (ErrorKind::NotFound, Some(store), Some(path)) if path.is_empty() => {
            import(py, "zarrow.hints.not_found").and_then(|module| module.call_method1("explain", (store,)))
        }
        (ErrorKind::UnknownCodec(name), ..) => {
            import(py, "zarrow.codecs").and_then(|module| module.call_method1("_whereabouts", (name,)))
        }
        (ErrorKind::Exists("an array" | "a group" | "a node"), ..) => {
            let hint = "create_array(..., overwrite=True) replaces it and all of its descendants; del group[\"name\"] \
                        erases it";
            return Ok(Some(hint.to_owned()));
        }
        (ErrorKind::ReadOnly, store, _) => {
            return Ok(Some(how_to_write(store.as_deref().unwrap_or_default()).to_owned()));
        }
        _ => return Ok(None),
    };
    found.and_then(|hint| hint.extract())
}

/// Returns advice for writing to a read-only store.
fn how_to_write(store: &str) -> &'static str {
    if store.to_ascii_lowercase().ends_with(".zip") || store.starts_with("zip://") {
        "zip archives are read-only: write a folder, and pack it"
    } else if store.starts_with("http") {
        "web servers are read-only: write a folder or a bucket"
    } else {
        "open it with mode=\"r+\" to write"
    }
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
        ErrorKind::Io(_) | ErrorKind::Write(_) | ErrorKind::Uncertain(_) | ErrorKind::Conflict => {
            "StoreError"
        }
        ErrorKind::BadKey(_) => "InvalidKeyError",
        ErrorKind::Metadata(_) => "MetadataError",
        ErrorKind::UnknownCodec(_)
        | ErrorKind::BadCodec(_)
        | ErrorKind::Corrupt(_)
        | ErrorKind::CodecFailed(_)
        | ErrorKind::BadValue(_)
        | ErrorKind::Checksum { .. }
        | ErrorKind::WrongSize { .. }
        | ErrorKind::TooLong { .. } => "CodecError",
        ErrorKind::Limit { .. } | ErrorKind::LinkLoop => "LimitError",
        ErrorKind::Index(_) => "IndexingError",
        ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }) => "OutOfMemoryError",
        ErrorKind::Array(zarrow_array::Error::NoSuchType { .. } | zarrow_array::Error::NeedsCopy { .. }) => {
            "ExchangeError"
        }
        // The contents of a chunk are invalid for its type: decreasing offsets, broken UTF-8.
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
        import(py, "zarrow.errors")?.call_method(class, (visible(&message),), Some(&place))
    };
    match build() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
