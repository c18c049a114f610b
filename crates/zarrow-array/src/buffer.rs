//! Host memory with one explicit owner.
//!
//! 1. [`UninitBuffer`] is aligned memory that decoders fill; it cannot be read before.
//! 2. [`Buffer`] is filled memory with one owner, which therefore lends safe slices.
//! 3. What is shared with other libraries is an `Arc<Buffer>` behind raw pointers: see
//!    [`SharedTensor`](crate::SharedTensor).

use crate::alignment::{HOST_ALIGNMENT, HUGE_PAGE, alignment_of};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::fresh_pages::FreshPages;
use crate::recycle;
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Memory of the global allocator, aligned as [`alignment_of`] says.
#[derive(Debug)]
pub(crate) struct Allocation {
    pointer: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an `Allocation` is the only owner of its memory, which no thread owns in particular.
unsafe impl Send for Allocation {}
// SAFETY: a shared `Allocation` gives no access to its memory.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(nbytes: usize, zeroed: bool) -> Result<Allocation> {
        let failed = Error::OutOfMemory { nbytes };
        let layout = Layout::from_size_align(nbytes.max(1), alignment_of(nbytes)).map_err(|_| failed)?;
        // SAFETY: the layout has at least one byte.
        let pointer =
            unsafe { if zeroed { std::alloc::alloc_zeroed(layout) } else { std::alloc::alloc(layout) } };
        let pointer = NonNull::new(pointer).ok_or(Error::OutOfMemory { nbytes })?;
        if nbytes >= HUGE_PAGE {
            advise_huge_pages(pointer, nbytes);
        }
        Ok(Allocation { pointer, layout })
    }

    /// Its bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: `new` got the pointer from the global allocator with this layout, and this is its one owner.
        unsafe { std::alloc::dealloc(self.pointer.as_ptr(), self.layout) }
    }
}

/// An [`Allocation`] in use, which is kept for the next user when this one is done.
#[derive(Debug)]
struct Recycled(Option<Allocation>);

impl Drop for Recycled {
    fn drop(&mut self) {
        drop(self.0.take().and_then(recycle::give));
    }
}

/// Asks the kernel for huge pages; it may refuse, which costs time and nothing else.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages(pointer: NonNull<u8>, nbytes: usize) {
    // SAFETY: the range is our own allocation, its start aligned to 2 MiB; the advice changes no contents.
    unsafe {
        libc::madvise(pointer.as_ptr().cast(), nbytes, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages(_pointer: NonNull<u8>, _nbytes: usize) {}

/// Fresh memory that is not filled yet.
#[derive(Debug)]
pub struct UninitBuffer {
    pointer: NonNull<u8>,
    length: usize,
    owner: Recycled,
    is_fresh: bool,
}

// SAFETY: the buffer is the one owner of its memory.
unsafe impl Send for UninitBuffer {}
// SAFETY: `&UninitBuffer` gives no access to the memory.
unsafe impl Sync for UninitBuffer {}

impl UninitBuffer {
    /// Memory of `nbytes` bytes, aligned as [`alignment_of`] says and not zeroed: fresh, or recycled from a large
    /// buffer that was dropped before.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the allocator has none.
    pub fn new(nbytes: usize) -> Result<UninitBuffer> {
        let (allocation, is_fresh) = match recycle::take(nbytes) {
            Some(allocation) => (allocation, false),
            None => (Allocation::new(nbytes, false)?, true),
        };
        let (pointer, owner) = (allocation.pointer, Recycled(Some(allocation)));
        Ok(UninitBuffer { pointer, length: nbytes, owner, is_fresh })
    }

    /// Its pages, where the memory is fresh and large enough that threads which fill it together should share the work of
    /// providing them.
    #[must_use]
    pub fn fresh_pages(&self) -> Option<FreshPages> {
        (self.is_fresh && self.length >= 2 * HUGE_PAGE).then(|| FreshPages::new(self.pointer, self.length))
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The start of the memory; writing to its [`len`](Self::len) bytes is sound as long as `self` lives.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// The memory, to be filled.
    pub fn as_mut_slice(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the allocation has `length` bytes, and `&mut self` is the one access to them.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr().cast(), self.length) }
    }

    /// The memory as filled.
    ///
    /// # Safety
    /// Every byte has been written.
    #[must_use]
    pub unsafe fn assume_init(self) -> Buffer {
        Buffer { pointer: self.pointer, length: self.length, owner: Owner::Allocation(self.owner) }
    }
}

/// Who frees the memory of a [`Buffer`].
#[derive(Debug)]
enum Owner {
    Allocation(Recycled),
    Vector(Box<dyn AnyVector>),
}

/// A vector of any element, which only its own type can free.
trait AnyVector: std::fmt::Debug + Send + Sync {}

impl<T: Element> AnyVector for Vec<T> {}

/// Filled host memory with one owner.
///
/// ```
/// use zarrow_array::Buffer;
/// let mut buffer = Buffer::zeroed(1000).unwrap();
/// buffer[3] = 7;
/// assert_eq!(buffer.as_ptr() as usize % 64, 0);
/// ```
#[derive(Debug)]
pub struct Buffer {
    pointer: NonNull<u8>,
    length: usize,
    owner: Owner,
}

// SAFETY: the buffer is the one owner of its memory, and `&Buffer` only lends it for reading.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Zeroed memory, aligned as [`alignment_of`] says.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the allocator has none.
    pub fn zeroed(nbytes: usize) -> Result<Buffer> {
        let allocation = Allocation::new(nbytes, true)?;
        let pointer = allocation.pointer;
        Ok(Buffer { pointer, length: nbytes, owner: Owner::Allocation(Recycled(Some(allocation))) })
    }

    /// A copy of `bytes` in aligned memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the allocator has none.
    pub fn copy_of(bytes: &[u8]) -> Result<Buffer> {
        let mut buffer = UninitBuffer::new(bytes.len())?;
        // SAFETY: both ranges have `bytes.len()` bytes, and the new allocation overlaps nothing; the copy then
        // fills every byte.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.as_mut_ptr(), bytes.len());
            Ok(buffer.assume_init())
        }
    }

    /// Whether the memory starts at a multiple of `alignment` bytes.
    #[must_use]
    pub fn is_aligned_to(&self, alignment: usize) -> bool {
        self.pointer.as_ptr().addr().is_multiple_of(alignment)
    }

    /// The bytes as numbers of type `i64`.
    ///
    /// # Errors
    /// [`Error::BadView`] where address or length is not a multiple of 8.
    pub fn as_i64(&self) -> Result<&[i64]> {
        as_words(self)
    }

    /// Bytes that it holds beside itself: all of the memory that it got, which may be more than it uses, and what the
    /// allocator adds to it.
    #[must_use]
    pub fn held_nbytes(&self) -> usize {
        const PIECE_NBYTES: usize = 16;
        match &self.owner {
            Owner::Allocation(Recycled(allocation)) => {
                let capacity = allocation.as_ref().map_or(0, Allocation::capacity);
                // What lies before the aligned start of a small block is of no use to others.
                capacity + HOST_ALIGNMENT + PIECE_NBYTES
            }
            Owner::Vector(vector) => size_of_val(&**vector) + self.length + 2 * PIECE_NBYTES,
        }
    }

    /// The start of the memory, for exports that write through it: see [`SharedTensor`](crate::SharedTensor).
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    /// Whether the memory came from this crate's allocator, and so has its alignment.
    #[must_use]
    pub fn is_own_allocation(&self) -> bool {
        matches!(self.owner, Owner::Allocation(_))
    }
}

/// `bytes` as numbers of type `i64`.
pub(crate) fn as_words(bytes: &[u8]) -> Result<&[i64]> {
    // SAFETY: every bit pattern is an `i64`.
    match unsafe { bytes.align_to() } {
        ([], words, []) => Ok(words),
        _ => Err(Error::BadView("the buffer is not aligned for i64".into())),
    }
}

impl<T: Element> From<Vec<T>> for Buffer {
    /// Takes the vector's memory as it is, at the alignment that its elements have.
    fn from(mut vector: Vec<T>) -> Buffer {
        // SAFETY: a vector's pointer is never null; moving the vector does not move its memory.
        let pointer = unsafe { NonNull::new_unchecked(vector.as_mut_ptr()).cast() };
        Buffer { pointer, length: size_of_val(&*vector), owner: Owner::Vector(Box::new(vector)) }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps `length` initialised bytes at `pointer`, and a `Buffer` that is lent has no
        // writer: an export that writes holds it in an `Arc` and never dereferences it.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` is the one access.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned() {
        for nbytes in [0, 1, 63, 4096, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 5] {
            let buffer = UninitBuffer::new(nbytes).unwrap();
            assert!(buffer.pointer.as_ptr().addr().is_multiple_of(alignment_of(nbytes)));
            assert_eq!(buffer.len(), nbytes);
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        assert!(matches!(UninitBuffer::new(usize::MAX), Err(Error::OutOfMemory { .. })));
        assert!(matches!(UninitBuffer::new(isize::MAX as usize), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn a_vector_keeps_its_memory() {
        let vector = vec![1u8, 2, 3];
        let address = vector.as_ptr();
        let buffer = Buffer::from(vector);
        assert_eq!(buffer.as_ptr(), address);
        assert_eq!(&buffer[..], [1, 2, 3]);
        assert!(!buffer.is_own_allocation());
    }

    #[test]
    fn offsets_need_whole_words() {
        assert!(Buffer::zeroed(12).unwrap().as_i64().is_err());
        assert_eq!(Buffer::zeroed(16).unwrap().as_i64().unwrap(), [0, 0]);
    }
}
