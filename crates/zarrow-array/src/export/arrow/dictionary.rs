//! Categorical arrays: codes as the indices of an Arrow dictionary, without a copy.
//!
//! Negative codes are null.

use crate::buffer::Buffer;
use crate::dtype::{DataType, Number};
use crate::error::{Error, Result};
use crate::export::arrow::node::leaf;
use crate::export::arrow::nulls::Validity;
use crate::export::arrow_abi::{ArrayNode, Owner, SchemaNode};
use crate::layout::{SharedTensor, Word};
use crate::mask::Mask;

/// Returns the Arrow type of codes of type `codes` into `values`.
///
/// # Errors
/// [`Error::NoSuchType`] if the codes are not integers.
pub fn dictionary_schema(codes: &DataType, values: SchemaNode, ordered: bool) -> Result<SchemaNode> {
    let refused = || Error::NoSuchType { protocol: "Arrow (as categorical codes)", dtype: codes.clone() };
    let number = codes.as_number().filter(|number| is_integer(*number)).ok_or_else(refused)?;
    let format = number.names().arrow.ok_or_else(refused)?;
    Ok(SchemaNode { dictionary: Some(Box::new(values)), ordered, ..SchemaNode::formatted(format) })
}

/// Exports codes into `values`.
///
/// # Errors
/// [`Error::BadCode`] if a code has no value; [`Error::NeedsCopy`] if the codes are not a contiguous 1-D array;
/// [`Error::NoSuchType`] if they are not integers; [`Error::OutOfMemory`].
pub fn dictionary_memory(codes: &SharedTensor, values: ArrayNode) -> Result<ArrayNode> {
    if codes.shape().len() != 1 || !codes.is_c_contiguous() {
        return Err(Error::NeedsCopy {
            protocol: "Arrow",
            what: "codes that are not a contiguous 1-D array",
        });
    }
    let refused =
        || Error::NoSuchType { protocol: "Arrow (as categorical codes)", dtype: codes.dtype().clone() };
    let count = values.length;
    let validity = match codes.dtype().as_number().ok_or_else(refused)? {
        Number::Int8 => validity::<i8>(codes, count),
        Number::Int16 => validity::<i16>(codes, count),
        Number::Int32 => validity::<i32>(codes, count),
        Number::Int64 => validity::<i64>(codes, count),
        Number::UInt8 => validity::<u8>(codes, count),
        Number::UInt16 => validity::<u16>(codes, count),
        Number::UInt32 => validity::<u32>(codes, count),
        Number::UInt64 => validity::<u64>(codes, count),
        _ => Err(refused()),
    }?;
    let data = codes.pointer().as_ptr().cast_const().cast();
    let array = leaf(codes.size() as i64, validity, vec![data], vec![Owner::new(codes.owner())]);
    Ok(ArrayNode { dictionary: Some(Box::new(values)), ..array })
}

fn is_integer(number: Number) -> bool {
    use Number::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    matches!(number, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

/// Finds the non-negative codes and checks that they are below `count`.
fn validity<T: Word + TryInto<i64>>(codes: &SharedTensor, count: i64) -> Result<Validity> {
    let mut missing = Buffer::zeroed(codes.size())?;
    for (index, (code, missing)) in codes.words::<T>()?.zip(missing.iter_mut()).enumerate() {
        let code = code.try_into().unwrap_or(i64::MAX);
        if code >= count {
            return Err(Error::BadCode { index, code, count });
        }
        *missing = u8::from(code < 0);
    }
    Validity::from_mask(Some(&Mask::new(vec![missing])?), codes.size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    fn codes(values: &[i16]) -> SharedTensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let buffer = Buffer::copy_of(&bytes).unwrap();
        Tensor::new(buffer, vec![values.len() as u64], Number::Int16.into()).unwrap().into_shared().unwrap()
    }

    #[test]
    fn negative_codes_are_null_and_others_have_a_value() {
        let values = ArrayNode { length: 2, ..ArrayNode::default() };
        let given = codes(&[1, -1, 0, -7]);
        let array = dictionary_memory(&given, values.clone()).unwrap().into_c();
        assert_eq!((array.length(), array.null_count()), (4, 2));
        assert_eq!(array.buffer(1), Some(given.pointer().as_ptr().cast_const().cast()));
        assert_eq!(array.dictionary().unwrap().length(), 2);
        let error = dictionary_memory(&codes(&[0, 2]), values);
        assert!(matches!(error, Err(Error::BadCode { index: 1, code: 2, count: 2 })));
    }

    #[test]
    fn codes_are_integers() {
        let schema = dictionary_schema(&Number::Int8.into(), SchemaNode::plain(c"U"), true).unwrap();
        assert_eq!(schema.into_c().format(), c"c");
        assert!(dictionary_schema(&Number::Float32.into(), SchemaNode::plain(c"U"), true).is_err());
    }
}
