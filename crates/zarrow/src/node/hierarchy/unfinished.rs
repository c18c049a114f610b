//! Creates an array with its elements in a store that cannot make many values visible in one step.
//!
//! 1. An unfinished document is put first, on the condition that there is no node: this decides between two concurrent
//!    creators, before either has put a chunk.
//! 2. Then the chunks are put.
//! 3. The array's document replaces the unfinished one, on the condition that this is still stored. So readers never
//!    see the array without all of its chunks.
//! 4. If the elements cannot be written, the values put so far are erased. A killed writer leaves the unfinished
//!    document: readers find no node, creating a node there is an error with the reason, and replacing it works.
//!
//! The unfinished document is a group document with a marker attribute: programs that do not know the marker find an
//! empty group, and never an array of fill values. Version 2 has separate documents for arrays and groups: the array's
//! own document is put first, as in a store that accepts chunks only after their array's document.

use super::document::{update, writer};
use super::node_lock::NodeLock;
use super::outside::erase_chunks;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{Attributes, Document, GroupMetadata, JsonText, NodeMetadata, ZARR_JSON, ZarrFormat};
use crate::node::array::Array;
use crate::node::open_options::OpenOptions;
use crate::store::remote::random_number;
use crate::store::{Store, StoreWriter, join};
use serde_json::{Map, Value};
use zarrow_array::allocation;

/// Marker attribute. Its value is different for each created array.
pub(super) const ATTRIBUTE: &str = "zarrow.unfinished_array";

/// Description of the obstacle to creating a node.
pub(super) const WHAT: &str = "an array whose creation has not ended, or was interrupted,";

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

fn documents(number: u64) -> Result<Box<[Document]>> {
    let told = Map::from_iter([(ATTRIBUTE.to_owned(), Value::from(format!("{number:016x}")))]);
    let metadata =
        GroupMetadata { zarr_format: ZarrFormat::V3, attributes: Attributes::from(told), consolidated: None };
    Ok(metadata.documents()?.into())
}

/// Returns the error for readers that find the unfinished document instead of a node (step 4).
pub(crate) fn not_found() -> Error {
    Error::from(ErrorKind::NotFound).with_hint(
        "an array is being created here, or its creation was interrupted: overwrite=True creates it anew",
    )
}

/// An array being created at a path.
pub(super) struct Unfinished<'a> {
    store: &'a dyn Store,
    path: &'a str,
    documents: Box<[Document]>,
}

impl<'a> Unfinished<'a> {
    /// Whether an array of this version can start with an unfinished document.
    pub(super) fn suits(writer: &dyn StoreWriter, zarr_format: ZarrFormat) -> bool {
        zarr_format == ZarrFormat::V3 && !writer.needs_documents_first()
    }

    /// Creates the unfinished documents for an array at `path`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub(super) fn new(store: &'a dyn Store, path: &'a str) -> Result<Unfinished<'a>> {
        Ok(Unfinished { store, path, documents: documents(random_number())? })
    }

    /// Returns the documents to be put first (step 1).
    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn document(&self) -> &[u8] {
        self.documents.first().map_or(&[], |(_, document)| document)
    }

    fn key(&self) -> String {
        join(self.path, ZARR_JSON)
    }

    /// Step 3.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if another writer has replaced the unfinished document; errors of the store.
    pub(super) fn finish(&self, held: &NodeLock<'_>, document: &[u8], options: &OpenOptions) -> Result<()> {
        let (key, limit) = (self.key(), options.limits.metadata.max_consolidated_nbytes);
        let replaced = update(self.store, held, &key, limit, options.durability, |found| {
            match found.map(JsonText::into_bytes) {
                Some(found) if found == self.document() => {
                    Ok(Some(JsonText::parse(allocation::copied(document)?, limit)?))
                }
                _ => Err(ErrorKind::Exists("another node").into()),
            }
        });
        match replaced {
            // The store has no conditions.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => {
                writer(self.store)?.set(&key, &[document], options.durability)
            }
            replaced => replaced,
        }
    }

    /// Erases the document and the chunks of `array`, which was to be created here, unless another writer has replaced
    /// the document (step 4). Other values below it are kept.
    pub(super) fn take_away(&self, array: &Array, options: &OpenOptions) {
        let limit = options.limits.metadata.max_consolidated_nbytes;
        let is_own =
            self.store.get(&self.key(), limit).is_ok_and(|found| found.as_deref() == Some(self.document()));
        if is_own && let Ok(writer) = writer(self.store) {
            // Report the error that led here, not this one.
            let erased = writer.erase(&self.key(), options.durability);
            let _ = erased.and_then(|_| erase_chunks(array));
        }
    }
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
