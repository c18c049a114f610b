//! Zip archives as stores: in a local file, or in one value of a remote store.
//!
//! An archive is read-only. Its directory is read once, when it is opened, and used to find the members; later changes
//! of the archive are errors. Sources: PKWARE's APPNOTE 6.3.10; Python's `zipfile`, for duplicate names (the last
//! member counts) and for bytes before the archive, which shift all offsets.
//!
//! The reader is our own, because members are read in place: stored members as ranges of the archive, in a bucket by one
//! request each, and compressed ones straight into the memory of a read. Sizes from the archive are checked before memory
//! is allocated, and members must not overlap.

mod archive;
mod directory;
mod end_record;
mod entry;
mod inflate;
mod member;
mod remote_archive;
mod remote_member;
mod remote_zip;
mod zip_store;

pub use remote_zip::RemoteZip;
pub use zip_store::{ZipStore, is_archive, open_path};

use crate::error::{Error, ErrorKind};

/// Returns the error for an archive that violates its format.
fn corrupt(text: &str) -> Error {
    ErrorKind::Corrupt(format!("the zip archive is damaged: {text}")).into()
}

/// Little-endian numbers at offsets of a record, with bounds checks.
trait Fields {
    /// Reads two bytes at `offset`.
    fn number16(&self, offset: usize) -> Option<u16>;
    /// Reads four bytes at `offset`.
    fn number32(&self, offset: usize) -> Option<u32>;
    /// Reads eight bytes at `offset`.
    fn number64(&self, offset: usize) -> Option<u64>;
}

impl Fields for [u8] {
    fn number16(&self, offset: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }

    fn number32(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }

    fn number64(&self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }
}
