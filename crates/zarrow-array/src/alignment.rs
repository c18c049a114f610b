//! How host memory is aligned, and why.
//!
//! 64 bytes: JAX copies what is less aligned, Arrow recommends it, and it is a cache line and an AVX-512
//! register. From 2 MiB on, memory is aligned to 2 MiB, so that the kernel can back it by huge pages: the
//! page faults of fresh 4 KiB pages are half of the cost of an uncompressed read.

/// The least alignment of memory that this crate allocates, in bytes.
pub const HOST_ALIGNMENT: usize = 64;

/// The size of a huge page, and the alignment of allocations that are at least as large, in bytes.
pub const HUGE_PAGE: usize = 2 << 20;

/// The alignment of an allocation of `nbytes` bytes.
///
/// ```
/// assert_eq!(zarrow_array::alignment_of(100), 64);
/// assert_eq!(zarrow_array::alignment_of(3 << 20), 2 << 20);
/// ```
#[must_use]
pub const fn alignment_of(nbytes: usize) -> usize {
    if nbytes >= HUGE_PAGE { HUGE_PAGE } else { HOST_ALIGNMENT }
}
