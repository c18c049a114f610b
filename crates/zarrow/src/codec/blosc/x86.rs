//! The vectors of x86-64: SSE2, which every such processor has, and AVX2.

use super::vector::{TURNS, Vector};
use std::arch::x86_64::*;

/// One lane.
#[derive(Clone, Copy)]
pub struct Sse2(__m128i);

// SAFETY: every processor of this architecture has SSE2.
unsafe impl Vector for Sse2 {
    const NBYTES: usize = 16;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: the caller's contract.
        Sse2(unsafe { _mm_loadu_si128(source.cast()) })
    }

    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, _second: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::load(source) }
    }

    #[inline(always)]
    unsafe fn store(self, destination: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe { _mm_storeu_si128(destination.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn zip(self, other: Self) -> (Self, Self) {
        // SAFETY: as for the trait.
        unsafe { (Sse2(_mm_unpacklo_epi8(self.0, other.0)), Sse2(_mm_unpackhi_epi8(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn exchange_lanes(self, other: Self) -> (Self, Self) {
        (self, other)
    }

    #[inline(always)]
    unsafe fn turn_bits(self) -> Self {
        // SAFETY: as for the trait.
        unsafe {
            let mut bytes = self.0;
            for (distance, mask) in TURNS {
                let count = _mm_cvtsi32_si128(distance as i32);
                let changed = _mm_xor_si128(bytes, _mm_srl_epi64(bytes, count));
                let changed = _mm_and_si128(changed, _mm_set1_epi64x(mask as i64));
                bytes = _mm_xor_si128(_mm_xor_si128(bytes, changed), _mm_sll_epi64(changed, count));
            }
            Sse2(bytes)
        }
    }
}

/// Two lanes.
#[derive(Clone, Copy)]
pub struct Avx2(__m256i);

// SAFETY: callers create one only after checking that the processor has AVX2.
unsafe impl Vector for Avx2 {
    const NBYTES: usize = 32;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: the caller's contract.
        Avx2(unsafe { _mm256_loadu_si256(source.cast()) })
    }

    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, second: usize) -> Self {
        // SAFETY: the caller's contract.
        Avx2(unsafe { _mm256_loadu2_m128i(source.add(second).cast(), source.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, destination: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe { _mm256_storeu_si256(destination.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn zip(self, other: Self) -> (Self, Self) {
        // SAFETY: as for the trait.
        unsafe { (Avx2(_mm256_unpacklo_epi8(self.0, other.0)), Avx2(_mm256_unpackhi_epi8(self.0, other.0))) }
    }

    #[inline(always)]
    unsafe fn exchange_lanes(self, other: Self) -> (Self, Self) {
        // SAFETY: as for the trait.
        unsafe {
            let first = _mm256_permute2x128_si256::<0x20>(self.0, other.0);
            (Avx2(first), Avx2(_mm256_permute2x128_si256::<0x31>(self.0, other.0)))
        }
    }

    #[inline(always)]
    unsafe fn turn_bits(self) -> Self {
        // SAFETY: as for the trait.
        unsafe {
            let mut bytes = self.0;
            for (distance, mask) in TURNS {
                let count = _mm_cvtsi32_si128(distance as i32);
                let changed = _mm256_xor_si256(bytes, _mm256_srl_epi64(bytes, count));
                let changed = _mm256_and_si256(changed, _mm256_set1_epi64x(mask as i64));
                bytes = _mm256_xor_si256(_mm256_xor_si256(bytes, changed), _mm256_sll_epi64(changed, count));
            }
            Avx2(bytes)
        }
    }
}
