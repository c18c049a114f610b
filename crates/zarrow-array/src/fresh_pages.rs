//! Requests the pages of fresh memory before several threads write to it.
//!
//! The kernel provides a page of fresh memory at the first access. If several threads access the same huge page at
//! once, each of them zeroes one, and the kernel keeps the first and frees the others. To avoid that:
//!
//! 1. Before a thread writes, it claims the next unclaimed pages, up to the address that it will write.
//! 2. It asks the kernel to provide them, one huge page per call. Other threads write, or request other pages.
//! 3. If the kernel refuses, the first access provides the pages as usual.

use crate::huge_pages::HUGE_PAGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The pages of one fresh allocation, with a count of the claimed ones.
#[derive(Debug)]
pub struct FreshPages {
    start: NonNull<u8>,
    nbytes: usize,
    /// Claimed bytes, counted from the start.
    taken: AtomicUsize,
}

// SAFETY: the pointer is never dereferenced. It is only passed to `madvise`, which any thread may call.
unsafe impl Send for FreshPages {}
// SAFETY: as above.
unsafe impl Sync for FreshPages {}

impl FreshPages {
    /// Tracks the pages of `nbytes` untouched bytes from `start`; `None` if there are few.
    pub(crate) fn new(start: NonNull<u8>, nbytes: usize) -> Option<FreshPages> {
        (nbytes >= 2 * HUGE_PAGE).then(|| FreshPages { start, nbytes, taken: AtomicUsize::new(0) })
    }

    /// Returns whether all pages are claimed.
    #[must_use]
    pub fn all_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.nbytes
    }

    /// Requests the next unclaimed huge page if it begins before `end`; returns whether the kernel provided it. The
    /// memory's contents do not change.
    ///
    /// `end` is the address that the caller is about to write.
    pub fn provide_next(&self, end: *const u8) -> bool {
        let end = end.addr().saturating_sub(self.start.addr().get()).min(self.nbytes);
        if self.taken.load(Ordering::Relaxed) >= end {
            return false;
        }
        // Each thread exceeds the end by one huge page at most, so the sum cannot overflow.
        let first = self.taken.fetch_add(HUGE_PAGE, Ordering::Relaxed);
        if first >= self.nbytes {
            return false;
        }
        let provided = provide(self.start, first, HUGE_PAGE.min(self.nbytes - first));
        if !provided {
            self.taken.store(self.nbytes, Ordering::Relaxed);
        }
        provided
    }
}

/// Asks the kernel to provide the pages of a range (step 2); returns false if it refuses.
#[cfg(all(target_os = "linux", not(miri)))]
fn provide(start: NonNull<u8>, first: usize, nbytes: usize) -> bool {
    let address = start.as_ptr().wrapping_add(first).cast();
    // SAFETY: `MADV_POPULATE_WRITE` changes no contents, so the call is sound even if the range has been freed, or
    // belongs to another allocation by now.
    unsafe { libc::madvise(address, nbytes, libc::MADV_POPULATE_WRITE) == 0 }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn provide(_start: NonNull<u8>, _first: usize, _nbytes: usize) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use crate::{HUGE_PAGE, UninitBuffer};

    #[test]
    fn each_page_is_provided_once_up_to_the_requested_end() {
        // Larger than the buffers that other tests drop, so that the memory is fresh.
        let nbytes = 40 * HUGE_PAGE + 9;
        let mut buffer = UninitBuffer::new(nbytes).unwrap();
        let start = buffer.as_mut_ptr();
        let pages = buffer.fresh_pages().unwrap();
        assert!(!pages.provide_next(start));
        let count = |end: usize| {
            std::iter::repeat_with(|| pages.provide_next(start.wrapping_add(end)))
                .take_while(|provided| *provided)
                .count()
        };
        if cfg!(miri) {
            return;
        }
        assert_eq!(count(1), 1);
        assert_eq!(count(HUGE_PAGE), 0);
        assert_eq!(count(HUGE_PAGE + 1), 1);
        assert_eq!(count(nbytes), 39);
        assert!(pages.all_taken());
        buffer.as_mut_slice().fill(std::mem::MaybeUninit::new(7));
        // SAFETY: every byte was just written.
        assert!(unsafe { buffer.assume_init() }.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn small_and_recycled_memory_has_no_fresh_pages() {
        assert!(UninitBuffer::new(HUGE_PAGE - 1).unwrap().fresh_pages().is_none());
    }
}
