//! A tensor some of whose elements are missing.

use crate::error::{Error, Result};
use crate::layout::Tensor;
use crate::mask::Mask;

/// A [`Tensor`] and a [`Mask`] of as many elements.
///
/// What lies in the data where the mask says missing is zero bytes in an optional type, and what was stored where an
/// element is missing for another reason: never a leftover.
#[derive(Debug)]
pub struct MaskedTensor {
    data: Tensor,
    mask: Mask,
}

impl MaskedTensor {
    /// A masked tensor of both parts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] where the mask has another number of elements than the data.
    pub fn new(data: Tensor, mask: Mask) -> Result<MaskedTensor> {
        let expected = crate::shape::nbytes(data.shape(), 1)?;
        let actual = mask.missing().len();
        if actual != expected {
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Ok(MaskedTensor { data, mask })
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &Tensor {
        &self.data
    }

    /// Which elements are missing.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Both parts, nothing copied.
    #[must_use]
    pub fn into_parts(self) -> (Tensor, Mask) {
        (self.data, self.mask)
    }
}
