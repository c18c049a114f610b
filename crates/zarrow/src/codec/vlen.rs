//! `vlen-utf8` and `vlen-bytes`: a count, then each element behind its length, all little-endian `u32`.
//!
//! Source: numcodecs `VLenUTF8`, zarr-extensions `vlen-utf8` and `vlen-bytes`.

use crate::error::{ErrorKind, Result};

/// A decoded chunk of strings or bytes: the bytes as they are stored, and where each element starts.
#[derive(Debug)]
pub struct VariableChunk {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

/// The start of an element that has no bytes because it is missing.
const MISSING: u32 = u32::MAX;

impl VariableChunk {
    /// Takes the bytes of a chunk of `count` elements, checked: every element lies inside.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::WrongSize`].
    pub fn parse(bytes: Vec<u8>, count: usize) -> Result<VariableChunk> {
        let corrupt = |text: &str| ErrorKind::Corrupt(text.into());
        if bytes.len() >= MISSING as usize {
            return Err(corrupt("a chunk of 4 GiB or more").into());
        }
        let stored = read_length(&bytes, 0).ok_or_else(|| corrupt("shorter than its element count"))?;
        if stored != count {
            return Err(corrupt(&format!("holds {stored} elements, its metadata says {count}")).into());
        }
        // Each element has a length at least, so that the bytes justify what is allocated here.
        if bytes.len() / 4 <= count && count > 0 {
            return Err(corrupt("too short for its elements").into());
        }
        let mut starts = Vec::with_capacity(count);
        let mut at = 4usize;
        for _ in 0..count {
            let length = read_length(&bytes, at).ok_or_else(|| corrupt("ends inside an element's length"))?;
            at += 4;
            starts.push(at as u32);
            at = at
                .checked_add(length)
                .filter(|end| *end <= bytes.len())
                .ok_or_else(|| corrupt(&format!("an element of {length} bytes reaches behind the end")))?;
        }
        if at != bytes.len() {
            return Err(ErrorKind::WrongSize { expected: at as u64, actual: bytes.len() as u64 }.into());
        }
        Ok(VariableChunk { bytes, starts })
    }

    /// Element `index`; a missing one has no bytes.
    pub fn element(&self, index: usize) -> &[u8] {
        match self.starts[index] {
            MISSING => &[],
            // `parse` checked both ranges.
            start => {
                let start = start as usize;
                let length = read_length(&self.bytes, start - 4).unwrap_or(0);
                &self.bytes[start..start + length]
            }
        }
    }

    /// The elements spread to where `missing` has a 0, and nothing where it has a 1.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where there are not as many elements as zeros.
    pub fn spread(self, missing: &[u8]) -> Result<VariableChunk> {
        let mut given = self.starts.iter();
        let starts: Option<Vec<u32>> = missing
            .iter()
            .map(|missing| if *missing == 0 { given.next().copied() } else { Some(MISSING) })
            .collect();
        match starts {
            Some(starts) if given.next().is_none() => Ok(VariableChunk { bytes: self.bytes, starts }),
            _ => Err(ErrorKind::Corrupt("the mask and the data differ in length".into()).into()),
        }
    }

    /// Bytes that the chunk takes in memory.
    #[cfg(test)]
    pub fn nbytes(&self) -> usize {
        self.bytes.len()
    }
}

fn read_length(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(elements: &[&[u8]]) -> Vec<u8> {
        let mut bytes = (elements.len() as u32).to_le_bytes().to_vec();
        for element in elements {
            bytes.extend_from_slice(&(element.len() as u32).to_le_bytes());
            bytes.extend_from_slice(element);
        }
        bytes
    }

    #[test]
    fn elements_come_back() {
        let chunk = VariableChunk::parse(encode(&[b"one", b"", b"three"]), 3).unwrap();
        assert_eq!([chunk.element(0), chunk.element(1), chunk.element(2)], [&b"one"[..], b"", b"three"]);
        let spread = chunk.spread(&[0, 1, 0, 0]).unwrap();
        assert_eq!([spread.element(0), spread.element(1), spread.element(3)], [&b"one"[..], b"", b"three"]);
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
                prop_assert_eq!(chunk.nbytes(), length);
                let sum: usize = (0..count).map(|index| chunk.element(index).len() + 4).sum();
                prop_assert_eq!(sum + 4, length);
            }
        }
    }
}
