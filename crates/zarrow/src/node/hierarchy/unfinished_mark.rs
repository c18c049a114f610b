//! The document of an array that is being created: a group with a marker attribute.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{Attributes, Document, GroupMetadata, NodeMetadata, ZarrFormat};
use serde_json::{Map, Value};

/// Marker attribute. Its value is different for each created array.
pub(super) const ATTRIBUTE: &str = "zarrow.unfinished_array";

/// Description of the obstacle to creating a node.
pub(super) const WHAT: &str = "an unfinished array (being created, or interrupted)";

/// Whether these are the metadata of an unfinished document: the marker is the only attribute. A group with an
/// attribute of this name from a user is a group.
pub(crate) fn is_unfinished(metadata: &NodeMetadata) -> bool {
    let NodeMetadata::Group(group) = metadata else { return false };
    let number = group.attributes.get(ATTRIBUTE).and_then(Value::as_str).unwrap_or_default();
    group.attributes.len() == 1 && number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether an unfinished document has this length.
pub(crate) fn has_length(nbytes: u64) -> bool {
    let document = documents(0);
    document.is_ok_and(|documents| documents.iter().any(|(_, bytes)| bytes.len() as u64 == nbytes))
}

/// Returns the unfinished documents with this number.
pub(super) fn documents(number: u64) -> Result<Box<[Document]>> {
    let mark = Map::from_iter([(ATTRIBUTE.to_owned(), Value::from(format!("{number:016x}")))]);
    let metadata =
        GroupMetadata { zarr_format: ZarrFormat::V3, attributes: Attributes::from(mark), consolidated: None };
    Ok(metadata.documents()?.into())
}

/// Returns the error for readers that find the unfinished document instead of a node.
pub(crate) fn not_found() -> Error {
    Error::from(ErrorKind::NotFound).with_hint(
        "an array is being created here, or its creation was interrupted: pass overwrite=True to create it again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_of_a_user_is_no_mark() {
        let group = |attributes: Value| {
            let attributes = Attributes::from(attributes.as_object().cloned().unwrap_or_default());
            NodeMetadata::Group(GroupMetadata { zarr_format: ZarrFormat::V3, attributes, consolidated: None })
        };
        assert!(is_unfinished(&group(serde_json::json!({ ATTRIBUTE: "0123456789abcdef" }))));
        for other in [
            serde_json::json!({ ATTRIBUTE: 1 }),
            serde_json::json!({ ATTRIBUTE: "yes" }),
            serde_json::json!({ ATTRIBUTE: "0123456789abcdef", "units": "K" }),
            serde_json::json!({}),
        ] {
            assert!(!is_unfinished(&group(other)));
        }
    }
}
