//! Result of an import: one of the four layouts, in shared memory.

use crate::Buffer;
use crate::dtype::DataType;
use crate::error::Result;
use crate::layout::{MaskedVariable, SharedTensor, Variable};
use crate::mask::Mask;

/// One of the four layouts, in memory that may be shared with other libraries.
///
/// In masked layouts, the data of missing elements are the producer's, and may be anything.
#[derive(Debug, Clone)]
pub enum Imported {
    /// Fixed-size elements.
    Tensor(SharedTensor),
    /// Variable-length strings or bytes.
    Variable(Variable),
    /// Fixed-size elements and a mask of the same length.
    MaskedTensor(SharedTensor, Mask),
    /// Variable-length strings or bytes with a mask.
    MaskedVariable(MaskedVariable),
}

impl Imported {
    /// Returns the element type, without the `optional` of a masked layout.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        match self {
            Imported::Tensor(tensor) | Imported::MaskedTensor(tensor, _) => tensor.dtype(),
            Imported::Variable(variable) => variable.dtype(),
            Imported::MaskedVariable(masked) => masked.data().dtype(),
        }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Imported::Tensor(tensor) | Imported::MaskedTensor(tensor, _) => tensor.size(),
            Imported::Variable(variable) => variable.size(),
            Imported::MaskedVariable(masked) => masked.data().size(),
        }
    }

    /// Copies the elements to memory that is not shared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    ///
    /// # Safety
    /// The memory must not be written to during the call.
    pub unsafe fn copy(&self) -> Result<Imported> {
        let variable = |variable: &Variable| {
            let (offsets, data) = variable.parts();
            let (offsets, data) = (Buffer::copy_of(offsets)?, Buffer::copy_of(data)?);
            // SAFETY: the same bytes were checked when `variable` was made.
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
