//! Arrow's validity bitmap, made from a mask while the mask is still in the processor's caches.
//!
//! 1. A part is packed, and its missing elements are counted, as soon as its mask is written, if it covers whole bytes
//!    of the bitmap: it begins at a multiple of 8 elements, and ends at one or at the end of the result.
//! 2. Otherwise two parts would share a byte. Then the bitmap is abandoned, and computed at the first request.

use crate::place::destination::{Destination, Disjoint};
use crate::plan::axis_part::AxisPart;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zarrow_array::{Buffer, Result, UninitBuffer, pack_validity};

/// The bitmap of a result under construction.
pub struct BitmapMemory {
    bits: UninitBuffer,
    given_up: AtomicBool,
    missing: AtomicUsize,
}

/// The bitmap of one item of a result.
pub struct Bitmap<'a> {
    bits: Disjoint<'a, MaybeUninit<u8>>,
    /// Elements of the item.
    count: usize,
    given_up: &'a AtomicBool,
    missing: &'a AtomicUsize,
}

impl BitmapMemory {
    /// Memory for the bits of `count` elements.
    pub fn new(count: usize) -> Result<BitmapMemory> {
        let bits = UninitBuffer::new(count.div_ceil(8))?;
        Ok(BitmapMemory { bits, given_up: AtomicBool::new(false), missing: AtomicUsize::new(0) })
    }

    /// Splits the bitmap into items of `count` elements each; yields nothing if two items share a byte.
    pub fn items(&mut self, items: usize, count: usize) -> impl Iterator<Item = Option<Bitmap<'_>>> {
        let BitmapMemory { bits, given_up, missing } = self;
        let share = items > 1 && !count.is_multiple_of(8);
        if share {
            *given_up.get_mut() = true;
        }
        let (given_up, missing) = (&*given_up, &*missing);
        let bytes = if share { &mut [] } else { bits.as_mut_slice() };
        let bytes = bytes.chunks_mut(count.div_ceil(8).max(1));
        let bitmaps = bytes.map(move |bytes| Bitmap { bits: Disjoint::new(bytes), count, given_up, missing });
        bitmaps.map(Some).chain(std::iter::repeat_with(|| None)).take(items)
    }

    /// Returns the bitmap and the number of missing elements; `None` if the bitmap was given up.
    ///
    /// # Safety
    /// The mask of every element has been packed.
    pub unsafe fn finish(self) -> Option<(Buffer, usize)> {
        if self.given_up.into_inner() {
            return None;
        }
        // SAFETY: the caller's contract; if a part was not packed, the bitmap was given up.
        Some((unsafe { self.bits.assume_init() }, self.missing.into_inner()))
    }
}

impl Bitmap<'_> {
    /// Packs the mask of `part`.
    ///
    /// # Safety
    /// The part's places in the mask have been written, and during the call no other thread writes to them or packs
    /// them.
    pub unsafe fn pack(&self, mask: &Destination<'_>, part: &[AxisPart<'_>]) {
        if self.given_up.load(Ordering::Relaxed) {
            return;
        }
        let mut missing = 0;
        let mut pack = |at: usize, bytes: &[u8]| {
            let end = at + bytes.len();
            if !at.is_multiple_of(8) || !(end.is_multiple_of(8) || end == self.count) {
                return false;
            }
            // SAFETY: the run's bits have bytes to themselves, as was just checked, and the run is of this part alone.
            let bits = unsafe { self.bits.slice(at / 8, bytes.len().div_ceil(8)) };
            bits.map(|bits| missing += pack_validity(bytes, bits)).is_some()
        };
        // SAFETY: the caller's contract.
        if !unsafe { mask.each_run(part, &mut pack) } {
            self.given_up.store(true, Ordering::Relaxed);
        }
        self.missing.fetch_add(missing, Ordering::Relaxed);
    }
}

/// Packs the mask of `part` directly after it was written.
///
/// # Safety
/// As [`Bitmap::pack`].
pub unsafe fn pack(bitmap: &Option<Bitmap<'_>>, mask: &Destination<'_>, part: &[AxisPart<'_>]) {
    if let Some(bitmap) = bitmap {
        // SAFETY: the caller's contract.
        unsafe { bitmap.pack(mask, part) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::axis_grid::AxisGrid;
    use crate::plan::axis_part::{PerAxis, whole_part};
    use crate::plan::chunk_parts::ChunkParts;
    use crate::selection::{Index, Selection};
    use proptest::prelude::*;

    proptest! {
        /// Chunks of any shape give the bits of their mask, or give up if two of them share a byte.
        #[test]
        fn parts_pack_as_the_whole(
            rows in 1u64..20, columns in 1u64..40, chunk in (1u64..20, 1u64..40), aligned in any::<bool>(),
            seed in any::<u64>(), step in prop::sample::select(vec![1i64, -1]),
        ) {
            let (columns, chunk) = match aligned {
                true => (columns * 8, [chunk.0, chunk.1 * 8]),
                false => (columns, [chunk.0, chunk.1]),
            };
            let bit = |at: u64| (seed.rotate_left(at as u32 % 64) ^ at).count_ones() as u8 & 1;
            let mut mask: Vec<_> = (0..rows * columns).map(|at| MaybeUninit::new(bit(at))).collect();
            let indices = [Index::Slice { start: None, stop: None, step: Some(step) }, Index::Ellipsis];
            let selection = Selection::new(&[rows, columns], &indices).unwrap();
            let whole = whole_part(&selection).unwrap();
            let chunk_parts = ChunkParts::new(&whole, |axis| AxisGrid::Equal(chunk[axis])).unwrap();
            let mut memory = BitmapMemory::new(mask.len()).unwrap();
            let destination = Destination::new(&mut mask, &[rows, columns], 1);
            {
                let bitmap = memory.items(1, (rows * columns) as usize).next().unwrap().unwrap();
                let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
                for number in 0..chunk_parts.count() {
                    chunk_parts.get(number, &mut chunk_index, &mut part);
                    // SAFETY: the mask is all written, and the parts are packed one after the other.
                    unsafe { bitmap.pack(&destination, &part) };
                }
            }
            // SAFETY: all parts were packed.
            let finished = unsafe { memory.finish() };
            let rows_are_chunks = chunk[1] >= columns && (columns.is_multiple_of(8) || chunk[0] >= rows);
            prop_assert!(finished.is_some() || !(aligned || rows_are_chunks));
            if let Some((bits, missing)) = finished {
                let expected = |at: u64| at < rows * columns && bit(at) == 0;
                let bit_of = |at: u64| (bits[at as usize / 8] >> (at % 8)) & 1 == 1;
                prop_assert!((0..bits.len() as u64 * 8).all(|at| bit_of(at) == expected(at)));
                prop_assert_eq!(missing as u64, (0..rows * columns).map(|at| u64::from(bit(at))).sum::<u64>());
            }
        }
    }
}
