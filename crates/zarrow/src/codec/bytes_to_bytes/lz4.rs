//! `numcodecs.lz4`: the decompressed size in four little-endian bytes, then one LZ4 block.
//!
//! Source: numcodecs `LZ4`.

use super::setting::integer;
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Written};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::{ErrorKind, Result};
use crate::metadata::CodecMetadata;
use serde_json::json;
use std::ffi::{c_char, c_int};

unsafe extern "C" {
    // From LZ4 (`lz4.h`): stops when `wanted` bytes are written.
    fn LZ4_decompress_safe_partial(
        source: *const c_char,
        destination: *mut c_char,
        length: c_int,
        wanted: c_int,
        room: c_int,
    ) -> c_int;
}

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["lz4", "numcodecs.lz4"],
    parameters: &[("acceleration", ParameterType::Integer)],
    defaults: |_| json!({ "acceleration": 1 }),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(Block)),
        encoder: |metadata| Ok(Box::new(Acceleration::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

/// Decoder of the block.
#[derive(Debug)]
struct Block;

impl Decoder for Block {
    fn decode(&self, source: &[u8], destination: &mut Uninit, _: &mut Codecs) -> Result<usize, Failure> {
        let (size, block) = parts(source)?;
        let destination = destination.get_mut(..size).ok_or(Failure::TooSmall)?;
        match decompress(block, destination)? {
            written if written == size => Ok(written),
            _ => Err(Failure::corrupt("the block decodes to fewer bytes than its size field says")),
        }
    }

    /// Each byte of a match's length adds at most 255 bytes to the output.
    fn max_ratio(&self) -> usize {
        255
    }

    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        match parts(source)? {
            (size, block) if size <= block.len().saturating_mul(self.max_ratio()) => Ok(size),
            _ => Err(Failure::corrupt("the block is too short for its size field")),
        }
    }
}

/// Acceleration: a higher value compresses faster and to a larger size.
#[derive(Debug)]
struct Acceleration(i32);

impl Acceleration {
    fn parse(metadata: &CodecMetadata) -> Result<Acceleration> {
        let acceleration = integer(metadata, "acceleration", 1, 0, i64::from(i32::MAX))?;
        Ok(Acceleration((acceleration as i32).max(1)))
    }
}

impl Encoder for Acceleration {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, _: &mut Codecs) -> Result<usize> {
        Ok(compress(self.0, source, scratch.take(bound(source.len())?)?)?)
    }
}

/// Returns the decompressed size and the block of numcodecs' LZ4 format.
fn parts(source: &[u8]) -> Result<(usize, &[u8]), Failure> {
    let (size, block) =
        source.split_first_chunk::<4>().ok_or(Failure::corrupt("shorter than its size field"))?;
    let size = usize::try_from(i32::from_le_bytes(*size)).map_err(|_| Failure::corrupt("negative size"))?;
    Ok((size, block))
}

/// Decompresses one LZ4 block to the start of `destination`; returns the bytes written.
pub fn decompress(source: &[u8], destination: &mut Uninit) -> Result<usize, Failure> {
    let (Ok(read), Ok(space)) = (c_int::try_from(source.len()), c_int::try_from(destination.len())) else {
        return Err(Failure::corrupt("an LZ4 block must be smaller than 2 GiB"));
    };
    // SAFETY: both ranges are from slices, the second exclusive; the function stays inside both.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(source.as_ptr().cast(), destination.as_mut_ptr().cast(), read, space)
    };
    usize::try_from(written).map_err(|_| Failure::corrupt("not a valid LZ4 block of this size"))
}

/// Decompresses the start of one LZ4 block to all of `destination`, and does not check the rest of the block; returns
/// the bytes written, fewer if the block is shorter.
pub fn decompress_start(source: &[u8], destination: &mut Uninit) -> Result<usize, Failure> {
    let (Ok(length), Ok(wanted)) = (c_int::try_from(source.len()), c_int::try_from(destination.len())) else {
        return Err(Failure::corrupt("an LZ4 block must be smaller than 2 GiB"));
    };
    let (from, to) = (source.as_ptr(), destination.as_mut_ptr());
    // SAFETY: both ranges are from slices, the second exclusive; the function stays inside both.
    let written = unsafe { LZ4_decompress_safe_partial(from.cast(), to.cast(), length, wanted, wanted) };
    usize::try_from(written).map_err(|_| Failure::corrupt("not a valid LZ4 block"))
}

/// Returns the maximum compressed size of `nbytes`, including the size before the block.
fn bound(nbytes: usize) -> Result<usize> {
    let nbytes = c_int::try_from(nbytes).map_err(|_| {
        ErrorKind::Unsupported(format!("LZ4 takes less than 2 GiB at once, not {nbytes} bytes"))
    })?;
    // SAFETY: the function takes a number and returns one.
    let bound = unsafe { lz4_sys::LZ4_compressBound(nbytes) };
    Ok(usize::try_from(bound).unwrap_or(0) + 4)
}

/// Compresses `source` to its size and one block, as numcodecs does.
fn compress(acceleration: i32, source: &[u8], destination: &mut Uninit) -> Written {
    let (Ok(read), Some((size, block))) =
        (c_int::try_from(source.len()), destination.split_first_chunk_mut::<4>())
    else {
        return Err("LZ4 takes less than 2 GiB at once".into());
    };
    size.write_copy_of_slice(&read.to_le_bytes());
    let space = c_int::try_from(block.len()).unwrap_or(c_int::MAX);
    // SAFETY: both ranges are from slices, the second exclusive, and the function stays inside both.
    let written = unsafe {
        lz4_sys::LZ4_compress_fast(
            source.as_ptr().cast(),
            block.as_mut_ptr().cast(),
            read,
            space,
            acceleration,
        )
    };
    match usize::try_from(written) {
        Ok(written) if written > 0 => Ok(written + 4),
        _ => Err(format!("LZ4 cannot compress {read} bytes").into()),
    }
}
