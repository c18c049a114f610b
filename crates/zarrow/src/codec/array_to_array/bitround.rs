//! `bitround`: rounds real numbers to a number of mantissa bits, and integers to a number of bits, counted from the
//! highest bit that is set. The stored numbers have the same type, so decoding does nothing.
//!
//! Source: zarr-extensions `bitround`, numcodecs `BitRound`.

use super::parameters::{Parameters, bad};
use super::{Filter, Values};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use zarrow_array::{DataType, Number};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["bitround", "numcodecs.bitround"],
    parameters: &[("keepbits", ParameterType::Integer)],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct BitRound {
    keepbits: u32,
    /// Bytes of a word; a complex number has two words.
    word_size: usize,
    /// Mantissa bits of real numbers.
    mantissa: Option<u32>,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`] if `keepbits` exceeds the bits of the type, [`ErrorKind::Unsupported`] for types without
/// bits to round.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let data_type = parameters.data_type;
    let mantissa = match data_type {
        DataType::Number(number) => match number.part().unwrap_or(*number) {
            Number::Float16 => Some(10),
            Number::BFloat16 => Some(7),
            Number::Float32 => Some(23),
            Number::Float64 => Some(52),
            Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64 => None,
            Number::UInt8 | Number::UInt16 | Number::UInt32 | Number::UInt64 => None,
            _ => return Err(ErrorKind::Unsupported(format!("rounding {data_type}")).into()),
        },
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => None,
        _ => return Err(ErrorKind::Unsupported(format!("rounding {data_type}")).into()),
    };
    let keepbits = parameters.integer("keepbits", 0, 64)? as u32;
    if let Some(bits) = mantissa.filter(|bits| keepbits > *bits) {
        return Err(bad(format!("keepbits is {keepbits}, but the mantissa of {data_type} has {bits} bits")));
    }
    let filter = BitRound { keepbits, word_size: data_type.word_size(), mantissa };
    Ok(Filter::Values(Box::new(filter), data_type.clone()))
}

impl BitRound {
    /// Rounds a word of at most 64 bits to the nearest word with only zeros after the kept bits.
    fn round(&self, word: u64, most: u64) -> u64 {
        let bits = self.mantissa.unwrap_or(64 - word.leading_zeros());
        let Some(dropped) = bits.checked_sub(self.keepbits).filter(|dropped| *dropped > 0) else {
            return word;
        };
        let mask = u64::MAX.checked_shl(dropped).unwrap_or(0) & most;
        let half = (1u64 << (dropped - 1)) - 1;
        let lowest_kept = word.checked_shr(dropped).unwrap_or(0) & 1;
        match self.mantissa {
            // A carry out of the word is lost, as in numcodecs.
            Some(_) => word.wrapping_add(half + lowest_kept) & mask,
            None => word.saturating_add(half + lowest_kept).min(most) & mask,
        }
    }
}

impl Values for BitRound {
    fn encode(&self, mut elements: Vec<u8>) -> Result<Vec<u8>> {
        macro_rules! words {
            ($type:ty) => {
                for word in elements.as_chunks_mut::<{ size_of::<$type>() }>().0 {
                    let rounded =
                        self.round(u64::from(<$type>::from_ne_bytes(*word)), u64::from(<$type>::MAX));
                    *word = (rounded as $type).to_ne_bytes();
                }
            };
        }
        match self.word_size {
            1 => words!(u8),
            2 => words!(u16),
            4 => words!(u32),
            _ => words!(u64),
        }
        Ok(elements)
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases from zarrs.
    #[test]
    fn bits_are_rounded_to_even() {
        let real = BitRound { keepbits: 3, word_size: 4, mantissa: Some(23) };
        for (number, rounded) in [(0.0, 0.0), (1.234_567_9, 1.25), (-8.358_719, -8.0), (98_765.43, 98_304.0)]
        {
            let bytes = real.encode(f32::to_ne_bytes(number).to_vec()).unwrap();
            assert_eq!(bytes, f32::to_ne_bytes(rounded));
        }
        let whole = BitRound { keepbits: 3, word_size: 1, mantissa: None };
        assert_eq!(
            whole.encode(vec![0, 3, 7, 15, 17, 54, 89, 128, 255]).unwrap(),
            [0, 3, 7, 16, 16, 56, 96, 128, 224]
        );
    }
}
