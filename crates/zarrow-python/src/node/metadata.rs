//! Conversion of metadata to Python objects, and of options of creation.

use crate::export::numpy;
use crate::python::error::Raise;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use zarrow::Existing;
use zarrow::metadata::{FillValue, ZarrFormat};
use zarrow_array::{Buffer, DataType, Tensor};

/// Returns the number of a format version.
pub fn version(format: ZarrFormat) -> u8 {
    match format {
        ZarrFormat::V2 => 2,
        ZarrFormat::V3 => 3,
    }
}

/// Returns what to do with an existing node.
pub fn existing(overwrite: bool) -> Existing {
    if overwrite { Existing::Erase } else { Existing::Refuse }
}

/// Returns the format with a version number.
pub fn format(version: u64) -> PyResult<ZarrFormat> {
    match version {
        2 => Ok(ZarrFormat::V2),
        3 => Ok(ZarrFormat::V3),
        other => Err(PyValueError::new_err(format!("zarr_format is {other}, expected 2 or 3"))),
    }
}

/// Converts a fill value of `data_type` to a NumPy scalar, `str`, `bytes`, or `None` for a missing element.
pub fn fill_value<'py>(
    py: Python<'py>,
    value: &FillValue,
    data_type: &DataType,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        FillValue::Missing => Ok(py.None().into_bound(py)),
        FillValue::Present(inner) => fill_value(py, inner, data_type),
        FillValue::Variable(bytes) if *data_type == DataType::String => {
            Ok(PyString::from_bytes(py, bytes)?.into_any())
        }
        FillValue::Variable(bytes) => Ok(crate::layout::variable::bytes_of(py, bytes)?.into_any()),
        FillValue::Fixed(bytes) => {
            let tensor = Tensor::new(Buffer::copy_of(bytes).raise(py)?, Vec::new(), data_type.clone());
            numpy::scalar(py, tensor.and_then(Tensor::into_shared).raise(py)?)
        }
    }
}
