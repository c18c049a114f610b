//! Whether a chunk that is missing was never stored, or has gone with its array.
//!
//! 1. A read that finds no chunk under a key notes that. One that finds every chunk asks nothing.
//! 2. After its last chunk it looks once whether the array is still there, laid out as the handle knows it. Then each chunk
//!    that was missing was never stored, and has the fill value; else the read is an error.
//! 3. Where stored bytes cannot be decoded it looks too: those of another array are not corrupt. So it does where a
//!    folder is in the place of a chunk.
//!
//! A slow store is not asked: that would be a request more for each read. See `Array::check_presence`.

use crate::error::{Error, ErrorKind, Result};
use crate::exec::read::Reader;
use std::sync::atomic::{AtomicBool, Ordering};

/// An array that may be gone.
pub trait Presence: Sync {
    /// Looks whether it is still there, and laid out as it was.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), [`ErrorKind::Stale`](crate::ErrorKind::Stale).
    fn check(&self) -> Result<()>;
}

/// Returns whether the chunk that an error is about may be one of another array (step 3).
pub fn may_be_of_another(error: &Error) -> bool {
    error.is_of_stored_bytes() || is_of_folders(error)
}

/// Whether there is a folder in the place of a chunk, as another array may have there, or the other way round.
fn is_of_folders(error: &Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory};
    matches!(error.kind(), ErrorKind::Io(error) if matches!(error.kind(), IsADirectory | NotADirectory))
}

impl Reader<'_> {
    /// Step 1.
    pub fn note_missing(&self) {
        if let Some(missed) = self.missed {
            missed.store(true, Ordering::Relaxed);
        }
    }

    /// Steps 2 and 3, for what was `read` with that note.
    ///
    /// # Errors
    /// That of `read`, and those of [`Presence::check`].
    pub fn if_present<T>(&self, read: Result<T>, missed: &AtomicBool) -> Result<T> {
        let is_suspect = match &read {
            Ok(_) => missed.load(Ordering::Relaxed),
            Err(error) => may_be_of_another(error),
        };
        if is_suspect {
            self.presence.check()?;
        }
        read
    }
}
