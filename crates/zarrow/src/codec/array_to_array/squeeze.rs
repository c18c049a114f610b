//! `zarrs.squeeze`: removes the axes of length one; if all have length one, one axis stays.
//!
//! Source: zarrs documentation of the codec `squeeze`.

use super::parameters::Parameters;
use super::{Filter, Shape};
use crate::codec::definition::{Definition, Stage};
use crate::error::Result;

/// The codec.
pub const DEFINITION: Definition =
    Definition { names: &["zarrs.squeeze", "squeeze"], stage: Stage::Filter(parse), ..Definition::PLAIN };

#[derive(Debug)]
struct Squeeze;

/// Checks that there are no parameters.
///
/// # Errors
/// [`BadCodec`](crate::ErrorKind::BadCodec) if there are any.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    parameters.only(&[])?;
    Ok(Filter::Shape(Box::new(Squeeze)))
}

impl Shape for Squeeze {
    fn stored(&self, shape: &[u64]) -> Result<Vec<u64>> {
        let long: Vec<u64> = shape.iter().copied().filter(|extent| *extent != 1).collect();
        Ok(if long.is_empty() { vec![1] } else { long })
    }
}
