//! Tensors as Arrow arrays, in their existing memory.
//!
//! 1. The rows of a tensor must be contiguous. The axes within a row may be swapped: `arrow.fixed_shape_tensor` can
//!    express this.
//! 2. The elements are one leaf: their memory, and a bitmap if some are null. Bits, text and dates take new memory.
//! 3. Rows are fixed-size lists around the leaf, without memory.

use crate::buffer::Buffer;
use crate::dtype::{DataType, Number};
use crate::error::{Error, Result};
use crate::export::arrow::ArrowPair;
use crate::export::arrow::field::{ArrowField, is_date, is_text, rows};
use crate::export::arrow::form::{ArrowForm, BoolForm, RowForm};
use crate::export::arrow::node::{leaf, wrapped};
use crate::export::arrow::nulls::Validity;
use crate::export::arrow::variable::variable_memory;
use crate::export::arrow::{utf32, variable};
use crate::export::arrow_abi::{ArrayNode, ArrowArray, ArrowSchema, Owner, SchemaNode, letter};
use crate::layout::{DecodedArray, SharedTensor};
use crate::mask::Mask;
use crate::shape;
use std::ffi::c_void;
use std::sync::Arc;

/// Exports a tensor as an Arrow array; with a mask, its missing elements are null. Elements are only copied if the
/// form asks for bits, or if they are fixed-length text or days.
///
/// # Errors
/// [`Error::NoSuchType`] if Arrow has no such type; [`Error::NeedsCopy`] for a 0-dimensional tensor, and if the
/// elements (with several axes: the rows along axis 0) are not contiguous; [`Error::LengthMismatch`] for a mask of
/// another length; [`Error::OutOfMemory`]; [`Error::NotUtf8`] for invalid text.
///
/// ```
/// use zarrow_array::{Buffer, Number, Tensor, export};
/// let tensor = Tensor::new(Buffer::zeroed(24)?, vec![6], Number::Int32.into())?.into_shared()?;
/// let (schema, array) = export::arrow::tensor(&tensor, None, export::arrow::ArrowForm::default(), None)?;
/// assert_eq!(schema.format().to_str(), Ok("i"));
/// assert_eq!(array.buffer(1), Some(tensor.pointer().as_ptr() as *const _));
/// # Ok::<(), zarrow_array::Error>(())
/// ```
pub fn tensor(
    tensor: &SharedTensor,
    mask: Option<&Mask>,
    form: ArrowForm,
    dimension_names: Option<&[Option<String>]>,
) -> Result<ArrowPair> {
    if is_text(tensor.dtype()) && !tensor.shape().is_empty() {
        return variable::variable(&utf32::transcode(tensor)?, mask, form);
    }
    if let Some(pair) = numbers(tensor, mask) {
        return Ok(pair);
    }
    let schema = tensor_type(tensor, form, dimension_names)?;
    Ok((schema.into_c(), tensor_memory(tensor, mask, form)?.into_c()))
}

/// Exports unmasked 1-D numbers with a single allocation. The general path gives the same result with more
/// allocations.
fn numbers(tensor: &SharedTensor, mask: Option<&Mask>) -> Option<ArrowPair> {
    let format = letter(tensor.dtype().as_number()?.names().arrow?)?;
    let data = tensor.pointer().as_ptr().cast_const().cast();
    (mask.is_none() && tensor.shape().len() == 1 && tensor.is_c_contiguous())
        .then(|| (ArrowSchema::plain(format), ArrowArray::values(tensor.shape()[0], data, tensor.owner())))
}

/// Returns the Arrow type of a tensor.
///
/// # Errors
/// See [`tensor`].
pub fn tensor_schema(
    tensor: &SharedTensor,
    form: ArrowForm,
    dimension_names: Option<&[Option<String>]>,
) -> Result<ArrowSchema> {
    Ok(tensor_type(tensor, form, dimension_names)?.into_c())
}

fn tensor_type(
    tensor: &SharedTensor,
    form: ArrowForm,
    dimension_names: Option<&[Option<String>]>,
) -> Result<SchemaNode> {
    let order = row_order(tensor, form)?;
    let (dtype, shape) = (tensor.dtype(), tensor.shape());
    ArrowField { dtype, shape, order: order.as_deref(), dimension_names, form }.schema()
}

/// Exports the memory of a tensor in exactly this form.
///
/// # Errors
/// See [`tensor`].
pub fn tensor_memory(tensor: &SharedTensor, mask: Option<&Mask>, form: ArrowForm) -> Result<ArrayNode> {
    if is_text(tensor.dtype()) {
        return variable_memory(&utf32::transcode(tensor)?, mask, form);
    }
    if row_order(tensor, form)?.is_some() && mask.is_some() {
        return Err(needs_copy("a masked tensor with permuted axes"));
    }
    if !tensor.is_aligned() {
        return Err(needs_copy("elements that are not aligned"));
    }
    let size = tensor.size() as i64;
    let validity = Validity::from_tensor(tensor, mask)?;
    let data = tensor.pointer().as_ptr().cast_const().cast::<c_void>();
    let owner = Owner::new(tensor.owner());
    let array = match tensor.dtype() {
        DataType::Number(Number::Complex64 | Number::Complex128) => {
            let parts = leaf(size * 2, Validity::default(), vec![data], vec![owner]);
            ArrayNode { children: vec![parts], ..leaf(size, validity, vec![], vec![]) }
        }
        DataType::Number(Number::Bool) if form.bools == BoolForm::Bits => {
            let bits = Arc::new(packed(tensor)?);
            leaf(size, validity, vec![bits.as_ptr().cast()], vec![Owner::new(bits)])
        }
        dtype if is_date(dtype) => {
            let days = Arc::new(dates(tensor)?);
            leaf(size, validity, vec![days.as_ptr().cast()], vec![Owner::new(days)])
        }
        _ => leaf(size, validity, vec![data], vec![owner]),
    };
    let form = if tensor.shape().len() > 1 { rows(form, tensor.dtype()) } else { RowForm::Flat };
    Ok(wrapped(array, form, tensor.shape()))
}

/// Exports the memory of a decoded array in exactly this form.
///
/// # Errors
/// See [`tensor`].
pub fn decoded_memory(decoded: DecodedArray, form: ArrowForm) -> Result<ArrayNode> {
    match decoded {
        DecodedArray::Tensor(tensor) => tensor_memory(&tensor.into_shared()?, None, form),
        DecodedArray::Variable(variable) => variable_memory(&variable, None, form),
        DecodedArray::MaskedTensor(masked) => {
            let (tensor, mask) = masked.into_parts();
            tensor_memory(&tensor.into_shared()?, Some(&mask), form)
        }
        DecodedArray::MaskedVariable(masked) => variable_memory(masked.data(), Some(masked.mask()), form),
    }
}

/// Packs the bytes of a bool tensor into bits; any non-zero byte is 1.
fn packed(tensor: &SharedTensor) -> Result<Buffer> {
    let mut bits = Buffer::zeroed(tensor.size().div_ceil(8))?;
    for (index, byte) in tensor.words::<u8>()?.enumerate() {
        bits[index / 8] |= u8::from(byte != 0) << (index % 8);
    }
    Ok(bits)
}

/// Converts the days of a tensor to 32 bits; NaT, which is null in the bitmap, becomes 0.
fn dates(tensor: &SharedTensor) -> Result<Buffer> {
    let mut dates = Buffer::zeroed(shape::nbytes(&[tensor.size() as u64], size_of::<i32>())?)?;
    for (day, place) in tensor.words::<i64>()?.zip(dates.chunks_exact_mut(size_of::<i32>())) {
        let day = if day == i64::MIN { 0 } else { day };
        let day = i32::try_from(day).map_err(|_| {
            let protocol = "Arrow, which limits dates to 5.8 million years around 1970,";
            Error::NoSuchType { protocol, dtype: tensor.dtype().clone() }
        })?;
        place.copy_from_slice(&day.to_ne_bytes());
    }
    Ok(dates)
}

fn needs_copy(what: &'static str) -> Error {
    Error::NeedsCopy { protocol: "Arrow", what }
}

/// Returns the order of a row's axes in memory; `None` for C order (step 1).
fn row_order(tensor: &SharedTensor, form: ArrowForm) -> Result<Option<Vec<usize>>> {
    if tensor.is_c_contiguous() {
        return Ok(None);
    }
    if tensor.shape().len() < 2 {
        return Err(needs_copy("a tensor with non-contiguous elements"));
    }
    let order = swapped_axes(tensor).ok_or_else(|| needs_copy("a tensor with non-contiguous rows"))?;
    if rows(form, tensor.dtype()) != RowForm::Tensor {
        return Err(needs_copy("a tensor with permuted axes as lists"));
    }
    // pyarrow reads the permutation the other way round than the specification, and so returns wrong elements
    // without an error. Only self-inverse permutations mean the same to both.
    if order.iter().enumerate().any(|(at, axis)| order[*axis] != at) {
        return Err(needs_copy("a tensor with rotated (not swapped) axes"));
    }
    Ok(Some(order))
}

/// Returns the axes of a row (all but axis 0) from the slowest in memory to the fastest; `None` if rows have gaps
/// or axis 0 is not the slowest.
fn swapped_axes(tensor: &SharedTensor) -> Option<Vec<usize>> {
    let (shape, strides) = (&tensor.shape()[1..], &tensor.strides()[1..]);
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse((strides[*axis], *axis == 0)));
    let reordered = |values: &[i64], first: i64| {
        std::iter::once(first).chain(order.iter().map(|axis| values[*axis])).collect::<Vec<i64>>()
    };
    let (whole, steps) = (reordered(shape, tensor.shape()[0]), reordered(strides, tensor.strides()[0]));
    shape::is_c_contiguous(&whole, &steps).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::arrow::TextForm;
    use crate::{IndexStep, Tensor, TimeUnit, Variable};
    use std::ptr;

    const DEFAULT: ArrowForm =
        ArrowForm { rows: RowForm::Tensor, bools: BoolForm::Bytes, text: TextForm::Large };

    fn exported(given: &SharedTensor, mask: Option<&Mask>) -> Result<ArrowPair> {
        tensor(given, mask, DEFAULT, None)
    }

    fn floats(extents: &[u64]) -> SharedTensor {
        let nbytes = shape::nbytes(extents, 4).unwrap();
        let buffer = Buffer::zeroed(nbytes).unwrap();
        Tensor::new(buffer, extents.to_vec(), Number::Float32.into()).unwrap().into_shared().unwrap()
    }

    #[test]
    fn the_single_allocation_export_equals_the_general_one() {
        let line = floats(&[5]);
        let (schema, quick) = numbers(&line, None).unwrap();
        let node = tensor_type(&line, DEFAULT, None).unwrap().into_c();
        assert_eq!((schema.format(), schema.name()), (node.format(), node.name()));
        let slow = tensor_memory(&line, None, DEFAULT).unwrap().into_c();
        for array in [&quick, &slow] {
            assert_eq!((array.length(), array.null_count(), array.child(0).is_none()), (5, 0, true));
            let buffers = [0, 1, 2].map(|index| array.buffer(index));
            assert_eq!(buffers, [Some(ptr::null()), Some(line.pointer().as_ptr() as *const _), None]);
        }
        assert!(numbers(&floats(&[5, 2]), None).is_none());
        let owner = line.owner();
        let before = Arc::strong_count(&owner);
        drop(quick);
        assert_eq!(Arc::strong_count(&owner), before - 1);
    }

    #[test]
    fn rows_become_a_fixed_shape_tensor() {
        let matrix = floats(&[5, 2, 3]);
        let (schema, array) = exported(&matrix, None).unwrap();
        assert_eq!((schema.format().to_str(), array.length()), (Ok("+w:6"), 5));
        let values = array.child(0).unwrap();
        assert_eq!((values.length(), values.buffer(1)), (30, Some(matrix.pointer().as_ptr() as *const _)));
        let form = ArrowForm { rows: RowForm::Nested, ..DEFAULT };
        let (_, array) = tensor(&matrix, None, form, None).unwrap();
        assert_eq!((array.length(), array.child(0).unwrap().length()), (5, 10));
        assert_eq!(array.child(0).unwrap().child(0).unwrap().length(), 30);
        let form = ArrowForm { rows: RowForm::Flat, ..DEFAULT };
        assert_eq!(tensor(&matrix, None, form, None).unwrap().1.length(), 30);
    }

    #[test]
    fn permuted_row_axes_are_exported_and_a_permuted_axis_0_is_refused() {
        let cube = floats(&[5, 2, 3]);
        let swapped = cube.transpose(&[0, 2, 1]).unwrap();
        assert_eq!(row_order(&swapped, DEFAULT).unwrap(), Some(vec![1, 0]));
        let nested = ArrowForm { rows: RowForm::Nested, ..DEFAULT };
        assert!(matches!(tensor(&swapped, None, nested, None), Err(Error::NeedsCopy { .. })));
        assert!(matches!(exported(&cube.transpose(&[2, 1, 0]).unwrap(), None), Err(Error::NeedsCopy { .. })));
        let rotated = floats(&[5, 2, 3, 4]).transpose(&[0, 2, 3, 1]).unwrap();
        assert!(matches!(exported(&rotated, None), Err(Error::NeedsCopy { .. })));
        let every_second = IndexStep::Range { start: 0, step: 2, count: 3 };
        let line = floats(&[5]).view(&[every_second]).unwrap();
        assert!(matches!(exported(&line, None), Err(Error::NeedsCopy { .. })));
        assert!(matches!(exported(&floats(&[]), None), Err(Error::NeedsCopy { .. })));
    }

    #[test]
    fn a_mask_without_gaps_needs_no_bitmap() {
        let line = floats(&[4]);
        let whole = Mask::new(vec![Buffer::zeroed(4).unwrap()]).unwrap();
        let (_, array) = exported(&line, Some(&whole)).unwrap();
        assert_eq!((array.null_count(), array.buffer(0)), (0, Some(std::ptr::null())));
        let gaps = Mask::new(vec![Buffer::copy_of(&[0, 1, 0, 1]).unwrap()]).unwrap();
        let (_, array) = exported(&line, Some(&gaps)).unwrap();
        assert_eq!(array.null_count(), 2);
        assert!(!array.buffer(0).unwrap().is_null());
        let short = Mask::new(vec![Buffer::zeroed(3).unwrap()]).unwrap();
        assert!(exported(&line, Some(&short)).is_err());
    }

    #[test]
    fn nat_is_null_in_addition_to_the_mask() {
        let bytes: Vec<u8> = [5i64, i64::MIN, 7].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let dtype = DataType::DateTime64 { unit: TimeUnit::Second, scale: 1 };
        let times =
            Tensor::new(Buffer::copy_of(&bytes).unwrap(), vec![3], dtype).unwrap().into_shared().unwrap();
        let (schema, array) = exported(&times, None).unwrap();
        assert_eq!((schema.format().to_str(), array.null_count()), (Ok("tss:"), 1));
        let last = Mask::new(vec![Buffer::copy_of(&[0, 0, 1]).unwrap()]).unwrap();
        assert_eq!(exported(&times, Some(&last)).unwrap().1.null_count(), 2);
    }

    #[test]
    fn days_are_dates_of_32_bits() {
        let days = |days: &[i64]| {
            let bytes: Vec<u8> = days.iter().flat_map(|day| day.to_ne_bytes()).collect();
            let dtype = DataType::DateTime64 { unit: TimeUnit::Day, scale: 1 };
            let tensor = Tensor::new(Buffer::copy_of(&bytes).unwrap(), vec![days.len() as u64], dtype);
            tensor.unwrap().into_shared().unwrap()
        };
        let given = days(&[i64::from(i32::MIN), i64::MIN, -1, i64::from(i32::MAX)]);
        let (schema, array) = exported(&given, None).unwrap();
        assert_eq!((schema.format().to_str(), array.null_count()), (Ok("tdD"), 1));
        let expected: Vec<u8> =
            [i32::MIN, 0, -1, i32::MAX].iter().flat_map(|day| day.to_ne_bytes()).collect();
        assert_eq!(&dates(&given).unwrap()[..], &expected);
        let far = exported(&days(&[i64::from(i32::MAX) + 1]), None);
        assert!(matches!(far, Err(Error::NoSuchType { .. })));
    }

    #[test]
    fn bools_are_packed_on_request() {
        let bytes: Vec<u8> = (0..19u8).map(|index| index % 3).collect();
        let bools = Tensor::new(Buffer::copy_of(&bytes).unwrap(), vec![19], Number::Bool.into()).unwrap();
        let bits = packed(&bools.into_shared().unwrap()).unwrap();
        for (index, byte) in bytes.iter().enumerate() {
            assert_eq!((bits[index / 8] >> (index % 8)) & 1 == 1, *byte != 0, "element {index}");
        }
        assert_eq!(bits.len(), 3);
    }

    #[test]
    fn text_has_three_forms() {
        let offsets: Vec<u8> = [0i64, 3, 20].iter().flat_map(|offset| offset.to_ne_bytes()).collect();
        let text = Buffer::copy_of(b"onethe second of two").unwrap();
        let words =
            Variable::new(Buffer::copy_of(&offsets).unwrap(), text, vec![2], DataType::String).unwrap();
        for (text, format, buffers) in
            [(TextForm::Large, c"U", 3), (TextForm::Small, c"u", 3), (TextForm::Views, c"vu", 4)]
        {
            let form = ArrowForm { text, ..DEFAULT };
            let (schema, array) = variable::variable(&words, None, form).unwrap();
            assert_eq!((schema.format(), array.buffer(buffers)), (format, None));
            assert_eq!(
                array.buffer(2),
                Some(words.data()[if text == TextForm::Views { 3 } else { 0 }..].as_ptr().cast())
            );
        }
    }
}
