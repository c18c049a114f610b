//! Memory that a caller lends for reading, and that others may write to meanwhile.
//!
//! The rule: such memory never goes to code that reads it twice and trusts what it read first. The type enforces it:
//! 1. [`Lent`] has no slice, so that no compressor, checksum or comparison that takes slices can take it.
//! 2. It is copied, by address; only the copy is looked at.
//! 3. Its address goes only to code that reads each byte once: a system call that writes it, and the first step of
//!    Blosc, which moves it. `docs/architecture.md` says for each reader why that holds.
//!
//! So each element that is written was there at some moment of the write. The values as a whole may be a mixture of old
//! and new elements, as in NumPy.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Bytes that can be read during `'a`, and may change meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Lent<'a> {
    pointer: *const u8,
    nbytes: usize,
    lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: the memory is only read, and may be read by any thread.
unsafe impl Send for Lent<'_> {}
// SAFETY: as above.
unsafe impl Sync for Lent<'_> {}

impl<'a> From<&'a [u8]> for Lent<'a> {
    /// Bytes that do not change can do all that others can.
    fn from(bytes: &'a [u8]) -> Lent<'a> {
        Lent { pointer: bytes.as_ptr(), nbytes: bytes.len(), lifetime: PhantomData }
    }
}

impl<'a> Lent<'a> {
    /// The `nbytes` bytes from `pointer` on.
    ///
    /// # Safety
    /// They can be read during `'a`.
    pub unsafe fn new(pointer: *const u8, nbytes: usize) -> Lent<'a> {
        Lent { pointer, nbytes, lifetime: PhantomData }
    }

    /// How many bytes there are.
    pub fn nbytes(self) -> usize {
        self.nbytes
    }

    /// Where they begin, for code that reads each of them once.
    pub fn pointer(self) -> *const u8 {
        self.pointer
    }

    /// So many of the bytes, from `start` on; fewer where there are not so many.
    pub fn part(self, start: usize, nbytes: usize) -> Lent<'a> {
        let start = start.min(self.nbytes);
        let nbytes = nbytes.min(self.nbytes - start);
        Lent { pointer: self.pointer.wrapping_add(start), nbytes, lifetime: PhantomData }
    }

    /// Copies the bytes from `start` on to the front of `place`, as many as there are and as it has room for, and
    /// returns the copy.
    pub fn copy_to(self, start: usize, place: &mut [MaybeUninit<u8>]) -> &mut [u8] {
        let nbytes = self.nbytes.saturating_sub(start).min(place.len());
        let place = &mut place[..nbytes];
        // SAFETY: the range lies inside the lent memory, and `place`, which nobody else has, is other memory. All of it is
        // initialised then: with what each byte was when it was read.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.pointer.wrapping_add(start),
                place.as_mut_ptr().cast(),
                nbytes,
            );
            place.assume_init_mut()
        }
    }

    /// The memory as a slice, for a store to write.
    ///
    /// # Safety
    /// Nobody looks at the slice: it goes to a system call, or is copied, once.
    pub unsafe fn to_be_written(self) -> &'a [u8] {
        // SAFETY: the memory can be read during `'a`. It may change, which a slice's must not: by the caller's contract
        // no code is compiled that could tell, since it only hands address and length on.
        unsafe { std::slice::from_raw_parts(self.pointer, self.nbytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_inside() {
        let bytes = *b"abcdef";
        let lent = Lent::from(&bytes[..]);
        let mut place = [MaybeUninit::uninit(); 4];
        assert_eq!(lent.copy_to(0, &mut place), b"abcd");
        assert_eq!(lent.copy_to(4, &mut place), b"ef");
        assert_eq!(lent.copy_to(7, &mut place), b"");
        assert_eq!(lent.part(1, 3).copy_to(1, &mut place), b"cd");
        assert_eq!(lent.part(5, 9).copy_to(0, &mut place), b"f");
        assert_eq!(lent.part(9, 1).nbytes(), 0);
    }
}
