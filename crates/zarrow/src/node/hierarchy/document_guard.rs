//! Checks asynchronously, while chunks are written, whether a handle still describes an array of a remote store.
//!
//! 1. If the document has the version known to the handle, nothing has changed: that is one request without a body. A
//!    handle without a known version requests the whole document at once.
//! 2. Otherwise the document must describe chunks of the same layout, and a shape that contains the selection.

use super::document_version::fingerprint;
use super::unfinished_mark::{is_unfinished, not_found};
use crate::codec::{parse_v2_array, parse_v3};
use crate::error::{ErrorKind, OUTDATED, Result};
use crate::metadata::{NodeMetadata, ZarrFormat};
use crate::node::array::Array;
use crate::selection::Selection;
use crate::store::remote::{ByteRange, Fetched, Request, RequestClass, fetch, version_number};
use crate::write::options::WriteOptions;
use crate::write::staged::Guard;

/// Reason for an error when the shape no longer contains a selection.
pub(super) const SMALLER: &str = "was made smaller";

/// Guard of a write: the array's document.
pub(crate) struct DocumentGuard<'a> {
    array: &'a Array,
    selection: &'a Selection,
}

impl<'a> DocumentGuard<'a> {
    /// Returns the guard of a write of `selection` to `array`.
    pub(crate) fn new(array: &'a Array, selection: &'a Selection) -> DocumentGuard<'a> {
        DocumentGuard { array, selection }
    }

    fn limit(&self) -> u64 {
        let limits = &self.array.options().limits.metadata;
        match self.array.metadata().zarr_format {
            ZarrFormat::V3 => limits.max_consolidated_nbytes,
            ZarrFormat::V2 => limits.max_metadata_nbytes,
        }
    }

    fn whole(&self) -> (Request, u64) {
        let request = Request::new(self.array.stored_node().key(), ByteRange::Whole);
        (request.with_class(RequestClass::Metadata), self.limit())
    }

    /// Completes a write: removes chunks outside of an array that was made smaller. If the store refused chunks because
    /// the array is gone, that becomes the error.
    ///
    /// # Errors
    /// The error of the write, or its reason.
    pub(crate) fn settle(&self, written: Result<()>, options: &WriteOptions<'_>) -> Result<()> {
        let Err(error) = &written else { return written };
        match error.kind() {
            ErrorKind::Stale(SMALLER) => {
                // If that fails, the chunks stay outside the shape, and growing clears them.
                let _ = self.array.clear_outside(options);
                written
            }
            ErrorKind::Interrupted | ErrorKind::NotFound | ErrorKind::Stale(_) => written,
            _ if self.array.store().writer().is_some_and(|writer| writer.needs_documents_first()) => {
                match self.check() {
                    Err(reason) if matches!(reason.kind(), ErrorKind::NotFound | ErrorKind::Stale(_)) => {
                        Err(reason)
                    }
                    _ => written,
                }
            }
            _ => written,
        }
    }

    fn check(&self) -> Result<()> {
        let Some(remote) = self.array.store().remote() else { return Ok(()) };
        let mut next = Some(self.request());
        while let Some((request, limit)) = next {
            next = self.judge(&request, fetch(remote, request.clone(), limit, &|| Ok(()))?)?;
        }
        Ok(())
    }
}

impl Guard for DocumentGuard<'_> {
    fn request(&self) -> (Request, u64) {
        if !self.array.has_seen_any() {
            return self.whole();
        }
        let request = Request::new(self.array.stored_node().key(), ByteRange::Range(0..0));
        (request.with_class(RequestClass::Metadata), 0)
    }

    fn judge(&self, request: &Request, fetched: Fetched) -> Result<Option<(Request, u64)>> {
        let is_whole = request.range == ByteRange::Whole;
        let body = match fetched {
            Fetched::Missing => return Err(ErrorKind::NotFound.into()),
            Fetched::TooLarge(actual) if is_whole => {
                let what = "the size of a document";
                return Err(ErrorKind::Limit { what, actual, limit: self.limit() }.into());
            }
            Fetched::Changed | Fetched::TooLarge(_) => return Ok(Some(self.whole())),
            Fetched::Body(body) => body,
        };
        let seen = body.version.as_ref().map(|version| fingerprint(&version_number(version)));
        if seen.is_some_and(|seen| self.array.has_seen(seen)) {
            return Ok(None);
        }
        if !is_whole {
            return Ok(Some(self.whole()));
        }
        let limits = &self.array.options().limits.metadata;
        let found = match self.array.metadata().zarr_format {
            ZarrFormat::V3 => parse_v3(&body.bytes, limits)?,
            ZarrFormat::V2 => NodeMetadata::Array(parse_v2_array(&body.bytes, None, limits)?),
        };
        if is_unfinished(&found) {
            return Err(not_found());
        }
        match found {
            NodeMetadata::Array(found) if found.has_layout_of(self.array.metadata()) => {
                if found.shape == self.array.shape() {
                    self.array.see(seen.unwrap_or_default());
                } else if !self.selection.fits(&found.shape) {
                    return Err(ErrorKind::Stale(SMALLER).into());
                }
                Ok(None)
            }
            _ if self.array.had_document() => Err(ErrorKind::Stale("was replaced").into()),
            _ => Err(ErrorKind::Stale(OUTDATED).into()),
        }
    }
}
