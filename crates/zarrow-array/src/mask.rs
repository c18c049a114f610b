//! Masks of missing elements: one byte per element, 1 for missing values, as in `numpy.ma`.
//!
//! Zarr's `optional` and Arrow use the inverse: 1 for values. Masks are inverted in two places only: where the decoder
//! reads a validity mask, and where [`pack_validity`] makes the bitmap that Arrow needs.

use crate::buffer::{Buffer, UninitBuffer};
use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::fork::OnceCell;
use crate::layout::SharedTensor;
use crate::shared_bytes::SharedBytes;
use crate::validity_bitmap::pack_validity;
use std::sync::Arc;

/// The mask of an array, with every level of a nested optional type.
///
/// The memory is immutable, and clones share it.
///
/// ```
/// use zarrow_array::{Buffer, Mask};
/// let outer = Buffer::copy_of(&[1, 0, 0]).unwrap();
/// let inner = Buffer::copy_of(&[0, 0, 1]).unwrap();
/// let mask = Mask::new(vec![outer, inner]).unwrap();
/// assert_eq!(mask.missing(), [1, 0, 1]);
/// assert_eq!(mask.level(1), Some(&[0, 0, 1][..]));
/// assert_eq!(mask.validity_bitmap().unwrap()[0], 0b010);
/// ```
#[derive(Debug, Clone)]
pub struct Mask {
    joined: SharedBytes,
    levels: Vec<SharedBytes>,
    /// `None` if another library might write to the memory.
    derived: Option<Arc<Derived>>,
}

/// Properties of a mask, each computed at most once.
#[derive(Debug, Default)]
struct Derived {
    missing_count: OnceCell<usize>,
    bitmap: OnceCell<Arc<Buffer>>,
}

impl Mask {
    /// Creates a mask from one buffer per level, outermost first; any non-zero byte means missing, and is
    /// normalized to 1. A single level is kept; several are joined into an additional buffer.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the levels differ in length or there is no level; [`Error::OutOfMemory`].
    pub fn new(levels: Vec<Buffer>) -> Result<Mask> {
        let mut levels = levels;
        for byte in levels.iter_mut().flat_map(|level| level.iter_mut()) {
            *byte = u8::from(*byte != 0);
        }
        Mask::decoded(levels, None)
    }

    /// Like [`new`](Mask::new), for bytes that are 0 or 1 already. For a single level, `known` may provide its
    /// [`validity_bitmap`](Mask::validity_bitmap) and its [`missing_count`](Mask::missing_count).
    ///
    /// # Errors
    /// See [`new`](Mask::new); [`Error::LengthMismatch`] for a bitmap of another length.
    pub fn decoded(levels: Vec<Buffer>, known: Option<(Buffer, usize)>) -> Result<Mask> {
        let levels: Vec<SharedBytes> = levels.into_iter().map(SharedBytes::from).collect();
        let joined = joined(&levels)?;
        let derived = Derived::default();
        if let (Some((bitmap, missing_count)), [_]) = (known, levels.as_slice()) {
            let (expected, actual) = (joined.len().div_ceil(8), bitmap.len());
            if actual != expected {
                return Err(Error::LengthMismatch { what: "the validity bitmap", expected, actual });
            }
            // Both cells are empty.
            let _ = (derived.bitmap.set(Arc::new(bitmap)), derived.missing_count.set(missing_count));
        }
        Ok(Mask { joined, levels, derived: Some(Arc::new(derived)) })
    }

    /// Creates a mask of one level in memory of another library, without a copy: any non-zero byte means missing.
    #[must_use]
    pub fn shared(bytes: SharedBytes) -> Mask {
        Mask { joined: bytes.clone(), levels: vec![bytes], derived: None }
    }

    /// Like [`shared`](Mask::shared), with a buffer per level, outermost first; several are joined into an
    /// additional buffer.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the levels differ in length or there is no level; [`Error::OutOfMemory`].
    pub fn shared_levels(levels: Vec<SharedBytes>) -> Result<Mask> {
        Ok(Mask { joined: joined(&levels)?, levels, derived: None })
    }

    /// Returns one byte per element in C order, non-zero if the value is missing at any level.
    #[must_use]
    pub fn missing(&self) -> &[u8] {
        &self.joined
    }

    /// Returns the number of levels of `optional`: 1 unless they are nested.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Returns the memory of each level, outermost first.
    #[must_use]
    pub fn levels(&self) -> &[SharedBytes] {
        &self.levels
    }

    /// Returns the mask of one level; 0 is the outermost.
    #[must_use]
    pub fn level(&self, level: usize) -> Option<&[u8]> {
        self.levels.get(level).map(|buffer| &buffer[..])
    }

    /// Returns the number of missing elements.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        let kept = self.derived.as_ref().map(|derived| &derived.missing_count);
        if let Some(count) = kept.and_then(OnceCell::get) {
            return *count;
        }
        let count = count_missing(&self.joined);
        if let Some(kept) = kept {
            // A racing thread sets the same count.
            kept.set(count);
        }
        count
    }

    /// Returns the number of missing elements and Arrow's bitmap, if any is missing. Both come from a single read
    /// of the mask, because another library might change it in between.
    ///
    /// # Errors
    /// See [`validity_bitmap`](Mask::validity_bitmap).
    pub fn validity(&self) -> Result<Option<(usize, Arc<Buffer>)>> {
        if self.derived.is_some() {
            return match self.missing_count() {
                0 => Ok(None),
                count => Ok(Some((count, self.validity_bitmap()?))),
            };
        }
        let (count, bitmap) = self.packed()?;
        Ok((count > 0).then(|| (count, Arc::new(bitmap))))
    }

    fn packed(&self) -> Result<(usize, Buffer)> {
        let mut bitmap = UninitBuffer::new(self.joined.len().div_ceil(8))?;
        let count = pack_validity(&self.joined, bitmap.as_mut_slice());
        // SAFETY: packing has written every byte.
        Ok((count, unsafe { bitmap.assume_init() }))
    }

    /// Returns Arrow's validity bitmap: least significant bit first, 1 for values. It is the only copy that Arrow
    /// needs, an eighth of the mask; it is computed by the decoder, or at the first call.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn validity_bitmap(&self) -> Result<Arc<Buffer>> {
        let kept = self.derived.as_ref().map(|derived| &derived.bitmap);
        if let Some(bitmap) = kept.and_then(OnceCell::get) {
            return Ok(Arc::clone(bitmap));
        }
        let bitmap = Arc::new(self.packed()?.1);
        if let Some(kept) = kept {
            // A racing thread sets the same bits.
            kept.set(Arc::clone(&bitmap));
        }
        Ok(bitmap)
    }

    /// Returns the joined mask as a read-only bool tensor of `shape` over the same memory.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `shape` has another number of elements.
    pub fn tensor(&self, shape: &[u64]) -> Result<SharedTensor> {
        SharedTensor::read_only(&self.joined, shape, Number::Bool.into())
    }
}

/// Joins the levels: an element is missing if it is missing at any level.
fn joined(levels: &[SharedBytes]) -> Result<SharedBytes> {
    let mismatch = |expected, actual| Error::LengthMismatch { what: "the mask buffer", expected, actual };
    match levels {
        [] => Err(mismatch(1, 0)),
        [only] => Ok(only.clone()),
        [first, rest @ ..] => {
            let mut joined = Buffer::copy_of(first)?;
            for level in rest {
                if level.len() != joined.len() {
                    return Err(mismatch(joined.len(), level.len()));
                }
                for (byte, more) in joined.iter_mut().zip(level.iter()) {
                    *byte |= more;
                }
            }
            Ok(joined.into())
        }
    }
}

/// Counts the non-zero bytes.
#[must_use]
pub fn count_missing(missing: &[u8]) -> usize {
    // Chunks of 255 keep the sums within a byte, so that the compiler vectorizes the loop.
    let count = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>();
    missing.chunks(255).map(|chunk| usize::from(count(chunk))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_and_packing_continue_past_a_word() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| u8::from(at % 3 == 0) * 7).collect();
        let mask = Mask::new(vec![Buffer::copy_of(&bytes).unwrap()]).unwrap();
        assert_eq!((mask.missing_count(), mask.missing_count()), (334, 334));
        let again = mask.clone().validity_bitmap().unwrap();
        assert!(Arc::ptr_eq(&again, &mask.validity_bitmap().unwrap()));
        let bitmap = mask.validity_bitmap().unwrap();
        assert_eq!(bitmap.len(), 125);
        for at in 0..1000 {
            assert_eq!((bitmap[at / 8] >> (at % 8)) & 1 == 0, at % 3 == 0, "element {at}");
        }
    }

    #[test]
    fn every_byte_packs_as_one_bit() {
        for byte in 0..=255u8 {
            for at in 0..21 {
                let mut missing = [0; 21];
                missing[at] = byte;
                let mask = Mask::shared(Buffer::copy_of(&missing).unwrap().into());
                let bits = mask.validity_bitmap().unwrap();
                let bit = |at: usize| (bits[at / 8] >> (at % 8)) & 1;
                assert!(
                    (0..24).all(|place| bit(place) == u8::from(place < 21 && (place != at || byte == 0)))
                );
                assert_eq!(mask.missing_count(), usize::from(byte != 0));
                let (count, same) = mask.validity().unwrap().unzip();
                assert_eq!(count.unwrap_or(0), usize::from(byte != 0));
                assert!(same.is_none_or(|same| same[..] == bits[..]));
            }
        }
    }

    #[test]
    fn a_known_bitmap_and_count_are_kept() {
        let (levels, bitmap) =
            (vec![Buffer::copy_of(&[0, 1, 0]).unwrap()], Buffer::copy_of(&[0b101]).unwrap());
        let address = bitmap.as_ptr();
        let mask = Mask::decoded(levels, Some((bitmap, 1))).unwrap();
        assert_eq!((mask.validity_bitmap().unwrap().as_ptr(), mask.missing_count()), (address, 1));
        let long = Some((Buffer::zeroed(2).unwrap(), 0));
        assert!(Mask::decoded(vec![Buffer::zeroed(3).unwrap()], long).is_err());
    }

    #[test]
    fn levels_must_have_equal_lengths() {
        let levels = vec![Buffer::zeroed(3).unwrap(), Buffer::zeroed(4).unwrap()];
        assert!(matches!(Mask::new(levels), Err(Error::LengthMismatch { .. })));
        assert!(Mask::new(Vec::new()).is_err());
    }
}
