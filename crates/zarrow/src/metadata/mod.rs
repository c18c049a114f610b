//! From metadata JSON to a checked description that is independent of its version.
//!
//! 1. [`parse_v3`](crate::codec::parse_v3), [`parse_v2_array`](crate::codec::parse_v2_array) and [`parse_v2_group`] read
//!    untrusted JSON.
//! 2. Version 2 is translated to the form of version 3: order `F` becomes a `transpose` codec, the byte order of the
//!    type a `bytes` codec, filters and compressor the rest of the chain.
//! 3. All assumptions of shape arithmetic are checked here, so that the rest of the crate need not check them.
//! 4. The names and parameters of codecs differ between the versions. The codecs are a later layer: it passes its table
//!    as `CodecNames`, and defines the functions that need one (`codec/documents.rs`).
//! 5. [`ArrayMetadata::documents`] and [`GroupMetadata::documents`] go the other way. Documents that exist in a store
//!    are never recreated from a description, but edited (`edit`), so that content from other programs is kept.

mod attributes;
mod check;
mod chunk_grid;
mod chunk_key;
mod codec;
mod codec_names;
mod consolidated;
mod data_type;
mod document;
mod edit;
mod fill_value;
mod float8;
mod json;
mod json_values;
mod lenient_json;
mod member_spans;
pub(crate) mod missing_values;
mod normal_form;
mod parse_memory;
mod read_v2;
mod read_v3;
mod repair;
mod structure;
mod type_string;
mod write_v2;
mod write_v3;

#[cfg(test)]
mod tests;

pub use crate::error::metadata::MetadataError;
pub(crate) use crate::error::metadata::excerpt;
pub use attributes::Attributes;
pub use check::MetadataLimits;
pub use chunk_grid::{AxisEdges, ChunkGrid};
pub use chunk_key::ChunkKeyEncoding;
pub use codec::CodecMetadata;
pub use codec_names::CodecKind;
pub(crate) use codec_names::{CodecNames, Configuration, NumcodecsForm};
pub use consolidated::Consolidated;
pub use document::Document;
pub(crate) use document::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA};
pub(crate) use edit::JsonText;
pub use fill_value::FillValue;
pub(crate) use read_v2::{ARRAY_DIMENSIONS, dimension_names};

use serde_json::Value;
use zarrow_array::DataType;

/// Version of the Zarr format that a node is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZarrFormat {
    /// Zarr version 2: `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// Zarr version 3: `zarr.json`.
    V3,
}

/// Checked metadata of one array, in the terms of Zarr version 3 even if it is stored in version 2.
///
/// The parsers guarantee: `shape`, the chunk grid and `dimension_names` have the same number of axes; no chunk extent
/// is zero; and the sizes in bytes of the array and of one chunk, and the number of chunks, do not overflow and are
/// within the [`MetadataLimits`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayMetadata {
    /// Version that the array is stored in.
    pub zarr_format: ZarrFormat,
    /// Elements along each axis.
    pub shape: Vec<u64>,
    /// Type of one element.
    pub data_type: DataType,
    /// Division of the array into chunks.
    pub chunk_grid: ChunkGrid,
    /// Encoding of a chunk's position as its key in the store.
    pub chunk_key_encoding: ChunkKeyEncoding,
    /// Value of the elements of missing chunks.
    pub fill_value: FillValue,
    /// Whether the document has a fill value. Version 2 may omit it; `fill_value` is [`FillValue::open`] then.
    pub has_fill_value: bool,
    /// Codecs in the order of encoding.
    pub codecs: Vec<CodecMetadata>,
    /// Attributes that the user stored with the array.
    pub attributes: Attributes,
    /// Name of each axis, if the array has names.
    pub dimension_names: Option<Vec<Option<String>>>,
}

impl ArrayMetadata {
    /// Whether the two have the same chunks: only the shape, the edges after the shorter of two rectilinear grids, the
    /// attributes and the names of the axes may differ.
    pub(crate) fn has_layout_of(&self, other: &ArrayMetadata) -> bool {
        self.zarr_format == other.zarr_format
            && self.data_type == other.data_type
            && self.shape.len() == other.shape.len()
            && self.chunk_grid.has_chunks_of(&other.chunk_grid)
            && self.chunk_key_encoding == other.chunk_key_encoding
            && self.fill_value == other.fill_value
            && self.codecs == other.codecs
    }
}

/// Metadata of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMetadata {
    /// Version that the group is stored in.
    pub zarr_format: ZarrFormat,
    /// Attributes that the user stored with the group.
    pub attributes: Attributes,
    /// Metadata of everything below the group, if they were consolidated.
    pub consolidated: Option<Consolidated>,
}

/// A node of the hierarchy.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one exists per opened node, and it is moved once")]
pub enum NodeMetadata {
    /// An array.
    Array(ArrayMetadata),
    /// A group.
    Group(GroupMetadata),
}

/// Reads a `zarr.json`, with the codecs of `names`.
pub(crate) fn read_v3(
    bytes: &[u8],
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<NodeMetadata, MetadataError> {
    check::metadata_nbytes(bytes, limits.max_consolidated_nbytes)?;
    let (mut node, consolidated) = read_v3::split(bytes, limits, names)?;
    if let (NodeMetadata::Group(group), Some(text)) = (&mut node, consolidated) {
        group.consolidated = Consolidated::from_v3(text, *limits)?;
    }
    Ok(node)
}

/// Reads a data type in the notation of version 3: a name, or an object of name and configuration.
///
/// # Errors
/// A [`MetadataError`] if it is not a data type, or an unsupported one.
///
/// ```
/// use zarrow::metadata::parse_data_type;
/// assert_eq!(parse_data_type(&"string".into())?, zarrow_array::DataType::String);
/// # Ok::<(), zarrow::metadata::MetadataError>(())
/// ```
pub fn parse_data_type(name: &Value) -> Result<DataType, MetadataError> {
    data_type::parse(name)
}

/// Whether a document claims to be Zarr metadata, even if the remainder is invalid.
pub(crate) fn is_of_zarr(document: &[u8]) -> bool {
    let format = member_spans::member(document, b"zarr_format");
    matches!(format.map(<[u8]>::trim_ascii), Some(b"2" | b"3"))
}

/// Returns the value as JSON, indented like documents.
///
/// # Errors
/// [`MetadataError::OutOfMemory`].
pub fn json_text(value: &impl serde::Serialize) -> Result<Vec<u8>, MetadataError> {
    json::text(value)
}

/// Returns NumPy's type string of a data type in a byte order; `None` if NumPy has no such type.
pub(crate) fn numpy_name(data_type: &DataType, big_endian: bool) -> Option<String> {
    let order = if big_endian { type_string::ByteOrder::Big } else { type_string::ByteOrder::Little };
    type_string::type_string(data_type, order)
}

/// Reads a `.zarray` and its `.zattrs`, if there is one, with the codecs of `names`.
pub(crate) fn read_v2_array(
    zarray: &[u8],
    zattrs: Option<&[u8]>,
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<ArrayMetadata, MetadataError> {
    let document = json::Document::parse(zarray, limits.max_metadata_nbytes)?;
    read_v2::array(document, attributes(zattrs, limits)?, limits, names)
}

/// Reads a `.zgroup` and its `.zattrs` and `.zmetadata`, if there are any.
///
/// # Errors
/// As [`parse_v3`](crate::codec::parse_v3), against the Zarr version 2 specification.
pub fn parse_v2_group(
    zgroup: &[u8],
    zattrs: Option<&[u8]>,
    zmetadata: Option<&[u8]>,
    limits: &MetadataLimits,
) -> Result<GroupMetadata, MetadataError> {
    let document = json::Document::parse(zgroup, limits.max_metadata_nbytes)?;
    let consolidated = match zmetadata {
        Some(bytes) => Some(Consolidated::from_v2(bytes, *limits)?),
        None => None,
    };
    Ok(GroupMetadata { consolidated, ..read_v2::group(document, attributes(zattrs, limits)?)? })
}

/// Returns the data type in the notation of Zarr version 3: a name, or an object of name and configuration.
///
/// Padding and arrays inside a structure, which version 3 cannot express, become `offset` and `shape` of a field.
///
/// ```
/// use zarrow::metadata::data_type_document;
/// use zarrow_array::{DataType, Number};
/// assert_eq!(data_type_document(&Number::Float32.into()), "float32");
/// assert_eq!(data_type_document(&DataType::RawBytes { length: 3 })["configuration"]["length_bytes"], 3);
/// ```
#[must_use]
pub fn data_type_document(data_type: &DataType) -> Value {
    data_type::document(data_type)
}

fn attributes(zattrs: Option<&[u8]>, limits: &MetadataLimits) -> Result<Attributes, MetadataError> {
    zattrs.map_or(Ok(Attributes::default()), |text| Attributes::parse(text, limits))
}
