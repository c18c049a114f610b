//! Zero-copy conversion of decoded arrays to the `arrow` crates, through the C data interface.

use crate::export::arrow::{self, ArrowForm, ArrowPair};
use crate::layout::{DecodedArray, MaskedTensor, MaskedVariable, Tensor, Variable};
use crate::{Error, Result};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, make_array};
use std::mem::ManuallyDrop;

impl Tensor {
    /// Converts the tensor to an `arrow` array that keeps its memory. [`export::arrow`](crate::export::arrow)
    /// defines the type.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] if Arrow has no such type; [`Error::NeedsCopy`] for a 0-dimensional tensor.
    ///
    /// ```
    /// use arrow_array::{Array, cast::AsArray, types::Float32Type};
    /// use zarrow_array::Tensor;
    /// let tensor = Tensor::from_vec(vec![1.5f32, 2.5], vec![2])?;
    /// let address = tensor.bytes().as_ptr();
    /// let array = tensor.into_arrow()?;
    /// let floats = array.as_primitive::<Float32Type>();
    /// assert_eq!(floats.values().as_ref(), [1.5, 2.5]);
    /// assert_eq!(floats.values().as_ptr().cast(), address);
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn into_arrow(self) -> Result<ArrayRef> {
        array(arrow::tensor(&self.into_shared()?, None, ArrowForm::default(), None)?)
    }
}

impl MaskedTensor {
    /// Converts the tensor to an `arrow` array, with nulls for missing elements. See [`Tensor::into_arrow`].
    ///
    /// # Errors
    /// See [`Tensor::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        let (tensor, mask) = self.into_parts();
        array(arrow::tensor(&tensor.into_shared()?, Some(&mask), ArrowForm::default(), None)?)
    }
}

impl Variable {
    /// Converts the strings or bytes to an `arrow` array that keeps the offsets and bytes.
    ///
    /// # Errors
    /// [`Error::NeedsCopy`] for a 0-dimensional array.
    ///
    /// ```
    /// use arrow_array::cast::AsArray;
    /// use zarrow_array::{Buffer, DataType, Variable};
    /// let variable = Variable::new(
    ///     Buffer::from(vec![0i64, 2, 5]), Buffer::from(b"hithe".to_vec()), vec![2], DataType::String,
    /// )?;
    /// assert_eq!(variable.into_arrow()?.as_string::<i64>().value(1), "the");
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn into_arrow(self) -> Result<ArrayRef> {
        array(arrow::variable(&self, None, ArrowForm::default())?)
    }
}

impl MaskedVariable {
    /// Converts the strings or bytes to an `arrow` array, with nulls for missing elements. See
    /// [`Variable::into_arrow`].
    ///
    /// # Errors
    /// See [`Variable::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        array(arrow::variable(self.data(), Some(self.mask()), ArrowForm::default())?)
    }
}

impl DecodedArray {
    /// Converts the array, in any layout, to an `arrow` array that keeps its memory.
    ///
    /// # Errors
    /// See [`Tensor::into_arrow`] and [`Variable::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        match self {
            DecodedArray::Tensor(tensor) => tensor.into_arrow(),
            DecodedArray::Variable(variable) => variable.into_arrow(),
            DecodedArray::MaskedTensor(masked) => masked.into_arrow(),
            DecodedArray::MaskedVariable(masked) => masked.into_arrow(),
        }
    }
}

/// Moves both structs into `arrow`.
fn array((schema, array): ArrowPair) -> Result<ArrayRef> {
    let (mut schema, mut array) = (ManuallyDrop::new(schema), ManuallyDrop::new(array));
    // SAFETY: both sides' structs have the layout of the C data interface, and ownership moves: ours are not
    // dropped.
    let (schema, array) = unsafe {
        let schema = FFI_ArrowSchema::from_raw((&raw mut *schema).cast());
        (schema, FFI_ArrowArray::from_raw((&raw mut *array).cast()))
    };
    let refused =
        |error: arrow_schema::ArrowError| Error::BadView(format!("arrow rejects the array: {error}"));
    // SAFETY: our exports match their schema.
    let data = unsafe { from_ffi(array, &schema) }.map_err(refused)?;
    Ok(make_array(data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, DataType, Mask, Number};
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int16Type, Int64Type};

    #[test]
    fn numbers_keep_their_address_and_their_owner() {
        let tensor = Tensor::from_vec(vec![1i64, 2, 3, 4, 5, 6], vec![3, 2]).unwrap();
        let address = tensor.bytes().as_ptr();
        let rows = tensor.into_arrow().unwrap();
        let row = rows.as_fixed_size_list().value(1);
        assert_eq!(row.as_primitive::<Int64Type>().values().as_ref(), [3, 4]);
        let all = rows.as_fixed_size_list().values().as_primitive::<Int64Type>().values().clone();
        drop((rows, row));
        assert_eq!((all.as_ptr().cast(), all.as_ref()), (address, &[1, 2, 3, 4, 5, 6][..]));
    }

    #[test]
    fn missing_elements_are_null() {
        let tensor = Tensor::from_vec(vec![1i16, 0, 3], vec![3]).unwrap();
        let mask = Mask::new(vec![Buffer::from(vec![0u8, 1, 0])]).unwrap();
        let array = MaskedTensor::new(tensor, mask).unwrap().into_arrow().unwrap();
        assert_eq!((array.null_count(), array.is_null(1)), (1, true));
        assert_eq!(array.as_primitive::<Int16Type>().iter().collect::<Vec<_>>(), [Some(1), None, Some(3)]);
        let text = Variable::new(
            Buffer::from(vec![0i64, 2, 2]),
            Buffer::from(b"hi".to_vec()),
            vec![2],
            DataType::String,
        );
        let mask = Mask::new(vec![Buffer::from(vec![0u8, 1])]).unwrap();
        let array = MaskedVariable::new(text.unwrap(), mask).unwrap().into_arrow().unwrap();
        assert_eq!(array.as_string::<i64>().iter().collect::<Vec<_>>(), [Some("hi"), None]);
    }

    #[test]
    fn every_number_converts_or_returns_an_error() {
        for number in Number::ALL {
            let buffer = Buffer::zeroed(2 * number.names().item_size).unwrap();
            let tensor = Tensor::new(buffer, vec![2], (*number).into()).unwrap();
            match tensor.into_arrow() {
                Ok(array) => assert_eq!(array.len(), 2, "{number:?}"),
                Err(error) => assert!(matches!(error, Error::NoSuchType { .. }), "{error}"),
            }
        }
    }
}
