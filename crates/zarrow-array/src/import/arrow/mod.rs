//! Imports Arrow arrays as one of the four layouts. Values, offsets and bytes are shared read-only, because Arrow's
//! data are immutable.
//!
//! 1. `kind.rs` converts the type to an element type and the axes of a row.
//! 2. `foreign.rs` follows offsets and lengths from the outermost list to the elements, and records nulls, one byte
//!    per element.
//! 3. The elements become a layout over the producer's memory. Forms that Zarr lacks are copied: packed bools, 32-bit
//!    offsets, views, 32-bit days, dictionaries.
//! 4. Several chunks are concatenated by one copy.
//!
//! Lengths, increasing offsets, dictionary indices and UTF-8 are checked. The sizes of buffers cannot be checked,
//! because Arrow has no field for them: they are the producer's promise.
//!
//! Sources: Arrow C data interface; canonical extension types.

mod device;
mod dictionary;
mod foreign;
mod join;
mod kind;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod unpacked_bits;
mod values;

use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema};
use crate::import::Imported;
use crate::layout::MaskedVariable;
use crate::mask::Mask;
use crate::{Buffer, SharedTensor};
use foreign::{ForeignArray, ForeignPart};
use kind::{Element, Kind};
use std::sync::Arc;

pub use device::{DeviceElements, device_elements};
pub use foreign::{take_array, take_schema};
pub use stream::{collect_stream, take_stream};

/// Imports one Arrow array without a copy if possible. Otherwise copies it, or refuses it without `may_copy`. Masks
/// are always new memory, because Arrow stores them as bits.
///
/// # Errors
/// [`Error::NeedsCopy`]; [`Error::UnknownType`] for a type without a layout; [`Error::LosesMeaning`] for a type
/// with a property that no layout can keep (a time zone, a time of day, null lists); [`Error::BadArrow`] for an
/// array that violates Arrow's rules; [`Error::BadOffset`], [`Error::NotUtf8`], [`Error::ShapeOverflow`],
/// [`Error::OutOfMemory`].
///
/// ```
/// use zarrow_array::{Buffer, Number, Tensor, export, import};
/// let tensor = Tensor::new(Buffer::zeroed(24)?, vec![6], Number::Int32.into())?.into_shared()?;
/// let (schema, array) = export::arrow::tensor(&tensor, None, Default::default(), None)?;
/// let import::Imported::Tensor(back) = import::arrow::array(&schema, array, false)? else { unreachable!() };
/// assert_eq!((back.pointer(), back.is_read_only()), (tensor.pointer(), true));
/// # Ok::<(), zarrow_array::Error>(())
/// ```
pub fn array(schema: &ArrowSchema, array: ArrowArray, may_copy: bool) -> Result<Imported> {
    let kind = Kind::from_schema(schema)?;
    let owner = Arc::new(ForeignArray::new(array));
    layout(&kind, &ForeignPart::new(&owner), may_copy)
}

/// Imports a chunked array: a single chunk like [`array()`], several concatenated by one copy.
///
/// # Errors
/// See [`array()`].
pub fn chunks(schema: &ArrowSchema, chunks: Vec<ArrowArray>, may_copy: bool) -> Result<Imported> {
    let kind = Kind::from_schema(schema)?;
    let owners: Vec<Arc<ForeignArray>> =
        chunks.into_iter().map(|chunk| Arc::new(ForeignArray::new(chunk))).collect();
    if owners.len() > 1 && !may_copy {
        return Err(needs_copy("an array in several chunks"));
    }
    let layouts = owners.iter().map(|owner| layout(&kind, &ForeignPart::new(owner), may_copy));
    let layouts = layouts.collect::<Result<Vec<_>>>()?;
    match <[Imported; 1]>::try_from(layouts) {
        Ok([only]) => Ok(only),
        Err(several) if several.is_empty() => {
            layout(&kind, &ForeignPart::new(&Arc::new(ForeignArray::empty())), true)
        }
        Err(several) => join::join(&several),
    }
}

/// Steps 2 and 3.
fn layout(kind: &Kind, array: &ForeignPart<'_>, may_copy: bool) -> Result<Imported> {
    if let Some(what) = kind.element.copied().filter(|_| !may_copy) {
        return Err(needs_copy(what));
    }
    let rows = array.length();
    let (elements, mut missing) = array.elements(&kind.lists)?;
    let mut shape = vec![rows as i64];
    shape.extend(&kind.row);
    let values = match &kind.element {
        Element::Shared(dtype) => Imported::Tensor(values::shared(&elements, &shape, dtype.clone())?),
        Element::Bits => Imported::Tensor(values::bools(&elements, &shape)?),
        Element::Widened(dtype) => Imported::Tensor(values::widened(&elements, &shape, dtype.clone())?),
        Element::Text { dtype, offsets } => {
            let extents = shape.iter().map(|extent| extent.unsigned_abs()).collect();
            Imported::Variable(text::variable(&elements, extents, dtype.clone(), *offsets, may_copy)?)
        }
        Element::Dictionary { index, values } => {
            let values = layout(values, &elements.dictionary()?, may_copy)?;
            let indices = values::shared(&elements, &[elements.length() as i64], (*index).into())?;
            dictionary::decoded(&indices, &values, &mut missing, &shape)?
        }
    };
    let values = match (values, &kind.permutation) {
        (Imported::Tensor(tensor), Some(axes)) => {
            missing = missing.map(|missing| permuted(missing, &shape, axes)).transpose()?;
            Imported::Tensor(tensor.transpose(axes)?)
        }
        (values, _) => values,
    };
    masked(values, missing)
}

fn needs_copy(what: &'static str) -> Error {
    Error::NeedsCopy { protocol: "an import", what }
}

/// Adds the mask, if any element is missing.
fn masked(values: Imported, missing: Option<Buffer>) -> Result<Imported> {
    let Some(missing) = missing else { return Ok(values) };
    let mask = Mask::new(vec![missing])?;
    Ok(match values {
        Imported::Tensor(tensor) => Imported::MaskedTensor(tensor, mask),
        Imported::Variable(variable) => Imported::MaskedVariable(MaskedVariable::new(variable, mask)?),
        masked => masked,
    })
}

/// Converts a mask to C order of the permuted axes.
fn permuted(missing: Buffer, shape: &[i64], axes: &[usize]) -> Result<Buffer> {
    let extents: Vec<u64> = shape.iter().map(|extent| extent.unsigned_abs()).collect();
    let tensor = SharedTensor::read_only(&missing.into(), &extents, Number::Bool.into())?.transpose(axes)?;
    let mut buffer = crate::UninitBuffer::new(tensor.nbytes())?;
    // SAFETY: the mask was moved into the tensor, so no other code writes to it. `copy_into` fills every byte of the
    // buffer, which has the tensor's size.
    unsafe {
        tensor.copy_into(buffer.as_mut_slice())?;
        Ok(buffer.assume_init())
    }
}
