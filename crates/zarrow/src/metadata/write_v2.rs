//! Converts checked metadata to the `.zarray` of Zarr version 2, which [`super::read_v2`] reads back as the same metadata.
//!
//! The steps of [`super::read_v2`], backwards:
//! 1. a `transpose` at the start that reverses the axes is order `F`; no other is allowed;
//! 2. the `bytes` codec is the byte order of the data type;
//! 3. the last bytes-to-bytes codec is the compressor, and the codecs before it are filters.

use serde_json::{Map, Value, json};
use zarrow_array::DataType;

use super::codec_names::{CodecKind, CodecNames};
use super::read_v2::{ARRAY_DIMENSIONS, dimension_names, in_other_order};
use super::type_string::{ByteOrder, type_string};
use super::{ArrayMetadata, ChunkGrid, ChunkKeyEncoding, MetadataError, ZarrFormat, structure};

/// Returns the `.zarray` of an array.
pub(super) fn array(
    array: &ArrayMetadata,
    names: &dyn CodecNames,
) -> Result<Map<String, Value>, MetadataError> {
    let unsupported = |what: String| MetadataError::unsupported(format!("{what} in Zarr version 2"));
    let ChunkGrid::Regular { chunk_shape } = &array.chunk_grid else {
        return Err(unsupported("a grid of unequal chunks".to_owned()));
    };
    let ChunkKeyEncoding::V2 { separator } = &array.chunk_key_encoding else {
        return Err(unsupported("the chunk key encoding \"default\"".to_owned()));
    };
    if array.dimension_names.is_some()
        && array.dimension_names != dimension_names(&array.attributes, array.shape.len())
    {
        return Err(unsupported(format!("dimension_names other than the attribute {ARRAY_DIMENSIONS:?}")));
    }
    let chain = Chain::from_array(array, names)?;
    let dtype = match &array.data_type {
        DataType::Struct(structure) => {
            structure::document_v2(structure, &mut chain.byte_orders.iter().copied())
        }
        plain => {
            type_string(plain, chain.byte_orders.first().copied().unwrap_or(ByteOrder::None)).map(Value::from)
        }
    };
    let dtype = dtype.ok_or_else(|| unsupported(format!("data type {}", array.data_type)))?;
    let fill_value = match array.has_fill_value {
        true => in_other_order(array.fill_value.clone(), &array.data_type, &chain.byte_orders)
            .document(&array.data_type, ZarrFormat::V2)?,
        false => Value::Null,
    };
    Ok(Map::from_iter([
        ("zarr_format".to_owned(), json!(2)),
        ("shape".to_owned(), json!(array.shape)),
        ("chunks".to_owned(), json!(chunk_shape)),
        ("dtype".to_owned(), dtype),
        ("fill_value".to_owned(), fill_value),
        ("order".to_owned(), json!(chain.order)),
        ("filters".to_owned(), if chain.filters.is_empty() { Value::Null } else { json!(chain.filters) }),
        ("compressor".to_owned(), json!(chain.compressor)),
        ("dimension_separator".to_owned(), json!(separator)),
    ]))
}

/// Codec chain in the terms of version 2.
struct Chain {
    order: char,
    /// One for each run of words.
    byte_orders: Vec<ByteOrder>,
    filters: Vec<Value>,
    compressor: Option<Value>,
}

impl Chain {
    fn from_array(array: &ArrayMetadata, names: &dyn CodecNames) -> Result<Chain, MetadataError> {
        let mut codecs = array.codecs.as_slice();
        let words = array.data_type.words().len();
        let mut chain = Chain { order: 'C', byte_orders: Vec::new(), filters: Vec::new(), compressor: None };
        // Step 1.
        if let Some((first, rest)) = codecs.split_first()
            && first.name == "transpose"
        {
            let reversed: Vec<usize> = (0..array.shape.len()).rev().collect();
            if first.configuration.get("order") != Some(&json!(reversed)) {
                return Err(MetadataError::unsupported(
                    "a transpose other than order \"F\" in Zarr version 2",
                ));
            }
            (chain.order, codecs) = ('F', rest);
        }
        let item_size = array.data_type.item_size().unwrap_or(1);
        let mut is_bytes = false;
        for codec in codecs {
            if codec.name == "bytes" && !is_bytes {
                // Step 2.
                let order = |name: &Value| match name.as_str() {
                    Some("big") => ByteOrder::Big,
                    Some(_) => ByteOrder::Little,
                    None => ByteOrder::None,
                };
                chain.byte_orders = match (chain.order_before_filters(), codec.configuration.get("endian")) {
                    (Some(before), _) => vec![before; words],
                    (None, Some(Value::Array(orders))) => orders.iter().map(order).collect(),
                    (None, one) => vec![order(one.unwrap_or(&Value::Null)); words],
                };
                is_bytes = true;
                continue;
            }
            let document = codec.v2_document(item_size, names).ok_or_else(|| {
                MetadataError::unsupported(format!("the codec {:?} in Zarr version 2", codec.name))
            })?;
            chain.push(document, is_bytes);
            is_bytes |= codec.v2_kind(names) == CodecKind::ArrayToBytes;
        }
        Ok(chain)
    }

    /// Returns the input byte order of the first filter that names one: the `bytes` codec has the order of the
    /// filters' output.
    fn order_before_filters(&self) -> Option<ByteOrder> {
        let read = |filter: &Value| {
            let named = |key: &&str| ByteOrder::from_stored(filter.get(key)?.as_str()?);
            ["dtype", "decode_dtype"].iter().find_map(named)
        };
        self.filters.iter().find_map(read)
    }

    /// Step 3.
    fn push(&mut self, codec: Value, is_bytes: bool) {
        if is_bytes {
            self.filters.extend(self.compressor.replace(codec));
        } else {
            self.filters.push(codec);
        }
    }
}
