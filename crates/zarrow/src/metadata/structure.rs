//! Structured types in the notations of both versions of Zarr.
//!
//! - Version 2 has NumPy's list of fields, each a name, a type string or another list, and a shape if it is an array;
//!   an entry of raw bytes without a name is padding. Each field has a separate byte order.
//! - Version 3 has `struct`, with objects as fields (zarr-extensions, `struct`), and the older `structured`, with
//!   pairs as fields. Fields follow one another without padding.

use serde_json::{Value, json};
use zarrow_array::{DataType, Field, Struct, allocation};

use super::MetadataError;
use super::json::{Extension, extents};
use super::type_string::{ByteOrder, TypeString, type_string};
use crate::error::metadata::excerpt;

/// Reads the fields of version 2, with the byte order of each run of [`DataType::words`].
pub(super) fn parse_v2(value: &Value) -> Result<(DataType, Vec<ByteOrder>), MetadataError> {
    const KEY: &str = "dtype";
    let expected = |value: &Value| MetadataError::expected(KEY, "[name, type] or [name, type, shape]", value);
    let entries = value.as_array().ok_or_else(|| expected(value))?;
    let (mut fields, mut orders, mut offset) =
        (allocation::with_capacity(entries.len())?, Vec::new(), 0usize);
    for entry in entries {
        let (name, item, shape) = match entry.as_array().map(Vec::as_slice) {
            Some([name, item]) => (name, item, Vec::new()),
            Some([name, item, shape]) => (name, item, self::shape(shape)?),
            _ => return Err(expected(entry)),
        };
        let name = name.as_str().ok_or_else(|| expected(entry))?;
        let (data_type, own) = match item {
            Value::Array(_) => parse_v2(item)?,
            _ => match item.as_str().and_then(TypeString::parse) {
                Some(TypeString::Fixed(data_type, order)) => (data_type, vec![order]),
                _ => return Err(MetadataError::unsupported(format!("a field of type {}", excerpt(item)))),
            },
        };
        let is_padding = name.is_empty() && matches!(data_type, DataType::RawBytes { .. });
        let field = Field { name: name.into(), data_type, shape: shape.into(), offset };
        let end = field.nbytes().and_then(|nbytes| offset.checked_add(nbytes));
        offset = end.ok_or_else(|| MetadataError::invalid(KEY, "every field needs a fixed size"))?;
        if is_padding {
            continue;
        }
        // A shape must not multiply the orders without a bound.
        let repeat = match &field.data_type {
            DataType::Struct(_) => field.shape.iter().product::<u64>(),
            _ => 1,
        };
        if repeat.saturating_mul(own.len() as u64) > (Struct::MAX_RUNS - orders.len()) as u64 {
            return Err(MetadataError::TooLarge {
                what: "the fields of an element",
                limit: Struct::MAX_RUNS as u64,
            });
        }
        (0..repeat).for_each(|_| orders.extend_from_slice(&own));
        fields.push(field);
    }
    let structure =
        Struct::new(fields, offset).map_err(|error| MetadataError::invalid(KEY, error.to_string()))?;
    Ok((DataType::Struct(structure), orders))
}

/// Reads the configuration of version 3; `parse` reads the type of a field.
pub(super) fn parse_v3(
    extension: &Extension<'_>,
    parse: fn(&Value) -> Result<DataType, MetadataError>,
) -> Result<DataType, MetadataError> {
    const KEY: &str = "data_type";
    let value = extension.require("fields")?;
    let entries = value.as_array().ok_or_else(|| MetadataError::expected(KEY, "a list of fields", value))?;
    let mut fields = allocation::with_capacity(entries.len())?;
    for entry in entries {
        let (name, item) =
            match (entry.as_array().map(Vec::as_slice), entry.get("name"), entry.get("data_type")) {
                (Some([name, item]), ..) | (None, Some(name), Some(item)) => (name, item),
                _ => return Err(MetadataError::expected(KEY, "a field with a name and a data_type", entry)),
            };
        let name = name.as_str().ok_or_else(|| MetadataError::expected(KEY, "the name of a field", name))?;
        fields.push((name.into(), parse(item)?, [].into()));
    }
    let structure = Struct::packed(fields).map_err(|error| MetadataError::invalid(KEY, error.to_string()))?;
    Ok(DataType::Struct(structure))
}

/// Returns the fields in the notation of version 2; `None` if it has no name for one; `orders` gives the byte order of
/// each run of words.
pub(super) fn document_v2(structure: &Struct, orders: &mut dyn Iterator<Item = ByteOrder>) -> Option<Value> {
    let (mut entries, mut end) = (Vec::new(), 0);
    let pad = |entries: &mut Vec<Value>, end: usize, next: usize| {
        if next > end {
            entries.push(json!(["", format!("|V{}", next - end)]));
        }
    };
    for field in structure.fields() {
        pad(&mut entries, end, field.offset);
        let item = match &field.data_type {
            DataType::Struct(inner) => {
                let item = document_v2(inner, orders)?;
                // The other items of the field have the same orders.
                let others = field.shape.iter().product::<u64>().saturating_sub(1) as usize;
                orders.take(others * field.data_type.words().len()).for_each(drop);
                item
            }
            plain => json!(type_string(plain, orders.next()?)?),
        };
        entries.push(match field.shape.is_empty() {
            true => json!([field.name, item]),
            false => json!([field.name, item, field.shape]),
        });
        end = field.offset + field.nbytes()?;
    }
    pad(&mut entries, end, structure.item_size());
    Some(Value::from(entries))
}

/// Returns the `data_type` of version 3; `document` gives the type of a field. Shapes and padding, which it cannot express, get keys of this crate: a type
/// may be displayed, but not written, if [`is_v3`] is false.
pub(super) fn document_v3(structure: &Struct, document: fn(&DataType) -> Value) -> Value {
    let has_padding = structure.has_padding();
    let field = |field: &Field| {
        let mut entry = json!({ "name": field.name, "data_type": document(&field.data_type) });
        if !field.shape.is_empty() {
            entry["shape"] = json!(field.shape);
        }
        if has_padding {
            entry["offset"] = json!(field.offset);
        }
        entry
    };
    let fields: Vec<Value> = structure.fields().iter().map(field).collect();
    json!({ "name": "struct", "configuration": { "fields": fields } })
}

/// Whether version 3 can express the type.
pub(super) fn is_v3(data_type: &DataType) -> bool {
    match data_type.without_optional() {
        DataType::Struct(structure) => {
            let plain = |field: &Field| field.shape.is_empty() && is_v3(&field.data_type);
            !structure.has_padding() && structure.fields().iter().all(plain)
        }
        _ => true,
    }
}

/// Reads the shape of a field; NumPy also accepts a number for one axis.
fn shape(value: &Value) -> Result<Vec<u64>, MetadataError> {
    match value.as_u64() {
        Some(extent) => Ok(vec![extent]),
        None => extents("dtype", value),
    }
}
