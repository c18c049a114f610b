//! Asks the kernel for huge pages: page faults of fresh 4 KiB pages are half of the cost of an uncompressed read.

use std::ptr::NonNull;

/// Size of a huge page in bytes, and the alignment of allocations of at least this size.
pub const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel for huge pages under an allocation of `nbytes` bytes. A refusal only costs time.
///
/// # Safety
/// The memory must be an allocation of the caller, and its start aligned to [`HUGE_PAGE`].
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) unsafe fn advise(pointer: NonNull<u8>, nbytes: usize) {
    // SAFETY: the caller's contract; the advice does not change contents.
    unsafe {
        libc::madvise(pointer.as_ptr().cast(), nbytes, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) unsafe fn advise(_pointer: NonNull<u8>, _nbytes: usize) {}
