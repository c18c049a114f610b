//! Metadata of the engine as Python objects.

use crate::error::Raise;
use crate::numpy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde_json::{Map, Value, json};
use zarrow::metadata::{ArrayMetadata, ChunkGrid, CodecMetadata, FillValue, ZarrFormat};
use zarrow_array::{Buffer, DataType, Tensor};

/// The number of a format version.
pub fn version(format: ZarrFormat) -> u8 {
    match format {
        ZarrFormat::V2 => 2,
        ZarrFormat::V3 => 3,
    }
}

/// A fill value of `data_type`: a NumPy scalar, `str`, `bytes`, or `None` for a missing one.
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
        FillValue::Variable(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        FillValue::Fixed(bytes) => {
            let tensor = Tensor::new(Buffer::copy_of(bytes).raise(py)?, Vec::new(), data_type.clone());
            numpy::scalar(py, tensor.and_then(Tensor::into_shared).raise(py)?)
        }
    }
}

/// What the array is, in the words of a Zarr version 3 document; the fill value stands in `Array.fill_value`.
pub fn document(metadata: &ArrayMetadata) -> Map<String, Value> {
    let grid = match &metadata.chunk_grid {
        ChunkGrid::Regular { chunk_shape } => {
            json!({ "name": "regular", "configuration": { "chunk_shape": chunk_shape } })
        }
        _ => json!({ "name": "rectilinear" }),
    };
    let codec = |codec: &CodecMetadata| json!({ "name": codec.name, "configuration": codec.configuration });
    let mut document = Map::new();
    document.insert("zarr_format".into(), json!(version(metadata.zarr_format)));
    document.insert("node_type".into(), json!("array"));
    document.insert("shape".into(), json!(metadata.shape));
    document.insert("data_type".into(), json!(metadata.data_type.to_string()));
    document.insert("chunk_grid".into(), grid);
    document.insert("codecs".into(), metadata.codecs.iter().map(codec).collect());
    document.insert("attributes".into(), Value::Object(metadata.attributes.clone()));
    document.insert("dimension_names".into(), json!(metadata.dimension_names));
    document
}
