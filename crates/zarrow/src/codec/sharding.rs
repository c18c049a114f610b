//! `sharding_indexed`: a chunk that is a store of chunks, with an index of where each lies.
//!
//! The index has an offset and a length (`u64` each) for every inner chunk in C order; both are 2⁶⁴ − 1 for one
//! that is not stored. It stands at the start or at the end of the shard.
//!
//! Source: Zarr core 3.1, `sharding_indexed` codec.

use crate::codec::bytes_to_bytes::{BytesToBytes, check_crc32c};
use crate::codec::chain::Chain;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::options::DecodeLimits;
use crate::store::First;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::{DataType, shape};

/// Bytes of one entry of an index.
const ENTRY: usize = 16;

/// The configuration, compiled.
#[derive(Debug)]
pub struct Sharding {
    /// The shape of an inner chunk.
    pub chunk_shape: Vec<u64>,
    /// The codecs of an inner chunk.
    pub inner: Chain,
    at_end: bool,
    big_endian: bool,
    checksums: usize,
}

/// The index of one shard, checked: every range lies inside the shard.
#[derive(Debug)]
pub struct ShardIndex {
    entries: Vec<(u64, u64)>,
}

impl Sharding {
    /// Reads the configuration, for shards of `shard_shape`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for an index that is compressed, and what the inner
    /// chain refuses.
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
        let (big_endian, checksums) = index_codecs(&codecs("index_codecs", 8)?)?;
        let inner = codecs("codecs", data_type.item_size().unwrap_or(1))?;
        let inner = Chain::new(&inner, data_type, &chunk_shape, fill_value, limits)?;
        Ok(Sharding { chunk_shape, inner, at_end, big_endian, checksums })
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
        let length = self.index_nbytes(&self.grid(shard_shape)?)? as u64;
        Ok(if self.at_end { First::End(length) } else { First::Range(0, length) })
    }

    fn index_nbytes(&self, grid: &[u64]) -> Result<usize> {
        Ok(shape::nbytes(grid, ENTRY)? + 4 * self.checksums)
    }

    /// Where the index of a shard of `nbytes` bytes and this grid lies: offset and length.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where the shard is smaller than its index.
    pub fn index_range(&self, grid: &[u64], nbytes: u64) -> Result<(u64, usize)> {
        let length = self.index_nbytes(grid)?;
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
        Ok((self.index_nbytes(grid)? as u64, Some(0)))
    }

    /// The bytes of an index: offset and length of each inner chunk, `None` for one that is not stored.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn encode_index(&self, entries: &[Option<(u64, u64)>]) -> Result<Vec<u8>> {
        let word = |word: u64| if self.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut bytes: Vec<u8> = allocation::with_capacity(entries.len() * ENTRY + 4 * self.checksums)?;
        for entry in entries {
            let (offset, length) = entry.unwrap_or((u64::MAX, u64::MAX));
            bytes.extend_from_slice(&word(offset));
            bytes.extend_from_slice(&word(length));
        }
        for _ in 0..self.checksums {
            bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        }
        Ok(bytes)
    }

    /// Reads the index of a shard of `nbytes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`], [`ErrorKind::Corrupt`] where an entry points outside the shard.
    pub fn parse_index(&self, bytes: &[u8], nbytes: u64) -> Result<ShardIndex> {
        let mut bytes = bytes;
        for _ in 0..self.checksums {
            bytes = check_crc32c(bytes).map_err(|error| error.in_codec("sharding_indexed"))?;
        }
        let word = |word: &[u8; 8]| {
            if self.big_endian { u64::from_be_bytes(*word) } else { u64::from_le_bytes(*word) }
        };
        let mut entries = allocation::with_capacity(bytes.len() / ENTRY)?;
        for (number, [offset, length]) in bytes.as_chunks::<8>().0.as_chunks::<2>().0.iter().enumerate() {
            let (offset, length) = (word(offset), word(length));
            let stored = (offset, length) != (u64::MAX, u64::MAX);
            if stored && offset.checked_add(length).is_none_or(|end| end > nbytes) {
                let text = format!(
                    "inner chunk {number} claims {length} bytes at {offset}, outside a shard of {nbytes} bytes"
                );
                return Err(Error::from(ErrorKind::Corrupt(text)).in_codec("sharding_indexed"));
            }
            entries.try_push((offset, length))?;
        }
        Ok(ShardIndex { entries })
    }
}

impl ShardIndex {
    /// Bytes that it holds beside itself.
    pub fn nbytes(&self) -> usize {
        self.entries.capacity() * ENTRY
    }

    /// Offset and length of the inner chunk `number` (in C order), `None` where it is not stored.
    pub fn get(&self, number: usize) -> Option<(u64, u64)> {
        self.entries.get(number).copied().filter(|entry| *entry != (u64::MAX, u64::MAX))
    }
}

/// The byte order of the index and how many checksums follow it. An index has a size that is known beforehand,
/// which leaves these codecs.
fn index_codecs(codecs: &[CodecMetadata]) -> Result<(bool, usize)> {
    let refused = || Error::from(ErrorKind::Unsupported("index_codecs other than bytes and crc32c".into()));
    let (bytes, checksums) = codecs.split_first().ok_or_else(refused)?;
    let endian = bytes.configuration.get("endian").and_then(serde_json::Value::as_str);
    let plain = checksums.iter().all(|codec| BytesToBytes::parse(codec) == Some(BytesToBytes::Crc32c));
    match (bytes.name.as_str(), endian) {
        ("bytes", Some("little")) if plain => Ok((false, checksums.len())),
        ("bytes", Some("big")) if plain => Ok((true, checksums.len())),
        _ => Err(refused()),
    }
}
