//! From metadata JSON to a checked description that no longer knows which version it came from.
//!
//! 1. [`parse_v3`], [`parse_v2_array`] and [`parse_v2_group`] read JSON that may come from anyone.
//! 2. Version 2 is translated to the form of version 3: order `F` becomes a `transpose` codec, the byte
//!    order of the type a `bytes` codec, filters and compressor the rest of the chain.
//! 3. Everything that shape arithmetic relies on is checked, so that the rest of the crate need not.
//! 4. [`ArrayMetadata::documents`] and [`GroupMetadata::documents`] go the other way. Documents that a store has already
//!    are never written anew from a description, but edited (`edit`), so that nothing of another program is lost.

mod attributes;
pub(crate) mod base64;
mod check;
mod chunk_grid;
mod chunk_key;
mod codec;
mod consolidated;
mod data_type;
mod document;
mod edit;
mod error;
mod fill_value;
mod float8;
mod json;
mod lenient;
mod members;
mod normal_form;
mod outline;
mod repair;
mod structure;
mod type_string;
mod v2;
mod v2_document;
mod v3;
mod v3_document;
mod value_tree;

#[cfg(test)]
mod tests;

pub use attributes::Attributes;
pub use check::MetadataLimits;
pub use chunk_grid::{AxisEdges, ChunkGrid};
pub use chunk_key::ChunkKeyEncoding;
pub use codec::CodecMetadata;
pub use consolidated::Consolidated;
pub use document::Document;
pub(crate) use document::{ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA};
pub(crate) use edit::JsonText;
pub use error::MetadataError;
pub(crate) use error::excerpt;
pub use fill_value::FillValue;
pub(crate) use v2::{ARRAY_DIMENSIONS, dimension_names};

use serde_json::Value;
use zarrow_array::DataType;

/// The version of the Zarr format that a node is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZarrFormat {
    /// Zarr version 2: `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// Zarr version 3: `zarr.json`.
    V3,
}

/// What one array is, checked, in the terms of Zarr version 3 whichever version it is stored in.
///
/// The parsers guarantee: `shape`, the chunk grid and `dimension_names` have the same number of axes; no
/// chunk extent is zero; and the sizes in bytes of the array and of one chunk, and the number of chunks,
/// do not overflow and keep within the [`MetadataLimits`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayMetadata {
    /// The version that the array is stored in.
    pub zarr_format: ZarrFormat,
    /// Elements along each axis.
    pub shape: Vec<u64>,
    /// What one element is.
    pub data_type: DataType,
    /// How the array is cut into chunks.
    pub chunk_grid: ChunkGrid,
    /// How a chunk's position becomes its key in the store.
    pub chunk_key_encoding: ChunkKeyEncoding,
    /// What an element is where no chunk is stored.
    pub fill_value: FillValue,
    /// Whether the document says it: version 2 may leave it open, and it is [`FillValue::open`] then.
    pub has_fill_value: bool,
    /// The codecs, in the order in which they encode.
    pub codecs: Vec<CodecMetadata>,
    /// What the user stored beside the array.
    pub attributes: Attributes,
    /// A name for each axis, where the array has them.
    pub dimension_names: Option<Vec<Option<String>>>,
}

impl ArrayMetadata {
    /// Whether chunks of the one are chunks of the other: all is the same but the shape, the attributes and the names of
    /// the axes.
    pub(crate) fn has_layout_of(&self, other: &ArrayMetadata) -> bool {
        self.zarr_format == other.zarr_format
            && self.data_type == other.data_type
            && self.shape.len() == other.shape.len()
            && self.chunk_grid == other.chunk_grid
            && self.chunk_key_encoding == other.chunk_key_encoding
            && self.fill_value == other.fill_value
            && self.codecs == other.codecs
    }
}

/// What one group is.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMetadata {
    /// The version that the group is stored in.
    pub zarr_format: ZarrFormat,
    /// What the user stored beside the group.
    pub attributes: Attributes,
    /// The metadata of everything below the group, where it was consolidated.
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

/// Reads a `zarr.json`.
///
/// # Errors
/// A [`MetadataError`] where the document is no JSON, breaks the specification (Zarr core 3.1), asks for
/// what this crate does not have, or exceeds `limits`.
///
/// ```
/// use zarrow::metadata::{MetadataLimits, NodeMetadata, parse_v3};
/// let json = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "rain"}}"#;
/// let NodeMetadata::Group(group) = parse_v3(json, &MetadataLimits::default())? else { unreachable!() };
/// assert_eq!(group.attributes["title"], "rain");
/// # Ok::<(), zarrow::metadata::MetadataError>(())
/// ```
pub fn parse_v3(bytes: &[u8], limits: &MetadataLimits) -> Result<NodeMetadata, MetadataError> {
    check::metadata_nbytes(bytes, limits.max_consolidated_nbytes)?;
    let (mut node, consolidated) = v3::split(bytes, limits)?;
    if let (NodeMetadata::Group(group), Some(text)) = (&mut node, consolidated) {
        group.consolidated = Consolidated::from_v3(text, *limits)?;
    }
    Ok(node)
}

/// Reads a data type as version 3 names it: a name, or an object of name and configuration.
///
/// # Errors
/// A [`MetadataError`] where it is none, or one that this crate does not have.
///
/// ```
/// use zarrow::metadata::parse_data_type;
/// assert_eq!(parse_data_type(&"string".into())?, zarrow_array::DataType::String);
/// # Ok::<(), zarrow::metadata::MetadataError>(())
/// ```
pub fn parse_data_type(name: &Value) -> Result<DataType, MetadataError> {
    data_type::parse(name)
}

/// Whether a document says that it is metadata of Zarr, whether or not the rest of it can be read.
pub(crate) fn is_of_zarr(document: &[u8]) -> bool {
    let format = members::member(document, b"zarr_format");
    matches!(format.map(<[u8]>::trim_ascii), Some(b"2" | b"3"))
}

/// The value as JSON, indented as documents are.
///
/// # Errors
/// [`MetadataError::OutOfMemory`].
pub fn json_text(value: &impl serde::Serialize) -> Result<Vec<u8>, MetadataError> {
    json::text(value)
}

/// What NumPy calls a data type in a byte order, `None` where it has no such type.
pub(crate) fn numpy_name(data_type: &DataType, big_endian: bool) -> Option<String> {
    let order = if big_endian { type_string::ByteOrder::Big } else { type_string::ByteOrder::Little };
    type_string::type_string(data_type, order)
}

/// Reads a `.zarray` and, where the store has one, the `.zattrs` beside it.
///
/// # Errors
/// As [`parse_v3`], against the Zarr version 2 specification.
pub fn parse_v2_array(
    zarray: &[u8],
    zattrs: Option<&[u8]>,
    limits: &MetadataLimits,
) -> Result<ArrayMetadata, MetadataError> {
    let document = json::Document::parse(zarray, limits.max_metadata_nbytes)?;
    v2::array(document, attributes(zattrs, limits)?, limits)
}

/// Reads a `.zgroup` and, where the store has them, the `.zattrs` and `.zmetadata` beside it.
///
/// # Errors
/// As [`parse_v3`], against the Zarr version 2 specification.
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
    v2::group(document, attributes(zattrs, limits)?, consolidated)
}

/// The data type in the words of Zarr version 3: a name, or an object of name and configuration.
///
/// Padding and arrays inside of a structure, for which there are no words, are told as `offset` and `shape` of a field.
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
