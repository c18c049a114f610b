//! Conversion of fixed-length UTF-32 text to variable-length UTF-8: Arrow needs this copy.

use crate::buffer::Buffer;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::{SharedTensor, Variable};
use crate::shape;

/// Converts a tensor of fixed-length text, without the trailing NULs of each element.
///
/// # Errors
/// [`Error::NotUtf8`] for an invalid code point; [`Error::NeedsCopy`] for a non-contiguous or misaligned tensor;
/// [`Error::NoSuchType`] for another type; [`Error::OutOfMemory`].
pub fn transcode(tensor: &SharedTensor) -> Result<Variable> {
    let DataType::FixedLengthUtf32 { length } = tensor.dtype() else {
        return Err(Error::NoSuchType { protocol: "UTF-32", dtype: tensor.dtype().clone() });
    };
    let (length, size) = (*length as usize, tensor.size());
    let mut words = tensor.words::<u32>()?;
    let mut text = String::new();
    let mut offsets = Buffer::zeroed(shape::nbytes(&[size as u64 + 1], size_of::<i64>())?)?;
    for (index, offset) in offsets.chunks_exact_mut(size_of::<i64>()).skip(1).enumerate() {
        let start = text.len();
        for word in words.by_ref().take(length) {
            let character = char::from_u32(word).ok_or(Error::NotUtf8 { index })?;
            let nbytes = character.len_utf8();
            text.try_reserve(nbytes).map_err(|_| Error::OutOfMemory { nbytes: text.len() + nbytes })?;
            text.push(character);
        }
        text.truncate(start + text[start..].trim_end_matches('\0').len());
        offset.copy_from_slice(&(text.len() as i64).to_ne_bytes());
    }
    let extents = tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect();
    Variable::new(offsets, Buffer::from(text.into_bytes()), extents, DataType::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    fn transcoded(text: &[u32], length: u32) -> Result<Vec<String>> {
        let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let count = (text.len() / length.max(1) as usize) as u64;
        let dtype = DataType::FixedLengthUtf32 { length };
        let tensor = Tensor::new(Buffer::copy_of(&bytes)?, vec![count], dtype)?.into_shared()?;
        let text = transcode(&tensor)?;
        let element = |index| String::from_utf8(text.element(index).unwrap().to_vec()).unwrap();
        Ok((0..count as usize).map(element).collect())
    }

    #[test]
    fn trailing_nuls_are_removed() {
        let words = ['é', 'a', '\0', '\0', '\0', 'b', '\0', '\0', '\0'].map(u32::from);
        assert_eq!(transcoded(&words, 3).unwrap(), ["éa", "\0\0b", ""]);
        assert!(matches!(transcoded(&[0x41, 0xd800], 1), Err(Error::NotUtf8 { index: 1 })));
        assert!(matches!(transcoded(&[0x0011_0000], 1), Err(Error::NotUtf8 { index: 0 })));
    }
}
