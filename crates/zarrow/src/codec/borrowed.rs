//! Memory borrowed from a caller for reading, which other code may write to at the same time.
//!
//! The rule: such memory is never passed to code that reads it twice and trusts the first read. The type enforces it:
//! 1. [`Borrowed`] gives no slice: compressors, checksums and comparisons of slices cannot take it.
//! 2. It is copied, by address; only the copy is examined.
//! 3. Its address is passed only to code that reads each byte once: a system call that writes it, and the first step
//!    of Blosc, which moves it. `docs/architecture.md` explains for each reader why that holds.
//!
//! So each written element had that value at some moment of the write. The values as a whole may be a mixture of old
//! and new elements, as in NumPy.

use crate::codec::Uninit;
use std::marker::PhantomData;

/// Bytes that are readable during `'a`, and may change at any time.
#[derive(Debug, Clone, Copy)]
pub struct Borrowed<'a> {
    pointer: *const u8,
    nbytes: usize,
    lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: the memory is only read, and may be read by any thread.
unsafe impl Send for Borrowed<'_> {}
// SAFETY: as above.
unsafe impl Sync for Borrowed<'_> {}

impl<'a> From<&'a [u8]> for Borrowed<'a> {
    /// Bytes that never change are a special case of borrowed memory.
    fn from(bytes: &'a [u8]) -> Borrowed<'a> {
        Borrowed { pointer: bytes.as_ptr(), nbytes: bytes.len(), lifetime: PhantomData }
    }
}

impl<'a> Borrowed<'a> {
    /// Borrows the `nbytes` bytes from `pointer` on.
    ///
    /// # Safety
    /// They are readable during `'a`.
    pub unsafe fn new(pointer: *const u8, nbytes: usize) -> Borrowed<'a> {
        Borrowed { pointer, nbytes, lifetime: PhantomData }
    }

    /// Returns the number of bytes.
    pub fn nbytes(self) -> usize {
        self.nbytes
    }

    /// Returns the address, for code that reads each byte once.
    pub fn pointer(self) -> *const u8 {
        self.pointer
    }

    /// Returns the `nbytes` bytes from `start` on, clipped to the end.
    pub fn part(self, start: usize, nbytes: usize) -> Borrowed<'a> {
        let start = start.min(self.nbytes);
        let nbytes = nbytes.min(self.nbytes - start);
        Borrowed { pointer: self.pointer.wrapping_add(start), nbytes, lifetime: PhantomData }
    }

    /// Copies the bytes from `start` on to the front of `place`, as many as fit, and returns the copy.
    pub fn copy_to(self, start: usize, place: &mut Uninit) -> &mut [u8] {
        let nbytes = self.nbytes.saturating_sub(start).min(place.len());
        let place = &mut place[..nbytes];
        // SAFETY: the range is inside the borrowed memory, and `place`, which is exclusive, is other memory. The whole
        // copy is initialised then: with each byte's value when it was read.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.pointer.wrapping_add(start),
                place.as_mut_ptr().cast(),
                nbytes,
            );
            place.assume_init_mut()
        }
    }

    /// Returns the memory as a slice, for a store to write.
    ///
    /// # Safety
    /// No code examines the slice: it is passed to a system call, or is copied, once.
    pub unsafe fn to_be_written(self) -> &'a [u8] {
        // SAFETY: the memory can be read during `'a`. It may change, which a slice's must not: by the caller's
        // contract no code is compiled that could tell, since it only passes address and length on.
        unsafe { std::slice::from_raw_parts(self.pointer, self.nbytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    #[test]
    fn copies_stay_inside() {
        let bytes = *b"abcdef";
        let borrowed = Borrowed::from(&bytes[..]);
        let mut place = [MaybeUninit::uninit(); 4];
        assert_eq!(borrowed.copy_to(0, &mut place), b"abcd");
        assert_eq!(borrowed.copy_to(4, &mut place), b"ef");
        assert_eq!(borrowed.copy_to(7, &mut place), b"");
        assert_eq!(borrowed.part(1, 3).copy_to(1, &mut place), b"cd");
        assert_eq!(borrowed.part(5, 9).copy_to(0, &mut place), b"f");
        assert_eq!(borrowed.part(9, 1).nbytes(), 0);
    }
}
