//! Immutable bytes that several arrays and libraries hold at once, whoever allocated them.

use crate::buffer::{Buffer, as_words};
use crate::error::{Error, Result};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes that nobody writes to any more, kept alive by a counted owner: a [`Buffer`] of ours, or memory that
/// another library lends.
///
/// A clone shares the memory.
///
/// ```
/// use zarrow_array::{Buffer, SharedBytes};
/// let bytes = SharedBytes::from(Buffer::copy_of(b"abc")?);
/// let other = bytes.clone();
/// assert_eq!((&other[..], other.as_ptr()), (&b"abc"[..], bytes.as_ptr()));
/// # Ok::<(), zarrow_array::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedBytes {
    pointer: NonNull<u8>,
    length: usize,
    owner: Arc<dyn Send + Sync>,
}

// SAFETY: the memory is only read, and its owner may be held and dropped by any thread.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// The `length` bytes at `pointer`, which `owner` keeps. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::BadView`] for bytes at NULL, and for more of them than memory can address.
    ///
    /// # Safety
    /// As long as `owner` lives, the bytes may be read by any thread. Nobody should write to them: whoever does is seen by
    /// those that read them, none of whom relies on reading the same twice.
    pub unsafe fn from_foreign(
        owner: Arc<dyn Send + Sync>,
        pointer: *const u8,
        length: usize,
    ) -> Result<SharedBytes> {
        let outside = isize::try_from(length).is_err() || pointer.addr().checked_add(length).is_none();
        match NonNull::new(pointer.cast_mut()) {
            _ if outside => Err(Error::BadView(format!("{length} bytes are more than memory can address"))),
            Some(pointer) => Ok(SharedBytes { pointer, length, owner }),
            None if length == 0 => {
                Ok(SharedBytes { pointer: NonNull::<i64>::dangling().cast(), length, owner })
            }
            None => Err(Error::BadView(format!("{length} bytes at address NULL"))),
        }
    }

    /// The bytes as numbers of type `i64`.
    ///
    /// # Errors
    /// [`Error::BadView`] where address or length is not a multiple of 8.
    pub fn as_i64(&self) -> Result<&[i64]> {
        as_words(self)
    }

    /// What keeps the memory alive: holding a clone is enough.
    #[must_use]
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(&self.owner)
    }

    /// The start of the memory, for a read-only [`SharedTensor`](crate::SharedTensor) over it.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }
}

impl From<Buffer> for SharedBytes {
    /// Takes the buffer's memory as it is.
    fn from(buffer: Buffer) -> SharedBytes {
        SharedBytes { pointer: buffer.pointer(), length: buffer.len(), owner: Arc::new(buffer) }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps `length` bytes at `pointer`, which nobody writes to: a `Buffer` that was given
        // away for good, or what the caller of `from_foreign` promised.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedBytes({} bytes at {:?})", self.length, self.pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_bytes_are_shared_and_kept() {
        let owner = Arc::new(vec![1u8, 2, 3]);
        // SAFETY: the vector is the owner, and nobody writes to it.
        let bytes = unsafe { SharedBytes::from_foreign(owner.clone(), owner.as_ptr(), 3) }.unwrap();
        assert_eq!((&bytes[..], bytes.as_ptr()), (&[1u8, 2, 3][..], owner.as_ptr()));
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(bytes);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn what_cannot_be_memory_is_refused() {
        // SAFETY: no byte is read.
        let at =
            |pointer: *const u8, length| unsafe { SharedBytes::from_foreign(Arc::new(()), pointer, length) };
        assert!(at(std::ptr::null(), 0).unwrap().as_i64().unwrap().is_empty());
        assert!(at(std::ptr::null(), 1).is_err());
        assert!(at(std::ptr::without_provenance(usize::MAX), 2).is_err());
        assert!(at(std::ptr::without_provenance(8), usize::MAX / 2 + 1).is_err());
    }
}
