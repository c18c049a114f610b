//! The four memory layouts that a Zarr array decodes to.

mod foreign_memory;
mod masked_tensor;
mod masked_variable;
mod shared_tensor;
mod strided_copy;
mod strided_layout;
mod tensor;
mod variable;
mod words;

pub use foreign_memory::{ForeignMemory, ForeignStrides};
pub use masked_tensor::MaskedTensor;
pub use masked_variable::MaskedVariable;
pub use shared_tensor::SharedTensor;
pub use strided_layout::{IndexStep, StridedLayout};
pub use tensor::Tensor;
pub use variable::Variable;
pub(crate) use words::Word;

use crate::dtype::DataType;
use crate::{Error, Result};

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

    /// The tensor.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] where it is another of the layouts.
    ///
    /// ```
    /// use zarrow_array::{DecodedArray, Tensor};
    /// let decoded = DecodedArray::Tensor(Tensor::from_vec(vec![1u8, 2, 3], vec![3])?);
    /// assert_eq!(decoded.into_tensor()?.as_slice::<u8>()?, [1, 2, 3]);
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            DecodedArray::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("Tensor")),
        }
    }

    /// The strings or bytes.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] where it is another of the layouts.
    pub fn into_variable(self) -> Result<Variable> {
        match self {
            DecodedArray::Variable(variable) => Ok(variable),
            other => Err(other.is_not("Variable")),
        }
    }

    /// The tensor and its mask.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] where it is another of the layouts.
    pub fn into_masked_tensor(self) -> Result<MaskedTensor> {
        match self {
            DecodedArray::MaskedTensor(masked) => Ok(masked),
            other => Err(other.is_not("MaskedTensor")),
        }
    }

    /// The strings or bytes and their mask.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] where it is another of the layouts.
    pub fn into_masked_variable(self) -> Result<MaskedVariable> {
        match self {
            DecodedArray::MaskedVariable(masked) => Ok(masked),
            other => Err(other.is_not("MaskedVariable")),
        }
    }

    fn is_not(&self, expected: &'static str) -> Error {
        let found = match self {
            DecodedArray::Tensor(_) => "Tensor",
            DecodedArray::Variable(_) => "Variable",
            DecodedArray::MaskedTensor(_) => "MaskedTensor",
            DecodedArray::MaskedVariable(_) => "MaskedVariable",
        };
        Error::OtherLayout { expected, found, dtype: self.dtype().clone() }
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
