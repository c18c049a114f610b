//! Creates an array with its elements in a store that cannot make many values visible in one step.
//!
//! 1. An unfinished document is put first, on the condition that there is no node: this decides between two concurrent
//!    creators, before either has put a chunk.
//! 2. Then the chunks are put.
//! 3. The array's document replaces the unfinished one, on the condition that the unfinished one is still
//!    stored. So readers never
//!    see the array without all of its chunks.
//! 4. If the elements cannot be written, the values put so far are erased. A killed writer leaves the unfinished
//!    document: readers find no node, creating a node there is an error with the reason, and replacing it works.
//!
//! The unfinished document is a group document with a marker attribute (`unfinished_mark`): programs that do not know the marker find an
//! empty group, and never an array of fill values. Version 2 has separate documents for arrays and groups: the array's
//! own document is put first, as in a store that accepts chunks only after their array's document.

use super::chunks_outside::erase_chunks;
use super::document::update;
use super::node_lock::NodeLock;
use super::unfinished_mark::documents;
use crate::error::{ErrorKind, Result};
use crate::metadata::{Document, JsonText, ZARR_JSON, ZarrFormat};
use crate::node::array::Array;
use crate::node::open_options::OpenOptions;
use crate::store::remote::random_number;
use crate::store::{Store, StoreWriter, join, writer_of};
use zarrow_array::allocation;

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
                writer_of(self.store)?.set(&key, &[document], options.durability)
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
        if is_own && let Ok(writer) = writer_of(self.store) {
            // Report the error that led here, not this one.
            let erased = writer.erase(&self.key(), options.durability);
            let _ = erased.and_then(|_| erase_chunks(array));
        }
    }
}
