//! The four memory layouts that a Zarr array decodes to.

mod foreign_memory;
mod masked_tensor;
mod masked_variable;
mod shared_tensor;
mod strided_copy;
mod tensor;
mod variable;
mod words;

pub use foreign_memory::{ForeignMemory, ForeignStrides};
pub use masked_tensor::MaskedTensor;
pub use masked_variable::MaskedVariable;
pub use shared_tensor::{IndexStep, SharedTensor};
pub use tensor::Tensor;
pub use variable::Variable;
pub(crate) use words::Word;

use crate::dtype::DataType;

/// A decoded array: one of the four layouts.
#[derive(Debug)]
pub enum DecodedArray {
    /// Elements of a fixed size.
    Tensor(Tensor),
    /// Strings or bytes of any length.
    Variable(Variable),
    /// Elements of a fixed size, some of them missing.
    MaskedTensor(MaskedTensor),
    /// Strings or bytes of any length, some of them missing.
    MaskedVariable(MaskedVariable),
}

impl DecodedArray {
    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        match self {
            DecodedArray::Tensor(tensor) => tensor.shape(),
            DecodedArray::Variable(variable) => variable.shape(),
            DecodedArray::MaskedTensor(masked) => masked.data().shape(),
            DecodedArray::MaskedVariable(masked) => masked.data().shape(),
        }
    }

    /// The type of the elements, without the `optional` of a masked layout.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        match self {
            DecodedArray::Tensor(tensor) => tensor.dtype(),
            DecodedArray::Variable(variable) => variable.dtype(),
            DecodedArray::MaskedTensor(masked) => masked.data().dtype(),
            DecodedArray::MaskedVariable(masked) => masked.data().dtype(),
        }
    }
}
