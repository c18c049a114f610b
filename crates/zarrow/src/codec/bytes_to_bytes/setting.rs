//! Settings of a codec from its configuration.

use crate::codec::parameter::wrong_parameter;
use crate::error::Result;
use crate::metadata::CodecMetadata;
use serde_json::Value;

/// Returns the integer under `key`, or `default` if it is missing or null. netCDF-C writes numbers as text.
///
/// # Errors
/// [`ErrorKind::BadCodec`] if the value is not an integer from `low` to `high`.
pub fn integer(metadata: &CodecMetadata, key: &str, default: i64, low: i64, high: i64) -> Result<i64> {
    let value = metadata.configuration.get(key).unwrap_or(&Value::Null);
    let integer = match value {
        Value::Null => return Ok(default),
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    };
    integer.filter(|integer| (low..=high).contains(integer)).ok_or_else(|| {
        wrong_parameter(&metadata.configuration, key, &format!("an integer from {low} to {high}"))
    })
}
