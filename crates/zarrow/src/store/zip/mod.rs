//! Zip archives as stores: of a local file, and of one value of a remote store.
//!
//! An archive is read, and never written. It is taken as it was when it was opened: its directory is read once, and members
//! are found by it. Sources: PKWARE's APPNOTE 6.3.10; Python's `zipfile`, for which of two members of one name counts (the
//! last one), and for bytes before the archive, by which all offsets are shifted.

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

/// The error of an archive that is not what its format says.
fn corrupt(text: &str) -> Error {
    ErrorKind::Corrupt(format!("the zip archive is damaged: {text}")).into()
}

/// Little-endian numbers at offsets of a record, which are checked.
trait Fields {
    /// The number of two bytes at `offset`.
    fn number16(&self, offset: usize) -> Option<u16>;
    /// The number of four bytes at `offset`.
    fn number32(&self, offset: usize) -> Option<u32>;
    /// The number of eight bytes at `offset`.
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
