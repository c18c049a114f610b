//! `scale_offset`: `(x - offset) * scale`, computed and stored in the type of the elements.
//!
//! Real numbers are rounded after each step. Integers must be exact: a result outside the type's range, or a stored
//! number not divisible by `scale`, is an error, as in zarr-python.
//!
//! Source: zarr-extensions `scale_offset`.

use super::element::{Element, Wide, convert, with_element};
use super::parameters::{Parameters, bad};
use super::{Filter, Values, element};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{FillValue, ZarrFormat};
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["scale_offset"],
    parameters: &[("scale", ParameterType::Any), ("offset", ParameterType::Any)],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug)]
struct ScaleOffset {
    number: Number,
    /// Bytes of a number of the type.
    offset: Vec<u8>,
    scale: Vec<u8>,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`] for parameters that are not numbers of the type, and for a scale that cannot be undone.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    parameters.only(&["offset", "scale"])?;
    let number = parameters.arithmetic()?;
    let scalar = |key: &str, default: i64| {
        let value = parameters.get(key).cloned().unwrap_or_else(|| default.into());
        match FillValue::parse(&value, parameters.data_type, ZarrFormat::V3) {
            Ok(FillValue::Fixed(bytes)) => Ok(bytes),
            _ => Err(parameters.wrong(key, &format!("a number of type {}", parameters.data_type))),
        }
    };
    let (offset, scale) = (scalar("offset", 0)?, scalar("scale", 1)?);
    if with_element!(number, T => T::read(&scale).wide()).is_some_and(|scale| scale.to_f64() == 0.0) {
        return Err(bad("scale is 0, which cannot be reversed"));
    }
    Ok(Filter::Values(Box::new(ScaleOffset { number, offset, scale }), number.into()))
}

/// Returns the integer in its type.
fn exactly<T: Element>(integer: i128) -> Option<T> {
    let wide = Wide::Integer(integer);
    Some(T::cast(wide)).filter(|number| number.wide() == wide)
}

impl ScaleOffset {
    /// Maps every number by `real` for a real type, else by `whole`, which returns `None` for a number without an exact
    /// result.
    fn each<T: Element>(
        &self,
        elements: &[u8],
        real: impl Fn(T, T, T) -> T,
        whole: impl Fn(i128, i128, i128) -> Option<i128>,
        refused: impl Fn(i128) -> Error,
    ) -> Result<Vec<u8>> {
        let (offset, scale) = (T::read(&self.offset), T::read(&self.scale));
        let (Wide::Integer(whole_offset), Wide::Integer(whole_scale)) = (offset.wide(), scale.wide()) else {
            return convert(elements, |number: T| real(number, offset, scale));
        };
        let mut wrong = None;
        let made = convert(elements, |number: T| {
            let Wide::Integer(integer) = number.wide() else { return number };
            whole(integer, whole_offset, whole_scale).and_then(exactly).unwrap_or_else(|| {
                wrong.get_or_insert(integer);
                number
            })
        })?;
        wrong.map_or(Ok(made), |integer| Err(refused(integer)))
    }
}

impl Values for ScaleOffset {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        let refused = |number| ErrorKind::BadValue(format!("{number} scaled is out of range")).into();
        let made = with_element!(self.number, T => self.each::<T>(
            &elements,
            |number, offset, scale| number.minus(offset).times(scale),
            |number, offset, scale| (number - offset).checked_mul(scale),
            refused,
        ));
        made.unwrap_or_else(|| Err(element::not_computable()))
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        let refused = |number| {
            ErrorKind::Corrupt(format!("the stored number {number} is impossible with this scale and offset"))
                .into()
        };
        let made = with_element!(self.number, T => self.each::<T>(
            &stored,
            |number, offset, scale| number.over(scale).plus(offset),
            |number, offset, scale| (number % scale == 0).then(|| number / scale + offset),
            refused,
        ));
        made.unwrap_or_else(|| Err(element::not_computable()))
    }
}
