//! A tensor with missing elements.

use crate::error::{Error, Result};
use crate::layout::Tensor;
use crate::mask::Mask;

/// A [`Tensor`] and a [`Mask`] of the same length.
///
/// The data of missing elements is never leftover memory: it is zero bytes in an optional type, otherwise the
/// stored bytes.
#[derive(Debug)]
pub struct MaskedTensor {
    data: Tensor,
    mask: Mask,
}

impl MaskedTensor {
    /// Creates a masked tensor.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths of mask and data differ.
    pub fn new(data: Tensor, mask: Mask) -> Result<MaskedTensor> {
        let expected = crate::shape::nbytes(data.shape(), 1)?;
        let actual = mask.missing().len();
        if actual != expected {
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Ok(MaskedTensor { data, mask })
    }

    /// Returns the elements.
    #[must_use]
    pub fn data(&self) -> &Tensor {
        &self.data
    }

    /// Returns the mask.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Returns both parts without a copy.
    #[must_use]
    pub fn into_parts(self) -> (Tensor, Mask) {
        (self.data, self.mask)
    }
}
