//! Alignment of host memory.
//!
//! 64 bytes: JAX copies memory with a smaller alignment, Arrow recommends 64, and it is the size of a cache line
//! and an AVX-512 register. From 2 MiB on, memory is aligned to 2 MiB, so that the kernel can back it by huge
//! pages: page faults of fresh 4 KiB pages are half of the cost of an uncompressed read.

/// Minimum alignment of memory allocated by this crate, in bytes.
pub const HOST_ALIGNMENT: usize = 64;

/// Size of a huge page in bytes, and the alignment of allocations of at least this size.
pub const HUGE_PAGE: usize = 2 << 20;

/// Returns the alignment of an allocation of `nbytes` bytes.
///
/// ```
/// assert_eq!(zarrow_array::alignment_of(100), 64);
/// assert_eq!(zarrow_array::alignment_of(3 << 20), 2 << 20);
/// ```
#[must_use]
pub const fn alignment_of(nbytes: usize) -> usize {
    if nbytes >= HUGE_PAGE { HUGE_PAGE } else { HOST_ALIGNMENT }
}
