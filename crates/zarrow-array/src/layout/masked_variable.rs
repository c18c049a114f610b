//! Strings or bytes of any length, some of which are missing.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::layout::Variable;
use crate::mask::Mask;
use crate::shape;

/// A [`Variable`] and a [`Mask`] of as many elements.
///
/// A missing element of an optional type has no bytes; one that is missing for another reason has those that were stored.
#[derive(Debug, Clone)]
pub struct MaskedVariable {
    data: Variable,
    mask: Mask,
}

impl MaskedVariable {
    /// A masked array of both parts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where the mask has another number of elements than the data.
    pub fn new(data: Variable, mask: Mask) -> Result<MaskedVariable> {
        let (expected, actual) = (data.size(), mask.missing().len());
        if actual != expected {
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Ok(MaskedVariable { data, mask })
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &Variable {
        &self.data
    }

    /// Which elements are missing.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// The elements, with `value` for each that is missing, in memory of their own.
    ///
    /// # Errors
    /// [`Error::NotUtf8`] where the elements are text and `value` is not; [`Error::OutOfMemory`].
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
