//! Metadata written by zarr-python, malformed metadata, and hostile metadata.

mod consolidated;
mod documents;
mod hostile;
mod malformed;
mod structures;
mod v2;
mod v3;
mod zarr_python;

use serde_json::{Map, Value, json};

use super::*;
use crate::codec::{parse_v2_array, parse_v3};

fn limits() -> MetadataLimits {
    MetadataLimits::default()
}

/// Returns the codecs as JSON, each a name and its configuration.
fn codecs(array: &ArrayMetadata) -> Value {
    array.codecs.iter().map(|codec| json!([codec.name, codec.configuration])).collect()
}

/// Parses the array of `document`, a `zarr.json`.
fn v3_array(document: &Value) -> Result<ArrayMetadata, MetadataError> {
    match parse_v3(document.to_string().as_bytes(), &limits())? {
        NodeMetadata::Array(array) => Ok(array),
        NodeMetadata::Group(_) => panic!("a group"),
    }
}

/// Parses the array of `document`, a `.zarray`.
fn v2_array(document: &Value) -> Result<ArrayMetadata, MetadataError> {
    parse_v2_array(document.to_string().as_bytes(), None, &limits())
}

/// Returns a valid `zarr.json` with `changes`; null removes a key.
fn v3_document(changes: Value) -> Value {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [10, 6], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": "default", "fill_value": -2, "codecs": ["bytes"],
    });
    changed(document, changes)
}

/// Returns a valid `.zarray` with `changes`; null removes a key.
fn v2_document(changes: Value) -> Value {
    let document = json!({
        "zarr_format": 2, "shape": [10, 6], "chunks": [4, 3], "dtype": "<i2", "fill_value": -2, "order": "C",
        "filters": [], "compressor": {"id": "zlib", "level": 1},
    });
    changed(document, changes)
}

fn changed(mut document: Value, changes: Value) -> Value {
    let map = document.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap().clone() {
        if value.is_null() {
            map.remove(&key)
        } else {
            map.insert(key, value)
        };
    }
    document
}
