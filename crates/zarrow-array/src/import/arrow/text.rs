//! Variable-length text and bytes.
//!
//! 1. 64-bit offsets that begin with 0 are shared. A slice's offsets and 32-bit offsets are rewritten.
//! 2. The bytes between the first and the last offset are shared.
//! 3. The bytes of views are copied to one buffer, because they are spread over several buffers and the views.

use super::foreign::ForeignPart;
use super::kind::Offsets;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::Variable;
use crate::{Buffer, SharedBytes, shape};

/// Bytes per view.
const VIEW_NBYTES: usize = 16;
/// Maximum number of bytes stored in a view itself.
const INLINE_NBYTES: usize = 12;

/// Imports the elements.
pub fn variable(
    elements: &ForeignPart<'_>,
    extents: Vec<u64>,
    dtype: DataType,
    offsets: Offsets,
    may_copy: bool,
) -> Result<Variable> {
    if elements.is_empty() {
        return Variable::new(Buffer::zeroed(size_of::<i64>())?, Buffer::zeroed(0)?, extents, dtype);
    }
    match offsets {
        Offsets::Narrow => found::<i32>(elements, extents, dtype, may_copy),
        Offsets::Wide => found::<i64>(elements, extents, dtype, may_copy),
        Offsets::Views => gathered(elements, extents, dtype),
    }
}

/// Steps 1 and 2.
fn found<T: Copy + Into<i64>>(
    elements: &ForeignPart<'_>,
    extents: Vec<u64>,
    dtype: DataType,
    may_copy: bool,
) -> Result<Variable> {
    let start = elements.present(1)?.cast::<T>().wrapping_add(elements.start());
    let count = elements.length();
    // SAFETY: `at` is at most `count`, and an Arrow producer provides `count + 1` offsets from `start` on (Arrow's
    // contract; `elements` keeps them alive).
    let offset = |at: usize| -> i64 { unsafe { start.add(at).read_unaligned() }.into() };
    let (first, last) = (offset(0), offset(count));
    let nbytes =
        last.checked_sub(first).and_then(|nbytes| usize::try_from(nbytes).ok()).filter(|_| first >= 0);
    let nbytes = nbytes.ok_or(Error::BadOffset { index: count, value: last, nbytes: 0 })?;
    let offsets_nbytes = shape::nbytes(&[count as u64 + 1], size_of::<i64>())?;
    let offsets = if size_of::<T>() == size_of::<i64>() && first == 0 && start.cast::<i64>().is_aligned() {
        // SAFETY: as above, and Arrow's data are immutable.
        unsafe { SharedBytes::from_foreign(elements.owner(), start.cast(), offsets_nbytes)? }
    } else if !may_copy {
        return Err(super::needs_copy("offsets that do not start at 0"));
    } else {
        let mut bytes = Buffer::zeroed(offsets_nbytes)?;
        for (at, place) in bytes.chunks_exact_mut(size_of::<i64>()).enumerate() {
            // If the subtraction wraps, the offsets decrease, which `Variable::new` refuses.
            place.copy_from_slice(&offset(at).wrapping_sub(first).to_ne_bytes());
        }
        bytes.into()
    };
    let data = if nbytes == 0 { std::ptr::null() } else { elements.present(2)?.cast::<u8>() };
    // SAFETY: an Arrow producer provides the bytes up to the last offset, which do not change; the owner keeps them.
    let data =
        unsafe { SharedBytes::from_foreign(elements.owner(), data.wrapping_add(first as usize), nbytes)? };
    Variable::new(offsets, data, extents, dtype)
}

/// Step 3.
fn gathered(elements: &ForeignPart<'_>, extents: Vec<u64>, dtype: DataType) -> Result<Variable> {
    let bad = || Error::BadArrow("a view points outside its buffers".into());
    let start = elements.start().checked_mul(VIEW_NBYTES).ok_or_else(bad)?;
    let views = elements.present(1)?.cast::<u8>().wrapping_add(start);
    // The last buffer holds the lengths of the data buffers.
    let buffers = elements.buffer_count().checked_sub(3).ok_or_else(bad)?;
    // Copies each view before checking it: a producer could break its promise and change the view in between.
    let view = |at: usize| -> [u8; VIEW_NBYTES] {
        // SAFETY: `at` is below `count`, and an Arrow producer provides a view for each element.
        unsafe { views.add(at * VIEW_NBYTES).cast::<[u8; VIEW_NBYTES]>().read_volatile() }
    };
    let text = |view: &[u8; VIEW_NBYTES]| -> Result<(*const u8, usize)> {
        let word = |at: usize| i32::from_ne_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
        let length = usize::try_from(word(0)).map_err(|_| bad())?;
        if length <= INLINE_NBYTES {
            return Ok((view[4..].as_ptr(), length));
        }
        let (buffer, offset) = (usize::try_from(word(8)), usize::try_from(word(12)));
        let (Ok(buffer), Ok(offset)) = (buffer, offset) else { return Err(bad()) };
        if buffer >= buffers {
            return Err(bad());
        }
        // SAFETY: `buffer` was checked above, and the last buffer of an Arrow view array has a length for each data
        // buffer.
        let size = unsafe { elements.present(2 + buffers)?.cast::<i64>().add(buffer).read_unaligned() };
        if usize::try_from(size).ok().is_none_or(|size| offset + length > size) {
            return Err(bad());
        }
        // SAFETY: an Arrow producer provides `size` bytes, and the check above keeps the element inside them.
        Ok((unsafe { elements.present(2 + buffer)?.cast::<u8>().add(offset) }, length))
    };
    let count = elements.length();
    let (mut data, mut offsets): (Vec<u8>, Buffer) =
        (Vec::new(), Buffer::zeroed(shape::nbytes(&[count as u64 + 1], size_of::<i64>())?)?);
    for (at, place) in offsets.chunks_exact_mut(size_of::<i64>()).skip(1).enumerate() {
        let view = view(at);
        let (start, length) = text(&view)?;
        data.try_reserve(length).map_err(|_| Error::OutOfMemory { nbytes: length })?;
        // SAFETY: `text` returned `length` readable bytes at `start`, in the copy of the view or in the producer's
        // buffer, and the capacity was reserved above.
        unsafe {
            start.copy_to_nonoverlapping(data.spare_capacity_mut().as_mut_ptr().cast(), length);
            data.set_len(data.len() + length);
        }
        place.copy_from_slice(&(data.len() as i64).to_ne_bytes());
    }
    Variable::new(offsets, Buffer::from(data), extents, dtype)
}
