//! Page faults of fresh memory, before several threads write to it.
//!
//! Fresh memory gets its pages at the first touch. Threads that fill neighbouring places touch the same huge page.
//! Then each of them zeroes a page; the kernel keeps the first and frees the others. Therefore:
//!
//! 1. A thread that is about to write takes the next free pages, up to the place that it will write.
//! 2. It asks the kernel to provide them, one huge page per call, while other threads do the same with other pages,
//!    or write.
//! 3. If the kernel refuses, the first touch provides the pages as usual.

use crate::alignment::HUGE_PAGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The pages of one fresh allocation, and which are taken by a thread.
#[derive(Debug)]
pub struct FreshPages {
    start: NonNull<u8>,
    nbytes: usize,
    /// Bytes from the start whose pages are taken.
    taken: AtomicUsize,
}

// SAFETY: the pointer is only passed to the kernel, and any thread may ask it to provide pages.
unsafe impl Send for FreshPages {}
// SAFETY: as above.
unsafe impl Sync for FreshPages {}

impl FreshPages {
    /// Tracks the pages of `nbytes` untouched bytes from `start`.
    pub(crate) fn new(start: NonNull<u8>, nbytes: usize) -> FreshPages {
        FreshPages { start, nbytes, taken: AtomicUsize::new(0) }
    }

    /// Returns whether all pages are taken.
    #[must_use]
    pub fn all_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.nbytes
    }

    /// Provides the next free huge page, if it begins before `end`; returns whether it did. Contents do not change.
    ///
    /// `end` is the address that the caller is about to write.
    pub fn provide_next(&self, end: *const u8) -> bool {
        let end = end.addr().saturating_sub(self.start.addr().get()).min(self.nbytes);
        if self.taken.load(Ordering::Relaxed) >= end {
            return false;
        }
        // There are few threads, so the number cannot wrap beyond the end.
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
    // SAFETY: providing pages does not change the contents of any memory, whoever owns it by now.
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
