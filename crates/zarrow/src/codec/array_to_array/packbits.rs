//! `numcodecs.packbits`: bools as bits, the highest bit first, after a byte with the number of unused bits in the last
//! byte.
//!
//! Source: numcodecs `PackBits`. The codec `packbits` of version 3 differs: see
//! [`packbits`](crate::codec::array_to_bytes::packbits).

use super::element::room;
use super::parameters::Parameters;
use super::{Filter, Values};
use crate::codec::definition::{Definition, Stage};
use crate::error::{ErrorKind, Result};
use zarrow_array::{Number, shape};

/// The codec.
pub const DEFINITION: Definition =
    Definition { names: &["numcodecs.packbits"], stage: Stage::Filter(parse), ..Definition::PLAIN };

/// The filter, which has no parameters.
#[derive(Debug)]
struct PackBits;

/// Checks the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`] for elements other than bools.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    match parameters.data_type.as_number() {
        Some(Number::Bool) => Ok(Filter::Values(Box::new(PackBits), Number::UInt8.into())),
        _ => {
            Err(ErrorKind::BadCodec(format!("packs bools, got elements of type {}", parameters.data_type))
                .into())
        }
    }
}

/// Returns the number of stored bytes for `count` bools.
fn stored_count(count: usize) -> usize {
    count.div_ceil(8) + 1
}

impl Values for PackBits {
    fn stored_shape(&self, shape: &[u64]) -> Result<Vec<u64>> {
        Ok(vec![stored_count(shape::nbytes(shape, 1)?) as u64])
    }

    fn encode(&self, bools: Vec<u8>) -> Result<Vec<u8>> {
        let mut stored = room(stored_count(bools.len()), 1)?;
        if let Some((unused, bytes)) = stored.split_first_mut() {
            *unused = (bools.len().next_multiple_of(8) - bools.len()) as u8;
            for (byte, bools) in bytes.iter_mut().zip(bools.chunks(8)) {
                *byte =
                    bools.iter().zip(0..).fold(0, |byte, (bool, at)| byte | u8::from(*bool != 0) << (7 - at));
            }
        }
        Ok(stored)
    }

    fn decode(&self, stored: Vec<u8>, count: usize) -> Result<Vec<u8>> {
        let unused = count.next_multiple_of(8) - count;
        let (said, bytes) = stored.split_first().unwrap_or((&0, &[]));
        if usize::from(*said) != unused {
            return Err(ErrorKind::Corrupt(format!(
                "its first byte gives {said} unused bits, expected {unused}"
            ))
            .into());
        }
        let mut bools = room(count, 1)?;
        for (bools, byte) in bools.chunks_mut(8).zip(bytes) {
            bools.iter_mut().zip(0..).for_each(|(bool, at)| *bool = byte >> (7 - at) & 1);
        }
        Ok(bools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_highest_first() {
        // numcodecs.PackBits().encode([True, False, False, True]).
        assert_eq!(PackBits.encode(vec![1, 0, 0, 1]).unwrap(), [4, 144]);
        for count in 0..20 {
            let bools: Vec<u8> = (0..count).map(|at| u8::from(at % 3 == 0)).collect();
            let stored = PackBits.encode(bools.clone()).unwrap();
            assert_eq!(stored.len(), stored_count(bools.len()));
            assert_eq!(PackBits.decode(stored, bools.len()).unwrap(), bools);
        }
        assert!(PackBits.decode(vec![3, 144], 4).is_err());
    }
}
