//! `sharding_indexed`: a chunk that contains chunks, with an index of their places.
//!
//! The index (`shard_index`) is at the start or at the end of the shard.
//!
//! Source: Zarr core 3.1, `sharding_indexed` codec.

use crate::codec::array_to_bytes::shard_index::{self, ShardIndex};
use crate::codec::chain::{ArrayToBytes, Chain, InnerChunks, Layout};
use crate::codec::chunk_elements::mismatch;
use crate::codec::definition::{ChunkLayout, Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, Worker};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::store::remote::ByteRange;
use serde_json::json;
use std::ops::Range;
use zarrow_array::Number;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["sharding_indexed"],
    parameters: &[
        ("chunk_shape", ParameterType::List),
        ("codecs", ParameterType::List),
        ("index_codecs", ParameterType::List),
        ("index_location", ParameterType::Text),
    ],
    defaults: |_| json!({ "index_codecs": ["bytes", "crc32c"], "index_location": "end" }),
    inner: |data_type| vec![("codecs", data_type.clone()), ("index_codecs", Number::UInt64.into())],
    stage: Stage::Serializer(|metadata, layout| Ok(Box::new(parse(metadata, layout)?))),
    ..Definition::PLAIN
};

/// Parses the configuration for shards.
///
/// # Errors
/// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for an index without a fixed size, and errors of the inner chains.
fn parse(metadata: &CodecMetadata, layout: &ChunkLayout<'_>) -> Result<InnerChunks> {
    let shard_shape = layout.shape;
    if !layout.can_split {
        return Err(ErrorKind::BadCodec("a part of a chunk cannot contain chunks".into()).into());
    }
    let wrong = |key: &str, expected: &str| wrong_parameter(&metadata.configuration, key, expected);
    let get = |key: &str| metadata.configuration.get(key);
    let chunk_shape: Vec<u64> = get("chunk_shape")
        .and_then(|value| value.as_array()?.iter().map(serde_json::Value::as_u64).collect())
        .ok_or_else(|| wrong("chunk_shape", "a list of extents"))?;
    let divides = |(shard, chunk): (&u64, &u64)| *chunk > 0 && shard.is_multiple_of(*chunk);
    if chunk_shape.len() != shard_shape.len() || !shard_shape.iter().zip(&chunk_shape).all(divides) {
        return Err(wrong("chunk_shape", &format!("extents that divide the shard's shape {shard_shape:?}")));
    }
    let at_end = match get("index_location").map(serde_json::Value::as_str) {
        None | Some(Some("end")) => true,
        Some(Some("start")) => false,
        _ => return Err(wrong("index_location", "\"start\" or \"end\"")),
    };
    let shape = &[shard_shape, &[2]].concat();
    let data_type = &Number::UInt64.into();
    let index = ChunkLayout { data_type, shape, ..*layout }.chain(metadata, "index_codecs")?;
    shard_index::check_codecs(&index)?;
    let chain = ChunkLayout { shape: &chunk_shape, ..*layout }.chain(metadata, "codecs")?;
    Ok(InnerChunks { chunk_shape, chain, index, at_end })
}

impl InnerChunks {
    /// Returns the number of inner chunks along each axis of a shard of `shard_shape`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if they do not divide the shard, which a grid of unequal chunks can cause.
    pub fn grid(&self, shard_shape: &[u64]) -> Result<Vec<u64>> {
        let axes = shard_shape.iter().zip(&self.chunk_shape);
        let grid: Option<Vec<u64>> =
            axes.map(|(shard, chunk)| shard.is_multiple_of(*chunk).then(|| shard / chunk)).collect();
        grid.ok_or_else(|| {
            let text = format!(
                "chunk_shape is {:?}, expected extents that divide the shard's shape {shard_shape:?}",
                self.chunk_shape
            );
            Error::from(ErrorKind::BadCodec(text)).in_codec("sharding_indexed")
        })
    }

    /// Returns the request for the index of a shard of `shard_shape`, and its number of bytes.
    pub fn index_span(&self, shard_shape: &[u64]) -> Result<(ByteRange, u64)> {
        let length = shard_index::nbytes(&self.index, &self.grid(shard_shape)?)? as u64;
        Ok((if self.at_end { ByteRange::Suffix(length) } else { ByteRange::Range(0..length) }, length))
    }

    /// Returns offset and length of the index in a shard of `nbytes` bytes with this grid.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the shard is smaller than its index.
    pub fn index_range(&self, grid: &[u64], nbytes: u64) -> Result<(u64, usize)> {
        let length = shard_index::nbytes(&self.index, grid)?;
        match nbytes.checked_sub(length as u64) {
            Some(rest) => Ok((if self.at_end { rest } else { 0 }, length)),
            None => {
                let text = format!("a shard of {nbytes} bytes cannot hold its index of {length} bytes");
                Err(Error::from(ErrorKind::Corrupt(text)).in_codec("sharding_indexed"))
            }
        }
    }

    /// Creates the error for an index of `actual` bytes instead of `expected`.
    pub fn wrong_index_size(&self, expected: usize, actual: usize) -> Error {
        let kind = ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 };
        Error::from(kind).in_codec("sharding_indexed")
    }

    /// Returns the first possible offset of an inner chunk in a shard with this grid, and the offset of an index at the
    /// start.
    pub fn data_start(&self, grid: &[u64]) -> Result<(u64, Option<u64>)> {
        if self.at_end {
            return Ok((0, None));
        }
        Ok((shard_index::nbytes(&self.index, grid)? as u64, Some(0)))
    }

    /// Encodes an index: offset and length of each inner chunk of `grid`, `None` for a missing one.
    pub fn encode_index(&self, entries: &[Option<(u64, u64)>], grid: &[u64]) -> Result<Vec<u8>> {
        shard_index::encode(&self.index, entries, grid).map_err(|error| error.in_codec("sharding_indexed"))
    }

    /// Decodes the index of a shard of `nbytes` bytes with this grid.
    pub fn parse_index(&self, bytes: &[u8], grid: &[u64], nbytes: u64) -> Result<ShardIndex> {
        shard_index::decode(&self.index, bytes, grid, nbytes)
            .map_err(|error| error.in_codec("sharding_indexed"))
    }
}

/// The engine uses the index to read and write each inner chunk as a chunk.
impl ArrayToBytes for InnerChunks {
    fn layout(&self) -> Layout<'_> {
        Layout::InnerChunks(self)
    }

    fn elements_chain(&self) -> Option<&Chain> {
        Some(&self.chain)
    }

    fn decode(&self, _: &EncodedChunk<'_>, _: Range<usize>, _: &mut Worker) -> Result<Decoded> {
        Err(Error::from(ErrorKind::BadCodec("sharding_indexed inside the codec optional".into()))
            .in_codec("sharding_indexed"))
    }

    fn encode(&self, _: ChunkElements<'_>, _: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        Err(mismatch())
    }

    fn check_settings(&self, fill_value: &FillValue) -> Result<()> {
        self.index.check_settings(&FillValue::zero(&Number::UInt64.into()))?;
        self.chain.check_settings(fill_value)
    }
}
