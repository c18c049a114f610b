//! From the metadata's list of codecs to a [`Chain`].
//!
//! 1. Every codec is known and on the correct side of the border between array and bytes. Leading transposes are
//!    merged into one order of axes: reading them only changes strides.
//! 2. The array-to-bytes codec follows. The byte order of `bytes` becomes a flag of the move.
//! 3. The rest are bytes-to-bytes codecs.
//! 4. Any other array-to-array codec is a filter, and the codecs after it form a nested chain (see
//!    [`array_to_array`](super::array_to_array)).
//!
//! This file knows the codecs by their table. They do not know it: a codec with inner codecs compiles them by
//! [`ChunkLayout::compile`].

use crate::codec::array_to_array::{Filter, Filtered, Parameters, transpose};
use crate::codec::array_to_bytes::user_codec::UserCodecElements;
use crate::codec::chain::{ArrayToBytes, Chain};
use crate::codec::decompress::BytesToBytes;
use crate::codec::definition::{ChunkLayout, Stage};
use crate::codec::user_codecs::UserCodec;
use crate::codec::{DecodeLimits, built_in, order};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata};
use serde_json::Value;
use zarrow_array::DataType;
use zarrow_array::fork::OnceCell;

/// Maximum number of codecs in a chain, more than any real chain has.
const MAX_CODECS: usize = 32;

/// Compiles `codecs` for chunks of `shape`.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`], [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`], with the codec named.
pub fn compile(
    codecs: &[CodecMetadata],
    data_type: &DataType,
    shape: &[u64],
    limits: &DecodeLimits,
) -> Result<Chain> {
    chain(codecs, &ChunkLayout { data_type, shape, limits, can_split: true, compile: inner })
}

fn inner(codecs: &Value, layout: &ChunkLayout<'_>) -> Result<Chain> {
    chain(&CodecMetadata::parse_chain(codecs, layout.data_type.item_size().unwrap_or(1))?, layout)
}

fn chain(codecs: &[CodecMetadata], layout: &ChunkLayout<'_>) -> Result<Chain> {
    if codecs.len() > MAX_CODECS {
        let (what, actual, limit) = ("the number of codecs", codecs.len() as u64, MAX_CODECS as u64);
        return Err(ErrorKind::Limit { what, actual, limit }.into());
    }
    order::check(codecs)?;
    let transposes = codecs.iter().take_while(|codec| codec.name == "transpose").count();
    let (transposes, rest) = codecs.split_at(transposes);
    let order = transpose::compose(transposes, layout.shape.len())?;
    let stored_shape = match &order {
        Some(order) => order.iter().map(|axis| layout.shape[*axis]).collect(),
        None => layout.shape.to_vec(),
    };
    let layout = ChunkLayout { shape: &stored_shape, ..*layout };
    let Some((codec, mut rest)) = rest.split_first() else {
        let text = "expected a codec from array to bytes (such as \"bytes\")";
        return Err(ErrorKind::BadCodec(text.into()).into());
    };
    let in_codec = |error: Error| error.in_codec(&codec.name);
    let filter = filter(codec, layout.data_type).map_err(in_codec)?;
    let filtered =
        filter.map(|filter| filtered(codec, filter, std::mem::take(&mut rest), &layout)).transpose()?;
    let bytes_to_bytes = rest.iter().map(bytes_to_bytes).collect::<Result<_>>()?;
    Ok(Chain {
        data_type: layout.data_type.clone(),
        order,
        name: codec.name.as_str().into(),
        array_to_bytes: match filtered {
            Some(filtered) => Box::new(filtered),
            None => array_to_bytes(codec, &layout).map_err(in_codec)?,
        },
        bytes_to_bytes,
        compressors: OnceCell::new(),
        limits: *layout.limits,
    })
}

/// Compiles the filter that `metadata` name; `None` for a codec that is not a filter.
fn filter(metadata: &CodecMetadata, data_type: &DataType) -> Result<Option<Filter>> {
    Ok(match built_in::find(&metadata.name).map(|codec| &codec.stage) {
        Some(Stage::Filter(parse)) => {
            Some(parse(&Parameters { configuration: &metadata.configuration, data_type })?)
        }
        None if order::kind(&metadata.name) == Some(CodecKind::ArrayToArray) => {
            let codec = UserCodec::from_metadata(metadata, CodecKind::ArrayToArray)?;
            if data_type.item_size().is_none() || matches!(data_type, DataType::Optional(_)) {
                return Err(ErrorKind::BadCodec(format!("cannot encode {data_type}")).into());
            }
            Some(Filter::UserCodec(codec))
        }
        _ => None,
    })
}

/// Compiles the codecs after a filter.
fn filtered(
    metadata: &CodecMetadata,
    filter: Filter,
    rest: &[CodecMetadata],
    layout: &ChunkLayout<'_>,
) -> Result<Filtered> {
    let in_filter = |error: Error| error.in_codec(&metadata.name);
    let unsupported = |text: String| in_filter(ErrorKind::Unsupported(text).into());
    let data_type = &filter.stored_type(layout.data_type);
    let shape = &filter.stored_shape(layout.shape).map_err(in_filter)?;
    if rest.iter().any(|codec| codec.name == "sharding_indexed") {
        // A missing inner chunk would need a fill value encoded by the filter.
        return Err(unsupported("a filter before sharding_indexed".into()));
    }
    let stored = chain(rest, &ChunkLayout { data_type, shape, ..*layout })?;
    if stored.order.is_some() && !stored.has_fixed_elements() {
        return Err(unsupported(format!("a filter before transposed {data_type}")));
    }
    Ok(Filtered { name: metadata.name.clone(), filter, stored, is_fixed: layout.has_fixed_elements() })
}

/// Compiles the array-to-bytes codec that `metadata` name, built-in or registered.
fn array_to_bytes(metadata: &CodecMetadata, layout: &ChunkLayout<'_>) -> Result<Box<dyn ArrayToBytes>> {
    match built_in::find(&metadata.name).map(|codec| &codec.stage) {
        Some(Stage::Serializer(compile)) => compile(metadata, layout),
        Some(_) => Err(ErrorKind::UnknownCodec(metadata.name.clone()).into()),
        None => {
            let codec = UserCodec::from_metadata(metadata, CodecKind::ArrayToBytes)?;
            layout.only_if(layout.has_fixed_elements())?;
            Ok(Box::new(UserCodecElements { codec, data_type: layout.data_type.clone() }))
        }
    }
}

/// Compiles the bytes-to-bytes codec that `metadata` name.
///
/// # Errors
/// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for settings that prevent decoding; [`ErrorKind::UnknownCodec`]
/// for a name of no bytes-to-bytes codec; with the codec named.
pub fn bytes_to_bytes(metadata: &CodecMetadata) -> Result<BytesToBytes> {
    let Some(definition) = built_in::find(&metadata.name) else {
        return UserCodec::from_metadata(metadata, CodecKind::BytesToBytes).map(BytesToBytes::UserCodec);
    };
    let codec = match definition.stage {
        Stage::Compressor { decoder, encoder } => decoder(metadata).map(|decoder| BytesToBytes::Compressor {
            name: definition.name(),
            decoder,
            encoder,
            metadata: metadata.clone(),
        }),
        Stage::Checksum(parse) => parse(metadata).map(BytesToBytes::Checksum),
        _ => Err(ErrorKind::UnknownCodec(metadata.name.clone()).into()),
    };
    codec.map_err(|error| error.in_codec(&metadata.name))
}
