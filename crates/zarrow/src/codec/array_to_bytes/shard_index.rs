//! The index of a shard: an array of `u64` with the shape of the grid of inner chunks and one more axis, for offset and
//! length.
//!
//! 1. Its encoded size must be known before the shard is read, and follows from the grid. Its codecs are transposes,
//!    `bytes`, and any number of bytes-to-bytes codecs with a fixed output size (checksums, shuffle, base64).
//! 2. After decoding it is checked: every range is inside the shard. A missing inner chunk has 2⁶⁴ − 1 in both words.
//!
//! Source: Zarr core 3.1, `sharding_indexed` codec.

use crate::codec::chain::{Chain, Layout};
use crate::codec::compress::encode as compress;
use crate::codec::decompress::{decode as decompress, decode_checksums};
use crate::codec::{Codecs, Output, Scratch, Swap};
use crate::error::{ErrorKind, Result};
use zarrow_array::shape;

/// Bytes of one entry.
const ENTRY_NBYTES: usize = 16;
/// Offset and length of a missing inner chunk.
const ABSENT: (u64, u64) = (u64::MAX, u64::MAX);

/// The checked index of one shard: every range is inside the shard.
#[derive(Debug)]
pub struct ShardIndex {
    entries: Vec<(u64, u64)>,
}

/// Checks that the codecs of an index give it a known size.
pub fn check_codecs(codecs: &Chain) -> Result<()> {
    let compressor = codecs.bytes_to_bytes.iter().find(|codec| codec.encoded_size(ENTRY_NBYTES).is_none());
    let codec = match (codecs.layout(), compressor) {
        (Layout::Elements(_), None) => return Ok(()),
        (Layout::Elements(_), Some(codec)) => codec.name(),
        _ => codecs.elements_codec(),
    };
    let text = format!("{codec:?} in index_codecs: an index needs codecs of a known encoded size");
    Err(ErrorKind::Unsupported(text).into())
}

/// Returns whether the bytes of each word are stored in the order that this machine does not have.
fn is_swapped(codecs: &Chain) -> bool {
    !matches!(codecs.layout(), Layout::Elements(Swap::None))
}

/// Returns the size in bytes of the index of a shard with this grid (step 1).
pub fn nbytes(codecs: &Chain, grid: &[u64]) -> Result<usize> {
    let plain = shape::nbytes(grid, ENTRY_NBYTES)?;
    let encoded = codecs.bytes_to_bytes.iter().try_fold(plain, |nbytes, codec| codec.encoded_size(nbytes));
    let overflow = || zarrow_array::Error::ShapeOverflow { shape: grid.to_vec(), item_size: ENTRY_NBYTES };
    Ok(encoded.ok_or_else(overflow)?)
}

/// Encodes an index: offset and length of each inner chunk of `grid`, `None` for a missing one.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`], [`ErrorKind::Unsupported`] if a shuffle does not fit.
pub fn encode(codecs: &Chain, entries: &[Option<(u64, u64)>], grid: &[u64]) -> Result<Vec<u8>> {
    let mut bytes = memory(nbytes(codecs, grid)?)?;
    bytes.resize(shape::nbytes(grid, ENTRY_NBYTES)?, 0);
    let (words, swapped) = (bytes.as_chunks_mut::<8>().0, is_swapped(codecs));
    places(codecs, grid, |number, offset, length| {
        let entry = entries.get(number).copied().flatten().unwrap_or(ABSENT);
        for (at, word) in [(offset, entry.0), (length, entry.1)] {
            if let Some(place) = words.get_mut(at) {
                *place = if swapped { word.swap_bytes() } else { word }.to_ne_bytes();
            }
        }
    });
    let mut scratch = Scratch::default();
    let encoded = compress(codecs.compressors()?, &bytes, &mut scratch, &mut Codecs::default())?;
    let (body, tail) = (encoded.body, encoded.tail);
    if body.as_ptr() != bytes.as_ptr() {
        return Ok([body, &tail].concat());
    }
    bytes.extend_from_slice(&tail);
    Ok(bytes)
}

/// Decodes the index of a shard of `nbytes` bytes with this grid (step 2).
///
/// # Errors
/// [`ErrorKind::Checksum`], [`ErrorKind::Corrupt`] if an entry points outside the shard.
pub fn decode(codecs: &Chain, encoded: &[u8], grid: &[u64], nbytes: u64) -> Result<ShardIndex> {
    let (rest, mut bytes) = decode_checksums(&codecs.bytes_to_bytes, encoded)?;
    let mut decoded = Vec::new();
    if !rest.is_empty() {
        let limit = shape::nbytes(grid, ENTRY_NBYTES)?;
        decompress(rest, bytes, Output::Growing(&mut decoded, limit), &mut Codecs::default())?;
        bytes = &decoded;
    }
    let words = bytes.as_chunks::<8>().0;
    if words.len() as u64 != shape::nbytes(grid, ENTRY_NBYTES)? as u64 / 8 {
        return Err(ErrorKind::Corrupt("the index has the wrong size".into()).into());
    }
    let swapped = is_swapped(codecs);
    let word = |at: usize| {
        let word = u64::from_ne_bytes(words.get(at).copied().unwrap_or([u8::MAX; 8]));
        if swapped { word.swap_bytes() } else { word }
    };
    let count = words.len() / 2;
    let mut entries = Vec::new();
    let out_of_memory = |_| zarrow_array::Error::OutOfMemory { nbytes: count.saturating_mul(ENTRY_NBYTES) };
    entries.try_reserve_exact(count).map_err(out_of_memory)?;
    let mut outside = None;
    places(codecs, grid, |number, offset, length| {
        let (offset, length) = (word(offset), word(length));
        let stored = (offset, length) != ABSENT;
        if stored && outside.is_none() && offset.checked_add(length).is_none_or(|end| end > nbytes) {
            outside = Some((number, offset, length));
        }
        entries.push((offset, length));
    });
    if let Some((number, offset, length)) = outside {
        let text = format!(
            "inner chunk {number} claims {length} bytes at {offset}, outside a shard of {nbytes} bytes"
        );
        return Err(ErrorKind::Corrupt(text).into());
    }
    Ok(ShardIndex { entries })
}

/// Calls `each` with the number of each inner chunk, in rising order, and the positions of its offset and its
/// length, in words.
fn places(codecs: &Chain, grid: &[u64], mut each: impl FnMut(usize, usize, usize)) {
    let count = grid.iter().product::<u64>() as usize;
    let Some(order) = &codecs.order else {
        return (0..count).for_each(|number| each(number, 2 * number, 2 * number + 1));
    };
    let extent = |axis: usize| grid.get(axis).map_or(2, |extent| *extent as usize);
    let mut strides = vec![0; order.len()];
    let mut stride = 1;
    for axis in order.iter().rev() {
        strides[*axis] = stride;
        stride *= extent(*axis);
    }
    for number in 0..count {
        let (mut rest, mut at) = (number, 0);
        for axis in (0..grid.len()).rev() {
            at += rest % extent(axis) * strides[axis];
            rest /= extent(axis);
        }
        each(number, at, at + strides[grid.len()]);
    }
}

impl ShardIndex {
    /// Returns the bytes it takes in memory.
    pub fn nbytes(&self) -> usize {
        self.entries.len() * ENTRY_NBYTES
    }

    /// Returns offset and length of the inner chunk `number` (in C order), `None` if it is missing.
    pub fn get(&self, number: usize) -> Option<(u64, u64)> {
        self.entries.get(number).copied().filter(|entry| *entry != ABSENT)
    }
}

fn memory(nbytes: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{DecodeLimits, compile};
    use crate::metadata::CodecMetadata;
    use serde_json::{Value, json};
    use zarrow_array::Number;

    fn codecs(value: Value, ndim: usize) -> Result<Chain> {
        let (codecs, data_type) = (CodecMetadata::parse_chain(&value, 8)?, Number::UInt64.into());
        let chain = compile(&codecs, &data_type, &vec![2; ndim + 1], &DecodeLimits::default())?;
        check_codecs(&chain).map(|()| chain)
    }

    /// Every chain of fixed size round-trips, with the encoded size it stated.
    #[test]
    fn any_chain_of_fixed_size_round_trips() {
        let grid = [2, 3];
        let entries: Vec<_> = (0..6).map(|at| (at != 4).then_some((at * 10, 10))).collect();
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
        let turned = json!({"name": "transpose", "configuration": {"order": [2, 0, 1]}});
        let crc32 = json!({"name": "numcodecs.crc32", "configuration": {}});
        let shuffle = json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}});
        let base64 = json!({"name": "numcodecs.base64"});
        for (value, nbytes) in [
            (json!([little]), 96),
            (json!([big, {"name": "crc32c"}, {"name": "crc32c"}]), 104),
            (json!([turned, little, crc32]), 100),
            (json!([turned, turned, big, shuffle, {"name": "crc32c"}]), 100),
            (json!([little, crc32, base64, {"name": "numcodecs.fletcher32"}]), 140),
        ] {
            let codecs = codecs(value.clone(), 2).unwrap();
            let bytes = encode(&codecs, &entries, &grid).unwrap();
            assert_eq!((bytes.len(), super::nbytes(&codecs, &grid).unwrap()), (nbytes, nbytes), "{value}");
            let index = decode(&codecs, &bytes, &grid, 60).unwrap();
            let found: Vec<_> = (0..6).map(|number| index.get(number)).collect();
            assert_eq!(found, entries, "{value}");
            assert!(decode(&codecs, &bytes, &grid, 59).is_err());
            assert!(decode(&codecs, &bytes[1..], &grid, 60).is_err());
        }
    }

    #[test]
    fn a_transposed_index_has_the_layout_of_its_array() {
        let value = json!([
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "bytes", "configuration": {"endian": "little"}},
        ]);
        let bytes = encode(&codecs(value, 1).unwrap(), &[Some((1, 2)), Some((3, 4))], &[2]).unwrap();
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert_eq!(words, [1, 3, 2, 4]);
    }

    #[test]
    fn codecs_of_no_fixed_size_are_refused() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        for (value, code) in [
            (json!([little, {"name": "zstd"}]), "unsupported"),
            (json!([{"name": "packbits"}]), "unsupported"),
            (json!([little, {"name": "nonesuch"}]), "unknown_codec"),
            (json!([little, {"name": "packbits"}]), "bad_codec"),
            (json!([{"name": "bytes"}]), "bad_codec"),
            (json!([{"name": "transpose", "configuration": {"order": [0]}}, little]), "bad_codec"),
        ] {
            assert_eq!(codecs(value, 1).unwrap_err().kind().code(), code);
        }
    }
}
