//! Converts checked metadata to the `zarr.json` of Zarr version 3, which [`super::read_v3`] reads back as the same
//! metadata.

use serde_json::{Map, Value, json};

use super::{ArrayMetadata, CodecMetadata, GroupMetadata, MetadataError, ZarrFormat, data_type};

/// Returns the document of an array.
pub(super) fn array(array: &ArrayMetadata) -> Result<Map<String, Value>, MetadataError> {
    let mut document = node("array");
    let mut insert = |key: &str, value: Value| document.insert(key.to_owned(), value);
    insert("shape", json!(array.shape));
    insert("data_type", data_type::document(&array.data_type));
    insert("chunk_grid", array.chunk_grid.document());
    insert("chunk_key_encoding", array.chunk_key_encoding.document());
    insert("fill_value", array.fill_value.document(&array.data_type, ZarrFormat::V3)?);
    insert("codecs", array.codecs.iter().map(CodecMetadata::document).collect());
    insert("attributes", Value::Object(array.attributes.values().clone()));
    if let Some(names) = &array.dimension_names {
        insert("dimension_names", json!(names));
    }
    Ok(document)
}

/// Returns the document of a group, without consolidated metadata.
pub(super) fn group(group: &GroupMetadata) -> Map<String, Value> {
    let mut document = node("group");
    document.insert("attributes".to_owned(), Value::Object(group.attributes.values().clone()));
    document
}

fn node(node_type: &str) -> Map<String, Value> {
    Map::from_iter([("zarr_format".to_owned(), json!(3)), ("node_type".to_owned(), json!(node_type))])
}
