//! Missing chunks: their elements get the fill value, if they were never stored.
//!
//! 1. A read fills the elements of a missing chunk, and records that one was missing. A read without missing chunks
//!    sends no extra request.
//! 2. After its last chunk, the read checks once whether the array still exists, with the layout known to the handle.
//!    If so, each missing chunk was never stored and has the fill value; otherwise the read is an error.
//! 3. The read makes the same check if stored bytes cannot be decoded, since bytes of another array are not corrupt,
//!    and if a folder is in the place of a chunk.
//!
//! Slow stores are not checked: that would add a request to each read. See `Array::check_presence`.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::FillValue;
use crate::place::output_claim::OutputClaim;
use zarrow_array::fork::Mutex;

/// Sets the elements of a missing chunk, or of a missing inner chunk, to the fill value (step 1).
pub fn fill(claims: &mut [OutputClaim<'_>], fill_value: &FillValue) -> Result<()> {
    claims.iter_mut().try_for_each(|claim| claim.fill(fill_value))
}

/// An array that may have been erased.
pub trait Presence: Sync {
    /// Checks whether the array still exists, with the same layout.
    fn check(&self) -> Result<()>;

    /// Notes which chunk was missing.
    fn note_missing(&self, chunk_index: &[u64]);
}

/// Indices of chunks that were missing, in any order and possibly several times.
#[derive(Debug, Default)]
pub struct MissingChunks(Mutex<Vec<Vec<u64>>>);

impl MissingChunks {
    /// Adds a chunk.
    pub fn add(&self, chunk_index: &[u64]) {
        self.0.lock().push(chunk_index.to_vec());
    }

    /// Returns the chunks added since the last call.
    pub fn take(&self) -> Vec<Vec<u64>> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Returns whether an error may come from a chunk of another array (step 3).
pub fn may_be_of_another(error: &Error) -> bool {
    error.is_of_stored_bytes() || is_of_folders(error)
}

/// Whether a folder is in the place of a chunk, or a file in the place of a folder, as after replacement by another
/// array.
fn is_of_folders(error: &Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory};
    matches!(error.kind(), ErrorKind::Io(error) if matches!(error.kind(), IsADirectory | NotADirectory))
}
