//! Which elements are missing: one byte an element, 1 where a value is missing, as `numpy.ma` has it.
//!
//! Zarr's `optional` and Arrow say it the other way round (1 = valid). Only the edges convert: the decoder
//! when it reads a validity mask, and [`Mask::validity_bitmap`] when Arrow asks.

use crate::buffer::Buffer;
use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::shared_bytes::SharedBytes;

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
        let expected = levels.first().map_or(0, |level| level.len());
        for level in &mut levels {
            if level.len() != expected {
                let actual = level.len();
                return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
            }
            for byte in level.iter_mut() {
                *byte = u8::from(*byte != 0);
            }
        }
        let levels: Vec<SharedBytes> = levels.into_iter().map(SharedBytes::from).collect();
        let joined = match levels.as_slice() {
            [] => return Err(Error::LengthMismatch { what: "the mask buffer", expected: 1, actual: 0 }),
            [only] => only.clone(),
            [first, rest @ ..] => {
                let mut joined = Buffer::copy_of(first)?;
                for level in rest {
                    for (byte, more) in joined.iter_mut().zip(level.iter()) {
                        *byte |= more;
                    }
                }
                joined.into()
            }
        };
        Ok(Mask { joined, levels })
    }

    /// A mask of one level in memory of another library, which is kept as it is: any byte that is not 0 means
    /// missing.
    #[must_use]
    pub fn shared(bytes: SharedBytes) -> Mask {
        Mask { joined: bytes.clone(), levels: vec![bytes] }
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

    /// The mask of one level, the outermost being 0.
    #[must_use]
    pub fn level(&self, level: usize) -> Option<&[u8]> {
        self.levels.get(level).map(|buffer| &buffer[..])
    }

    /// How many elements are missing.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        // Chunks of 255 let the sums stay in bytes, which the compiler turns into vector code.
        let count = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>();
        self.joined.chunks(255).map(|chunk| usize::from(count(chunk))).sum()
    }

    /// Arrow's validity bitmap: least bit first, 1 where the value is there; the one copy that Arrow needs, an
    /// eighth of the mask.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn validity_bitmap(&self) -> Result<Buffer> {
        let mut bitmap = Buffer::zeroed(self.joined.len().div_ceil(8))?;
        for (bits, missing) in bitmap.iter_mut().zip(self.joined.chunks(8)) {
            let valid = |(at, byte): (usize, &u8)| u8::from(*byte == 0) << at;
            *bits = missing.iter().enumerate().map(valid).fold(0, |bits, bit| bits | bit);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_packs_past_a_word() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| u8::from(at % 3 == 0) * 7).collect();
        let mask = Mask::new(vec![Buffer::copy_of(&bytes).unwrap()]).unwrap();
        assert_eq!(mask.missing_count(), 334);
        let bitmap = mask.validity_bitmap().unwrap();
        assert_eq!(bitmap.len(), 125);
        for at in 0..1000 {
            assert_eq!((bitmap[at / 8] >> (at % 8)) & 1 == 0, at % 3 == 0, "element {at}");
        }
    }

    #[test]
    fn levels_must_agree() {
        let levels = vec![Buffer::zeroed(3).unwrap(), Buffer::zeroed(4).unwrap()];
        assert!(matches!(Mask::new(levels), Err(Error::LengthMismatch { .. })));
        assert!(Mask::new(Vec::new()).is_err());
    }
}
