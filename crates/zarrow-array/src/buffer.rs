//! Host memory with one explicit owner.
//!
//! 1. [`UninitBuffer`] is aligned memory for decoders to fill; it cannot be read until then.
//! 2. [`Buffer`] is initialized memory with one owner, so it can hand out safe slices.
//! 3. Memory shared with other libraries is an `Arc<Buffer>` behind raw pointers: see
//!    [`SharedTensor`](crate::SharedTensor).

use crate::alignment::HOST_ALIGNMENT;
use crate::block::Block;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::fresh_pages::FreshPages;
use crate::huge_pages::HUGE_PAGE;
use crate::recycle::Recycled;
use crate::slab_pool::{SlabMemory, SlabPool};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The owner of memory that this crate allocated.
#[derive(Debug)]
enum Allocation {
    Block(Recycled),
    Slab(SlabMemory),
}

impl Allocation {
    /// Returns the size in bytes, which may exceed the buffer's length.
    fn capacity(&self) -> usize {
        match self {
            Allocation::Block(block) => block.capacity(),
            Allocation::Slab(memory) => memory.capacity(),
        }
    }
}

/// Uninitialized memory.
#[derive(Debug)]
pub struct UninitBuffer {
    pointer: NonNull<u8>,
    length: usize,
    owner: Allocation,
    is_fresh: bool,
}

// SAFETY: the buffer is the only owner of its memory.
unsafe impl Send for UninitBuffer {}
// SAFETY: `&UninitBuffer` gives no access to the memory.
unsafe impl Sync for UninitBuffer {}

impl UninitBuffer {
    /// Allocates `nbytes` bytes with the alignment of [`alignment_of`](crate::alignment_of). The memory is not zeroed:
    /// it may be fresh, or recycled from a large buffer dropped earlier.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the allocation fails.
    pub fn new(nbytes: usize) -> Result<UninitBuffer> {
        // For `as_mut_slice_and_spare`: large memory is read in other ways.
        let spare = usize::from(nbytes < HUGE_PAGE - 1);
        let (block, is_fresh) = Recycled::new(nbytes, spare)?;
        Ok(UninitBuffer {
            pointer: block.pointer(),
            length: nbytes,
            owner: Allocation::Block(block),
            is_fresh,
        })
    }

    /// Returns `nbytes` bytes of a pool's memory; `None` if the pool [has](SlabPool::serves) none of this size, or if all is
    /// in use.
    ///
    /// ```
    /// use zarrow_array::{SlabPool, UninitBuffer};
    /// let pool = SlabPool::new(100_000, 10);
    /// let mut first = UninitBuffer::from_pool(&pool, 100_000).unwrap();
    /// let address = first.as_mut_ptr();
    /// drop(first);
    /// assert_eq!(UninitBuffer::from_pool(&pool, 100_000).unwrap().as_mut_ptr(), address);
    /// ```
    #[must_use]
    pub fn from_pool(pool: &SlabPool, nbytes: usize) -> Option<UninitBuffer> {
        let memory = pool.memory(nbytes)?;
        let (pointer, length) = (memory.pointer(), nbytes.min(memory.capacity()));
        Some(UninitBuffer { pointer, length, owner: Allocation::Slab(memory), is_fresh: false })
    }

    /// Returns the fresh pages of a large new allocation. Threads that fill it together should share the page
    /// faults.
    #[must_use]
    pub fn fresh_pages(&self) -> Option<FreshPages> {
        if self.is_fresh { FreshPages::new(self.pointer, self.length) } else { None }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the start of the memory. Writing to its [`len`](Self::len) bytes is sound while `self` lives.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Returns the memory for writing.
    pub fn as_mut_slice(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the allocation has `length` bytes, and `&mut self` is the only access to them.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr().cast(), self.length) }
    }

    /// Lends the memory like [`as_mut_slice`](UninitBuffer::as_mut_slice), with one extra byte behind the buffer if the
    /// allocation has one.
    pub fn as_mut_slice_and_spare(&mut self) -> &mut [MaybeUninit<u8>] {
        let capacity = self.owner.capacity();
        let length = (self.length + 1).min(capacity).max(self.length);
        // SAFETY: the allocation has `capacity` bytes, and at least those of the buffer; `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr().cast(), length) }
    }

    /// Converts to an initialized buffer.
    ///
    /// # Safety
    /// Every byte must have been written.
    #[must_use]
    pub unsafe fn assume_init(self) -> Buffer {
        Buffer { pointer: self.pointer, length: self.length, owner: BufferOwner::Allocation(self.owner) }
    }
}

/// How to free the memory of a [`Buffer`].
#[derive(Debug)]
enum BufferOwner {
    Allocation(Allocation),
    Vector(Box<dyn AnyVector>),
}

/// A vector of any element type. Only the original type can free its memory.
trait AnyVector: std::fmt::Debug + Send + Sync {}

impl<T: Element> AnyVector for Vec<T> {}

/// Initialized host memory with one owner.
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
    owner: BufferOwner,
}

// SAFETY: the buffer is the only owner of its memory, and `&Buffer` only gives read access.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `nbytes` zeroed bytes with the alignment of [`alignment_of`](crate::alignment_of).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the allocation fails.
    pub fn zeroed(nbytes: usize) -> Result<Buffer> {
        let allocation = Block::new(nbytes, true)?;
        let pointer = allocation.pointer();
        let owner = Allocation::Block(allocation.into());
        Ok(Buffer { pointer, length: nbytes, owner: BufferOwner::Allocation(owner) })
    }

    /// Copies `bytes` into aligned memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the allocation fails.
    pub fn copy_of(bytes: &[u8]) -> Result<Buffer> {
        let mut buffer = UninitBuffer::new(bytes.len())?;
        // SAFETY: both ranges have `bytes.len()` bytes, and the new allocation overlaps nothing; the copy fills
        // every byte.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.as_mut_ptr(), bytes.len());
            Ok(buffer.assume_init())
        }
    }

    /// Returns the bytes as `i64` values.
    ///
    /// # Errors
    /// [`Error::BadView`] if the address or the length is not a multiple of 8.
    pub fn as_i64(&self) -> Result<&[i64]> {
        as_words(self)
    }

    /// Returns the heap bytes held by this buffer: its whole capacity, which may exceed its length, plus the
    /// allocator's overhead.
    #[must_use]
    pub fn held_nbytes(&self) -> usize {
        const PIECE_NBYTES: usize = 16;
        match &self.owner {
            // The bytes before the aligned start of a small block are lost to other allocations.
            BufferOwner::Allocation(owner) => owner.capacity() + HOST_ALIGNMENT + PIECE_NBYTES,
            BufferOwner::Vector(vector) => size_of_val(&**vector) + self.length + 2 * PIECE_NBYTES,
        }
    }

    /// Returns the start of the memory, for exports that may write through it: see
    /// [`SharedTensor`](crate::SharedTensor).
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }
}

/// Returns `bytes` as `i64` values.
pub(crate) fn as_words(bytes: &[u8]) -> Result<&[i64]> {
    // SAFETY: every bit pattern is an `i64`.
    match unsafe { bytes.align_to() } {
        ([], words, []) => Ok(words),
        _ => Err(Error::BadView("the buffer is not aligned for i64".into())),
    }
}

impl<T: Element> From<Vec<T>> for Buffer {
    /// Takes over the vector's memory without a copy, with the alignment of its elements.
    fn from(mut vector: Vec<T>) -> Buffer {
        // SAFETY: a vector's pointer is never null; moving the vector does not move its memory.
        let pointer = unsafe { NonNull::new_unchecked(vector.as_mut_ptr()).cast() };
        Buffer { pointer, length: size_of_val(&*vector), owner: BufferOwner::Vector(Box::new(vector)) }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps `length` initialised bytes at `pointer`, and a borrowed `Buffer` has no writer:
        // an export that writes holds it in an `Arc` and never dereferences it.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::alignment_of;

    #[test]
    fn allocations_are_aligned() {
        for nbytes in [0, 1, 63, 4096, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 5] {
            let buffer = UninitBuffer::new(nbytes).unwrap();
            assert!(buffer.pointer.as_ptr().addr().is_multiple_of(alignment_of(nbytes)));
            assert_eq!(buffer.len(), nbytes);
        }
    }

    #[test]
    fn failed_allocations_are_errors() {
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
        assert!(matches!(buffer.owner, BufferOwner::Vector(_)));
    }

    #[test]
    fn offsets_need_whole_words() {
        assert!(Buffer::zeroed(12).unwrap().as_i64().is_err());
        assert_eq!(Buffer::zeroed(16).unwrap().as_i64().unwrap(), [0, 0]);
    }
}
