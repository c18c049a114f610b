//! Fill values of missing chunks.

use serde_json::{Map, Value};
use zarrow_array::{DataType, Field, Number, Struct, WordRun, allocation};

use super::{MetadataError, ZarrFormat, float8, structure};
use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};

const KEY: &str = "fill_value";

/// Base64 as other libraries write it: padding and the bits behind the last byte do not matter.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Value of the elements of missing chunks, in its memory representation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FillValue {
    /// Bytes of one fixed-size element, in native byte order.
    Fixed(Vec<u8>),
    /// Bytes of one element of variable length.
    Variable(Vec<u8>),
    /// Missing, in an optional type.
    Missing,
    /// Present, in an optional type.
    Present(Box<FillValue>),
}

impl FillValue {
    /// Returns the value with zero in all bytes; for an optional type, a missing value.
    #[must_use]
    pub fn zero(data_type: &DataType) -> FillValue {
        match (data_type, data_type.item_size()) {
            (DataType::Optional(_), _) => FillValue::Missing,
            (_, Some(size)) => FillValue::Fixed(vec![0; size]),
            (_, None) => FillValue::Variable(Vec::new()),
        }
    }

    /// Returns the fill value for null in Zarr version 2: NaT for times, as in zarr-python, and zero for all other
    /// types.
    #[must_use]
    pub fn open(data_type: &DataType) -> FillValue {
        match data_type {
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => {
                FillValue::Fixed(i64::MIN.to_ne_bytes().to_vec())
            }
            other => FillValue::zero(other),
        }
    }

    /// Returns the value in an attribute, for a type that is not optional; `None` if the type has no such value.
    ///
    /// It may have the form of a fill value, or xarray's form of floats in attributes: 8 bytes in base64,
    /// little-endian.
    pub(crate) fn from_attribute(
        value: &Value,
        data_type: &DataType,
        format: ZarrFormat,
    ) -> Option<FillValue> {
        if value.is_null() {
            return None;
        }
        let plain = |value: &Value| Self::parse(value, data_type, format).ok();
        let float = |value: &Value| {
            let bytes = BASE64.decode(value.as_str()?).ok()?.try_into().ok()?;
            Some(match f64::from_le_bytes(bytes) {
                float if float.is_finite() => Value::from(float),
                float if float.is_nan() => "NaN".into(),
                float => if float > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            })
        };
        let number = matches!(data_type, DataType::Number(_));
        let coded = || match value.as_array() {
            Some(parts) => plain(&Value::Array(parts.iter().map(float).collect::<Option<Vec<_>>>()?)),
            None => plain(&float(value)?),
        };
        plain(value).or_else(|| if number { coded() } else { None })
    }

    /// Reads a `fill_value` (Zarr core 3.1, fill value; Zarr version 2, fill value encoding).
    pub(crate) fn parse(
        value: &Value,
        data_type: &DataType,
        format: ZarrFormat,
    ) -> Result<FillValue, MetadataError> {
        let invalid = || MetadataError::expected(KEY, &format!("a value of type {data_type}"), value);
        // A long text becomes at most four bytes per character, and copies. To check this, that much memory is
        // allocated and freed again: a few times a document's size (`max_metadata_nbytes`).
        if let Some(text) = value.as_str().filter(|text| text.len() > 4096) {
            drop(std::hint::black_box(allocation::with_capacity::<u8>(text.len().saturating_mul(8))?));
        }
        match data_type {
            _ if value.is_null() && format == ZarrFormat::V2 => Ok(FillValue::open(data_type)),
            DataType::Optional(inner) => match (value, value.as_array().map(Vec::as_slice)) {
                (Value::Null, _) => Ok(FillValue::Missing),
                (_, Some([present])) => {
                    Ok(FillValue::Present(Box::new(Self::parse(present, inner, format)?)))
                }
                _ => Err(invalid()),
            },
            DataType::String => {
                text(value, format).map(String::into_bytes).map(FillValue::Variable).ok_or_else(invalid)
            }
            DataType::Bytes => bytes_or_zero(value, format).map(FillValue::Variable).ok_or_else(invalid),
            fixed => item(value, fixed, format).map(FillValue::Fixed).ok_or_else(invalid),
        }
    }
}

impl FillValue {
    /// Returns the `fill_value` of a document, which [`parse`](FillValue::parse) reads back as this value.
    ///
    /// Version 2 has only one NaN, so the bits of any other are lost.
    pub(super) fn document(&self, data_type: &DataType, format: ZarrFormat) -> Result<Value, MetadataError> {
        let value = match (self, data_type) {
            (FillValue::Missing, DataType::Optional(_)) => Some(Value::Null),
            (FillValue::Present(value), DataType::Optional(inner)) => {
                Some(Value::from(vec![value.document(inner, format)?]))
            }
            (FillValue::Variable(bytes), DataType::String) => {
                std::str::from_utf8(bytes).ok().map(Value::from)
            }
            (FillValue::Variable(bytes), DataType::Bytes) => Some(BASE64.encode(bytes).into()),
            (FillValue::Fixed(bytes), fixed) => item_document(bytes, fixed, format),
            _ => None,
        };
        value.ok_or_else(|| MetadataError::invalid(KEY, format!("expected a value of type {data_type}")))
    }
}

/// Returns a fixed-size element as JSON; `None` if `bytes` are not an element of this type.
fn item_document(bytes: &[u8], data_type: &DataType, format: ZarrFormat) -> Option<Value> {
    if data_type.item_size() != Some(bytes.len()) {
        return None;
    }
    match data_type {
        DataType::Number(Number::Bool) => Some(Value::from(bytes != [0])),
        DataType::Number(number) => match number.part() {
            None => integer_document(bytes, *number).or_else(|| float_document(bytes, *number, format)),
            Some(part) => {
                let parts = bytes.chunks(part.names().item_size);
                parts.map(|bytes| float_document(bytes, part, format)).collect()
            }
        },
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => {
            match i64::from_ne_bytes(bytes.try_into().ok()?) {
                i64::MIN => Some(Value::from("NaT")),
                ticks => Some(Value::from(ticks)),
            }
        }
        DataType::FixedLengthUtf32 { .. } => {
            let (units, _) = bytes.as_chunks::<4>();
            let characters = units.iter().map(|unit| char::from_u32(u32::from_ne_bytes(*unit)));
            let text = characters.collect::<Option<String>>()?;
            Some(Value::from(text.trim_end_matches('\0')))
        }
        // With padding, since tensorstore requires the type's full length.
        DataType::NullTerminatedBytes { .. } | DataType::RawBytes { .. } => Some(BASE64.encode(bytes).into()),
        DataType::Struct(structure) if format == ZarrFormat::V3 && structure::is_v3(data_type) => {
            let value = |field: &Field| {
                let bytes = bytes.get(field.offset..field.offset + field.nbytes()?)?;
                Some((field.name.to_string(), item_document(bytes, &field.data_type, format)?))
            };
            structure.fields().iter().map(value).collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
        DataType::Struct(_) => Some(BASE64.encode(bytes).into()),
        _ => None,
    }
}

fn integer_document(bytes: &[u8], number: Number) -> Option<Value> {
    Some(match number {
        Number::Int8 => i8::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::Int16 => i16::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::Int32 => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::Int64 => i64::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::UInt8 => u8::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::UInt16 => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::UInt32 => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::UInt64 => u64::from_ne_bytes(bytes.try_into().ok()?).into(),
        // The upper bits have no meaning: the lower ones are shifted up and back, to extend their sign.
        Number::Int2 | Number::Int4 => {
            let unused = 8 - number.names().bits;
            (i8::from_ne_bytes(bytes.try_into().ok()?) << unused >> unused).into()
        }
        Number::UInt2 | Number::UInt4 => {
            let unused = 8 - number.names().bits;
            (u8::from_ne_bytes(bytes.try_into().ok()?) << unused >> unused).into()
        }
        _ => return None,
    })
}

/// Returns a floating-point number as JSON: a number, the name of a special one, or the bits of an unusual NaN.
fn float_document(bytes: &[u8], number: Number, format: ZarrFormat) -> Option<Value> {
    let value = match number {
        Number::Float16 => half::f16::from_ne_bytes(bytes.try_into().ok()?).to_f64(),
        Number::BFloat16 => half::bf16::from_ne_bytes(bytes.try_into().ok()?).to_f64(),
        Number::Float32 => f32::from_ne_bytes(bytes.try_into().ok()?).into(),
        Number::Float64 => f64::from_ne_bytes(bytes.try_into().ok()?),
        narrow => float8::decode(narrow, *bytes.first()?).unwrap_or(f64::NAN),
    };
    Some(match value {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        nan if nan.is_nan() => {
            let usual = float(&Value::from("NaN"), number)?;
            let digits = |byte: &u8| format!("{byte:02x}");
            match format {
                ZarrFormat::V3 if usual != bytes => {
                    let big_endian = if cfg!(target_endian = "big") {
                        bytes.iter().map(digits).collect()
                    } else {
                        bytes.iter().rev().map(digits).collect::<String>()
                    };
                    format!("0x{big_endian}").into()
                }
                _ => "NaN".into(),
            }
        }
        finite => finite.into(),
    })
}

/// Returns the bytes of a fixed-size element; `None` if `value` is not of this type.
fn item(value: &Value, data_type: &DataType, format: ZarrFormat) -> Option<Vec<u8>> {
    match data_type {
        DataType::Number(Number::Bool) => boolean(value).map(|value| vec![u8::from(value)]),
        DataType::Number(number) => match number.part() {
            None => integer_or_text(value, *number).or_else(|| float(value, *number)),
            Some(part) => {
                let zero = Value::from(0);
                let (real, imaginary) = match value.as_array().map(Vec::as_slice) {
                    Some([real, imaginary]) => (real, imaginary),
                    None if format == ZarrFormat::V2 => (value, &zero),
                    _ => return None,
                };
                Some([float(real, part)?, float(imaginary, part)?].concat())
            }
        },
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => match value.as_str() {
            Some("NaT") => Some(i64::MIN.to_ne_bytes().to_vec()),
            _ => integer(value, Number::Int64),
        },
        DataType::FixedLengthUtf32 { length } => {
            let text = text(value, format)?;
            let units = text.chars().flat_map(|character| u32::from(character).to_ne_bytes()).collect();
            padded(units, (*length as usize).checked_mul(4)?)
        }
        DataType::NullTerminatedBytes { length } => padded(bytes_or_zero(value, format)?, *length as usize),
        DataType::RawBytes { length } if value.as_u64() == Some(0) && format == ZarrFormat::V2 => {
            padded(Vec::new(), *length as usize)
        }
        DataType::RawBytes { length } => bytes(value).filter(|bytes| bytes.len() == *length as usize),
        DataType::Struct(structure) => fields(value, structure, &data_type.words(), format),
        _ => None,
    }
}

/// Reads an element of a structure: an object of its fields, or the base64 of all its bytes.
fn fields(value: &Value, structure: &Struct, words: &[WordRun], format: ZarrFormat) -> Option<Vec<u8>> {
    let size = structure.item_size();
    match value {
        // Version 2 stores the bytes of an element, as did version 3 before it had objects. Very old writers wrote a
        // 0.
        Value::String(_) => {
            let mut element = bytes(value).filter(|bytes| bytes.len() == size)?;
            if format == ZarrFormat::V3 && cfg!(target_endian = "big") {
                words.iter().for_each(|words| words.reverse(&mut element));
            }
            Some(element)
        }
        Value::Number(zero) if format == ZarrFormat::V2 && zero.as_u64() == Some(0) => Some(vec![0; size]),
        Value::Object(values) if values.len() == structure.fields().len() => {
            let mut element = vec![0; size];
            for field in structure.fields() {
                let bytes = item(values.get(&*field.name)?, &field.data_type, format)?;
                element.get_mut(field.offset..field.offset + bytes.len())?.copy_from_slice(&bytes);
            }
            Some(element)
        }
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match (value, value.as_u64()) {
        (Value::Bool(value), _) => Some(*value),
        // Version 3 has true and false, but some writers use numbers, which version 2 allows.
        (_, Some(number @ 0..=1)) => Some(number == 1),
        _ => None,
    }
}

/// Reads an integer, or its text, as `number`; `None` if it does not fit or `number` is not an integer type.
fn integer_or_text(value: &Value, number: Number) -> Option<Vec<u8>> {
    let Some(text) = value.as_str().map(str::trim) else { return integer(value, number) };
    let parsed = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from));
    integer(&parsed.ok()?, number)
}

/// Reads an integer of the type `number`; `None` if that is not an integer type.
fn integer(value: &Value, number: Number) -> Option<Vec<u8>> {
    // zarr-python accepts 1.0 and true for 1 as well, and JSON parsers read -0 as -0.0.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |float: &f64| float.fract() == 0.0 && float.abs() <= EXACT;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number within 2^53 is exact")]
    let value = value
        .as_i64()
        .map(i128::from)
        .or_else(|| value.as_u64().map(i128::from))
        .or_else(|| value.as_bool().map(i128::from))
        .or_else(|| value.as_f64().filter(whole).map(|float| float as i128))?;
    Some(match number {
        Number::Int8 => i8::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::Int16 => i16::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::Int32 => i32::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::Int64 => i64::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::UInt8 => u8::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::UInt16 => u16::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::UInt32 => u32::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::UInt64 => u64::try_from(value).ok()?.to_ne_bytes().to_vec(),
        Number::Int2 | Number::Int4 => {
            let limit = 1 << (number.names().bits - 1);
            i8::try_from(value).ok().filter(|value| (-limit..limit).contains(value))?.to_ne_bytes().to_vec()
        }
        Number::UInt2 | Number::UInt4 => u8::try_from(value)
            .ok()
            .filter(|value| *value >> number.names().bits == 0)?
            .to_ne_bytes()
            .to_vec(),
        _ => return None,
    })
}

/// Reads a floating-point number of the type `number`; `None` if that is not a floating-point type.
fn float(value: &Value, number: Number) -> Option<Vec<u8>> {
    let value = match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => return bits(digits, number),
            // Some writers store numbers as text.
            None => text.trim().parse().ok()?,
        },
        None => value.as_f64().or_else(|| value.as_bool().map(|one| f64::from(u8::from(one))))?,
    };
    #[allow(clippy::cast_possible_truncation, reason = "rounded to the nearest, as NumPy does")]
    Some(match number {
        Number::Float16 if value.is_nan() => half::f16::NAN.to_ne_bytes().to_vec(),
        Number::Float16 => half::f16::from_f64(value).to_ne_bytes().to_vec(),
        Number::BFloat16 if value.is_nan() => half::bf16::NAN.to_ne_bytes().to_vec(),
        Number::BFloat16 => half::bf16::from_f64(value).to_ne_bytes().to_vec(),
        Number::Float32 => (value as f32).to_ne_bytes().to_vec(),
        Number::Float64 => value.to_ne_bytes().to_vec(),
        other => vec![float8::encode(other, value)?],
    })
}

/// Reads the bits of a floating-point number from hexadecimal digits of its full width.
fn bits(digits: &str, number: Number) -> Option<Vec<u8>> {
    let size = number.names().item_size;
    let hexadecimal = digits.len() == size * 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u64::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)?;
    Some(match size {
        1 => u8::try_from(bits).ok()?.to_ne_bytes().to_vec(),
        2 => u16::try_from(bits).ok()?.to_ne_bytes().to_vec(),
        4 => u32::try_from(bits).ok()?.to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes().to_vec(),
    })
}

/// Reads text; in version 2 also a number, which zarr-python writes for strings and reads as its digits.
fn text(value: &Value, format: ZarrFormat) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if format == ZarrFormat::V2 => Some(number.to_string()),
        _ => None,
    }
}

/// Reads bytes from base64 or from a list of integers.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    let byte = |item: &Value| item.as_u64().and_then(|item| u8::try_from(item).ok());
    match value {
        Value::String(text) => BASE64.decode(text).ok(),
        Value::Array(items) => items.iter().map(byte).collect(),
        _ => None,
    }
}

/// Reads bytes; in version 2 also the number 0, which old writers use as the zero of every type.
fn bytes_or_zero(value: &Value, format: ZarrFormat) -> Option<Vec<u8>> {
    match value.as_u64() {
        Some(0) if format == ZarrFormat::V2 => Some(Vec::new()),
        _ => bytes(value),
    }
}

/// Pads `bytes` with zeros to `size`; returns `None` if there are more.
fn padded(mut bytes: Vec<u8>, size: usize) -> Option<Vec<u8>> {
    (bytes.len() <= size).then(|| {
        bytes.resize(size, 0);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64_with_or_without_padding() {
        let parse = |text: &str| FillValue::parse(&Value::from(text), &DataType::Bytes, ZarrFormat::V3);
        for (text, bytes) in [("", &b""[..]), ("Zg==", b"f"), ("Zm9vYg", b"foob"), ("+/+/", b"\xfb\xff\xbf")]
        {
            assert_eq!(parse(text).unwrap(), FillValue::Variable(bytes.to_vec()), "{text}");
        }
        for text in ["Z", "Zm9vY", "Zm 9", "Zm9-", "Zg=v", "é"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
