//! What an import gives: one of the four layouts, in memory that others may hold too.

use crate::Buffer;
use crate::dtype::DataType;
use crate::error::Result;
use crate::layout::{MaskedVariable, SharedTensor, Variable};
use crate::mask::Mask;

/// One of the four layouts, in memory that others may hold too.
///
/// What lies in the data of a masked layout where an element is missing is the producer's, and may be anything.
#[derive(Debug, Clone)]
pub enum Imported {
    /// Elements of a fixed size.
    Tensor(SharedTensor),
    /// Strings or bytes of any length.
    Variable(Variable),
    /// Elements of a fixed size, and the mask of as many that says which are missing.
    MaskedTensor(SharedTensor, Mask),
    /// Strings or bytes of any length, some of them missing.
    MaskedVariable(MaskedVariable),
}

impl Imported {
    /// The type of the elements, without the `optional` of a masked layout.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        match self {
            Imported::Tensor(tensor) | Imported::MaskedTensor(tensor, _) => tensor.dtype(),
            Imported::Variable(variable) => variable.dtype(),
            Imported::MaskedVariable(masked) => masked.data().dtype(),
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Imported::Tensor(tensor) | Imported::MaskedTensor(tensor, _) => tensor.size(),
            Imported::Variable(variable) => variable.size(),
            Imported::MaskedVariable(masked) => masked.data().size(),
        }
    }

    /// The same elements in memory of their own, which nobody else holds.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    ///
    /// # Safety
    /// Nobody writes to the memory during the call.
    pub unsafe fn copy(&self) -> Result<Imported> {
        let variable = |variable: &Variable| {
            let (offsets, data) = variable.parts();
            let (offsets, data) = (Buffer::copy_of(offsets)?, Buffer::copy_of(data)?);
            // SAFETY: the same bytes, whose rules were established when `variable` was made.
            Ok(unsafe {
                Variable::new_unchecked(offsets, data, variable.shape().to_vec(), variable.dtype().clone())
            })
        };
        let mask = |mask: &Mask| -> Result<Mask> {
            let levels: Vec<&[u8]> = (0..mask.depth()).filter_map(|level| mask.level(level)).collect();
            Mask::new(levels.into_iter().map(Buffer::copy_of).collect::<Result<_>>()?)
        };
        Ok(match self {
            // SAFETY: the caller rules out writers.
            Imported::Tensor(tensor) => Imported::Tensor(unsafe { tensor.copy()? }),
            Imported::Variable(array) => Imported::Variable(variable(array)?),
            Imported::MaskedTensor(tensor, missing) => {
                // SAFETY: as above.
                Imported::MaskedTensor(unsafe { tensor.copy()? }, mask(missing)?)
            }
            Imported::MaskedVariable(masked) => {
                let copied: Result<Variable> = variable(masked.data());
                Imported::MaskedVariable(MaskedVariable::new(copied?, mask(masked.mask())?)?)
            }
        })
    }
}
