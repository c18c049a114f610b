//! Which elements are missing: one byte an element, 1 where a value is missing, as `numpy.ma` has it.
//!
//! Zarr's `optional` and Arrow say it the other way round (1 = valid). Only the edges convert: the decoder
//! when it reads a validity mask, and [`Mask::validity_bitmap`] when Arrow asks.

use crate::buffer::{Buffer, UninitBuffer};
use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::fork::OnceCell;
use crate::layout::SharedTensor;
use crate::shared_bytes::SharedBytes;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// The mask of an array, with every level of a nested optional type.
///
/// The memory is immutable, and a clone shares it.
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
    /// `None` where another library might write to the memory after all.
    derived: Option<Arc<Derived>>,
}

/// What follows from a mask, each found at most once.
#[derive(Debug, Default)]
struct Derived {
    missing_count: OnceCell<usize>,
    bitmap: OnceCell<Arc<Buffer>>,
}

impl Mask {
    /// A mask of one buffer for each level, the outermost first; any byte that is not 0 means missing, and is
    /// stored as 1. One level is kept as it is; several are joined into one more buffer.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where the levels differ in length or there is none;
    /// [`Error::OutOfMemory`].
    pub fn new(levels: Vec<Buffer>) -> Result<Mask> {
        let mut levels = levels;
        for byte in levels.iter_mut().flat_map(|level| level.iter_mut()) {
            *byte = u8::from(*byte != 0);
        }
        Mask::decoded(levels, None)
    }

    /// As [`new`](Mask::new), for buffers whose bytes are 0 or 1 already; where there is one level, `known` may have its
    /// [`validity_bitmap`](Mask::validity_bitmap) and its [`missing_count`](Mask::missing_count).
    ///
    /// # Errors
    /// As [`new`](Mask::new), and [`Error::LengthMismatch`] for a bitmap of another length.
    pub fn decoded(levels: Vec<Buffer>, known: Option<(Buffer, usize)>) -> Result<Mask> {
        let levels: Vec<SharedBytes> = levels.into_iter().map(SharedBytes::from).collect();
        let joined = joined(&levels)?;
        let derived = Derived::default();
        if let (Some((bitmap, missing_count)), [_]) = (known, levels.as_slice()) {
            let (expected, actual) = (joined.len().div_ceil(8), bitmap.len());
            if actual != expected {
                return Err(Error::LengthMismatch { what: "the validity bitmap", expected, actual });
            }
            // Neither was set before.
            let _ = (derived.bitmap.set(Arc::new(bitmap)), derived.missing_count.set(missing_count));
        }
        Ok(Mask { joined, levels, derived: Some(Arc::new(derived)) })
    }

    /// A mask of one level in memory of another library, which is kept as it is: any byte that is not 0 means
    /// missing.
    #[must_use]
    pub fn shared(bytes: SharedBytes) -> Mask {
        Mask { joined: bytes.clone(), levels: vec![bytes], derived: None }
    }

    /// As [`shared`](Mask::shared), with a buffer for each level, the outermost first; several are joined into one more.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where the levels differ in length or there is none; [`Error::OutOfMemory`].
    pub fn shared_levels(levels: Vec<SharedBytes>) -> Result<Mask> {
        Ok(Mask { joined: joined(&levels)?, levels, derived: None })
    }

    /// One byte an element in C order: not 0 where the value is missing at any level.
    #[must_use]
    pub fn missing(&self) -> &[u8] {
        &self.joined
    }

    /// How many levels of `optional` there are: 1 unless they are nested.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The memory of each level, the outermost first.
    #[must_use]
    pub fn levels(&self) -> &[SharedBytes] {
        &self.levels
    }

    /// The mask of one level, the outermost being 0.
    #[must_use]
    pub fn level(&self, level: usize) -> Option<&[u8]> {
        self.levels.get(level).map(|buffer| &buffer[..])
    }

    /// How many elements are missing.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        let kept = self.derived.as_ref().map(|derived| &derived.missing_count);
        if let Some(count) = kept.and_then(OnceCell::get) {
            return *count;
        }
        let count = count_missing(&self.joined);
        if let Some(kept) = kept {
            // Who else sets it has counted as many.
            kept.set(count);
        }
        count
    }

    /// How many elements are missing, and Arrow's bitmap of them, where there is one: both of one reading of a mask that
    /// another library might write to after all.
    ///
    /// # Errors
    /// As [`validity_bitmap`](Mask::validity_bitmap).
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

    /// Arrow's validity bitmap: least bit first, 1 where the value is there; the one copy that Arrow needs, an eighth of
    /// the mask. It was made when the mask was decoded, or is made when it is first asked for.
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
            // Who else sets it has the same bits.
            kept.set(Arc::clone(&bitmap));
        }
        Ok(bitmap)
    }

    /// The joined mask as a read-only bool tensor of `shape`, of the same memory.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where `shape` has another number of elements.
    pub fn tensor(&self, shape: &[u64]) -> Result<SharedTensor> {
        SharedTensor::read_only(&self.joined, shape, Number::Bool.into())
    }
}

/// One level, or several in one: an element is missing where it is at any of them.
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

/// How many bytes are not 0.
#[must_use]
pub fn count_missing(missing: &[u8]) -> usize {
    // Chunks of 255 let the sums stay in bytes, which the compiler turns into vector code.
    let count = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>();
    missing.chunks(255).map(|chunk| usize::from(count(chunk))).sum()
}

/// Writes a bit for each byte of `missing` to all of `bits`, least bit first, 1 where the byte is 0; bits behind the last
/// byte are 0. Returns how many bytes are not 0.
///
/// # Panics
/// Where `bits` has fewer bytes than one for each 8 of `missing`.
pub fn pack_validity(missing: &[u8], bits: &mut [MaybeUninit<u8>]) -> usize {
    assert_eq!(bits.len(), missing.len().div_ceil(8), "one bit for each byte");
    let (words, rest) = missing.as_chunks::<8>();
    let mut valid_count = 0usize;
    for (word, bits) in words.iter().zip(&mut *bits) {
        const LOW: u64 = 0x0101_0101_0101_0101;
        let word = u64::from_le_bytes(*word);
        // The highest bit of each byte says whether any of its bits is set; then the bytes' lowest bits are moved
        // side by side, by a product whose partial sums never meet.
        let any = (word | ((word & (LOW * 0x7f)) + LOW * 0x7f)) >> 7;
        let byte = ((!any & LOW).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        valid_count += byte.count_ones() as usize;
        bits.write(byte);
    }
    if let (Some(last), false) = (bits.last_mut(), rest.is_empty()) {
        let bit = |(at, byte): (usize, &u8)| u8::from(*byte == 0) << at;
        let byte: u8 = rest.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
        valid_count += byte.count_ones() as usize;
        last.write(byte);
    }
    missing.len() - valid_count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_packs_past_a_word() {
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
    fn what_is_known_is_kept() {
        let (levels, bitmap) =
            (vec![Buffer::copy_of(&[0, 1, 0]).unwrap()], Buffer::copy_of(&[0b101]).unwrap());
        let address = bitmap.as_ptr();
        let mask = Mask::decoded(levels, Some((bitmap, 1))).unwrap();
        assert_eq!((mask.validity_bitmap().unwrap().as_ptr(), mask.missing_count()), (address, 1));
        let long = Some((Buffer::zeroed(2).unwrap(), 0));
        assert!(Mask::decoded(vec![Buffer::zeroed(3).unwrap()], long).is_err());
    }

    #[test]
    fn levels_must_agree() {
        let levels = vec![Buffer::zeroed(3).unwrap(), Buffer::zeroed(4).unwrap()];
        assert!(matches!(Mask::new(levels), Err(Error::LengthMismatch { .. })));
        assert!(Mask::new(Vec::new()).is_err());
    }
}
