//! Decoding elements of any layout to memory of their own: for layouts whose size is not known before, for codecs that
//! know no other way, and for runs of elements inside a chunk of another codec.

use crate::codec::Codecs;
use crate::codec::Decoded;
use crate::codec::Input;
use crate::codec::Worker;
use crate::codec::{
    ArrayToBytes, Chain, ChunkDescription, Filtered, INDEXED_VLEN, IndexedVlen, Output, Pcodec, Swap,
    VariableChunk, decode, decode_range, encode_variable, most_encoded,
};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::optional::{decode_optional, open_optional};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::allocation;
use zarrow_array::shape;

/// Decodes the elements in `run` of a chunk of `shape`, counted in C order; where they have no fixed size that is all.
///
/// # Errors
/// Any [`ErrorKind`] that bytes can give, with the codec.
pub fn decode_elements(
    chain: &Chain,
    input: &Input<'_>,
    shape: &[u64],
    run: Range<usize>,
    worker: &mut Worker,
) -> Result<Decoded> {
    match &chain.array_to_bytes {
        ArrayToBytes::Vlen => {
            let count = shape::nbytes(shape, 1)?;
            let encoded = input.load(usize::MAX, &mut worker.encoded)?;
            let bytes = grow(chain, encoded, chain.limits.max_variable_nbytes, &mut worker.codecs)?;
            let chunk =
                VariableChunk::parse(bytes, count).map_err(|error| error.in_codec(chain.vlen_name()))?;
            Ok(Decoded::Variable(Arc::new(chunk)))
        }
        ArrayToBytes::IndexedVlen(vlen) => {
            let limit = chain.limits.max_variable_nbytes;
            let encoded = input.load(usize::MAX, &mut worker.encoded)?;
            let chunk = grow(chain, encoded, limit, &mut worker.codecs)?;
            decode_indexed(vlen, &chunk, shape, limit, worker).map_err(|error| error.in_codec(INDEXED_VLEN))
        }
        ArrayToBytes::Optional(optional) => {
            let count = shape::nbytes(shape, 1)?;
            open_optional(chain, input, worker, |input, worker| {
                decode_optional(optional, input, count, run, worker)
            })
        }
        ArrayToBytes::Filtered(filtered) if !chain.has_fixed_elements() => {
            decode_filtered(filtered, input, shape, worker)
        }
        ArrayToBytes::Sharding(_) => {
            Err(Error::from(ErrorKind::BadCodec("shards inside a mask".into())).in_codec("sharding_indexed"))
        }
        _ => {
            let nbytes = shape::nbytes(&[run.len() as u64], chain.item_size().unwrap_or(0))?;
            let mut swap = Swap::None;
            let bytes = filled(nbytes, |memory| {
                swap = decode_fixed(chain, input, shape, run, memory, worker)?;
                Ok(())
            })?;
            Ok(Decoded::Fixed { bytes, swap })
        }
    }
}

/// Decodes elements of a fixed size to all of `memory`, which has the bytes of those in `run`; returns what of
/// each element is still to be reversed.
///
/// # Errors
/// As [`decode_elements`].
pub fn decode_fixed(
    chain: &Chain,
    input: &Input<'_>,
    shape: &[u64],
    run: Range<usize>,
    memory: &mut [MaybeUninit<u8>],
    worker: &mut Worker,
) -> Result<Swap> {
    let count = shape::nbytes(shape, 1)?;
    let item_size = chain.item_size().unwrap_or(0);
    let nbytes = shape::nbytes(shape, item_size)?;
    let place = run.start * item_size..run.end * item_size;
    if run.end > count || memory.len() != place.len() {
        return Err(ErrorKind::Internal("a run of elements that a chunk has not".into()).into());
    }
    let Worker { codecs, encoded, decoded, .. } = worker;
    let wrong_size =
        |actual: u64| Error::from(ErrorKind::WrongSize { expected: nbytes as u64, actual }).in_codec("bytes");
    match (&chain.array_to_bytes, chain.bytes_to_bytes.as_slice()) {
        (ArrayToBytes::Bytes { swap }, []) => {
            let input = input.measured()?;
            if input.nbytes()? != nbytes as u64 {
                return Err(wrong_size(input.nbytes()?));
            }
            input.read(place.start as u64, memory)?;
            Ok(swap.clone())
        }
        (ArrayToBytes::Bytes { swap }, codecs_after) => {
            let encoded = input.load(usize::MAX, encoded)?;
            let limit = chain.ratio_limit(encoded.len());
            if nbytes > limit {
                let (what, actual) = (
                    "the decoded size of a chunk for its few stored bytes (DecodeLimits.max_ratio)",
                    nbytes as u64,
                );
                return Err(ErrorKind::Limit { what, actual, limit: limit as u64 }.into());
            }
            let exactly = |memory: &mut [MaybeUninit<u8>], codecs: &mut Codecs| {
                decode(codecs_after, encoded, Output::Exact(memory), codecs)
                    .map_err(|error| error.in_codec("bytes"))
            };
            if place.len() == nbytes {
                exactly(memory, codecs)?;
            } else if let Some(range) =
                decode_range(codecs_after, encoded, nbytes, place.start, memory, codecs)
            {
                range?;
            } else {
                let all = decoded.take(nbytes)?;
                exactly(all, codecs)?;
                memory.copy_from_slice(&all[place]);
            }
            Ok(swap.clone())
        }
        (ArrayToBytes::PackBits(packing), _) => {
            let encoded = input.load(usize::MAX, encoded)?;
            let unpacked;
            let packed = if chain.bytes_to_bytes.is_empty() {
                encoded
            } else {
                unpacked = grow(chain, encoded, packing.encoded_nbytes(count), codecs)?;
                &unpacked
            };
            if place.len() == nbytes {
                packing.unpack(packed, memory)?;
            } else {
                let all = decoded.take(nbytes)?;
                packing.unpack(packed, all)?;
                memory.copy_from_slice(&all[place]);
            }
            Ok(Swap::None)
        }
        (ArrayToBytes::Pcodec(pcodec), _) => {
            let encoded = input.load(usize::MAX, encoded)?;
            let file = grow(chain, encoded, Pcodec::most_encoded(nbytes), codecs)?;
            let limit = chain.ratio_limit(file.len());
            if nbytes > limit {
                let (what, actual) = (
                    "the decoded size of a chunk for its few stored bytes (DecodeLimits.max_ratio)",
                    nbytes as u64,
                );
                return Err(ErrorKind::Limit { what, actual, limit: limit as u64 }.into());
            }
            if place.len() == nbytes {
                pcodec.decode(&file, memory)?;
            } else {
                let all = decoded.take(nbytes)?;
                pcodec.decode(&file, all)?;
                memory.copy_from_slice(&all[place]);
            }
            Ok(Swap::None)
        }
        (ArrayToBytes::Filtered(filtered), _) => {
            let Decoded::Fixed { bytes, swap } = decode_filtered(filtered, input, shape, worker)? else {
                return Err(ErrorKind::Internal("elements of no fixed size".into()).into());
            };
            memory.write_copy_of_slice(bytes.get(place).ok_or_else(|| wrong_size(bytes.len() as u64))?);
            Ok(swap)
        }
        (ArrayToBytes::Registered(codec), _) => {
            let encoded = input.load(usize::MAX, encoded)?;
            let bytes = grow(chain, encoded, most_encoded(nbytes), codecs)?;
            let description = ChunkDescription { data_type: &chain.data_type, shape };
            if place.len() == nbytes {
                codec.decode(&bytes, Some(description), Output::Exact(memory))?;
            } else {
                let all = decoded.take(nbytes)?;
                codec.decode(&bytes, Some(description), Output::Exact(all))?;
                memory.copy_from_slice(&all[place]);
            }
            Ok(Swap::None)
        }
        #[cfg(feature = "zarrs")]
        (ArrayToBytes::Fallback(fallback), _) => {
            let encoded = input.load(usize::MAX, encoded)?;
            // Filters before a compressor may widen an element, a few times at most.
            let limit = nbytes.saturating_mul(8).saturating_add(64 << 10);
            let bytes = fallback.decode(&grow(chain, encoded, limit, codecs)?, shape)?;
            if bytes.len() != nbytes {
                return Err(wrong_size(bytes.len() as u64));
            }
            memory.write_copy_of_slice(&bytes[place]);
            Ok(Swap::None)
        }
        _ => Err(ErrorKind::Internal("elements of no fixed size".into()).into()),
    }
}

/// All elements of a chunk of `shape` that are stored by way of a filter.
///
/// # Errors
/// As [`decode_elements`].
fn decode_filtered(
    filtered: &Filtered,
    input: &Input<'_>,
    shape: &[u64],
    worker: &mut Worker,
) -> Result<Decoded> {
    let (_, stored_shape) = filtered.stored_shape(shape)?;
    let all = 0..shape::nbytes(&stored_shape, 1)?;
    filtered.decode(decode_elements(&filtered.stored, input, &stored_shape, all, worker)?, shape)
}

/// The elements of a chunk that stores offsets and bytes.
fn decode_indexed(
    vlen: &IndexedVlen,
    chunk: &[u8],
    shape: &[u64],
    limit: usize,
    worker: &mut Worker,
) -> Result<Decoded> {
    let count = shape::nbytes(shape, 1)?;
    let (index, data) = vlen.parts(chunk)?;
    let mut fixed = |chain: &Chain, encoded: &[u8], count: usize| {
        let item_size = chain.item_size().unwrap_or(0);
        let nbytes = shape::nbytes(&[count as u64], item_size)?;
        let mut swap = Swap::None;
        let mut elements = filled(nbytes, |memory| {
            let input = Input::of_bytes(encoded);
            swap = decode_fixed(chain, &input, &[count as u64], 0..count, memory, worker)?;
            Ok(())
        })?;
        swap.in_place(&mut elements, item_size);
        Ok::<_, Error>(elements)
    };
    let offsets = fixed(&vlen.index, index, count.saturating_add(1))?;
    let ends = vlen.ends(&offsets, limit)?;
    let data = match ends.last() {
        None | Some(0) => Vec::new(),
        Some(nbytes) => fixed(&vlen.data, data, *nbytes)?,
    };
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let elements: Option<Vec<&[u8]>> = starts.zip(&ends).map(|(start, end)| data.get(start..*end)).collect();
    let elements = elements.ok_or_else(|| ErrorKind::Internal("offsets behind the bytes".into()))?;
    Ok(Decoded::Variable(Arc::new(VariableChunk::parse(encode_variable(&elements)?, count)?)))
}

/// Undoes the codecs after the one from array to bytes, whose output is `limit` bytes at most.
///
/// # Errors
/// As [`decode`].
pub fn grow(chain: &Chain, encoded: &[u8], limit: usize, codecs: &mut Codecs) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = limit.min(chain.ratio_limit(encoded.len()));
    decode(&chain.bytes_to_bytes, encoded, Output::Growing(&mut bytes, limit), codecs)?;
    Ok(bytes)
}

/// A vector of `nbytes` bytes that `fill` writes, every one where it returns without an error.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`], and what `fill` gives.
pub fn filled(nbytes: usize, fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<()>) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = allocation::with_capacity(nbytes)?;
    fill(&mut bytes.spare_capacity_mut()[..nbytes])?;
    // SAFETY: `decode_fixed`, which fills here, writes every byte or returns an error.
    unsafe { bytes.set_len(nbytes) };
    Ok(bytes)
}
