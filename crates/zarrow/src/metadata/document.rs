//! Converts checked metadata to the documents of a store.

use serde_json::{Map, Value, json};

use super::codec_names::CodecNames;
use super::{
    ArrayMetadata, Attributes, GroupMetadata, JsonText, MetadataError, MetadataLimits, ZarrFormat, check,
    json, structure, write_v2, write_v3,
};

/// Name of the document that defines a node of version 3.
pub(crate) const ZARR_JSON: &str = "zarr.json";
/// Name of the document that defines an array of version 2.
pub(crate) const ZARRAY: &str = ".zarray";
/// Name of the document that defines a group of version 2.
pub(crate) const ZGROUP: &str = ".zgroup";
/// Name of the document with the attributes of a node of version 2.
pub(crate) const ZATTRS: &str = ".zattrs";
/// Name of the document with the metadata of everything below a group of version 2.
pub(crate) const ZMETADATA: &str = ".zmetadata";

/// Name of a document, and its JSON.
pub type Document = (&'static str, Vec<u8>);

impl ArrayMetadata {
    /// Returns the documents of the array, with the codecs of `names`.
    pub(crate) fn documents_with(&self, names: &dyn CodecNames) -> Result<Vec<Document>, MetadataError> {
        match self.zarr_format {
            ZarrFormat::V3 if !structure::is_v3(&self.data_type) => Err(MetadataError::unsupported(format!(
                "{} in Zarr version 3, with padding or with fields that have a shape,",
                self.data_type
            ))),
            ZarrFormat::V3 => Ok(vec![(ZARR_JSON, v3_text(write_v3::array(self)?, &self.attributes)?)]),
            ZarrFormat::V2 => with_attributes(&self.attributes, ZARRAY, &write_v2::array(self, names)?),
        }
    }

    /// Checks that the sizes do not overflow, are within `limits` and fit the chunk grid, as the parsers do.
    ///
    /// # Errors
    /// [`MetadataError::TooLarge`], [`MetadataError::Invalid`], and [`MetadataError::Unsupported`] for a shape beyond
    /// the edges of a rectilinear grid.
    pub(crate) fn check(&self, limits: &MetadataLimits) -> Result<(), MetadataError> {
        check::ndim(&self.shape, limits)?;
        check::array(self, limits)?;
        self.chunk_grid.check_covers(&self.shape)
    }

    /// Returns the array's metadata as a `zarr.json`, for arrays of both versions.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] for a fill value of another type.
    pub fn v3_document(&self) -> Result<Map<String, Value>, MetadataError> {
        write_v3::array(self)
    }
}

impl GroupMetadata {
    /// Returns the documents of the group, each with its name below the group's path: `zarr.json`, or `.zgroup`,
    /// preceded by `.zattrs` if there are attributes. Consolidated metadata are not included.
    ///
    /// # Errors
    /// [`MetadataError::OutOfMemory`].
    pub fn documents(&self) -> Result<Vec<Document>, MetadataError> {
        match self.zarr_format {
            ZarrFormat::V3 => Ok(vec![(ZARR_JSON, v3_text(write_v3::group(self), &self.attributes)?)]),
            ZarrFormat::V2 => {
                let zgroup = Map::from_iter([("zarr_format".to_owned(), json!(2))]);
                with_attributes(&self.attributes, ZGROUP, &zgroup)
            }
        }
    }
}

/// Puts the document of the attributes first, so that a node has its attributes as soon as it exists.
fn with_attributes(
    attributes: &Attributes,
    name: &'static str,
    node: &Map<String, Value>,
) -> Result<Vec<Document>, MetadataError> {
    let node = (name, json::text(node)?);
    match attributes.is_empty() {
        true => Ok(vec![node]),
        false => Ok(vec![(ZATTRS, JsonText::indented(attributes.text())?.into_bytes()), node]),
    }
}

/// Returns a `zarr.json` with the attributes' original text, since the values may lose information.
fn v3_text(node: Map<String, Value>, attributes: &Attributes) -> Result<Vec<u8>, MetadataError> {
    let mut document = JsonText::from_value(&Value::Object(node))?;
    document.set_text("attributes", attributes.text())?;
    Ok(document.into_bytes())
}
