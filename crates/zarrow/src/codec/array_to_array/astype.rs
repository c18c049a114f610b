//! `numcodecs.astype`: numbers cast to another type, as NumPy casts.
//!
//! Source: numcodecs `AsType`.

use super::element::cast;
use super::parameters::{Parameters, bad};
use super::{Filter, Values};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::Result;
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.astype"],
    parameters: &[("encode_dtype", ParameterType::StoredType), ("decode_dtype", ParameterType::DecodedType)],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct AsType {
    decoded: Number,
    stored: Number,
}

/// Parses the parameters.
///
/// # Errors
/// [`BadCodec`](crate::ErrorKind::BadCodec) if `encode_dtype` is missing.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let decoded = parameters.decoded("decode_dtype")?;
    let stored = parameters.number("encode_dtype")?.ok_or_else(|| bad("encode_dtype is missing"))?;
    Ok(Filter::Values(Box::new(AsType { decoded, stored }), stored.into()))
}

impl Values for AsType {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        cast(elements, self.decoded, self.stored)
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        cast(stored, self.stored, self.decoded)
    }
}
