//! Fresh memory for a result, and the one copy into it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::Outcome;

const HUGE_PAGE: usize = 2 << 20;

/// Fresh memory, with huge pages if the result is large enough for them.
pub struct Fresh {
    start: NonNull<u8>,
    layout: Layout,
}

impl Fresh {
    /// Copies `source` into fresh memory, split between the threads.
    pub fn copy(source: &[u8], threads: usize) -> Outcome<Fresh> {
        let mut fresh = Fresh::new(source.len())?;
        let part = source.len().div_ceil(threads).next_multiple_of(HUGE_PAGE).max(HUGE_PAGE);
        std::thread::scope(|scope| {
            let mut parts = fresh.bytes().chunks_mut(part).zip(source.chunks(part));
            let first = parts.next();
            for (to, from) in parts {
                scope.spawn(|| to.write_copy_of_slice(from));
            }
            if let Some((to, from)) = first {
                to.write_copy_of_slice(from);
            }
        });
        Ok(fresh)
    }

    fn new(size: usize) -> Outcome<Fresh> {
        let align = if size < HUGE_PAGE { 64 } else { HUGE_PAGE };
        let layout = Layout::from_size_align(size, align)?;
        if size == 0 {
            return Err("a result without bytes".into());
        }
        // SAFETY: the layout has a nonzero size.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        if size >= HUGE_PAGE {
            // SAFETY: this allocation owns the memory, its start is aligned to a page, and the advice does not change its
            // contents.
            unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_HUGEPAGE) };
        }
        Ok(Fresh { start, layout })
    }

    fn bytes(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: start and layout belong to one allocation, the borrow of self keeps it exclusive, and possibly
        // uninitialised bytes need no initial value.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.layout.size()) }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
