//! Data types in the notation of Zarr version 3.

use serde_json::{Value, json};
use zarrow_array::{DataType, Number, TimeUnit};

use super::json::Extension;
use super::{MetadataError, structure};
use crate::error::metadata::excerpt;

const KEY: &str = "data_type";

/// Reads a `data_type` (Zarr core 3.1, data types; zarr-extensions, data-types).
///
/// The recursion of optional and structured types is as deep as the JSON, which its parser bounds.
pub(super) fn parse(value: &Value) -> Result<DataType, MetadataError> {
    let extension = Extension::parse(KEY, value)?;
    if let Some(number) = Number::from_zarr_name(extension.name) {
        return Ok(DataType::Number(number));
    }
    if let Some(bits) = extension.name.strip_prefix('r').filter(|bits| !bits.is_empty())
        && bits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return raw_bits(bits).ok_or_else(|| MetadataError::expected(KEY, "a multiple of 8 bits", value));
    }
    match extension.name {
        "string" => Ok(DataType::String),
        "bytes" | "variable_length_bytes" | "binary" => Ok(DataType::Bytes),
        "fixed_length_utf32" => match length(&extension)? {
            nbytes if nbytes % 4 == 0 => Ok(DataType::FixedLengthUtf32 { length: nbytes / 4 }),
            _ => Err(MetadataError::expected(KEY, "a multiple of 4 bytes", value)),
        },
        "null_terminated_bytes" => Ok(DataType::NullTerminatedBytes { length: length(&extension)? }),
        "raw_bytes" => Ok(DataType::RawBytes { length: length(&extension)? }),
        "numpy.datetime64" => time(&extension).map(|(unit, scale)| DataType::DateTime64 { unit, scale }),
        "numpy.timedelta64" => time(&extension).map(|(unit, scale)| DataType::TimeDelta64 { unit, scale }),
        "struct" | "structured" => structure::parse_v3(&extension, parse),
        // zarrs writes the first name; the second is the one in the proposed extension.
        "zarrs.optional" | "optional" => {
            let inner = parse(&Value::Object(extension.configuration()))?;
            Ok(DataType::Optional(Box::new(inner)))
        }
        _ => Err(MetadataError::unsupported(format!("data type {}", excerpt(value)))),
    }
}

/// Returns the `data_type` of a document, in a notation that zarr-python, tensorstore and zarrs can read if they know
/// the type.
pub(super) fn document(data_type: &DataType) -> Value {
    let named = |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    let length = |name: &str, length: u64| named(name, json!({ "length_bytes": length }));
    let time = |name: &str, unit: &TimeUnit, scale: &u32| {
        named(name, json!({ "unit": unit.code(), "scale_factor": scale }))
    };
    match data_type {
        DataType::Number(number) => json!(number.names().zarr),
        DataType::DateTime64 { unit, scale } => time("numpy.datetime64", unit, scale),
        DataType::TimeDelta64 { unit, scale } => time("numpy.timedelta64", unit, scale),
        DataType::FixedLengthUtf32 { length: points } => length("fixed_length_utf32", u64::from(*points) * 4),
        DataType::NullTerminatedBytes { length: nbytes } => {
            length("null_terminated_bytes", u64::from(*nbytes))
        }
        DataType::RawBytes { length: nbytes } => length("raw_bytes", u64::from(*nbytes)),
        DataType::Struct(structure) => structure::document_v3(structure, document),
        DataType::Optional(inner) => match document(inner) {
            Value::String(name) => named("zarrs.optional", json!({ "name": name, "configuration": {} })),
            inner => named("zarrs.optional", inner),
        },
        // Strings and bytes: the types' display names are also the registry's names.
        other => json!(other.to_string()),
    }
}

fn raw_bits(bits: &str) -> Option<DataType> {
    let bits: u32 = bits.parse().ok()?;
    (bits > 0 && bits.is_multiple_of(8)).then_some(DataType::RawBytes { length: bits / 8 })
}

fn length(extension: &Extension<'_>) -> Result<u32, MetadataError> {
    let value = extension.require("length_bytes")?;
    let length = value.as_u64().and_then(|length| u32::try_from(length).ok()).filter(|length| *length > 0);
    length.ok_or_else(|| MetadataError::expected(KEY, "a length in bytes", value))
}

fn time(extension: &Extension<'_>) -> Result<(TimeUnit, u32), MetadataError> {
    let unit = extension.require("unit")?;
    let known = unit.as_str().and_then(TimeUnit::from_code);
    let scale = extension.require("scale_factor")?;
    // NumPy keeps the factor in a C int.
    let factor = scale.as_u64().and_then(|scale| i32::try_from(scale).ok()).filter(|scale| *scale > 0);
    Ok((
        known.ok_or_else(|| MetadataError::expected(KEY, "a unit of time", unit))?,
        factor.ok_or_else(|| MetadataError::expected(KEY, "a scale factor", scale))?.unsigned_abs(),
    ))
}
