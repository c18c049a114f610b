//! Decoded arrays as arrays of the `arrow` crates: the same memory, handed over by the C data interface.

use crate::export::arrow::{self, ArrowForm, ArrowPair};
use crate::layout::{DecodedArray, MaskedTensor, MaskedVariable, Tensor, Variable};
use crate::{Error, Result};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, make_array};
use std::mem::ManuallyDrop;

impl Tensor {
    /// The tensor as an array of `arrow`, which keeps its memory; of the type that [`export::arrow`](crate::export::arrow)
    /// gives it.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] where Arrow has no such type; [`Error::NeedsCopy`] for a tensor of no axes.
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
    /// The tensor as an array of `arrow`, null where an element is missing: as [`Tensor::into_arrow`].
    ///
    /// # Errors
    /// As [`Tensor::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        let (tensor, mask) = self.into_parts();
        array(arrow::tensor(&tensor.into_shared()?, Some(&mask), ArrowForm::default(), None)?)
    }
}

impl Variable {
    /// The strings or bytes as an array of `arrow`, which keeps offsets and bytes.
    ///
    /// # Errors
    /// [`Error::NeedsCopy`] for an array of no axes.
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
    /// The strings or bytes as an array of `arrow`, null where one is missing: as [`Variable::into_arrow`].
    ///
    /// # Errors
    /// As [`Variable::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        array(arrow::variable(self.data(), Some(self.mask()), ArrowForm::default())?)
    }
}

impl DecodedArray {
    /// The array, in whichever layout, as an array of `arrow` of the same memory.
    ///
    /// # Errors
    /// As [`Tensor::into_arrow`] and [`Variable::into_arrow`].
    pub fn into_arrow(self) -> Result<ArrayRef> {
        match self {
            DecodedArray::Tensor(tensor) => tensor.into_arrow(),
            DecodedArray::Variable(variable) => variable.into_arrow(),
            DecodedArray::MaskedTensor(masked) => masked.into_arrow(),
            DecodedArray::MaskedVariable(masked) => masked.into_arrow(),
        }
    }
}

/// Both structs, taken over by `arrow`.
fn array((schema, array): ArrowPair) -> Result<ArrayRef> {
    let (mut schema, mut array) = (ManuallyDrop::new(schema), ManuallyDrop::new(array));
    // SAFETY: the structs have the layout of the C data interface on both sides, and what they own is moved: ours are
    // not dropped any more.
    let (schema, array) = unsafe {
        let schema = FFI_ArrowSchema::from_raw((&raw mut *schema).cast());
        (schema, FFI_ArrowArray::from_raw((&raw mut *array).cast()))
    };
    let refused =
        |error: arrow_schema::ArrowError| Error::BadView(format!("arrow does not take the array: {error}"));
    // SAFETY: our own exports hold what the schema says of them.
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
    fn what_is_missing_is_null() {
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
    fn every_number_goes_or_says_why_not() {
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
