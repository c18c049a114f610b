//! `numcodecs.delta`: the first element, then the difference of each to the one before it.
//!
//! Source: numcodecs `Delta`. Differences are those of `dtype`, cast to `astype`; sums are those of `dtype`.

use super::element::{Element, convert, with_element};
use super::parameters::Parameters;
use super::{Filter, Values, element};
use crate::error::{ErrorKind, Result};
use zarrow_array::Number;

#[derive(Debug)]
struct Delta {
    decoded: Number,
    stored: Number,
}

/// Reads the parameters.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for bools, which numcodecs does not read back.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let decoded = parameters.decoded("dtype")?;
    let stored = parameters.number("astype")?.unwrap_or(decoded);
    if [decoded, stored].contains(&Number::Bool) {
        return Err(ErrorKind::Unsupported("differences of bools".into()).into());
    }
    Ok(Filter::Values(Box::new(Delta { decoded, stored }), stored.into()))
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
            let mut sum: Option<T> = None;
            convert(&stored, |difference: U| {
                let difference = T::cast(difference.wide());
                let next = sum.map_or(difference, |sum| sum.plus(difference));
                sum = Some(next);
                next
            })
        }));
        made.flatten().unwrap_or_else(|| Err(element::not_computable()))
    }
}
