//! Alignment of host memory.
//!
//! 64 bytes: JAX copies memory with a smaller alignment, Arrow recommends 64, and it is the size of a cache line
//! and an AVX-512 register. From 2 MiB on, memory is aligned to 2 MiB, so that the kernel can back it by huge
//! pages.

use crate::huge_pages::HUGE_PAGE;

/// Minimum alignment of memory allocated by this crate, in bytes.
pub const HOST_ALIGNMENT: usize = 64;

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
