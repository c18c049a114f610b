//! A block of memory from the global allocator.

use crate::alignment::alignment_of;
use crate::error::{Error, Result};
use crate::huge_pages::{HUGE_PAGE, advise};
use std::alloc::Layout;
use std::ptr::NonNull;

/// Memory from the global allocator, with the alignment of [`alignment_of`].
#[derive(Debug)]
pub(crate) struct Block {
    pointer: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a `Block` is the only owner of its memory, and the memory is not tied to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared `Block` gives no access to its memory.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `nbytes` bytes.
    pub(crate) fn new(nbytes: usize, zeroed: bool) -> Result<Block> {
        let failed = Error::OutOfMemory { nbytes };
        let layout = Layout::from_size_align(nbytes.max(1), alignment_of(nbytes)).map_err(|_| failed)?;
        // SAFETY: the layout has at least one byte.
        let pointer =
            unsafe { if zeroed { std::alloc::alloc_zeroed(layout) } else { std::alloc::alloc(layout) } };
        let pointer = NonNull::new(pointer).ok_or(Error::OutOfMemory { nbytes })?;
        if nbytes >= HUGE_PAGE {
            // SAFETY: the allocation is new, and `alignment_of` aligned it.
            unsafe { advise(pointer, nbytes) };
        }
        Ok(Block { pointer, layout })
    }

    /// Returns the start of the memory.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    /// Returns the size in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` got the pointer from the global allocator with this layout, and this is the only owner.
        unsafe { std::alloc::dealloc(self.pointer.as_ptr(), self.layout) }
    }
}
