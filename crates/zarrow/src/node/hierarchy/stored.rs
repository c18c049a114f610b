//! Checks whether a handle of an array still describes the stored array. Every write of chunks does this.
//!
//! 1. Before the first chunk: if the document has the version known to the handle, nothing has changed. That is one
//!    check. Otherwise the document is read: it must describe chunks of the same layout, and a shape that contains the
//!    selection. A handle cannot distinguish an array from a replacement with the same layout.
//! 2. Chunks are written through the folder that was found then: no chunk ends up in an array that replaces this one
//!    during the write.
//! 3. After the last chunk the handle checks once more. A writer without an error has written to the present array.
//! 4. The array may be made smaller during the write. Chunks written outside it are then removed, under the lock for
//!    changes of shape (`resize`), and the writer gets an error. Chunks of a killed writer are never visible, since
//!    growing clears them. For a remote store, steps 1 to 3 are in `document_guard`: it has no folders.
//! 5. A read checks once if chunks were missing (`decode/missing_chunk.rs`): is there an array of the same layout? An
//!    array from consolidated metadata may never have had a document. If the handle has not seen one, the consolidated
//!    metadata of a group above must still contain the array.

use super::attributes::StoredNode;
use super::document_guard::{DocumentGuard, SMALLER};
use super::document_version::fingerprint;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::NodeMetadata;
use crate::node::array::Array;
use crate::node::node_documents::read_metadata;
use crate::selection::Selection;
use crate::store::{Retry, Version};
use crate::write::options::WriteOptions;
use crate::write::staged::Guard;
use std::sync::Arc;

impl Array {
    /// Calls `write` to write chunks to `selection` of the array, with the array in its present folder.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Stale`], and errors of `write`.
    pub(crate) fn write_stored(
        &self,
        selection: &Selection,
        options: &WriteOptions<'_>,
        write: impl FnOnce(&Array, Option<&dyn Guard>) -> Result<()>,
    ) -> Result<()> {
        if self.is_bare() {
            return write(self, None);
        }
        if self.store().remote().is_some() {
            let guard = DocumentGuard::new(self, selection);
            return guard.settle(write(self, Some(&guard)), options);
        }
        // Step 2.
        let place = self.in_its_place()?;
        let before = place.version()?;
        self.check_version(&place, before, selection)?;
        let written = write(&place, None);
        let after = self.version()?;
        if after == before && after != Version::Unknown {
            return written;
        }
        let checked = self.check_version(self, after, selection).and_then(|()| self.check_place(&place));
        if let Err(error) = &checked
            && matches!(error.kind(), ErrorKind::Stale(SMALLER))
        {
            // Step 4. If that fails, the rest is outside the shape, and growing clears it.
            let _ = self.clear_outside(options);
        }
        match &written {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => written,
            _ => checked.and(written),
        }
    }

    /// Step 5.
    pub(crate) fn check_presence(&self) -> Result<()> {
        if self.store().remote().is_some() {
            return Ok(());
        }
        let version = match self.version()? {
            Version::Missing if self.had_document() => return Err(ErrorKind::NotFound.into()),
            Version::Missing => return self.check_consolidated(),
            Version::Unknown => None,
            Version::Of(numbers) => Some(fingerprint(&numbers)),
        };
        if version.is_some_and(|version| self.has_seen(version)) {
            return Ok(());
        }
        match self.stored_node().read() {
            Ok(NodeMetadata::Array(found)) => {
                if found.shape == self.shape() {
                    self.see(version.unwrap_or_default());
                }
                Ok(())
            }
            Ok(NodeMetadata::Group(_)) => Err(ErrorKind::NotFound.into()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Stale(_)) => Err(error),
            // An unreadable document proves nothing, and was not needed so far.
            Err(_) => Ok(()),
        }
    }

    /// Performs step 5 for an array without a document: consolidated metadata of a group above must contain it.
    fn check_consolidated(&self) -> Result<()> {
        let mut group = self.path();
        if group.is_empty() {
            return Ok(());
        }
        while !group.is_empty() {
            group = group.rsplit_once('/').map_or("", |(above, _)| above);
            let consolidated = match read_metadata(&**self.store(), group, &self.options().limits.metadata) {
                Ok(NodeMetadata::Group(found)) => found.consolidated,
                Ok(NodeMetadata::Array(_)) => None,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => None,
                // An unreadable document proves nothing.
                Err(_) => return Ok(()),
            };
            let below = self.path().get(group.len()..).unwrap_or_default().trim_start_matches('/');
            match consolidated.and_then(|consolidated| consolidated.get(below)) {
                Some(Ok(NodeMetadata::Array(found))) if !found.has_layout_of(self.metadata()) => {
                    return Err(ErrorKind::Stale("was replaced").into());
                }
                Some(Ok(NodeMetadata::Array(_)) | Err(_)) => return Ok(()),
                Some(Ok(NodeMetadata::Group(_))) | None => {}
            }
        }
        Err(ErrorKind::NotFound.into())
    }

    /// Returns the error of a failed write in `place`: its cause if the array has been removed, or changed since its
    /// document had the version `before`, else `error`. `before` is `None` if this writer has changed the document
    /// itself.
    pub(super) fn reason(&self, place: &Array, before: Option<Version>, error: Error) -> Error {
        let is_there = || match self.version()? {
            Version::Missing => Err(Error::from(ErrorKind::NotFound)),
            Version::Unknown if before.is_some() => match self.stored_node().read()? {
                NodeMetadata::Array(found) if found.shape == self.shape() => Ok(()),
                _ => Err(ErrorKind::Stale("was changed by another program").into()),
            },
            after if before.is_some_and(|before| after != before) => {
                Err(ErrorKind::Stale("was changed by another program").into())
            }
            _ => self.check_place(place),
        };
        if matches!(error.kind(), ErrorKind::Interrupted) || error.is_out_of_memory() {
            return error;
        }
        is_there().err().unwrap_or(error)
    }

    /// Returns the same array as seen through its present folder.
    pub(crate) fn in_its_place(&self) -> Result<Array> {
        Ok(match self.store().subtree(self.path())? {
            Some(store) => self.moved(store, String::new()),
            None => self.clone(),
        })
    }

    /// Returns an error if the array in `place` is no longer the one at the array's path.
    pub(super) fn check_place(&self, place: &Array) -> Result<()> {
        if Arc::ptr_eq(place.store(), self.store()) {
            return Ok(());
        }
        let replaced = || ErrorKind::Stale("was replaced").into();
        let (mut retry, mut in_place) = (Retry::race(), place.version()?);
        loop {
            let here = self.version()?;
            if here == in_place {
                return Ok(());
            }
            // Another writer may have set attributes in between.
            let before = std::mem::replace(&mut in_place, place.version()?);
            if in_place == before {
                return Err(replaced());
            }
            retry.again(&|| Ok(()), replaced)?;
        }
    }

    /// Returns the version of the document that makes the array.
    pub(super) fn version(&self) -> Result<Version> {
        self.store().version_of(&self.stored_node().key())
    }

    /// Performs steps 1 and 3 for the array at `place`.
    fn check_version(&self, place: &Array, version: Version, selection: &Selection) -> Result<()> {
        let seen = match version {
            Version::Missing => return Err(ErrorKind::NotFound.into()),
            Version::Unknown => None,
            Version::Of(numbers) => Some(fingerprint(&numbers)),
        };
        if seen.is_some_and(|seen| self.has_seen(seen)) {
            return Ok(());
        }
        let node = StoredNode { array: Some(self.metadata()), ..place.stored_node() };
        let NodeMetadata::Array(found) = node.read()? else { return Err(ErrorKind::NotFound.into()) };
        if found.shape == self.shape() {
            self.see(seen.unwrap_or_default());
        } else if !selection.fits(&found.shape) {
            return Err(ErrorKind::Stale(SMALLER).into());
        }
        Ok(())
    }
}
