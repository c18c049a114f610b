//! Zarr version 3: `zarr.json` (Zarr core 3.1).

use serde_json::Value;

use super::error::excerpt;
use super::json::{Document, extents};
use super::{
    ArrayMetadata, ChunkGrid, ChunkKeyEncoding, CodecMetadata, Consolidated, FillValue, GroupMetadata,
    MetadataError, MetadataLimits, NodeMetadata, ZarrFormat, check, data_type,
};

/// Reads the document of a node. Its keys are taken out, and those that stay must be ones to ignore.
pub(super) fn node(
    mut document: Document<'_>,
    limits: &MetadataLimits,
) -> Result<NodeMetadata, MetadataError> {
    document.require_format(3)?;
    let node_type = document.required("node_type")?;
    match node_type.as_str() {
        Some("array") => array(document, limits).map(NodeMetadata::Array),
        Some("group") => group(document, limits).map(NodeMetadata::Group),
        _ => Err(MetadataError::expected("node_type", "\"array\" or \"group\"", &node_type)),
    }
}

fn array(mut document: Document<'_>, limits: &MetadataLimits) -> Result<ArrayMetadata, MetadataError> {
    let shape = extents("shape", &document.required("shape")?)?;
    check::ndim(&shape, limits)?;
    let data_type = data_type::parse(&document.required("data_type")?)?;
    check::item(&data_type, limits)?;
    let array = ArrayMetadata {
        zarr_format: ZarrFormat::V3,
        chunk_grid: ChunkGrid::parse(&document.required("chunk_grid")?, &shape)?,
        chunk_key_encoding: ChunkKeyEncoding::parse(&document.required("chunk_key_encoding")?)?,
        has_fill_value: true,
        fill_value: FillValue::parse(&document.required("fill_value")?, &data_type, ZarrFormat::V3)?,
        codecs: CodecMetadata::parse_chain(
            &document.required("codecs")?,
            data_type.item_size().unwrap_or(1),
        )?,
        attributes: document.attributes()?,
        dimension_names: document.optional("dimension_names").map(dimension_names).transpose()?,
        shape,
        data_type,
    };
    match document.optional("storage_transformers") {
        None => {}
        Some(Value::Array(transformers)) if transformers.is_empty() => {}
        Some(other) => {
            return Err(MetadataError::unsupported(format!("storage transformer {}", excerpt(&other))));
        }
    }
    refuse_unknown(document)?;
    check::array(&array, limits)?;
    Ok(array)
}

fn group(mut document: Document<'_>, limits: &MetadataLimits) -> Result<GroupMetadata, MetadataError> {
    let attributes = document.attributes()?;
    let consolidated = match document.optional("consolidated_metadata") {
        Some(value) => {
            let text = document.text_of("consolidated_metadata").unwrap_or_default();
            Consolidated::from_v3(&value, text, *limits)?
        }
        None => None,
    };
    refuse_unknown(document)?;
    Ok(GroupMetadata { zarr_format: ZarrFormat::V3, attributes, consolidated })
}

fn dimension_names(value: Value) -> Result<Vec<Option<String>>, MetadataError> {
    let invalid = || MetadataError::expected("dimension_names", "a list of names and nulls", &value);
    let name = |name: &Value| match name {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(invalid()),
    };
    value.as_array().ok_or_else(invalid)?.iter().map(name).collect()
}

/// An extension that this crate does not know must say that it may be ignored.
fn refuse_unknown(document: Document<'_>) -> Result<(), MetadataError> {
    for (key, value) in document.into_map() {
        if value.get("must_understand") != Some(&Value::Bool(false)) {
            return Err(MetadataError::unsupported(format!(
                "the metadata key {}",
                excerpt(&Value::from(key))
            )));
        }
    }
    Ok(())
}
