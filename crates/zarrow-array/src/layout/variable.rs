//! Variable-length strings or bytes: offsets and data, as in Arrow's large types.

use crate::dtype::{DataType, Number};
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::shape;
use crate::shared_bytes::SharedBytes;

/// An array of strings or byte strings.
///
/// Element `i`, counted in C order, is `data[offsets[i]..offsets[i + 1]]`. The constructor checks that the offsets
/// start at 0, do not decrease and stay inside the data, and that strings are UTF-8. The memory is immutable, and
/// clones share it.
///
/// ```
/// use zarrow_array::{Buffer, DataType, Variable};
/// let offsets: Vec<u8> = [0i64, 2, 5].iter().flat_map(|offset| offset.to_ne_bytes()).collect();
/// let words = Variable::new(
///     Buffer::copy_of(&offsets).unwrap(), Buffer::copy_of(b"hithe").unwrap(), vec![2], DataType::String,
/// ).unwrap();
/// assert_eq!(words.element(1), Some(&b"the"[..]));
/// ```
#[derive(Debug, Clone)]
pub struct Variable {
    offsets: SharedBytes,
    data: SharedBytes,
    shape: Vec<u64>,
    dtype: DataType,
}

impl Variable {
    /// Creates an array over `data` and `offsets`, which has one `i64` more than there are elements.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] if the type is neither string nor bytes; [`Error::LengthMismatch`],
    /// [`Error::BadOffset`], [`Error::NotUtf8`] for invalid buffers.
    pub fn new(
        offsets: impl Into<SharedBytes>,
        data: impl Into<SharedBytes>,
        shape: Vec<u64>,
        dtype: DataType,
    ) -> Result<Variable> {
        let (offsets, data) = (offsets.into(), data.into());
        if !matches!(dtype, DataType::String | DataType::Bytes) {
            return Err(Error::NoSuchType { protocol: "a variable-length array", dtype });
        }
        let count = shape::element_count(&shape)?;
        let expected = shape::nbytes(&[count.saturating_add(1)], 8)?;
        if offsets.len() != expected {
            return Err(Error::LengthMismatch {
                what: "the offsets buffer",
                expected,
                actual: offsets.len(),
            });
        }
        check_offsets(offsets.as_i64()?, data.len())?;
        if dtype == DataType::String {
            check_utf8(offsets.as_i64()?, &data)?;
        }
        Ok(Variable { offsets, data, shape, dtype })
    }

    /// Like [`new`](Variable::new), but does not check the buffers.
    ///
    /// # Safety
    /// `offsets` must be aligned and have one `i64` more than `shape` has elements. They must start at 0, not decrease
    /// and end within `data`. If the type is string, each element must be UTF-8.
    #[must_use]
    pub unsafe fn new_unchecked(
        offsets: impl Into<SharedBytes>,
        data: impl Into<SharedBytes>,
        shape: Vec<u64>,
        dtype: DataType,
    ) -> Variable {
        Variable { offsets: offsets.into(), data: data.into(), shape, dtype }
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// [`DataType::String`] or [`DataType::Bytes`].
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// Returns the start of each element in the data, followed by the end of the last element.
    #[must_use]
    pub fn offsets(&self) -> &[i64] {
        // The constructor checked that the buffer holds whole, aligned words.
        self.offsets.as_i64().unwrap_or(&[])
    }

    /// Returns the bytes of all elements.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.offsets().len().saturating_sub(1)
    }

    /// Returns element `index` in C order; `None` past the end, or if another library has changed the shared offsets
    /// to invalid ones.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<&[u8]> {
        let offsets = self.offsets();
        let (start, end) = offsets.get(index).zip(offsets.get(index.checked_add(1)?))?;
        self.data.get(read_once(start)?..read_once(end)?)
    }

    /// Returns the offsets as a read-only tensor over the same memory.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`]; impossible for an array in memory.
    pub fn offsets_tensor(&self) -> Result<SharedTensor> {
        let count = self.offsets().len() as u64;
        SharedTensor::read_only(&self.offsets, &[count], Number::Int64.into())
    }

    /// Returns the data as a read-only tensor of bytes over the same memory.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`]; impossible for an array in memory.
    pub fn data_tensor(&self) -> Result<SharedTensor> {
        SharedTensor::read_only(&self.data, &[self.data.len() as u64], Number::UInt8.into())
    }

    /// Returns the offsets and the data, for sharing.
    #[must_use]
    pub fn parts(&self) -> (&SharedBytes, &SharedBytes) {
        (&self.offsets, &self.data)
    }
}

/// Reads an offset exactly once. A second read could return another value than the checked one, if another library
/// changes the shared offsets.
fn read_once(offset: &i64) -> Option<usize> {
    // SAFETY: a reference is aligned and readable; a volatile read happens exactly once.
    usize::try_from(unsafe { std::ptr::read_volatile(offset) }).ok()
}

fn check_offsets(offsets: &[i64], nbytes: usize) -> Result<()> {
    let bad = |index: usize, value: i64| Error::BadOffset { index, value, nbytes };
    if offsets.first() != Some(&0) {
        return Err(bad(0, offsets.first().copied().unwrap_or(-1)));
    }
    if let Some(index) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(bad(index + 1, offsets[index + 1]));
    }
    match offsets.last() {
        Some(last) if usize::try_from(*last).is_ok_and(|last| last <= nbytes) => Ok(()),
        last => Err(bad(offsets.len() - 1, last.copied().unwrap_or(-1))),
    }
}

/// Checks that each element is UTF-8: the whole text is UTF-8, and no element starts inside a character. Bytes after
/// the last offset are not checked.
fn check_utf8(offsets: &[i64], data: &[u8]) -> Result<()> {
    let end = offsets.last().copied().unwrap_or(0) as usize;
    let used = data.get(..end).unwrap_or(data);
    let element_at =
        |byte: usize| offsets.partition_point(|offset| *offset as usize <= byte).saturating_sub(1);
    let text = std::str::from_utf8(used)
        .map_err(|error| Error::NotUtf8 { index: element_at(error.valid_up_to()) })?;
    if text.is_ascii() {
        return Ok(());
    }
    match offsets.iter().position(|offset| !text.is_char_boundary(*offset as usize)) {
        Some(index) => Err(Error::NotUtf8 { index: index.saturating_sub(1) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    fn variable(offsets: &[i64], data: &[u8], dtype: DataType) -> Result<Variable> {
        let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
        let count = offsets.len() as u64 - 1;
        Variable::new(Buffer::copy_of(&bytes)?, Buffer::copy_of(data)?, vec![count], dtype)
    }

    #[test]
    fn offsets_are_checked() {
        assert!(matches!(variable(&[1, 2], b"abc", DataType::Bytes), Err(Error::BadOffset { index: 0, .. })));
        assert!(matches!(
            variable(&[0, 2, 1], b"abc", DataType::Bytes),
            Err(Error::BadOffset { index: 2, .. })
        ));
        assert!(matches!(variable(&[0, 4], b"abc", DataType::Bytes), Err(Error::BadOffset { index: 1, .. })));
        assert!(matches!(variable(&[0, -1], b"abc", DataType::Bytes), Err(Error::BadOffset { .. })));
        assert!(variable(&[0, 3], b"abc", DataType::Bytes).is_ok());
    }

    #[test]
    fn each_element_is_utf8() {
        let text = "aé".as_bytes();
        assert!(variable(&[0, 1, 3], text, DataType::String).is_ok());
        let split = variable(&[0, 2, 3], text, DataType::String);
        assert!(matches!(split, Err(Error::NotUtf8 { index: 0 })), "{split:?}");
        assert!(variable(&[0, 2, 3], text, DataType::Bytes).is_ok());
        assert!(matches!(variable(&[0, 1, 2], b"a\xff", DataType::String), Err(Error::NotUtf8 { index: 1 })));
    }

    #[test]
    fn tensors_of_the_parts_are_read_only_and_shared() {
        let array = variable(&[0, 1, 3], b"abc", DataType::Bytes).unwrap();
        let face = array.data_tensor().unwrap();
        assert!(face.is_read_only());
        assert_eq!(face.pointer().as_ptr().cast_const(), array.data().as_ptr());
        assert_eq!(array.offsets_tensor().unwrap().shape(), [3]);
    }
}
