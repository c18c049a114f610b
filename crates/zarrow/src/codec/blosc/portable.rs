//! The vector of any processor: an array, vectorized by the compiler as far as possible.

use super::vector::{LANE, Vector, turn_bits};

// SAFETY: arrays need no special instructions.
unsafe impl Vector for [u8; LANE] {
    const NBYTES: usize = LANE;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: the caller's contract; an array of bytes may have any address.
        unsafe { source.cast::<Self>().read() }
    }

    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, _second: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::load(source) }
    }

    #[inline(always)]
    unsafe fn store(self, destination: *mut u8) {
        // SAFETY: as above.
        unsafe { destination.cast::<Self>().write(self) }
    }

    #[inline(always)]
    unsafe fn zip(self, other: Self) -> (Self, Self) {
        let (mut low, mut high) = (self, self);
        for at in 0..LANE / 2 {
            (low[2 * at], low[2 * at + 1]) = (self[at], other[at]);
            (high[2 * at], high[2 * at + 1]) = (self[LANE / 2 + at], other[LANE / 2 + at]);
        }
        (low, high)
    }

    #[inline(always)]
    unsafe fn exchange_lanes(self, other: Self) -> (Self, Self) {
        (self, other)
    }

    #[inline(always)]
    unsafe fn turn_bits(self) -> Self {
        let mut turned = self;
        for eight in turned.as_chunks_mut::<8>().0 {
            *eight = turn_bits(u64::from_le_bytes(*eight)).to_le_bytes();
        }
        turned
    }
}
