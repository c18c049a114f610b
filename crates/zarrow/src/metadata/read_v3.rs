//! Zarr version 3: `zarr.json` (Zarr core 3.1).

use serde_json::Value;
use zarrow_array::{DataType, allocation};

use super::codec_names::CodecNames;
use super::json::{self, Document, extents};
use super::member_spans::members;
use super::{
    ArrayMetadata, ChunkGrid, ChunkKeyEncoding, CodecMetadata, FillValue, GroupMetadata, MetadataError,
    MetadataLimits, NodeMetadata, ZarrFormat, check, data_type, read_v2, repair,
};
use crate::error::metadata::excerpt;

/// Key of the consolidated metadata in the document of a group.
pub(super) const CONSOLIDATED: &str = "consolidated_metadata";

/// Reads the text of a node, and returns with it the unparsed text of its consolidated metadata. The rest of the
/// document has to be as short as any other.
pub(super) fn split<'a>(
    text: &'a [u8],
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<(NodeMetadata, Option<&'a [u8]>), MetadataError> {
    let mut found = None;
    if may_have(text, CONSOLIDATED) {
        found = members(text).into_iter().rfind(|member| member.key == CONSOLIDATED.as_bytes());
    }
    let Some(value) = found.map(|member| member.value) else {
        return Ok((node(Document::parse(text, limits.max_metadata_nbytes)?, limits, names)?, None));
    };
    json::check_object(text, limits.max_consolidated_nbytes)?;
    let (before, after) = (&text[..value.start], &text[value.end..]);
    // The key stays, so that a node that may not have it is refused.
    let rest = allocation::concatenated(&[before, b"null", after])?;
    let node = node(Document::parse(&rest, limits.max_metadata_nbytes)?, limits, names)?;
    Ok((node, Some(&text[value]).filter(|text| *text != b"null")))
}

/// Whether `text` may have the member `key`: literally, or perhaps by an escape.
fn may_have(text: &[u8], key: &str) -> bool {
    std::str::from_utf8(text).map_or(true, |text| text.contains(key) || text.contains('\\'))
}

/// Reads the document of a node. Known keys are taken out, and the remaining ones must be ignorable.
fn node(
    mut document: Document<'_>,
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<NodeMetadata, MetadataError> {
    document.require_format(3)?;
    let node_type = document.required("node_type")?;
    match node_type.as_str() {
        Some("array") => array(document, limits, names).map(NodeMetadata::Array),
        Some("group") => group(document).map(NodeMetadata::Group),
        _ => Err(MetadataError::expected("node_type", "\"array\" or \"group\"", &node_type)),
    }
}

fn array(
    mut document: Document<'_>,
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<ArrayMetadata, MetadataError> {
    let stored_shape = document.required("shape")?;
    let shape = extents("shape", &stored_shape)?;
    check::ndim(&shape, limits)?;
    let data_type = data_type::parse(&document.required("data_type")?)?;
    limits.check_item(&data_type)?;
    let attributes = document.attributes()?;
    let dimension_names = match document.optional("dimension_names") {
        Some(names) => Some(dimension_names(names)?),
        None => read_v2::dimension_names(&attributes, shape.len()),
    };
    let fill_value = document.required("fill_value")?;
    // GDAL stores null for integers without a nodata value: undefined, as in version 2.
    let has_fill_value = !(fill_value.is_null() && matches!(data_type, DataType::Number(_)));
    let mut chunk_grid = document.required("chunk_grid")?;
    let codecs = document.required("codecs")?;
    repair::chunk_grid(&mut chunk_grid, &stored_shape, &codecs);
    let array = ArrayMetadata {
        zarr_format: ZarrFormat::V3,
        chunk_grid: ChunkGrid::parse(&chunk_grid, &shape)?,
        chunk_key_encoding: ChunkKeyEncoding::parse(&document.required("chunk_key_encoding")?)?,
        has_fill_value,
        fill_value: match has_fill_value {
            true => FillValue::parse(&fill_value, &data_type, ZarrFormat::V3)?,
            false => FillValue::zero(&data_type),
        },
        codecs: CodecMetadata::from_v3(&codecs, data_type.item_size().unwrap_or(1), names)?,
        attributes,
        dimension_names,
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

/// Reads a group; its consolidated metadata are read separately.
fn group(mut document: Document<'_>) -> Result<GroupMetadata, MetadataError> {
    let attributes = document.attributes()?;
    document.optional(CONSOLIDATED);
    refuse_unknown(document)?;
    Ok(GroupMetadata { zarr_format: ZarrFormat::V3, attributes, consolidated: None })
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

/// Refuses unknown extensions, unless they are marked as ignorable.
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
