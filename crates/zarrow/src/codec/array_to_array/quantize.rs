//! `numcodecs.quantize`: real numbers rounded to a power of two that keeps a number of decimal digits. Decoding only
//! casts.
//!
//! Source: numcodecs `Quantize`.

use super::element::{Element, Wide, cast, convert, with_element};
use super::parameters::{Parameters, bad};
use super::{Filter, Values, element};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::Result;
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.quantize"],
    parameters: &[
        ("digits", ParameterType::Integer),
        ("dtype", ParameterType::DecodedType),
        ("astype", ParameterType::StoredType),
    ],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct Quantize {
    scale: f64,
    decoded: Number,
    stored: Number,
}

/// Parses the parameters.
///
/// # Errors
/// [`BadCodec`](crate::ErrorKind::BadCodec) if `digits` is not an integer, or a type is not a real type.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let decoded = parameters.decoded("dtype")?;
    let stored = parameters.number("astype")?.unwrap_or(decoded);
    let is_real = |number: Number| with_element!(number, T => T::IS_REAL) == Some(true);
    if !is_real(decoded) || !is_real(stored) {
        return Err(bad("expected elements of a floating-point type"));
    }
    let digits = parameters.integer("digits", -300, 300)?;
    Ok(Filter::Values(Box::new(Quantize { scale: scale(digits as f64), decoded, stored }), stored.into()))
}

/// Returns the power of two that keeps this many decimal digits.
fn scale(digits: f64) -> f64 {
    let exponent = 10f64.powf(-digits).log10();
    let exponent = if exponent < 0.0 { exponent.floor() } else { exponent.ceil() };
    2f64.powf(10f64.powf(-exponent).log2().ceil())
}

impl Values for Quantize {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        let rounded = with_element!(self.decoded, T => {
            let scale = T::cast(Wide::Real(self.scale));
            convert(&elements, |number: T| scale.times(number).rounded().over(scale))
        });
        cast(rounded.unwrap_or_else(|| Err(element::not_computable()))?, self.decoded, self.stored)
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        cast(stored, self.stored, self.decoded)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn scales_are_powers_of_two() {
        for (digits, scale) in [(0.0, 1.0), (1.0, 16.0), (2.0, 128.0), (3.0, 1024.0), (-1.0, 0.125)] {
            assert_eq!(super::scale(digits), scale, "{digits}");
        }
    }
}
