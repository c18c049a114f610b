//! The four memory layouts of decoded Zarr arrays.

mod atomic_loads;
mod foreign_memory;
mod masked_tensor;
mod masked_variable;
mod shared_tensor;
mod strided_copy;
mod strided_layout;
mod tensor;
mod variable;

pub(crate) use atomic_loads::Word;
pub use foreign_memory::{ForeignMemory, ForeignStrides};
pub use masked_tensor::MaskedTensor;
pub use masked_variable::MaskedVariable;
pub use shared_tensor::SharedTensor;
pub use strided_layout::{IndexStep, StridedLayout};
pub use tensor::Tensor;
pub use variable::Variable;

use crate::dtype::DataType;
use crate::{Error, Result};

/// A decoded array in one of the four layouts.
#[derive(Debug)]
pub enum DecodedArray {
    /// Fixed-size elements.
    Tensor(Tensor),
    /// Variable-length strings or bytes.
    Variable(Variable),
    /// Fixed-size elements with a mask.
    MaskedTensor(MaskedTensor),
    /// Variable-length strings or bytes with a mask.
    MaskedVariable(MaskedVariable),
}

impl DecodedArray {
    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        match self {
            DecodedArray::Tensor(tensor) => tensor.shape(),
            DecodedArray::Variable(variable) => variable.shape(),
            DecodedArray::MaskedTensor(masked) => masked.data().shape(),
            DecodedArray::MaskedVariable(masked) => masked.data().shape(),
        }
    }

    /// Returns the tensor.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] if the array has another layout.
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

    /// Returns the strings or bytes.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] if the array has another layout.
    pub fn into_variable(self) -> Result<Variable> {
        match self {
            DecodedArray::Variable(variable) => Ok(variable),
            other => Err(other.is_not("Variable")),
        }
    }

    /// Returns the tensor and its mask.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] if the array has another layout.
    pub fn into_masked_tensor(self) -> Result<MaskedTensor> {
        match self {
            DecodedArray::MaskedTensor(masked) => Ok(masked),
            other => Err(other.is_not("MaskedTensor")),
        }
    }

    /// Returns the strings or bytes and their mask.
    ///
    /// # Errors
    /// [`Error::OtherLayout`] if the array has another layout.
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

    /// Returns the element type, without the `optional` of a masked layout.
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
