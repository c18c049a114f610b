//! Strings or bytes of any length, some of which are missing.

use crate::error::{Error, Result};
use crate::layout::Variable;
use crate::mask::Mask;

/// A [`Variable`] and a [`Mask`] of as many elements. A missing element has no bytes.
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
}
