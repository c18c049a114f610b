//! The elements of a chunk of strings or bytes: a count, then each element after its length, all little-endian `u32`.

use crate::codec::Uninit;
use crate::error::{ErrorKind, Result};
use zarrow_array::allocation::{self, Grow};
use zarrow_array::fork::OnceCell;

/// Returns the minimum size of a chunk of `count` elements: the count, and a length of four bytes per element.
pub fn least_encoded(count: usize) -> usize {
    count.saturating_mul(4).saturating_add(4)
}

/// A decoded chunk of strings or bytes: the checked stored bytes.
#[derive(Debug)]
pub struct VariableChunk {
    bytes: Vec<u8>,
    count: usize,
    /// Start of each element: computed at the first random access, given for spread elements.
    starts: OnceCell<Vec<u32>>,
    spread: bool,
}

/// Start of a missing element, which has no bytes.
const MISSING: u32 = u32::MAX;

impl VariableChunk {
    /// Takes the bytes of a chunk of `count` elements after checking that every element is inside.
    pub fn parse(bytes: Vec<u8>, count: usize) -> Result<VariableChunk> {
        let corrupt = |text: &str| ErrorKind::Corrupt(text.into());
        if bytes.len() >= MISSING as usize {
            return Err(corrupt("a chunk of 4 GiB or more").into());
        }
        let stored = read_length(&bytes, 0).ok_or_else(|| corrupt("shorter than its element count"))?;
        if stored != count {
            return Err(corrupt(&format!("holds {stored} elements, expected {count} by its metadata")).into());
        }
        let mut bytes = bytes;
        if bytes.capacity() / 2 > bytes.len() {
            // The chunk may be kept until the whole read is done. It stays unchanged if a smaller copy cannot be
            // allocated.
            bytes = allocation::copied(&bytes).unwrap_or(bytes);
        }
        let mut at = 4usize;
        for _ in 0..count {
            let length = read_length(&bytes, at).ok_or_else(|| corrupt("ends inside an element's length"))?;
            at = (at + 4)
                .checked_add(length)
                .filter(|end| *end <= bytes.len())
                .ok_or_else(|| corrupt(&format!("an element of {length} bytes reaches beyond the end")))?;
        }
        if at != bytes.len() {
            return Err(ErrorKind::WrongSize { expected: at as u64, actual: bytes.len() as u64 }.into());
        }
        Ok(VariableChunk { bytes, count, starts: OnceCell::new(), spread: false })
    }

    /// Returns whether the elements are stored in order, with none left out.
    pub fn is_sequential(&self) -> bool {
        !self.spread
    }

    /// Returns the total bytes of all elements.
    pub fn payload_nbytes(&self) -> usize {
        // `parse` checked the elements; a spread chunk has the same elements, and no bytes for the others.
        self.bytes.len() - 4 - 4 * self.count
    }

    /// Returns the start of each element.
    fn starts(&self) -> Result<&[u32]> {
        if let Some(starts) = self.starts.get() {
            return Ok(starts);
        }
        let mut starts = allocation::with_capacity(self.count)?;
        let mut at = 4usize;
        while let Some(length) = read_length(&self.bytes, at) {
            starts.try_push((at + 4) as u32)?;
            at += 4 + length;
        }
        Ok(self.starts.get_or_make(|| starts))
    }

    /// Returns element `index`; a missing element is empty.
    pub fn element(&self, index: usize) -> Result<&[u8]> {
        Ok(match self.starts()?[index] {
            MISSING => &[],
            // `parse` checked both ranges.
            start => {
                let start = start as usize;
                let length = read_length(&self.bytes, start - 4).unwrap_or(0);
                &self.bytes[start..start + length]
            }
        })
    }

    /// Calls `each` with all elements of a sequential chunk, in order.
    pub fn for_each(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut at = 4usize;
        while let Some(length) = read_length(&self.bytes, at) {
            at += 4 + length;
            each(&self.bytes[at - length..at])?;
        }
        Ok(())
    }

    /// Writes all elements of a sequential chunk contiguously to `data`, which has exactly their size, and calls `end`
    /// with each element's end.
    pub fn unpack(&self, data: &mut Uninit, mut end: impl FnMut(usize)) {
        /// Shorter elements are copied with this size if there is space: one move instead of a call. The next element
        /// overwrites the surplus.
        const SHORT: usize = 16;
        let (mut from, mut to) = (4usize, 0usize);
        while let Some(length) = read_length(&self.bytes, from) {
            from += 4;
            match (self.bytes.get(from..from + SHORT), data.get_mut(to..to + SHORT)) {
                (Some(source), Some(place)) if length <= SHORT => {
                    place.write_copy_of_slice(source);
                }
                _ => {
                    data[to..to + length].write_copy_of_slice(&self.bytes[from..from + length]);
                }
            }
            from += length;
            to += length;
            end(to);
        }
    }

    /// Spreads the elements to the zeros of `missing`; its ones become empty.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the number of elements differs from the number of zeros.
    pub fn spread(self, missing: &[u8]) -> Result<VariableChunk> {
        let differ = || ErrorKind::Corrupt("the mask and the data differ in length".into());
        let mut given = self.starts()?.iter();
        let mut starts = allocation::with_capacity(missing.len())?;
        for missing in missing {
            let start = if *missing == 0 { given.next().ok_or_else(differ)? } else { &MISSING };
            starts.try_push(*start)?;
        }
        if given.next().is_some() {
            return Err(differ().into());
        }
        Ok(VariableChunk { starts: starts.into(), spread: true, ..self })
    }
}

/// Encodes these elements as a chunk.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if an element or the chunk has 4 GiB or more; [`zarrow_array::Error::OutOfMemory`].
pub fn encode_variable(elements: &[&[u8]]) -> Result<Vec<u8>> {
    let nbytes =
        elements.iter().fold(4usize, |sum, element| sum.saturating_add(element.len()).saturating_add(4));
    if nbytes >= MISSING as usize {
        return Err(ErrorKind::Unsupported(format!("a chunk of {nbytes} bytes of strings")).into());
    }
    let mut bytes: Vec<u8> = allocation::with_capacity(nbytes)?;
    // Both fit, since the total does.
    bytes.extend_from_slice(&(elements.len() as u32).to_le_bytes());
    for element in elements {
        bytes.extend_from_slice(&(element.len() as u32).to_le_bytes());
        bytes.extend_from_slice(element);
    }
    Ok(bytes)
}

/// Checks that the elements of an encoded chunk are text. It checks the encoded bytes, since their source may have
/// changed after it was checked.
///
/// # Errors
/// [`zarrow_array::Error::NotUtf8`] with the element's number in the chunk.
pub fn check_text(chunk: &[u8]) -> Result<()> {
    if chunk.is_ascii() {
        return Ok(());
    }
    let (mut at, mut index) = (4usize, 0usize);
    while let Some(length) = read_length(chunk, at) {
        let text = chunk.get(at + 4..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        std::str::from_utf8(text).map_err(|_| zarrow_array::Error::NotUtf8 { index })?;
        (at, index) = (at + 4 + length, index + 1);
    }
    Ok(())
}

fn read_length(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::mem::MaybeUninit;

    fn encode(elements: &[&[u8]]) -> Vec<u8> {
        let bytes = encode_variable(elements).unwrap();
        assert_eq!(bytes.len(), elements.iter().map(|element| element.len() + 4).sum::<usize>() + 4);
        bytes
    }

    #[test]
    fn encoded_as_numcodecs_does() {
        assert_eq!(encode(&[b"ab", b""]), [2, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0]);
    }

    #[test]
    fn elements_come_back() {
        let chunk = VariableChunk::parse(encode(&[b"one", b"", b"three"]), 3).unwrap();
        let (mut data, mut ends) = ([MaybeUninit::uninit(); 8], Vec::new());
        chunk.unpack(&mut data, |end| ends.push(end));
        // SAFETY: the elements have 8 bytes together, and all 8 were written.
        assert_eq!((data.map(|byte| unsafe { byte.assume_init() }), ends), (*b"onethree", vec![3, 3, 8]));
        assert_eq!([0, 1, 2].map(|at| chunk.element(at).unwrap()), [&b"one"[..], b"", b"three"]);
        let spread = chunk.spread(&[0, 1, 0, 0]).unwrap();
        assert_eq!([0, 1, 3].map(|at| spread.element(at).unwrap()), [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn long_and_short_elements_unpack() {
        let elements: Vec<Vec<u8>> = (0..60usize).map(|length| vec![length as u8; length % 23]).collect();
        let chunk =
            VariableChunk::parse(encode(&elements.iter().map(|e| &e[..]).collect::<Vec<_>>()), 60).unwrap();
        let mut data = vec![MaybeUninit::uninit(); chunk.payload_nbytes()];
        chunk.unpack(&mut data, |_| {});
        // SAFETY: unpacking writes every byte of the payload.
        let data: Vec<u8> = data.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
        assert_eq!(data, elements.concat());
    }

    #[test]
    fn stored_text_is_utf8() {
        let long = "é".repeat(100);
        check_text(&encode(&[b"plain", b""])).unwrap();
        check_text(&encode(&["a".as_bytes(), long.as_bytes(), b""])).unwrap();
        let error = check_text(&encode(&["é".as_bytes(), &long.as_bytes()[1..], b"a"])).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Array(zarrow_array::Error::NotUtf8 { index: 1 })),
            "{error}"
        );
    }

    #[test]
    fn lies_are_refused() {
        let good = encode(&[b"one", b"two"]);
        assert!(VariableChunk::parse(good.clone(), 3).is_err());
        assert!(VariableChunk::parse(good[..good.len() - 1].to_vec(), 2).is_err());
        assert!(VariableChunk::parse([good.clone(), vec![0]].concat(), 2).is_err());
        assert!(VariableChunk::parse(vec![], 0).is_err());
        assert!(VariableChunk::parse(u32::MAX.to_le_bytes().to_vec(), u32::MAX as usize).is_err());
        let mut long = good;
        long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(VariableChunk::parse(long, 2).is_err());
        assert!(VariableChunk::parse(encode(&[b"x"]), 1).unwrap().spread(&[1, 1]).is_err());
        assert!(VariableChunk::parse(encode(&[b"x"]), 1).unwrap().spread(&[0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_sound(bytes in prop::collection::vec(any::<u8>(), 0..64), count in 0usize..8) {
            let length = bytes.len();
            if let Ok(chunk) = VariableChunk::parse(bytes, count) {
                        prop_assert_eq!(chunk.payload_nbytes() + 4 * count + 4, length);
                let sum: usize = (0..count).map(|index| chunk.element(index).unwrap().len() + 4).sum();
                prop_assert_eq!(sum + 4, length);
            }
        }
    }
}
