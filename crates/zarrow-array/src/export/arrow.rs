//! The four layouts as Arrow arrays: the buffers that they have already, and a bitmap where there is a mask.
//!
//! - one axis: a primitive array; more axes: `arrow.fixed_shape_tensor` over axis 0 (numbers), or nested
//!   fixed-size lists (strings);
//! - bool: `arrow.bool8`, which is one byte an element as in Zarr; Arrow's own bool is packed bits;
//! - complex: a fixed-size list of two floats; raw bytes: fixed-size binary; times: timestamps and durations,
//!   where NaT becomes null;
//! - strings and bytes: large string and large binary.
//!
//! Sources: Arrow C data interface; canonical extension types.

use crate::dtype::{DataType, Number, TimeUnit};
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrayNode, ArrowArray, ArrowSchema, Owner, SchemaNode};
use crate::layout::{SharedTensor, Variable};
use crate::mask::Mask;
use crate::{Buffer, shape};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A pair of structs for the Arrow C data interface.
pub type ArrowPair = (ArrowSchema, ArrowArray);

/// A tensor as an Arrow array; with a mask, its missing elements are null. No element is copied.
///
/// # Errors
/// [`Error::NoSuchType`] where Arrow has no such type; [`Error::NeedsCopy`] for a tensor of no axes, and for
/// one whose elements are not side by side (or, with several axes, whose rows along axis 0 are not);
/// [`Error::LengthMismatch`] for a mask of another length.
///
/// ```
/// use zarrow_array::{Buffer, Number, Tensor, export};
/// let tensor = Tensor::new(Buffer::zeroed(24)?, vec![6], Number::Int32.into())?.into_shared()?;
/// let (schema, array) = export::arrow::tensor(&tensor, None)?;
/// assert_eq!(schema.format().to_str(), Ok("i"));
/// assert_eq!(array.buffer(1), Some(tensor.pointer().as_ptr() as *const _));
/// # Ok::<(), zarrow_array::Error>(())
/// ```
pub fn tensor(tensor: &SharedTensor, mask: Option<&Mask>) -> Result<ArrowPair> {
    let (schema, rows) = tensor_type(tensor)?;
    let size = tensor.size() as i64;
    let validity = match mask {
        Some(mask) if mask.missing().len() as i64 != size => {
            let (expected, actual) = (tensor.size(), mask.missing().len());
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Some(mask) => Validity::of_mask(mask)?,
        None => Validity::of_times(tensor)?,
    };
    let data = tensor.pointer().as_ptr().cast_const().cast::<c_void>();
    let owner = Owner::new(tensor.owner());
    let mut array = match tensor.dtype().as_number() {
        Some(Number::Complex64 | Number::Complex128) => {
            let parts = leaf(size * 2, Validity::default(), vec![data], vec![owner]);
            ArrayNode { children: vec![parts], ..leaf(size, validity, vec![], vec![]) }
        }
        _ => leaf(size, validity, vec![data], vec![owner]),
    };
    if let Some(rows) = rows {
        array = ArrayNode { children: vec![array], ..leaf(rows, Validity::default(), vec![], vec![]) };
    }
    Ok((schema.into_c(), array.into_c()))
}

/// The Arrow type of a tensor, without its memory.
///
/// # Errors
/// As [`tensor`].
pub fn tensor_schema(tensor: &SharedTensor) -> Result<ArrowSchema> {
    Ok(tensor_type(tensor)?.0.into_c())
}

/// An array of strings or bytes as an Arrow array; with a mask, its missing elements are null. Neither offsets
/// nor bytes are copied.
///
/// # Errors
/// [`Error::NeedsCopy`] for an array of no axes; [`Error::LengthMismatch`] for a mask of another length.
pub fn variable(variable: &Variable, mask: Option<&Mask>) -> Result<ArrowPair> {
    let schema = variable_schema(variable)?;
    let validity = match mask {
        Some(mask) if mask.missing().len() != variable.size() => {
            let (expected, actual) = (variable.size(), mask.missing().len());
            return Err(Error::LengthMismatch { what: "the mask buffer", expected, actual });
        }
        Some(mask) => Validity::of_mask(mask)?,
        None => Validity::default(),
    };
    let (offsets, data) = variable.owners();
    let buffers = vec![offsets.as_ptr().cast(), data.as_ptr().cast()];
    let owners = vec![Owner::new(offsets), Owner::new(data)];
    let mut array = leaf(variable.size() as i64, validity, buffers, owners);
    for axis in (1..variable.shape().len()).rev() {
        let rows = shape::element_count(&variable.shape()[..axis])? as i64;
        array = ArrayNode { children: vec![array], ..leaf(rows, Validity::default(), vec![], vec![]) };
    }
    Ok((schema, array.into_c()))
}

/// The Arrow type of an array of strings or bytes.
///
/// # Errors
/// [`Error::NeedsCopy`] for an array of no axes.
pub fn variable_schema(variable: &Variable) -> Result<ArrowSchema> {
    if variable.shape().is_empty() {
        return Err(Error::NeedsCopy { protocol: "Arrow", what: "an array of no axes" });
    }
    let format = if *variable.dtype() == DataType::String { "U" } else { "Z" };
    let mut schema = plain(format);
    for extent in variable.shape()[1..].iter().rev() {
        schema = SchemaNode { children: vec![item(schema)], ..plain(&format!("+w:{extent}")) };
    }
    Ok(schema.into_c())
}

/// Arrow's validity of one array: no bitmap where nothing is null.
#[derive(Default)]
struct Validity {
    bitmap: Option<Arc<Buffer>>,
    null_count: i64,
}

impl Validity {
    fn of_mask(mask: &Mask) -> Result<Validity> {
        match mask.missing_count() {
            0 => Ok(Validity::default()),
            nulls => {
                Ok(Validity { bitmap: Some(Arc::new(mask.validity_bitmap()?)), null_count: nulls as i64 })
            }
        }
    }

    /// NaT is a value to NumPy and null to Arrow, which would read it as a time 292 billion years ago.
    fn of_times(tensor: &SharedTensor) -> Result<Validity> {
        if !matches!(tensor.dtype(), DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. }) {
            return Ok(Validity::default());
        }
        let values = tensor.pointer().as_ptr().cast::<i64>();
        if !values.is_aligned() {
            return Err(Error::NeedsCopy { protocol: "Arrow", what: "times that are not aligned" });
        }
        let mut missing = Buffer::zeroed(tensor.size())?;
        for (at, byte) in missing.iter_mut().enumerate() {
            // SAFETY: a tensor with an Arrow type is contiguous, so that its `size` elements of 8 bytes follow one
            // another, aligned as was checked. Others may write to them: hence the atomic read.
            let value = unsafe { AtomicI64::from_ptr(values.add(at)) }.load(Ordering::Relaxed);
            *byte = u8::from(value == i64::MIN);
        }
        Validity::of_mask(&Mask::new(vec![missing])?)
    }
}

fn leaf(length: i64, validity: Validity, buffers: Vec<*const c_void>, owners: Vec<Owner>) -> ArrayNode {
    let mut node = ArrayNode { length, null_count: validity.null_count, buffers, owners, children: vec![] };
    let bitmap = validity.bitmap.as_ref().map_or(std::ptr::null(), |bitmap| bitmap.as_ptr().cast());
    node.buffers.insert(0, bitmap);
    node.owners.extend(validity.bitmap.map(|bitmap| Owner::new(bitmap)));
    node
}

fn plain(format: &str) -> SchemaNode {
    SchemaNode { format: format.into(), ..SchemaNode::default() }
}

/// The child of a list is called `item`.
fn item(schema: SchemaNode) -> SchemaNode {
    SchemaNode { name: "item".into(), ..schema }
}

fn extension(name: &str, metadata: String, schema: SchemaNode) -> SchemaNode {
    let metadata = vec![("ARROW:extension:name", name.into()), ("ARROW:extension:metadata", metadata)];
    SchemaNode { metadata, ..schema }
}

/// The type of the whole array, and its number of rows where it has several axes.
fn tensor_type(tensor: &SharedTensor) -> Result<(SchemaNode, Option<i64>)> {
    let needs_copy = |what| Error::NeedsCopy { protocol: "Arrow", what };
    let no_type = || Error::NoSuchType { protocol: "Arrow", dtype: tensor.dtype().clone() };
    let element = element_type(tensor.dtype()).ok_or_else(no_type)?;
    match tensor.shape() {
        [] => Err(needs_copy("a tensor of no axes")),
        [_] if tensor.is_c_contiguous() => Ok((element, None)),
        [_] => Err(needs_copy("a tensor whose elements are not side by side")),
        [rows, row @ ..] => {
            if matches!(tensor.dtype().as_number(), Some(Number::Complex64 | Number::Complex128)) {
                return Err(Error::NoSuchType {
                    protocol: "Arrow's fixed_shape_tensor",
                    dtype: tensor.dtype().clone(),
                });
            }
            let order =
                row_order(tensor).ok_or_else(|| needs_copy("a tensor whose rows are not side by side"))?;
            // pyarrow takes the permutation the other way round than the specification when it reads, and so
            // returns wrong elements without an error: only those that are their own inverse are the same to both.
            if order.iter().enumerate().any(|(at, axis)| order[*axis] != at) {
                return Err(needs_copy("a tensor whose axes are rotated, and not swapped,"));
            }
            // The extension names the shape as it lies in memory, and how to permute it to the logical one.
            let stored: Vec<i64> = order.iter().map(|axis| row[*axis]).collect();
            let mut metadata = format!("{{\"shape\":{stored:?}");
            if order.iter().enumerate().any(|(at, axis)| at != *axis) {
                metadata.push_str(&format!(",\"permutation\":{order:?}"));
            }
            metadata.push('}');
            let length: i64 = row.iter().product();
            let list = SchemaNode { children: vec![item(element)], ..plain(&format!("+w:{length}")) };
            Ok((extension("arrow.fixed_shape_tensor", metadata, list), Some(*rows)))
        }
    }
}

/// The axes of a row (all but axis 0) from the slowest in memory to the fastest; `None` where rows have gaps or
/// axis 0 is not the slowest.
fn row_order(tensor: &SharedTensor) -> Option<Vec<usize>> {
    let (shape, strides) = (&tensor.shape()[1..], &tensor.strides()[1..]);
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if tensor.is_c_contiguous() {
        return Some(order);
    }
    order.sort_by_key(|axis| std::cmp::Reverse((strides[*axis], *axis == 0)));
    let reordered = |values: &[i64], first: i64| {
        std::iter::once(first).chain(order.iter().map(|axis| values[*axis])).collect::<Vec<i64>>()
    };
    let (whole, steps) = (reordered(shape, tensor.shape()[0]), reordered(strides, tensor.strides()[0]));
    shape::is_c_contiguous(&whole, &steps).then_some(order)
}

/// The Arrow type of one element; `None` where Arrow has none.
fn element_type(dtype: &DataType) -> Option<SchemaNode> {
    let time = |kind: &str, unit: &TimeUnit, tail: &str| {
        let code = match unit {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "m",
            TimeUnit::Microsecond => "u",
            TimeUnit::Nanosecond => "n",
            _ => return None,
        };
        Some(plain(&format!("{kind}{code}{tail}")))
    };
    match dtype {
        DataType::Number(Number::Bool) => Some(extension("arrow.bool8", String::new(), plain("c"))),
        DataType::Number(number @ (Number::Complex64 | Number::Complex128)) => {
            let part = if *number == Number::Complex64 { "f" } else { "g" };
            Some(SchemaNode { children: vec![item(plain(part))], ..plain("+w:2") })
        }
        DataType::Number(number) => number.names().arrow.map(plain),
        DataType::DateTime64 { unit, scale: 1 } => time("ts", unit, ":"),
        DataType::TimeDelta64 { unit, scale: 1 } => time("tD", unit, ""),
        DataType::RawBytes { length } | DataType::NullTerminatedBytes { length } => {
            Some(plain(&format!("w:{length}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexStep, Tensor};

    fn floats(extents: &[u64]) -> SharedTensor {
        let nbytes = shape::nbytes(extents, 4).unwrap();
        let buffer = Buffer::zeroed(nbytes).unwrap();
        Tensor::new(buffer, extents.to_vec(), Number::Float32.into()).unwrap().into_shared().unwrap()
    }

    #[test]
    fn rows_become_a_fixed_shape_tensor() {
        let matrix = floats(&[5, 2, 3]);
        let (schema, array) = tensor(&matrix, None).unwrap();
        assert_eq!((schema.format().to_str(), array.length()), (Ok("+w:6"), 5));
        let values = array.child(0).unwrap();
        assert_eq!((values.length(), values.buffer(1)), (30, Some(matrix.pointer().as_ptr() as *const _)));
    }

    #[test]
    fn permuted_rows_go_out_and_permuted_columns_do_not() {
        let cube = floats(&[5, 2, 3]);
        assert_eq!(row_order(&cube.transpose(&[0, 2, 1]).unwrap()), Some(vec![1, 0]));
        assert!(matches!(tensor(&cube.transpose(&[2, 1, 0]).unwrap(), None), Err(Error::NeedsCopy { .. })));
        let rotated = floats(&[5, 2, 3, 4]).transpose(&[0, 2, 3, 1]).unwrap();
        assert!(matches!(tensor(&rotated, None), Err(Error::NeedsCopy { .. })));
        let every_second = IndexStep::Range { start: 0, step: 2, count: 3 };
        let line = floats(&[5]).view(&[every_second]).unwrap();
        assert!(matches!(tensor(&line, None), Err(Error::NeedsCopy { .. })));
    }

    #[test]
    fn a_mask_without_gaps_needs_no_bitmap() {
        let line = floats(&[4]);
        let whole = Mask::new(vec![Buffer::zeroed(4).unwrap()]).unwrap();
        let (_, array) = tensor(&line, Some(&whole)).unwrap();
        assert_eq!((array.null_count(), array.buffer(0)), (0, Some(std::ptr::null())));
        let gaps = Mask::new(vec![Buffer::copy_of(&[0, 1, 0, 1]).unwrap()]).unwrap();
        let (_, array) = tensor(&line, Some(&gaps)).unwrap();
        assert_eq!(array.null_count(), 2);
        assert!(!array.buffer(0).unwrap().is_null());
        let short = Mask::new(vec![Buffer::zeroed(3).unwrap()]).unwrap();
        assert!(tensor(&line, Some(&short)).is_err());
    }

    #[test]
    fn nat_is_null() {
        let bytes: Vec<u8> = [5i64, i64::MIN].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let dtype = DataType::DateTime64 { unit: TimeUnit::Second, scale: 1 };
        let times =
            Tensor::new(Buffer::copy_of(&bytes).unwrap(), vec![2], dtype).unwrap().into_shared().unwrap();
        let (schema, array) = tensor(&times, None).unwrap();
        assert_eq!((schema.format().to_str(), array.null_count()), (Ok("tss:"), 1));
    }

    #[test]
    fn what_arrow_cannot_say_is_refused() {
        let half = Tensor::new(Buffer::zeroed(4).unwrap(), vec![2], Number::BFloat16.into()).unwrap();
        assert!(matches!(tensor(&half.into_shared().unwrap(), None), Err(Error::NoSuchType { .. })));
        assert!(matches!(tensor(&floats(&[]), None), Err(Error::NeedsCopy { .. })));
    }
}
