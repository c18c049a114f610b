//! `sharding_indexed`: a chunk that is a store of chunks, with an index of where each lies.
//!
//! The index (`shard_index`) stands at the start or at the end of the shard.
//!
//! Source: Zarr core 3.1, `sharding_indexed` codec.

use crate::codec::chain::Chain;
use crate::codec::shard_index::{IndexCodecs, ShardIndex};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::options::DecodeLimits;
use crate::store::First;
use zarrow_array::DataType;

/// The configuration, compiled.
#[derive(Debug)]
pub struct Sharding {
    /// The shape of an inner chunk.
    pub chunk_shape: Vec<u64>,
    /// The codecs of an inner chunk.
    pub inner: Chain,
    at_end: bool,
    index: IndexCodecs,
}

impl Sharding {
    /// Reads the configuration, for shards of `shard_shape`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for an index of no fixed size, and what the inner chain refuses.
    pub fn new(
        metadata: &CodecMetadata,
        data_type: &DataType,
        shard_shape: &[u64],
        fill_value: &FillValue,
        limits: &DecodeLimits,
    ) -> Result<Sharding> {
        let bad = |text: &str| Error::from(ErrorKind::BadCodec(text.into()));
        let get = |key: &str| metadata.configuration.get(key);
        let chunk_shape: Vec<u64> = get("chunk_shape")
            .and_then(|value| value.as_array()?.iter().map(serde_json::Value::as_u64).collect())
            .ok_or_else(|| bad("chunk_shape must be a list of extents"))?;
        let divides = |(shard, chunk): (&u64, &u64)| *chunk > 0 && shard.is_multiple_of(*chunk);
        if chunk_shape.len() != shard_shape.len() || !shard_shape.iter().zip(&chunk_shape).all(divides) {
            return Err(bad("chunk_shape must divide the shape of the shard"));
        }
        let at_end = match get("index_location").map(serde_json::Value::as_str) {
            None | Some(Some("end")) => true,
            Some(Some("start")) => false,
            _ => return Err(bad("index_location must be \"start\" or \"end\"")),
        };
        let codecs = |key: &str, item_size| -> Result<Vec<CodecMetadata>> {
            let value = get(key).ok_or_else(|| bad(&format!("{key} is missing")))?;
            Ok(CodecMetadata::parse_chain(value, item_size)?)
        };
        let index = IndexCodecs::new(&codecs("index_codecs", 8)?, shard_shape.len())?;
        let inner = codecs("codecs", data_type.item_size().unwrap_or(1))?;
        let inner = Chain::new(&inner, data_type, &chunk_shape, fill_value, limits)?;
        Ok(Sharding { chunk_shape, inner, at_end, index })
    }

    /// How many inner chunks a shard of `shard_shape` has along each axis.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] where they do not divide it, as may be on a grid of unequal chunks.
    pub fn grid(&self, shard_shape: &[u64]) -> Result<Vec<u64>> {
        let axes = shard_shape.iter().zip(&self.chunk_shape);
        let grid: Option<Vec<u64>> =
            axes.map(|(shard, chunk)| shard.is_multiple_of(*chunk).then(|| shard / chunk)).collect();
        grid.ok_or_else(|| {
            Error::from(ErrorKind::BadCodec(format!("chunks do not divide a shard of {shard_shape:?}")))
                .in_codec("sharding_indexed")
        })
    }

    /// Where the index of a shard of `shard_shape` lies, before its size is known.
    ///
    /// # Errors
    /// As [`grid`](Sharding::grid).
    pub fn index_place(&self, shard_shape: &[u64]) -> Result<First> {
        let length = self.index.nbytes(&self.grid(shard_shape)?)? as u64;
        Ok(if self.at_end { First::End(length) } else { First::Range(0, length) })
    }

    /// Where the index of a shard of `nbytes` bytes and this grid lies: offset and length.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where the shard is smaller than its index.
    pub fn index_range(&self, grid: &[u64], nbytes: u64) -> Result<(u64, usize)> {
        let length = self.index.nbytes(grid)?;
        match nbytes.checked_sub(length as u64) {
            Some(rest) => Ok((if self.at_end { rest } else { 0 }, length)),
            None => {
                let text = format!("a shard of {nbytes} bytes cannot hold its index of {length} bytes");
                Err(Error::from(ErrorKind::Corrupt(text)).in_codec("sharding_indexed"))
            }
        }
    }

    /// Where the first inner chunk of a shard of this grid may lie, and where its index does if not behind all of them.
    ///
    /// # Errors
    /// [`zarrow_array::Error::ShapeOverflow`].
    pub fn data_start(&self, grid: &[u64]) -> Result<(u64, Option<u64>)> {
        if self.at_end {
            return Ok((0, None));
        }
        Ok((self.index.nbytes(grid)? as u64, Some(0)))
    }

    /// The bytes of an index: offset and length of each inner chunk of `grid`, `None` for one that is not stored.
    ///
    /// # Errors
    /// As [`IndexCodecs::encode`].
    pub fn encode_index(&self, entries: &[Option<(u64, u64)>], grid: &[u64]) -> Result<Vec<u8>> {
        self.index.encode(entries, grid).map_err(|error| error.in_codec("sharding_indexed"))
    }

    /// Reads the index of a shard of `nbytes` bytes and this grid.
    ///
    /// # Errors
    /// As [`IndexCodecs::decode`].
    pub fn parse_index(&self, bytes: &[u8], grid: &[u64], nbytes: u64) -> Result<ShardIndex> {
        self.index.decode(bytes, grid, nbytes).map_err(|error| error.in_codec("sharding_indexed"))
    }
}
