//! Variable-length strings or bytes with missing elements.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::layout::Variable;
use crate::mask::Mask;
use crate::shape;

/// A [`Variable`] and a [`Mask`] of the same length.
///
/// Missing elements of an optional type are empty. Elements that a fill value marks as missing keep their bytes.
#[derive(Debug, Clone)]
pub struct MaskedVariable {
    data: Variable,
    mask: Mask,
}

impl MaskedVariable {
    /// Creates a masked array.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths of mask and data differ.
    pub fn new(data: Variable, mask: Mask) -> Result<MaskedVariable> {
        let (expected, actual) = (data.size(), mask.missing().len());
        if actual != expected {
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Ok(MaskedVariable { data, mask })
    }

    /// Returns the elements.
    #[must_use]
    pub fn data(&self) -> &Variable {
        &self.data
    }

    /// Returns the mask.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Copies the elements, with `value` in place of missing elements.
    ///
    /// # Errors
    /// [`Error::NotUtf8`] if the elements are text and `value` is not; [`Error::OutOfMemory`].
    ///
    /// ```
    /// use zarrow_array::{Buffer, DataType, Mask, MaskedVariable, Variable};
    /// let offsets: Vec<u8> = [0i64, 2, 2].iter().flat_map(|offset| offset.to_ne_bytes()).collect();
    /// let words = Variable::new(
    ///     Buffer::copy_of(&offsets)?, Buffer::copy_of(b"hi")?, vec![2], DataType::String,
    /// )?;
    /// let mask = Mask::new(vec![Buffer::copy_of(&[0, 1])?])?;
    /// let filled = MaskedVariable::new(words, mask)?.filled(b"none")?;
    /// assert_eq!(filled.data(), b"hinone");
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn filled(&self, value: &[u8]) -> Result<Variable> {
        let element = |(index, missing): (usize, &u8)| match missing {
            0 => self.data.element(index).unwrap_or_default(),
            _ => value,
        };
        let elements = || self.mask.missing().iter().enumerate().map(element);
        let nbytes = elements().try_fold(0usize, |sum, element| sum.checked_add(element.len()));
        let mut bytes = Buffer::zeroed(nbytes.unwrap_or(usize::MAX))?;
        let mut offsets = Buffer::zeroed(shape::nbytes(&[self.data.size() as u64 + 1], size_of::<i64>())?)?;
        let mut end = 0;
        for (element, offset) in elements().zip(offsets.chunks_exact_mut(size_of::<i64>()).skip(1)) {
            bytes[end..end + element.len()].copy_from_slice(element);
            end += element.len();
            offset.copy_from_slice(&(end as i64).to_ne_bytes());
        }
        Variable::new(offsets, bytes, self.data.shape().to_vec(), self.data.dtype().clone())
    }
}
