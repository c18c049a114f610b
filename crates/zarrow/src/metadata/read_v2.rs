//! Zarr version 2: `.zarray` and `.zgroup`, translated to the form of version 3.
//!
//! An array's chain, in the order of encoding:
//! 1. order `F` is a `transpose` that reverses the axes;
//! 2. array-to-array filters come in their order; a filter that names its input type must be given that type's byte
//!    order, since numcodecs does not convert the bytes;
//! 3. one codec maps the array to bytes: a filter such as `vlen-utf8`, else `bytes` with the byte order of the
//!    filters' output;
//! 4. other filters, and then the compressor, map bytes to bytes.

use serde_json::{Map, Value, json};
use zarrow_array::DataType;

use super::chunk_key::separator;
use super::codec_names::{CodecKind, CodecNames};
use super::json::{Document, extents};
use super::type_string::{ByteOrder, TypeString};
use super::{
    ArrayMetadata, Attributes, ChunkGrid, ChunkKeyEncoding, CodecMetadata, FillValue, GroupMetadata,
    MetadataError, MetadataLimits, ZarrFormat, check, repair, structure,
};
use crate::error::metadata::excerpt;

/// Reads a `.zarray`. Keys outside the specification are ignored, as it requires.
pub(super) fn array(
    mut document: Document<'_>,
    attributes: Attributes,
    limits: &MetadataLimits,
    names: &dyn CodecNames,
) -> Result<ArrayMetadata, MetadataError> {
    document.require_format(2)?;
    let stored_shape = document.required("shape")?;
    let shape = extents("shape", &stored_shape)?;
    check::ndim(&shape, limits)?;
    let filters = match document.optional("filters") {
        None => Vec::new(),
        Some(Value::Array(filters)) => filters,
        Some(other) => return Err(MetadataError::expected("filters", "a list", &other)),
    };
    let (data_type, byte_orders) = dtype(&document.required("dtype")?, &filters)?;
    limits.check_item(&data_type)?;
    let fill_value = document.required("fill_value")?;
    let has_fill_value = !fill_value.is_null();
    let fill_value = FillValue::parse(&fill_value, &data_type, ZarrFormat::V2)?;
    let mut stages = Vec::new();
    let item_size = data_type.item_size().unwrap_or(1);
    for filter in &filters {
        stages.push(CodecMetadata::from_v2("filters", filter, item_size, names)?);
    }
    if let Some(compressor) = document.optional("compressor") {
        stages.push(CodecMetadata::from_v2("compressor", &compressor, item_size, names)?);
    }
    let separator =
        document.optional("dimension_separator").map(|value| separator("dimension_separator", &value));
    let transpose = transpose(&document.required("order")?, shape.len())?;
    let mut chunks = document.required("chunks")?;
    repair::chunk_shape(&mut chunks, &stored_shape, None);
    let array = ArrayMetadata {
        zarr_format: ZarrFormat::V2,
        chunk_grid: ChunkGrid::regular("chunks", &chunks, &shape)?,
        chunk_key_encoding: ChunkKeyEncoding::V2 { separator: separator.transpose()?.unwrap_or('.') },
        has_fill_value,
        fill_value: in_other_order(fill_value, &data_type, &byte_orders),
        codecs: chain(stages, transpose, &byte_orders, names)?,
        dimension_names: dimension_names(&attributes, shape.len()),
        attributes,
        shape,
        data_type,
    };
    check::array(&array, limits)?;
    Ok(array)
}

/// Attribute for the dimension names of version 2, a convention of xarray and NCZarr.
pub(crate) const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// Returns the dimension names in the attributes, if there is one for each dimension.
pub(crate) fn dimension_names(attributes: &Attributes, ndim: usize) -> Option<Vec<Option<String>>> {
    let names = attributes.get(ARRAY_DIMENSIONS)?.as_array()?;
    let names: Option<Vec<_>> = names.iter().map(|name| Some(Some(name.as_str()?.to_owned()))).collect();
    names.filter(|names| names.len() == ndim)
}

/// Reads a `.zgroup`; its consolidated metadata are read separately.
pub(super) fn group(
    mut document: Document<'_>,
    attributes: Attributes,
) -> Result<GroupMetadata, MetadataError> {
    document.require_format(2)?;
    Ok(GroupMetadata { zarr_format: ZarrFormat::V2, attributes, consolidated: None })
}

/// Reads the data type, and its stored byte order: one for each run of words of a structure.
fn dtype(value: &Value, filters: &[Value]) -> Result<(DataType, Vec<ByteOrder>), MetadataError> {
    let unsupported = || MetadataError::unsupported(format!("data type {}", excerpt(value)));
    let text = match value {
        Value::String(text) => text,
        Value::Array(_) => return structure::parse_v2(value),
        _ => return Err(MetadataError::expected("dtype", "a NumPy type string", value)),
    };
    match TypeString::parse(text).ok_or_else(unsupported)? {
        TypeString::Fixed(data_type, order) => Ok((data_type, vec![order])),
        TypeString::Object => {
            match filters.first().and_then(|filter| filter.get("id")).and_then(Value::as_str) {
                Some("vlen-utf8" | "categorize") => Ok((DataType::String, vec![ByteOrder::None])),
                Some("vlen-bytes") => Ok((DataType::Bytes, vec![ByteOrder::None])),
                Some("pickle") => Err(MetadataError::unsupported(
                    "data type \"|O\" with a pickle filter (reading a pickle can run any code)",
                )),
                _ => Err(MetadataError::unsupported(
                    "data type \"|O\" without a vlen-utf8, vlen-bytes or categorize filter",
                )),
            }
        }
    }
}

/// Step 1.
fn transpose(order: &Value, ndim: usize) -> Result<Option<CodecMetadata>, MetadataError> {
    match order.as_str() {
        Some("F") if ndim > 1 => {
            let axes: Vec<usize> = (0..ndim).rev().collect();
            Ok(Some(codec("transpose", "order", json!(axes))))
        }
        Some("C" | "F") => Ok(None),
        _ => Err(MetadataError::expected("order", "\"C\" or \"F\"", order)),
    }
}

/// Steps 2 to 4, from the filters and the compressor.
fn chain(
    stages: Vec<CodecMetadata>,
    transpose: Option<CodecMetadata>,
    byte_orders: &[ByteOrder],
    names: &dyn CodecNames,
) -> Result<Vec<CodecMetadata>, MetadataError> {
    let mut stored = bytes(byte_orders);
    let mut order = byte_orders.first().copied().unwrap_or(ByteOrder::None);
    let mut codecs: Vec<CodecMetadata> = transpose.into_iter().collect();
    let mut is_bytes = false;
    for stage in stages {
        let kind = stage.v2_kind(names);
        if is_bytes && kind != CodecKind::BytesToBytes {
            let what =
                format!("filter {} after a filter that produces bytes", excerpt(&Value::from(stage.name)));
            return Err(MetadataError::unsupported(what));
        }
        match kind {
            CodecKind::ArrayToArray => {
                let named = |keys: [&str; 2]| {
                    keys.iter().find_map(|key| stage.text(key)).and_then(ByteOrder::from_stored)
                };
                let read = named(["dtype", "decode_dtype"]);
                if let Some(read) = read
                    && [order, read].iter().all(|order| *order != ByteOrder::None)
                    && order != read
                {
                    let what =
                        format!("filter {} of non-native byte order", excerpt(&Value::from(stage.name)));
                    return Err(MetadataError::unsupported(what));
                }
                // A filter that changes the type names its output type, including the byte order.
                let bits = (stage.name == "numcodecs.packbits").then_some(ByteOrder::None);
                if let Some(written) = bits.or_else(|| named(["astype", "encode_dtype"])).or(read) {
                    (order, stored) = (written, bytes(&[written]));
                }
            }
            CodecKind::ArrayToBytes => is_bytes = true,
            CodecKind::BytesToBytes if !is_bytes => {
                codecs.push(stored.clone());
                is_bytes = true;
            }
            CodecKind::BytesToBytes => {}
        }
        codecs.push(stage);
    }
    if !is_bytes {
        codecs.push(stored);
    }
    Ok(codecs)
}

/// Returns the `bytes` codec, with a list of orders if the fields of a structure differ: the only part of the chain
/// that version 3 cannot express.
fn bytes(orders: &[ByteOrder]) -> CodecMetadata {
    let name = |order: ByteOrder| if order == ByteOrder::Big { "big" } else { "little" };
    let mut said = orders.iter().filter(|order| **order != ByteOrder::None);
    match said.next() {
        None => CodecMetadata::new("bytes", Map::new()),
        Some(first) if said.all(|order| order == first) => codec("bytes", "endian", json!(name(*first))),
        Some(_) => codec("bytes", "endian", orders.iter().map(|order| name(*order)).collect()),
    }
}

/// Converts the fill value of a structure, which is stored like an element, between the two byte orders.
pub(super) fn in_other_order(fill_value: FillValue, data_type: &DataType, orders: &[ByteOrder]) -> FillValue {
    let native = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
    match (fill_value, data_type) {
        (FillValue::Fixed(mut item), DataType::Struct(_)) => {
            for (words, order) in data_type.words().iter().zip(orders) {
                if *order != native && *order != ByteOrder::None {
                    words.reverse(&mut item);
                }
            }
            FillValue::Fixed(item)
        }
        (other, _) => other,
    }
}

fn codec(name: &str, parameter: &str, value: Value) -> CodecMetadata {
    CodecMetadata::new(name, Map::from_iter([(parameter.to_owned(), value)]))
}
