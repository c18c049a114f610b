//! Decoding of dictionary indices to their values.

use crate::allocation::{self, Grow};
use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::import::Imported;
use crate::layout::{SharedTensor, Tensor, Variable};
use crate::{Buffer, UninitBuffer, shape};

/// Returns the values of `indices` in C order of `extents`. Null indices have no value; nulls of the dictionary are
/// added to `missing`.
pub fn decoded(
    indices: &SharedTensor,
    values: &Imported,
    missing: &mut Option<Buffer>,
    extents: &[i64],
) -> Result<Imported> {
    let size = values.size();
    let mut places = allocation::with_capacity(indices.size())?;
    for at in 0..indices.size() {
        let is_missing = missing.as_ref().is_some_and(|missing| missing[at] != 0);
        let index = if is_missing { None } else { Some(index(indices, at)) };
        match index {
            None => places.try_push(None)?,
            Some(index) => match usize::try_from(index).ok().filter(|index| *index < size) {
                Some(index) => places.try_push(Some(index))?,
                None => {
                    return Err(Error::BadArrow(format!(
                        "index {index} exceeds the dictionary of {size} values"
                    )));
                }
            },
        }
    }
    let mask = match values {
        Imported::MaskedTensor(_, mask) => Some(mask),
        Imported::MaskedVariable(masked) => Some(masked.mask()),
        _ => None,
    };
    if let Some(mask) = mask {
        let missing = match missing {
            Some(missing) => missing,
            None => missing.insert(Buffer::zeroed(places.len())?),
        };
        for (byte, place) in missing.iter_mut().zip(&places) {
            *byte |= u8::from(place.is_some_and(|place| mask.missing()[place] != 0));
        }
    }
    let extents: Vec<u64> = extents.iter().map(|extent| extent.unsigned_abs()).collect();
    match values {
        Imported::Tensor(values) | Imported::MaskedTensor(values, _) => tensor(values, &places, extents),
        Imported::Variable(values) => variable(values, &places, extents),
        Imported::MaskedVariable(values) => variable(values.data(), &places, extents),
    }
}

/// Returns index `at` as an `i128`, which holds any integer type.
fn index(indices: &SharedTensor, at: usize) -> i128 {
    let first = indices.pointer().as_ptr().cast_const();
    macro_rules! read {
        ($type:ty) => {
            // SAFETY: the indices are contiguous, in memory that the tensor keeps and that is not written to.
            i128::from(unsafe { first.cast::<$type>().add(at).read_unaligned() })
        };
    }
    match indices.dtype().as_number() {
        Some(Number::Int8) => read!(i8),
        Some(Number::Int16) => read!(i16),
        Some(Number::Int32) => read!(i32),
        Some(Number::Int64) => read!(i64),
        Some(Number::UInt8) => read!(u8),
        Some(Number::UInt16) => read!(u16),
        Some(Number::UInt32) => read!(u32),
        Some(Number::UInt64) => read!(u64),
        // The type was checked to be an integer; -1 is never a valid index.
        _ => -1,
    }
}

fn tensor(values: &SharedTensor, places: &[Option<usize>], extents: Vec<u64>) -> Result<Imported> {
    let size = values.item_size();
    let mut whole = UninitBuffer::new(values.nbytes())?;
    // SAFETY: the values are immutable, and each byte is filled.
    let whole = unsafe {
        values.copy_into(whole.as_mut_slice())?;
        whole.assume_init()
    };
    let mut gathered = Buffer::zeroed(shape::nbytes(&[places.len() as u64], size)?)?;
    if size > 0 {
        for (element, place) in gathered.chunks_exact_mut(size).zip(places) {
            if let Some(place) = place {
                element.copy_from_slice(&whole[place * size..(place + 1) * size]);
            }
        }
    }
    Ok(Imported::Tensor(Tensor::new(gathered, extents, values.dtype().clone())?.into_shared()?))
}

fn variable(values: &Variable, places: &[Option<usize>], extents: Vec<u64>) -> Result<Imported> {
    let element = |place: &Option<usize>| place.and_then(|place| values.element(place)).unwrap_or_default();
    // Collected once, because the producer could change its offsets in between.
    let mut elements = Vec::new();
    let nbytes = places.len().saturating_mul(size_of::<&[u8]>());
    elements.try_reserve_exact(places.len()).map_err(|_| Error::OutOfMemory { nbytes })?;
    elements.extend(places.iter().map(element));
    let nbytes = elements.iter().try_fold(0usize, |sum, element| sum.checked_add(element.len()));
    let mut data = Buffer::zeroed(nbytes.unwrap_or(usize::MAX))?;
    let mut offsets = Buffer::zeroed(shape::nbytes(&[places.len() as u64 + 1], size_of::<i64>())?)?;
    let mut end = 0;
    for (element, offset) in elements.into_iter().zip(offsets.chunks_exact_mut(size_of::<i64>()).skip(1)) {
        data[end..end + element.len()].copy_from_slice(element);
        end += element.len();
        offset.copy_from_slice(&(end as i64).to_ne_bytes());
    }
    Ok(Imported::Variable(Variable::new(offsets, data, extents, values.dtype().clone())?))
}
