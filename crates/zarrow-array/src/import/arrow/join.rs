//! Concatenation of an array's chunks in our own memory. Each byte is copied once.

use super::masked;
use crate::error::{Error, Result};
use crate::import::Imported;
use crate::layout::{SharedTensor, Tensor, Variable};
use crate::mask::Mask;
use crate::{Buffer, UninitBuffer, shape};

/// Concatenates `chunks` of one type along their first axis.
pub fn join(chunks: &[Imported]) -> Result<Imported> {
    let missing = missing(chunks)?;
    let tensors: Option<Vec<&SharedTensor>> = chunks.iter().map(tensor_of).collect();
    let values = match tensors {
        Some(tensors) => Imported::Tensor(joined_tensors(&tensors)?),
        None => {
            let variables: Option<Vec<&Variable>> = chunks.iter().map(variable_of).collect();
            let variables =
                variables.ok_or_else(|| Error::BadArrow("the chunks have different types".into()))?;
            Imported::Variable(joined_variables(&variables)?)
        }
    };
    masked(values, missing)
}

fn tensor_of(array: &Imported) -> Option<&SharedTensor> {
    match array {
        Imported::Tensor(tensor) | Imported::MaskedTensor(tensor, _) => Some(tensor),
        _ => None,
    }
}

fn variable_of(array: &Imported) -> Option<&Variable> {
    match array {
        Imported::Variable(variable) => Some(variable),
        Imported::MaskedVariable(masked) => Some(masked.data()),
        _ => None,
    }
}

fn mask_of(array: &Imported) -> Option<&Mask> {
    match array {
        Imported::MaskedTensor(_, mask) => Some(mask),
        Imported::MaskedVariable(masked) => Some(masked.mask()),
        _ => None,
    }
}

/// Concatenates the masks; `None` if no chunk has one.
fn missing(chunks: &[Imported]) -> Result<Option<Buffer>> {
    if chunks.iter().all(|chunk| mask_of(chunk).is_none()) {
        return Ok(None);
    }
    let mut joined = Buffer::zeroed(sum(chunks.iter().map(Imported::size))?)?;
    let mut end = 0;
    for chunk in chunks {
        if let Some(mask) = mask_of(chunk) {
            joined[end..end + chunk.size()].copy_from_slice(mask.missing());
        }
        end += chunk.size();
    }
    Ok(Some(joined))
}

fn sum(sizes: impl Iterator<Item = usize>) -> Result<usize> {
    let sum = sizes.into_iter().try_fold(0usize, |sum, size| sum.checked_add(size));
    sum.ok_or(Error::OutOfMemory { nbytes: usize::MAX })
}

/// Returns the shape of `chunks` joined along their first axis.
fn joined_extents<'a>(chunks: impl Iterator<Item = Vec<u64>> + 'a) -> Vec<u64> {
    chunks
        .reduce(|mut joined, chunk| {
            joined[0] = joined[0].saturating_add(chunk[0]);
            joined
        })
        .unwrap_or_default()
}

fn joined_tensors(tensors: &[&SharedTensor]) -> Result<SharedTensor> {
    let extents = joined_extents(
        tensors.iter().map(|tensor| tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect()),
    );
    let mut buffer = UninitBuffer::new(sum(tensors.iter().map(|tensor| tensor.nbytes()))?)?;
    let mut rest = buffer.as_mut_slice();
    for tensor in tensors {
        let (place, behind) = rest.split_at_mut(tensor.nbytes());
        // SAFETY: borrowed Arrow memory is immutable.
        unsafe { tensor.copy_into(place)? };
        rest = behind;
    }
    // SAFETY: the chunks' sizes sum up to the buffer's size, so all bytes were filled.
    let buffer = unsafe { buffer.assume_init() };
    let dtype = tensors.first().map(|tensor| tensor.dtype().clone());
    let dtype = dtype.ok_or_else(|| Error::BadArrow("no chunks".into()))?;
    Tensor::new(buffer, extents, dtype)?.into_shared()
}

/// Returns the bytes up to the last offset. Reads it once, because the producer could change its offsets in
/// between.
fn used(variable: &Variable) -> Result<&[u8]> {
    let (size, nbytes) = (variable.size(), variable.data().len());
    let end = variable.offsets().last().copied().unwrap_or(0);
    let used = usize::try_from(end).ok().and_then(|end| variable.data().get(..end));
    used.ok_or(Error::BadOffset { index: size, value: end, nbytes })
}

fn joined_variables(variables: &[&Variable]) -> Result<Variable> {
    let extents = joined_extents(variables.iter().map(|variable| variable.shape().to_vec()));
    let count = sum(variables.iter().map(|variable| variable.size()))?;
    let used: Vec<&[u8]> = variables.iter().map(|variable| used(variable)).collect::<Result<_>>()?;
    let mut data = Buffer::zeroed(sum(used.iter().map(|bytes| bytes.len()))?)?;
    let mut offsets = Buffer::zeroed(shape::nbytes(&[count as u64 + 1], size_of::<i64>())?)?;
    let mut places = offsets.chunks_exact_mut(size_of::<i64>()).skip(1);
    let mut start = 0;
    for (variable, bytes) in variables.iter().zip(used) {
        data[start..start + bytes.len()].copy_from_slice(bytes);
        // The order matters: if the offsets end first, `zip` must not have consumed a place.
        for (end, place) in variable.offsets()[1..].iter().zip(places.by_ref()) {
            // A wrapped offset decreases, and is rejected below with other decreasing offsets.
            place.copy_from_slice(&(start as i64).wrapping_add(*end).to_ne_bytes());
        }
        start += bytes.len();
    }
    let dtype = variables.first().map(|variable| variable.dtype().clone());
    Variable::new(offsets, data, extents, dtype.ok_or_else(|| Error::BadArrow("no chunks".into()))?)
}
