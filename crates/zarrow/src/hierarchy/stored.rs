//! Whether a handle of an array still describes what is stored, asked by whoever writes chunks.
//!
//! 1. Before the first chunk: where the document has the version that the handle has seen, nothing has changed; that is one
//!    look. Else the document is read: it has to describe chunks of the same layout, and a shape that holds the selection.
//!    An array that was replaced by one of the same layout is the same array to a handle.
//! 2. Chunks are written by way of the folder that was found then: none lands in an array that takes its place meanwhile.
//! 3. After the last chunk once more. Who has been told nothing then has written to the array that is there.
//! 4. In between the array may be made smaller: chunks that are outside then are never seen, since growing clears them
//!    (`resize`), and the writer is told.

use super::attributes::StoredNode;
use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::NodeMetadata;
use crate::selection::Selection;
use crate::store::Version;
use std::hash::{DefaultHasher, Hash, Hasher};

impl Array {
    /// Has chunks written to `selection` of the array, which `write` gets as it is to be used for that.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Stale`], and what `write` gives.
    pub(crate) fn write_stored(
        &self,
        selection: &Selection,
        write: impl FnOnce(&Array) -> Result<()>,
    ) -> Result<()> {
        // Step 2.
        let place = self.in_its_place()?;
        let before = place.version()?;
        self.check_version(&place, before, selection)?;
        let written = write(&place);
        if matches!(&written, Err(error) if matches!(error.kind(), ErrorKind::Interrupted)) {
            return written;
        }
        let after = self.version()?;
        if after != before || after == Version::Unknown {
            self.check_version(self, after, selection)?;
            self.check_place(&place)?;
        }
        written
    }

    /// The reason why a write in `place` failed, where the document had the version `before`: that the array is there no
    /// more, if so.
    pub(super) fn reason(&self, place: &Array, before: Version, error: Error) -> Error {
        let is_there = || match self.version()? {
            Version::Missing => Err(Error::from(ErrorKind::NotFound)),
            Version::Unknown => match self.stored_node().read()? {
                NodeMetadata::Array(found) if found.shape == self.shape() => Ok(()),
                _ => Err(ErrorKind::Stale("was changed by another").into()),
            },
            after if after != before => Err(ErrorKind::Stale("was changed by another").into()),
            _ => self.check_place(place),
        };
        match (error.kind(), is_there()) {
            (ErrorKind::Interrupted, _) | (_, Ok(())) => error,
            (_, Err(reason)) => reason,
        }
    }

    /// The same array by way of the folder that it is in now.
    pub(crate) fn in_its_place(&self) -> Result<Array> {
        if self.path().is_empty() {
            return Ok(self.clone());
        }
        Ok(match self.store().subtree(self.path())? {
            Some(store) => self.moved(store, String::new()),
            None => self.clone(),
        })
    }

    /// Refuses where what was found in `place` is no longer what is at the array's path.
    pub(super) fn check_place(&self, place: &Array) -> Result<()> {
        if place.version()? == self.version()? {
            Ok(())
        } else {
            Err(ErrorKind::Stale("was replaced").into())
        }
    }

    /// The version of the document that makes the array.
    pub(super) fn version(&self) -> Result<Version> {
        self.store().version_of(&self.stored_node().key())
    }

    /// Steps 1 and 3, for the array at `place`.
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
            return Err(ErrorKind::Stale("was made smaller").into());
        }
        Ok(())
    }
}

/// A number for a version, which is not 0.
pub(crate) fn fingerprint(version: &[u64; 4]) -> u64 {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    hasher.finish().max(1)
}
