//! Immutable bytes shared by several arrays and libraries, with any allocator.

use crate::buffer::{Buffer, as_words};
use crate::error::{Error, Result};
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Immutable bytes with a reference-counted owner: a [`Buffer`], or memory borrowed from another library.
///
/// Clones share the memory.
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

// SAFETY: the memory is only read, any thread may read it (`from_foreign`), and the owner is `Send` and `Sync`.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// Wraps the `length` bytes at `pointer` without a copy. `owner` keeps them alive.
    ///
    /// # Errors
    /// [`Error::BadView`] for bytes at NULL, or if the length exceeds the address space.
    ///
    /// # Safety
    /// While `owner` lives, the bytes must be readable by any thread. They should not change: readers would see the
    /// changes. This is sound, since no reader assumes that a second read gives the same value.
    pub unsafe fn from_foreign(
        owner: Arc<dyn Send + Sync>,
        pointer: *const u8,
        length: usize,
    ) -> Result<SharedBytes> {
        let outside = isize::try_from(length).is_err() || pointer.addr().checked_add(length).is_none();
        match NonNull::new(pointer.cast_mut()) {
            _ if outside => Err(Error::BadView(format!("{length} bytes exceed the address space"))),
            Some(pointer) => Ok(SharedBytes { pointer, length, owner }),
            None if length == 0 => {
                Ok(SharedBytes { pointer: NonNull::<i64>::dangling().cast(), length, owner })
            }
            None => Err(Error::BadView(format!("{length} bytes at address NULL"))),
        }
    }

    /// Returns the bytes as `i64` values.
    ///
    /// # Errors
    /// [`Error::BadView`] if the address or the length is not a multiple of 8.
    pub fn as_i64(&self) -> Result<&[i64]> {
        as_words(self)
    }

    /// Returns the owner of the memory. Holding a clone keeps the memory alive.
    #[must_use]
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(&self.owner)
    }

    /// Returns the start of the memory, for a read-only [`SharedTensor`](crate::SharedTensor) over it.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }
}

impl From<Buffer> for SharedBytes {
    /// Takes over the buffer's memory without a copy.
    fn from(buffer: Buffer) -> SharedBytes {
        SharedBytes { pointer: buffer.pointer(), length: buffer.len(), owner: Arc::new(buffer) }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps `length` bytes at `pointer` that are not written to: either the owner holds a
        // `Buffer` that was moved into it, or the caller of `from_foreign` promised it.
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
        // SAFETY: the vector is the owner, and is not written to.
        let bytes = unsafe { SharedBytes::from_foreign(owner.clone(), owner.as_ptr(), 3) }.unwrap();
        assert_eq!((&bytes[..], bytes.as_ptr()), (&[1u8, 2, 3][..], owner.as_ptr()));
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(bytes);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn null_and_oversized_memory_is_refused() {
        // SAFETY: no byte is read.
        let at =
            |pointer: *const u8, length| unsafe { SharedBytes::from_foreign(Arc::new(()), pointer, length) };
        assert!(at(std::ptr::null(), 0).unwrap().as_i64().unwrap().is_empty());
        assert!(at(std::ptr::null(), 1).is_err());
        assert!(at(std::ptr::without_provenance(usize::MAX), 2).is_err());
        assert!(at(std::ptr::without_provenance(8), usize::MAX / 2 + 1).is_err());
    }
}
