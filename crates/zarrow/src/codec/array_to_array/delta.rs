//! `numcodecs.delta`: the first element, then each element's difference to the previous one.
//!
//! Source: numcodecs `Delta`. Differences are computed in `dtype` and cast to `astype`; sums are computed in the wider
//! of the two types, or in `dtype` if it is an integer type.

use super::element::{Element, convert, with_element};
use super::parameters::Parameters;
use super::{Filter, Values, element};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.delta"],
    parameters: &[("dtype", ParameterType::DecodedType), ("astype", ParameterType::StoredType)],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct Delta {
    decoded: Number,
    stored: Number,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for bools, which numcodecs cannot read back.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    if let Some(part) = parts_of_complex(parameters)? {
        // Real and imaginary parts alternate, as numcodecs views them.
        let filter = Delta { decoded: part, stored: part };
        return Ok(Filter::Values(Box::new(filter), parameters.data_type.clone()));
    }
    let decoded = parameters.decoded("dtype")?;
    let stored = parameters.number("astype")?.unwrap_or(decoded);
    if [decoded, stored].contains(&Number::Bool) {
        return Err(ErrorKind::Unsupported("delta of bools".into()).into());
    }
    Ok(Filter::Values(Box::new(Delta { decoded, stored }), stored.into()))
}

/// Returns the type of the parts if the elements are complex and both parameters name that type.
fn parts_of_complex(parameters: &Parameters<'_>) -> Result<Option<Number>> {
    let part = parameters.data_type.as_number().and_then(Number::part);
    let named = parameters.number("dtype")?;
    let stored = parameters.number("astype")?;
    Ok(part.filter(|part| named == Some(*part) && stored.is_none_or(|stored| stored == *part)))
}

/// Running sum.
struct Sum<T>(Option<T>);

impl<T: Element> Sum<T> {
    fn with(&mut self, difference: T) -> T {
        let sum = self.0.map_or(difference, |sum| sum.plus(difference));
        self.0 = Some(sum);
        sum
    }
}

impl Values for Delta {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        let made = with_element!(self.decoded, T => with_element!(self.stored, U => {
            let mut before: Option<T> = None;
            convert(&elements, |number: T| {
                let difference = before.map_or(number, |before| number.minus(before));
                before = Some(number);
                U::cast(difference.wide())
            })
        }));
        made.flatten().unwrap_or_else(|| Err(element::not_computable()))
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        let made = with_element!(self.decoded, T => with_element!(self.stored, U => {
            if U::IS_REAL && T::IS_REAL && U::SIZE > T::SIZE {
                let mut sum = Sum::<U>(None);
                convert(&stored, |difference: U| T::cast(sum.with(difference).wide()))
            } else {
                let mut sum = Sum::<T>(None);
                convert(&stored, |difference: U| sum.with(T::cast(difference.wide())))
            }
        }));
        made.flatten().unwrap_or_else(|| Err(element::not_computable()))
    }
}
