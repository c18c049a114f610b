//! Codecs written in Python: `zarrow.codecs.register`.
//!
//! 1. `zarrow.codecs` wraps the user's codec in an object with `decode(bytes)` and `encode(bytes, dtype, shape)`,
//!    which return bytes. The object is created when an array is opened, and called from pool threads with the GIL.
//! 2. A codec gets copies: it may keep its input, and never borrows our memory.
//! 3. Its exceptions become the cause of a `CodecError`; Ctrl-C, `SystemExit` and `MemoryError` are raised
//!    unchanged.
//! 4. PyO3 does not notice if another library has released the GIL, so [`gil::with`] takes it.

use crate::export::numpy;
use crate::layout::variable::bytes_of;
use crate::python::error::Raise;
use crate::python::failure::PythonFailure;
use crate::python::gil::{self, Kept};
use crate::python::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;
use zarrow::codec::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};

/// Register the factory of a codec under a name, as normalized by `zarrow.codecs`.
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
    let make = Kept::new(make);
    let registered = register(name, kind, move |configuration| {
        let codec = with_gil(|py| Ok(make.bind(py).call1((json::object(py, configuration)?,))?.unbind()))?;
        Ok(Arc::new(PythonCodec(Kept::new(codec))))
    });
    registered.raise(py)
}

/// A configured codec (step 1).
#[derive(Debug)]
struct PythonCodec(Kept<Py<PyAny>>);

impl Codec for PythonCodec {
    fn decode(
        &self,
        encoded: &[u8],
        _: Option<ChunkDescription<'_>>,
        decoded: &mut DecodedBytes<'_>,
    ) -> Result<(), CodecFailure> {
        with_gil(|py| {
            let given = self.0.bind(py).call_method1("decode", (bytes_of(py, encoded)?,))?;
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
            let given = self.0.bind(py).call_method1("encode", arguments)?;
            Ok(zarrow_array::allocation::copied(given.cast::<PyBytes>()?.as_bytes()))
        })?
        .map_err(|error| zarrow::Error::from(error).into())
    }
}

/// Runs Python code for a codec, keeping its exception (step 3).
fn with_gil<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, CodecFailure> {
    let result = gil::with(|py| work(py).map_err(PythonFailure::new));
    match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(failure)) => Err(Box::new(failure)),
        None => Err("the interpreter has ended".into()),
    }
}
