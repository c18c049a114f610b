//! Codecs that are written in Python: `zarrow.codecs.register`.
//!
//! 1. `zarrow.codecs` makes of what the user gave an object with `decode(bytes)` and `encode(bytes, dtype, shape)`, which
//!    give bytes. It is made when an array is opened, and called from the threads of the pool with the GIL.
//! 2. A codec gets copies: it may keep what it got, and no memory of ours is lent to it.
//! 3. What it raised becomes the cause of a `CodecError`; Ctrl-C, `SystemExit` and `MemoryError` are raised as they are.
//! 4. Where the GIL was let go by another library PyO3 does not know it: so [`gil::with`] takes it, to drop objects too.

use crate::export::numpy;
use crate::layout::variable::bytes_of;
use crate::python::error::Raise;
use crate::python::{gil, json};
use pyo3::exceptions::{PyException, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::fmt;
use std::sync::Arc;
use zarrow::codec::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};

/// Register what makes a codec of a configuration under a name, from what `zarrow.codecs` has put in order.
#[pyfunction]
pub fn _register_codec(py: Python<'_>, name: &str, kind: &str, make: Py<PyAny>) -> PyResult<()> {
    let kind = match kind {
        "bytes_to_bytes" => CodecKind::BytesToBytes,
        "array_to_array" => CodecKind::ArrayToArray,
        "array_to_bytes" => CodecKind::ArrayToBytes,
        other => {
            return Err(PyValueError::new_err(format!(
                "kind is {other:?}, expected \"bytes_to_bytes\", \"array_to_array\" or \"array_to_bytes\""
            )));
        }
    };
    let make = Object(Some(make));
    let registered = register(name, kind, move |configuration| {
        let codec = with_gil(|py| Ok(make.bind(py)?.call1((json::object(py, configuration)?,))?.unbind()))?;
        Ok(Arc::new(PythonCodec(Object(Some(codec)))))
    });
    registered.raise(py)
}

/// An object of Python's, dropped with the GIL (step 4).
#[derive(Debug)]
struct Object(Option<Py<PyAny>>);

impl Object {
    fn bind<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        let object = self.0.as_ref().ok_or_else(|| PyValueError::new_err("the codec was dropped"))?;
        Ok(object.bind(py))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let object = self.0.take();
        // Where the interpreter has ended the object has too.
        if let Some(object) = gil::with_value(object, |_, object| drop(object)) {
            std::mem::forget(object);
        }
    }
}

/// A codec, as it was configured (step 1).
#[derive(Debug)]
struct PythonCodec(Object);

impl Codec for PythonCodec {
    fn decode(
        &self,
        encoded: &[u8],
        _: Option<ChunkDescription<'_>>,
        decoded: &mut DecodedBytes<'_>,
    ) -> Result<(), CodecFailure> {
        with_gil(|py| {
            let given = self.0.bind(py)?.call_method1("decode", (bytes_of(py, encoded)?,))?;
            Ok(decoded.push(given.cast::<PyBytes>()?.as_bytes()))
        })?
        .map_err(CodecFailure::from)
    }

    fn encode(&self, decoded: &[u8], chunk: Option<ChunkDescription<'_>>) -> Result<Vec<u8>, CodecFailure> {
        with_gil(|py| {
            let (dtype, shape) = match chunk {
                None => (None, None),
                Some(chunk) => {
                    (Some(numpy::dtype(py, chunk.data_type)?), Some(PyTuple::new(py, chunk.shape)?))
                }
            };
            let arguments = (bytes_of(py, decoded)?, dtype, shape);
            let given = self.0.bind(py)?.call_method1("encode", arguments)?;
            Ok(zarrow_array::allocation::copied(given.cast::<PyBytes>()?.as_bytes()))
        })?
        .map_err(|error| zarrow::Error::from(error).into())
    }
}

/// Runs Python code for a codec; its exception is kept as it is (step 3).
fn with_gil<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, CodecFailure> {
    let result = gil::with(|py| {
        work(py).map_err(|error| {
            let text = error.to_string();
            PythonFailure { error: Some(error), text }
        })
    });
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(failure)) => Err(Box::new(failure)),
        None => Err("the interpreter has ended".into()),
    }
}

/// What a codec raised.
#[derive(Debug)]
pub struct PythonFailure {
    error: Option<PyErr>,
    text: String,
}

impl PythonFailure {
    /// The exception that says the same as the failure: `raised`, caused by what the codec raised; or that itself, where no
    /// error but the end of the work was meant (step 3).
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
