//! `cast_value`: converts numbers by value to another type.
//!
//! 1. A number in the map becomes its counterpart there.
//! 2. Any other number is rounded if the target is an integer type.
//! 3. A number outside the target's range is an error, becomes the nearest number in the range (`clamp`), or is reduced
//!    modulo 2ⁿ (`wrap`). NaN has no integer value.
//!
//! For real target types, numbers are rounded to nearest, ties to even; with another `rounding` they must be exact.
//!
//! Source: zarr-extensions `cast_value`; `scalar_map` as in zarr-python 3.4.

use super::element::{Element, Wide, convert, with_element};
use super::parameters::Parameters;
use super::{Filter, Values, element};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use crate::metadata::{FillValue, ZarrFormat, parse_data_type};
use serde_json::Value;
use zarrow_array::{DataType, Number};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["cast_value"],
    parameters: &[
        ("data_type", ParameterType::Any),
        ("rounding", ParameterType::Text),
        ("out_of_range", ParameterType::Text),
        ("scalar_map", ParameterType::Any),
    ],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Rounding {
    NearestEven,
    NearestAway,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum OutOfRange {
    Error,
    Clamp,
    Wrap,
}

/// Pairs of a number and its replacement.
type ScalarMap = Vec<(Wide, Wide)>;

#[derive(Debug)]
struct CastValue {
    decoded: Number,
    stored: Number,
    rounding: Rounding,
    out_of_range: OutOfRange,
    encode: ScalarMap,
    decode: ScalarMap,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for a type that is neither an integer nor a real type.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    parameters.only(&["data_type", "rounding", "out_of_range", "scalar_map"])?;
    let decoded = parameters.arithmetic()?;
    let stored = parse_data_type(
        parameters.get("data_type").ok_or_else(|| parameters.wrong("data_type", "a data type"))?,
    )?;
    let stored = Parameters { configuration: parameters.configuration, data_type: &stored }.arithmetic()?;
    let text = |key: &str| match parameters.get(key) {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| parameters.wrong(key, "text")),
    };
    let rounding = match text("rounding")? {
        None | Some("nearest-even") => Rounding::NearestEven,
        Some("nearest-away") => Rounding::NearestAway,
        Some("towards-zero") => Rounding::TowardsZero,
        Some("towards-positive") => Rounding::TowardsPositive,
        Some("towards-negative") => Rounding::TowardsNegative,
        Some(_) => {
            let known = "\"nearest-even\", \"nearest-away\", \"towards-zero\", \"towards-positive\" or \
                         \"towards-negative\"";
            return Err(parameters.wrong("rounding", known));
        }
    };
    let out_of_range = match text("out_of_range")? {
        None | Some("error") => OutOfRange::Error,
        Some("clamp") => OutOfRange::Clamp,
        Some("wrap") if is_real(stored) => {
            return Err(
                parameters.wrong("out_of_range", "\"error\" or \"clamp\", since only integers wrap around")
            );
        }
        Some("wrap") => OutOfRange::Wrap,
        Some(_) => return Err(parameters.wrong("out_of_range", "\"error\", \"clamp\" or \"wrap\"")),
    };
    let map = |direction: &str, from: Number, to: Number| scalar_map(parameters, direction, from, to);
    let (encode, decode) = (map("encode", decoded, stored)?, map("decode", stored, decoded)?);
    let filter = CastValue { decoded, stored, rounding, out_of_range, encode, decode };
    Ok(Filter::Values(Box::new(filter), stored.into()))
}

fn is_real(number: Number) -> bool {
    with_element!(number, T => T::IS_REAL) == Some(true)
}

/// Returns the pairs of one direction.
fn scalar_map(parameters: &Parameters<'_>, direction: &str, from: Number, to: Number) -> Result<ScalarMap> {
    let refused =
        || parameters.wrong("scalar_map", &format!("pairs of numbers of both types at {direction}"));
    let scalar = |value: &Value, number: Number| -> Result<Wide> {
        let value =
            FillValue::parse(value, &DataType::from(number), ZarrFormat::V3).map_err(|_| refused())?;
        let FillValue::Fixed(bytes) = value else { return Err(refused()) };
        with_element!(number, T => T::read(&bytes).wide()).ok_or_else(refused)
    };
    let pairs = match parameters.get("scalar_map") {
        None => return Ok(Vec::new()),
        Some(Value::Object(map)) => match map.get(direction) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(pairs) => pairs.as_array().ok_or_else(refused)?,
        },
        Some(_) => return Err(refused()),
    };
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([key, value]) => Ok((scalar(key, from)?, scalar(value, to)?)),
        _ => Err(refused()),
    };
    pairs.iter().map(pair).collect()
}

impl Rounding {
    fn whole(self, real: f64) -> f64 {
        match self {
            Rounding::NearestEven => real.round_ties_even(),
            Rounding::NearestAway => real.round(),
            Rounding::TowardsZero => real.trunc(),
            Rounding::TowardsPositive => real.ceil(),
            Rounding::TowardsNegative => real.floor(),
        }
    }
}

/// Converts a whole number to an integer; if it is too large for an `i128`, only its low bits are kept. The flag says
/// whether it fits.
fn integer(whole: f64) -> (i128, bool) {
    const LARGE: f64 = 1e30;
    if whole.abs() < LARGE { (whole as i128, true) } else { ((whole % 2f64.powi(64)) as i128, false) }
}

impl CastValue {
    /// Returns the number in the other type; `None` if there is no such number.
    #[inline]
    fn cast<U: Element>(&self, number: Wide, map: &ScalarMap) -> Option<U> {
        let is_nan = |wide: Wide| matches!(wide, Wide::Real(real) if real.is_nan());
        // Step 1.
        let mapped = map.iter().find(|(key, _)| *key == number || (is_nan(*key) && is_nan(number)));
        if let Some((_, value)) = mapped {
            return Some(U::cast(*value));
        }
        if U::IS_REAL {
            let made = U::cast(number);
            let (exact, real) = (made.wide() == number, made.wide().to_f64());
            return match number {
                Wide::Real(given) if !given.is_finite() => Some(made),
                _ if real.is_infinite() => (self.out_of_range == OutOfRange::Clamp).then_some(made),
                Wide::Integer(integer) if self.rounding != Rounding::NearestEven => {
                    (real as i128 == integer).then_some(made)
                }
                Wide::Real(_) if self.rounding != Rounding::NearestEven => exact.then_some(made),
                _ => Some(made),
            };
        }
        // Steps 2 and 3.
        let (low_bits, is_all) = match number {
            Wide::Integer(integer) => (integer, true),
            Wide::Real(real) if real.is_finite() => integer(self.rounding.whole(real)),
            Wide::Real(real) if real.is_nan() || self.out_of_range == OutOfRange::Wrap => return None,
            Wide::Real(_) => (0, false),
        };
        let made = U::cast(Wide::Integer(low_bits));
        if is_all && made.wide() == Wide::Integer(low_bits) {
            return Some(made);
        }
        match self.out_of_range {
            OutOfRange::Error => None,
            OutOfRange::Wrap => Some(made),
            OutOfRange::Clamp => Some(bound(number.to_f64() > 0.0)),
        }
    }

    fn convert(&self, elements: &[u8], from: Number, to: Number, map: &ScalarMap) -> Result<Vec<u8>> {
        let mut wrong = None;
        let made = with_element!(from, T => with_element!(to, U => convert(elements, |number: T| {
            self.cast::<U>(number.wide(), map).unwrap_or_else(|| {
                wrong.get_or_insert(number.wide());
                U::cast(Wide::Integer(0))
            })
        })));
        let made = made.flatten().unwrap_or_else(|| Err(element::not_computable()))?;
        match wrong {
            None => Ok(made),
            Some(number) => {
                let number = match number {
                    Wide::Integer(integer) => integer.to_string(),
                    Wide::Real(real) => real.to_string(),
                };
                Err(ErrorKind::BadValue(format!("{number} is out of range for {}", to.names().zarr)).into())
            }
        }
    }
}

/// Returns the largest or the smallest integer of a type.
fn bound<U: Element>(largest: bool) -> U {
    let bits = 8 * U::SIZE as u32;
    let is_signed = U::cast(Wide::Integer(-1)).wide() == Wide::Integer(-1);
    let magnitude = 1i128 << (bits - u32::from(is_signed));
    U::cast(Wide::Integer(match (largest, is_signed) {
        (true, _) => magnitude - 1,
        (false, true) => -magnitude,
        (false, false) => 0,
    }))
}

impl Values for CastValue {
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>> {
        self.convert(&elements, self.decoded, self.stored, &self.encode)
    }

    fn decode(&self, stored: Vec<u8>, _: usize) -> Result<Vec<u8>> {
        self.convert(&stored, self.stored, self.decoded, &self.decode)
    }
}
