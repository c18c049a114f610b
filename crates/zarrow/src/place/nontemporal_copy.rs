//! Copies that bypass the caches, for results larger than the caches.
//!
//! 1. Bytes before the first cache line of the destination are copied as usual.
//! 2. Whole lines are written by stores that do not read the line first.
//! 3. The remaining bytes are copied as usual.
//! 4. Before another thread may look, [`finish`] orders these stores before all later ones.

/// Size of a cache line in bytes.
pub const LINE_NBYTES: usize = 64;

/// Minimum size of a result in bytes for bypassing the caches: more than most last-level caches hold.
pub const RESULT_NBYTES: usize = 32 << 20;

/// Copies `nbytes` bytes.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`]; and [`finish`] is called before another thread reads the destination.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn copy(source: *const u8, destination: *mut u8, nbytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let head = destination.align_offset(LINE_NBYTES).min(nbytes);
    let lines = (nbytes - head) / LINE_NBYTES;
    // SAFETY: all offsets are at most `nbytes`, which the caller vouches for on both sides; the stores, which want
    // an alignment of 16, begin at a multiple of 64.
    unsafe {
        std::ptr::copy_nonoverlapping(source, destination, head);
        let (mut from, mut to) = (source.add(head), destination.add(head));
        for _ in 0..lines {
            let (words, places) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|word| _mm_loadu_si128(words.add(word)));
            for (place, word) in line.into_iter().enumerate() {
                _mm_stream_si128(places.add(place), word);
            }
            (from, to) = (from.add(LINE_NBYTES), to.add(LINE_NBYTES));
        }
        std::ptr::copy_nonoverlapping(from, to, nbytes - head - lines * LINE_NBYTES);
    }
}

/// Step 4.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn finish() {
    // SAFETY: the instruction only orders stores, and every x86-64 processor has it.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

/// Copies `nbytes` bytes, on processors without known nontemporal stores.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub unsafe fn copy(source: *const u8, destination: *mut u8, nbytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { std::ptr::copy_nonoverlapping(source, destination, nbytes) }
}

/// No stores to order here.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn finish() {}

#[cfg(test)]
mod tests {
    #[test]
    fn every_alignment_and_length_is_copied_and_nothing_beside() {
        let source: Vec<u8> = (0..400).map(|at| (at % 251) as u8).collect();
        for (from, to) in (0..70).zip((0..70).rev()) {
            for nbytes in [0, 1, 63, 64, 65, 128, 200, 300] {
                let mut destination = vec![255u8; 400];
                // SAFETY: at most 370 of the 400 bytes on both sides are spoken of.
                unsafe { super::copy(source[from..].as_ptr(), destination[to..].as_mut_ptr(), nbytes) };
                super::finish();
                let mut expected = vec![255u8; 400];
                expected[to..to + nbytes].copy_from_slice(&source[from..from + nbytes]);
                assert_eq!(destination, expected, "{from} {to} {nbytes}");
            }
        }
    }
}
