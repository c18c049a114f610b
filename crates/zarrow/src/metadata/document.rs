//! Checked metadata as the documents that a store holds.

use serde_json::{Map, Value, json};

use super::{
    ArrayMetadata, Attributes, GroupMetadata, JsonText, MetadataError, MetadataLimits, ZarrFormat, check,
    structure, v2_document, v3_document,
};

/// The name of the document that makes a node of version 3.
pub(crate) const ZARR_JSON: &str = "zarr.json";
/// The name of the document that makes an array of version 2.
pub(crate) const ZARRAY: &str = ".zarray";
/// The name of the document that makes a group of version 2.
pub(crate) const ZGROUP: &str = ".zgroup";
/// The name of the document that has the attributes of a node of version 2.
pub(crate) const ZATTRS: &str = ".zattrs";
/// The name of the document that has the metadata of everything below a group of version 2.
pub(crate) const ZMETADATA: &str = ".zmetadata";

/// The name of a document, and its JSON.
pub type Document = (&'static str, Vec<u8>);

impl ArrayMetadata {
    /// The documents that describe the array, each with its name below the array's path: `zarr.json`, or `.zarray`
    /// after the `.zattrs` where there are attributes.
    ///
    /// They are spelled so that zarr-python, tensorstore and zarrs read them where they know the data type and the
    /// codecs, and the parsers of this module read them back as the same metadata, but for the bits of a NaN that
    /// version 2 cannot say.
    ///
    /// # Errors
    /// [`MetadataError::Unsupported`] for what the version of the array cannot say;
    /// [`MetadataError::Invalid`] for a fill value of another type.
    pub fn documents(&self) -> Result<Vec<Document>, MetadataError> {
        match self.zarr_format {
            ZarrFormat::V3 if !structure::is_v3(&self.data_type) => Err(MetadataError::unsupported(format!(
                "{} in Zarr version 3: its padding and shapes",
                self.data_type
            ))),
            ZarrFormat::V3 => Ok(vec![(ZARR_JSON, v3_text(v3_document::array(self)?, &self.attributes))]),
            ZarrFormat::V2 => Ok(with_attributes(&self.attributes, ZARRAY, v2_document::array(self)?)),
        }
    }

    /// Checks that the sizes do not overflow, keep within `limits` and fit the chunk grid, as the parsers do.
    ///
    /// # Errors
    /// [`MetadataError::TooLarge`], [`MetadataError::Invalid`], and [`MetadataError::Unsupported`] for a shape beyond
    /// the edges of a rectilinear grid.
    pub(crate) fn check(&self, limits: &MetadataLimits) -> Result<(), MetadataError> {
        check::ndim(&self.shape, limits)?;
        check::array(self, limits)?;
        self.chunk_grid.check_covers(&self.shape)
    }

    /// The array in the words of a `zarr.json`, whichever version it is stored in.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] for a fill value of another type.
    pub fn v3_document(&self) -> Result<Map<String, Value>, MetadataError> {
        v3_document::array(self)
    }
}

impl GroupMetadata {
    /// The documents that describe the group, each with its name below the group's path: `zarr.json`, or `.zgroup`
    /// after the `.zattrs` where there are attributes. Consolidated metadata is no part of them.
    #[must_use]
    pub fn documents(&self) -> Vec<Document> {
        match self.zarr_format {
            ZarrFormat::V3 => vec![(ZARR_JSON, v3_text(v3_document::group(self), &self.attributes))],
            ZarrFormat::V2 => {
                let zgroup = Map::from_iter([("zarr_format".to_owned(), json!(2))]);
                with_attributes(&self.attributes, ZGROUP, zgroup)
            }
        }
    }
}

/// The attributes come first, so that a node that is there has them.
fn with_attributes(attributes: &Attributes, name: &'static str, node: Map<String, Value>) -> Vec<Document> {
    let attributes = (!attributes.is_empty()).then(|| (ZATTRS, JsonText::indented(attributes.text())));
    let attributes = attributes.map(|(name, text)| (name, text.into_bytes()));
    attributes.into_iter().chain([(name, text(node))]).collect()
}

/// A `zarr.json`, whose attributes are their text: values may say less.
fn v3_text(node: Map<String, Value>, attributes: &Attributes) -> Vec<u8> {
    let mut document = JsonText::from_value(&Value::Object(node));
    document.set_text("attributes", attributes.text());
    document.into_bytes()
}

/// The object as indented JSON.
pub(crate) fn text(object: Map<String, Value>) -> Vec<u8> {
    format!("{:#}", Value::Object(object)).into_bytes()
}
