//! Metadata documents with the codecs of this program: the built-in and the registered ones.

use crate::codec::{built_in, order, user_codecs};
use crate::metadata::{
    ArrayMetadata, CodecKind, CodecMetadata, CodecNames, Consolidated, Document, MetadataError,
    MetadataLimits, NodeMetadata, NumcodecsForm, read_v2_array, read_v3,
};
use serde_json::Value;

/// The built-in and the registered codecs.
pub struct KnownCodecs;

impl CodecNames for KnownCodecs {
    fn kind(&self, name: &str) -> Option<CodecKind> {
        order::kind(name)
    }

    fn numcodecs(&self, name: &str) -> Option<&'static NumcodecsForm> {
        match built_in::find(name) {
            Some(codec) => codec.numcodecs.as_ref(),
            None => user_codecs::kind_of(name).map(|_| &NumcodecsForm::SAME_NAME),
        }
    }
}

/// Reads a `zarr.json`.
///
/// # Errors
/// A [`MetadataError`] if the document is not JSON, breaks the specification (Zarr core 3.1), is unsupported by this
/// crate, or exceeds `limits`.
///
/// ```
/// use zarrow::codec::parse_v3;
/// use zarrow::metadata::{MetadataLimits, NodeMetadata};
/// let json = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "rain"}}"#;
/// let NodeMetadata::Group(group) = parse_v3(json, &MetadataLimits::default())? else { unreachable!() };
/// assert_eq!(group.attributes["title"], "rain");
/// # Ok::<(), zarrow::metadata::MetadataError>(())
/// ```
pub fn parse_v3(bytes: &[u8], limits: &MetadataLimits) -> Result<NodeMetadata, MetadataError> {
    read_v3(bytes, limits, &KnownCodecs)
}

/// Reads a `.zarray` and its `.zattrs`, if there is one.
///
/// # Errors
/// As [`parse_v3`], against the Zarr version 2 specification.
pub fn parse_v2_array(
    zarray: &[u8],
    zattrs: Option<&[u8]>,
    limits: &MetadataLimits,
) -> Result<ArrayMetadata, MetadataError> {
    read_v2_array(zarray, zattrs, limits, &KnownCodecs)
}

impl CodecMetadata {
    /// Reads a list of codecs, such as `codecs` of an array or of a sharding codec's configuration.
    ///
    /// `item_size` is the size of one element in bytes, 1 for a variable-length type.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if this is not a list of codecs, or is empty.
    pub fn parse_chain(value: &Value, item_size: usize) -> Result<Vec<CodecMetadata>, MetadataError> {
        CodecMetadata::from_v3(value, item_size, &KnownCodecs)
    }
}

impl Consolidated {
    /// Returns the node at `path` below the group, such as `sub/array`; `None` if it is missing. A group has the
    /// consolidated metadata of its descendants.
    ///
    /// The inner [`MetadataError`] describes an error in the metadata of that one node.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Result<NodeMetadata, MetadataError>> {
        self.node(path, &KnownCodecs)
    }
}

impl ArrayMetadata {
    /// Returns the documents of the array, each with its name below the array's path: `zarr.json`, or `.zarray`,
    /// preceded by `.zattrs` if there are attributes.
    ///
    /// Their notation can be read by zarr-python, tensorstore and zarrs if they know the data type and the codecs. The
    /// parsers read them back as the same metadata, except the bits of a NaN in version 2, which has
    /// only one.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for metadata that the array's version cannot express; [`MetadataError::Invalid`]
    /// for a fill value of another type.
    pub fn documents(&self) -> Result<Vec<Document>, MetadataError> {
        self.documents_with(&KnownCodecs)
    }
}
