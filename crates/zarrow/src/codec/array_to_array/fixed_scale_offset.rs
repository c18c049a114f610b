//! `numcodecs.fixedscaleoffset`: `(x - offset) * scale`, rounded to whole numbers.
//!
//! Source: numcodecs `FixedScaleOffset`, with the types that NumPy 2 computes in:
//! 1. A real array keeps its type, and the parameters are rounded to it.
//! 2. An array of integers keeps its type while the parameters are integers of that type, and becomes `float64` at the
//!    first other parameter; a division always gives `float64`.

use super::element::{Element, Wide, cast, convert, with_element};
use super::parameters::{Parameters, Scalar};
use super::{Filter, Values, element};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.fixedscaleoffset"],
    parameters: &[
        ("scale", ParameterType::Number),
        ("offset", ParameterType::Number),
        ("dtype", ParameterType::DecodedType),
        ("astype", ParameterType::StoredType),
    ],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct FixedScaleOffset {
    offset: Scalar,
    scale: Scalar,
    decoded: Number,
    stored: Number,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`] if `scale` or `offset` is not a number; [`ErrorKind::Unsupported`] for bools.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let decoded = parameters.decoded("dtype")?;
    let stored = parameters.number("astype")?.unwrap_or(decoded);
    if [decoded, stored].contains(&Number::Bool) {
        return Err(ErrorKind::Unsupported("fixedscaleoffset of bools".into()).into());
    }
    let (offset, scale) = (parameters.scalar("offset")?, parameters.scalar("scale")?);
    Ok(Filter::Values(Box::new(FixedScaleOffset { offset, scale, decoded, stored }), stored.into()))
}

/// Returns the parameter in the elements' type; `None` if that is an integer type without this value (step 2).
fn own<T: Element>(scalar: Scalar) -> Option<T> {
    match scalar {
        Scalar::Real(_) if !T::IS_REAL => None,
        Scalar::Real(real) => Some(T::cast(Wide::Real(real))),
        Scalar::Integer(integer) => {
            let wide = Wide::Integer(i128::from(integer));
            Some(T::cast(wide)).filter(|number| T::IS_REAL || number.wide() == wide)
        }
    }
}

/// Returns the numbers as `float64`.
fn real<T: Element>(elements: &[u8], each: impl Fn(f64) -> f64) -> Result<(Vec<u8>, Number)> {
    Ok((convert(elements, |number: T| each(number.wide().to_f64()))?, Number::Float64))
}

impl Values for FixedScaleOffset {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        let (offset, scale) = (self.offset.to_f64(), self.scale.to_f64());
        let computed = with_element!(self.decoded, T => match (own::<T>(self.offset), own::<T>(self.scale)) {
            (Some(offset), Some(scale)) => {
                convert(&elements, |number: T| number.minus(offset).times(scale).rounded())
                    .map(|computed| (computed, self.decoded))
            }
            (Some(offset), None) => {
                let less = convert(&elements, |number: T| number.minus(offset))?;
                real::<T>(&less, |number| (number * scale).round_ties_even())
            }
            (None, _) => real::<T>(&elements, |number| ((number - offset) * scale).round_ties_even()),
        });
        let (computed, number) = computed.unwrap_or_else(|| Err(element::not_computable()))?;
        cast(computed, number, self.stored)
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        let (offset, scale) = (self.offset.to_f64(), self.scale.to_f64());
        let made = with_element!(self.stored, T => with_element!(self.decoded, U => {
            let own = own::<T>(self.offset).zip(own::<T>(self.scale)).filter(|_| T::IS_REAL);
            match own {
                Some((offset, scale)) => {
                    convert(&stored, |number: T| U::cast(number.over(scale).plus(offset).wide()))
                }
                None => convert(&stored, |number: T| {
                    U::cast(Wide::Real(number.wide().to_f64() / scale + offset))
                }),
            }
        }));
        made.flatten().unwrap_or_else(|| Err(element::not_computable()))
    }
}
