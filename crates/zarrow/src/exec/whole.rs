//! Decoding a whole chunk of any layout to memory of its own: for the layouts whose size is not known before, and
//! for codecs that know no other way.

use crate::codec::{ArrayToBytes, Chain, OptionalCodec, Output, VariableChunk, decode};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::scratch::Codecs;
use crate::exec::sink::Decoded;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::{DataType, shape};

/// Decodes a chunk of `shape`.
///
/// # Errors
/// Any [`ErrorKind`] that bytes can give, with the codec.
pub fn decode_whole(chain: &Chain, encoded: &[u8], shape: &[u64], codecs: &mut Codecs) -> Result<Decoded> {
    let count = shape::nbytes(shape, 1)?;
    let growing = |limit: usize, codecs: &mut Codecs| {
        let mut bytes = Vec::new();
        let limit = limit.min(chain.ratio_limit(encoded.len()));
        decode(&chain.bytes_to_bytes, encoded, Output::Growing(&mut bytes, limit), codecs)?;
        Ok::<_, Error>(bytes)
    };
    match &chain.array_to_bytes {
        ArrayToBytes::Bytes { swap } => {
            let nbytes = shape::nbytes(shape, chain.item_size().unwrap_or(0))?;
            let bytes = filled(nbytes, |memory| {
                decode(&chain.bytes_to_bytes, encoded, Output::Exact(memory), codecs)
                    .map_err(|error| error.in_codec("bytes"))
            })?;
            Ok(Decoded::Fixed { bytes, swap: *swap })
        }
        ArrayToBytes::PackBits(packing) => {
            let packed = growing(packing.encoded_nbytes(count), codecs)?;
            let bytes = filled(count, |memory| packing.unpack(&packed, memory))?;
            Ok(Decoded::Fixed { bytes, swap: 1 })
        }
        ArrayToBytes::Vlen => {
            let bytes = growing(chain.limits.max_variable_nbytes, codecs)?;
            let chunk =
                VariableChunk::parse(bytes, count).map_err(|error| error.in_codec(chain.vlen_name()))?;
            Ok(Decoded::Variable(Arc::new(chunk)))
        }
        ArrayToBytes::Optional(optional) => {
            let bytes = growing(chain.limits.max_variable_nbytes, codecs)?;
            decode_optional(optional, &bytes, count, codecs).map_err(|error| error.in_codec("zarrs.optional"))
        }
        ArrayToBytes::Fallback(fallback) => {
            // Filters before a compressor may widen an element, a few times at most.
            let nbytes = shape::nbytes(shape, chain.item_size().unwrap_or(0))?;
            let bytes = growing(nbytes.saturating_mul(8).saturating_add(64 << 10), codecs)?;
            let bytes = fallback.decode(&bytes, shape)?;
            if bytes.len() != nbytes {
                let (expected, actual) = (nbytes as u64, bytes.len() as u64);
                return Err(ErrorKind::WrongSize { expected, actual }.into());
            }
            Ok(Decoded::Fixed { bytes, swap: 1 })
        }
        ArrayToBytes::Sharding(_) => {
            Err(Error::from(ErrorKind::BadCodec("shards inside a mask".into())).in_codec("sharding_indexed"))
        }
    }
}

fn decode_optional(
    optional: &OptionalCodec,
    bytes: &[u8],
    count: usize,
    codecs: &mut Codecs,
) -> Result<Decoded> {
    let (mask, data) = optional.parts(bytes)?;
    let Decoded::Fixed { bytes: mut missing, .. } =
        decode_whole(&optional.mask, mask, &[count as u64], codecs)?
    else {
        return Err(ErrorKind::Corrupt("the mask is no array of bools".into()).into());
    };
    // Stored as 1 where an element is there.
    missing.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
    let given = missing.iter().filter(|missing| **missing == 0).count();
    let item_size = optional.data.item_size().unwrap_or(0);
    let data = if given == 0 && data.is_empty() {
        nothing(&optional.data.data_type)?
    } else {
        decode_whole(&optional.data, data, &[given as u64], codecs)?
    };
    let data = Box::new(data.spread(&missing, item_size)?);
    Ok(Decoded::Optional { missing, data })
}

/// No elements, in the layout of a type.
fn nothing(data_type: &DataType) -> Result<Decoded> {
    Ok(match data_type {
        DataType::Optional(inner) => {
            Decoded::Optional { missing: Vec::new(), data: Box::new(nothing(inner)?) }
        }
        other if other.is_variable() => Decoded::Variable(Arc::new(VariableChunk::parse(vec![0; 4], 0)?)),
        _ => Decoded::Fixed { bytes: Vec::new(), swap: 1 },
    })
}

/// A vector of `nbytes` bytes that `fill` writes, every one where it returns without an error.
fn filled(nbytes: usize, fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<()>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    fill(&mut bytes.spare_capacity_mut()[..nbytes])?;
    // SAFETY: `Output::Exact` and `PackBits::unpack`, which fill here, write every byte or return an error.
    unsafe { bytes.set_len(nbytes) };
    Ok(bytes)
}
