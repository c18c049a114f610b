//! Fixed-size elements.

use super::foreign::ForeignPart;
use super::unpacked_bits;
use crate::dtype::{DataType, Number};
use crate::error::{Error, Result};
use crate::layout::{ForeignMemory, ForeignStrides, SharedTensor, Tensor};
use crate::{Buffer, shape};

/// Shares the elements in C order of `extents`.
pub fn shared(elements: &ForeignPart<'_>, extents: &[i64], dtype: DataType) -> Result<SharedTensor> {
    let overflow =
        || Error::ShapeOverflow { shape: unsigned(extents), item_size: dtype.item_size().unwrap_or(0) };
    let pointer = match elements.is_empty() {
        true => std::ptr::null_mut(),
        false => {
            let offset = elements.start().checked_mul(dtype.item_size().unwrap_or(0)).ok_or_else(overflow)?;
            elements.present(1)?.cast_mut().cast::<u8>().wrapping_add(offset)
        }
    };
    let memory = ForeignMemory::check(pointer, extents, ForeignStrides::COrder, dtype, true)?;
    // SAFETY: the producer keeps a value for each element until the owner releases the array, and does not write.
    Ok(unsafe { SharedTensor::from_foreign(memory, elements.owner()) })
}

/// Converts 1-bit bools to 1-byte bools.
pub fn bools(elements: &ForeignPart<'_>, extents: &[i64]) -> Result<SharedTensor> {
    let bytes = match elements.is_empty() {
        true => Buffer::zeroed(0)?,
        // SAFETY: the producer keeps a bit for each element.
        false => unsafe {
            unpacked_bits::unpacked(elements.present(1)?.cast(), elements.start(), elements.length())?
        },
    };
    Tensor::new(bytes, unsigned(extents), Number::Bool.into())?.into_shared()
}

/// Converts 32-bit integers to 64 bits.
pub fn widened(elements: &ForeignPart<'_>, extents: &[i64], dtype: DataType) -> Result<SharedTensor> {
    let count = elements.length();
    let mut bytes = Buffer::zeroed(shape::nbytes(&[count as u64], size_of::<i64>())?)?;
    if !elements.is_empty() {
        let first = elements.present(1)?.cast::<i32>().wrapping_add(elements.start());
        for (at, place) in bytes.chunks_exact_mut(size_of::<i64>()).enumerate() {
            // SAFETY: the producer keeps a value for each element.
            let value = i64::from(unsafe { first.add(at).read_unaligned() });
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
    Tensor::new(bytes, unsigned(extents), dtype)?.into_shared()
}

fn unsigned(extents: &[i64]) -> Vec<u64> {
    extents.iter().map(|extent| extent.unsigned_abs()).collect()
}
