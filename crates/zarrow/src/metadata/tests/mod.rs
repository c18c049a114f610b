//! Metadata that zarr-python wrote, metadata that is wrong, and metadata that is hostile.

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

fn limits() -> MetadataLimits {
    MetadataLimits::default()
}

/// The codecs as JSON, each a name and its configuration.
fn codecs(array: &ArrayMetadata) -> Value {
    array.codecs.iter().map(|codec| json!([codec.name, codec.configuration])).collect()
}

/// The array that `document`, a `zarr.json`, describes.
fn v3_array(document: &Value) -> Result<ArrayMetadata, MetadataError> {
    match parse_v3(document.to_string().as_bytes(), &limits())? {
        NodeMetadata::Array(array) => Ok(array),
        NodeMetadata::Group(_) => panic!("a group"),
    }
}

/// The array that `document`, a `.zarray`, describes.
fn v2_array(document: &Value) -> Result<ArrayMetadata, MetadataError> {
    parse_v2_array(document.to_string().as_bytes(), None, &limits())
}

/// A valid `zarr.json` with `changes` put over it; null takes a key out.
fn v3_document(changes: Value) -> Value {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [10, 6], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": "default", "fill_value": -2, "codecs": ["bytes"],
    });
    changed(document, changes)
}

/// A valid `.zarray` with `changes` put over it; null takes a key out.
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
