//! Checked parameters of a filter.

use super::element::computable;
use crate::codec::parameter::wrong_parameter;
use crate::error::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use zarrow_array::{DataType, Number};

/// The configuration of a filter, and its input's element type.
pub struct Parameters<'a> {
    pub configuration: &'a Map<String, Value>,
    pub data_type: &'a DataType,
}

/// A JSON number with Python's distinction between int and float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A number without a fraction or an exponent.
    Integer(i64),
    /// Any other number.
    Real(f64),
}

impl Scalar {
    /// Returns the number as a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Integer(integer) => integer as f64,
            Scalar::Real(real) => real,
        }
    }
}

/// Creates the error for invalid parameters.
pub fn bad(text: impl Into<String>) -> Error {
    ErrorKind::BadCodec(text.into()).into()
}

impl Parameters<'_> {
    /// Returns the parameter if it is present and not null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.configuration.get(key).filter(|value| !value.is_null())
    }

    /// Creates the error for a parameter with another value than `expected`.
    pub fn wrong(&self, key: &str, expected: &str) -> Error {
        wrong_parameter(self.configuration, key, expected)
    }

    /// Checks that there are no parameters other than these.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`].
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.configuration.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(bad(format!("unknown setting {key:?}"))),
            None => Ok(()),
        }
    }

    /// Returns the element type, an integer or a real type.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for any other type.
    pub fn arithmetic(&self) -> Result<Number> {
        match computable(self.data_type)? {
            Number::Bool => Err(ErrorKind::Unsupported("computing with bools".into()).into()),
            number => Ok(number),
        }
    }

    /// Returns a number.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if it is missing or not a number.
    pub fn scalar(&self, key: &str) -> Result<Scalar> {
        let refused = || self.wrong(key, "a number");
        let value = self.get(key).ok_or_else(refused)?;
        match value.as_i64() {
            Some(integer) => Ok(Scalar::Integer(integer)),
            None => value.as_f64().map(Scalar::Real).ok_or_else(refused),
        }
    }

    /// Returns an integer from `low` to `high`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if it is missing or any other value.
    pub fn integer(&self, key: &str, low: i64, high: i64) -> Result<i64> {
        let value = self.get(key).and_then(Value::as_i64).filter(|value| (low..=high).contains(value));
        value.ok_or_else(|| self.wrong(key, &format!("an integer from {low} to {high}")))
    }

    /// Returns the type that `key` names, in numcodecs' notation (`<f4`, or `float32`); the byte order is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a type that filters do not compute with.
    pub fn number(&self, key: &str) -> Result<Option<Number>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let refused = || ErrorKind::Unsupported(format!("{key} of {value}"));
        let text = value.as_str().ok_or_else(refused)?;
        Ok(Some(computable(&DataType::from(number_named(text).ok_or_else(refused)?)).map_err(|_| refused())?))
    }

    /// Returns the type that the filter reads the elements as: the type under `key`, of the same size, else their own.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for a type of another size, [`ErrorKind::Unsupported`] for a type that filters do not
    /// compute with.
    pub fn decoded(&self, key: &str) -> Result<Number> {
        let Some(number) = self.number(key)? else { return computable(self.data_type) };
        match self.data_type {
            DataType::Optional(_) => None,
            other => other.item_size(),
        }
        .filter(|size| *size == number.names().item_size)
        .ok_or_else(|| {
            bad(format!("{key} is {}, the elements are {}", number.names().zarr, self.data_type))
        })?;
        Ok(number)
    }
}

/// Parses a number type from its NumPy or Zarr name.
pub fn number_named(text: &str) -> Option<Number> {
    let code = text.strip_prefix(['<', '>', '|', '=']).unwrap_or(text);
    Number::from_zarr_name(code).or_else(|| {
        let (kind, size) = code.split_at_checked(1)?;
        Number::from_kind_and_size(*kind.as_bytes().first()?, size.parse().ok()?)
    })
}
