//! Hands chunks over in encoded form, for memory that this engine does not write, such as a device's.
//!
//! The read is the same as any other (plan, threads, shards and their indexes, checksums, limits), up to the point of
//! decoding a chunk's elements. There the chunk and its selected parts go to a [`ChunkSink`]. The sink says where to
//! read the stored bytes, or where to decode the elements.

use crate::codec::{
    BytesToBytes, Codecs, Layout, Output, Swap, decode, decode_checksums, wrong_elements_size,
};
use crate::codec::{Input, Worker};
use crate::decode::chunk::Chunk;
use crate::error::{ErrorKind, Result};
use crate::plan::part::AxisPart;
use crate::store::remote::BodyAlloc;
use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::shape;

/// The positions selected along one axis of a chunk: `start + k × step` goes to `place + k`, or to `place - k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkAxis {
    /// The first position, counted from the start of the chunk.
    pub start: u64,
    /// The distance between neighbouring positions, at least 1.
    pub step: u64,
    /// The number of positions, at least 1.
    pub count: u64,
    /// The axis of the result; `None` for one that is dropped.
    pub output: Option<usize>,
    /// The first position's index on the output axis.
    pub place: u64,
    /// Whether positions map to descending output indexes.
    pub reversed: bool,
}

/// A stored chunk, before its bytes are read.
///
/// 1. A sink that takes encoded chunks [loads](StoredChunk::load) the bytes into its own memory, copying each byte
///    once. Bytes from a remote store may have [landed](StoredChunk::landed) there already.
/// 2. Then it inspects them. If the chunk turns out to be unusable, it is [decoded](StoredChunk::decode) from there.
/// 3. If the compressor already rules the chunk out, only its decoded elements are requested.
#[non_exhaustive]
pub struct StoredChunk<'a> {
    /// The selected positions along each axis, in stored axis order.
    pub axes: &'a [ChunkAxis],
    /// Its shape, in the same order.
    pub shape: &'a [u64],
    /// Name of the compressor; `None` if the bytes are uncompressed elements, or if there are several compressors.
    pub compressor: Option<&'a str>,
    /// Whether the bytes are uncompressed elements in C order.
    pub is_raw: bool,
    /// Size of the stored bytes, checksums included.
    pub stored_nbytes: usize,
    /// Size of all its elements in bytes.
    pub decoded_nbytes: usize,
    /// Size in bytes of the words to byte-swap; 0 for none.
    pub word_nbytes: usize,
    chain: &'a [BytesToBytes],
    input: Input<'a>,
    worker: &'a mut Worker,
}

/// Stored bytes that have landed in the sink's own memory.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LandedChunk<'a> {
    /// The owner that the sink returned with the memory.
    pub owner: &'a Arc<dyn Any + Send + Sync>,
    /// The bytes' offset in that memory.
    pub offset: usize,
    /// The bytes without their checksums, which are verified.
    pub bytes: &'a [u8],
}

impl fmt::Debug for LandedChunk<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, nbytes) = (self.offset, self.bytes.len());
        formatter
            .debug_struct("LandedChunk")
            .field("offset", &offset)
            .field("nbytes", &nbytes)
            .finish_non_exhaustive()
    }
}

impl<'a> StoredChunk<'a> {
    /// Returns the stored bytes, if they are in the sink's [own](ChunkSink::bodies) memory. Their checksums are
    /// verified.
    ///
    /// # Errors
    /// Invalid bytes, reported with the codec.
    pub fn landed(&self) -> Result<Option<LandedChunk<'a>>> {
        let Some((memory, stored)) = self.input.lent() else { return Ok(None) };
        let bytes = self.verify(stored)?;
        let Some(offset) = memory.offset_of(bytes) else { return Ok(None) };
        Ok(Some(LandedChunk { owner: memory.owner(), offset, bytes }))
    }

    /// Reads the stored bytes into `memory`, which must have their exact length, and verifies the checksums there.
    /// Returns the bytes without the checksums, and their offset in `memory`.
    ///
    /// # Errors
    /// Same as any read; invalid bytes are reported with the codec.
    pub fn load<'m>(&self, memory: &'m mut [MaybeUninit<u8>]) -> Result<(usize, &'m [u8])> {
        let stored: &'m [u8] = self.input.read(0, memory)?;
        let bytes = self.verify(stored)?;
        // They are a slice of the stored bytes.
        Ok((bytes.as_ptr().addr() - stored.as_ptr().addr(), bytes))
    }

    /// Decodes the chunk into memory of exactly its elements' size, in the stored byte order. Decodes from `bytes` if
    /// the chunk was loaded or has landed; pass `None` otherwise.
    ///
    /// # Errors
    /// As any read.
    pub fn decode(&mut self, bytes: Option<&[u8]>, memory: &mut [MaybeUninit<u8>]) -> Result<()> {
        let Worker { codecs, encoded, .. } = &mut *self.worker;
        let stored = match bytes {
            Some(bytes) => return decoded(compressors(self.chain), bytes, memory, codecs),
            None => self.input.load(self.stored_nbytes, encoded)?,
        };
        let (chain, bytes) = decode_checksums(self.chain, stored)?;
        decoded(chain, bytes, memory, codecs)
    }

    /// The stored bytes without their checksums, which are verified.
    fn verify<'b>(&self, stored: &'b [u8]) -> Result<&'b [u8]> {
        let (chain, bytes) = decode_checksums(self.chain, stored)?;
        if chain.is_empty() && bytes.len() != self.decoded_nbytes {
            return Err(wrong_elements_size(self.decoded_nbytes as u64, bytes.len() as u64));
        }
        Ok(bytes)
    }
}

fn decoded(
    chain: &[BytesToBytes],
    bytes: &[u8],
    memory: &mut [MaybeUninit<u8>],
    codecs: &mut Codecs,
) -> Result<()> {
    decode(chain, bytes, Output::Exact(memory), codecs).map_err(|error| error.in_codec("bytes"))
}

/// The chain without the checksums at its end.
fn compressors(chain: &[BytesToBytes]) -> &[BytesToBytes] {
    match chain {
        [inner @ .., BytesToBytes::Checksum(_)] => compressors(inner),
        _ => chain,
    }
}

impl fmt::Debug for StoredChunk<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoredChunk")
            .field("axes", &self.axes)
            .field("shape", &self.shape)
            .field("compressor", &self.compressor)
            .field("nbytes", &self.stored_nbytes)
            .finish_non_exhaustive()
    }
}

/// Receives chunks that are not decoded here. Many threads hand them over at once.
pub trait ChunkSink: Send + Sync {
    /// Takes a chunk.
    ///
    /// # Errors
    /// Any [`ErrorKind`]; the read ends with it.
    fn take(&self, chunk: &mut StoredChunk<'_>) -> Result<()>;

    /// Takes the selected part of a missing chunk: each element is `value`, in native byte order.
    ///
    /// # Errors
    /// As [`take`](ChunkSink::take).
    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> Result<()>;

    /// The allocator for a remote store's response bodies; `None` for ordinary memory.
    fn bodies(&self) -> Option<Arc<dyn BodyAlloc>> {
        None
    }

    /// Called when a remote store's value was replaced after some data was taken from it. The read then ends with an
    /// error, because the rest would be from another version.
    fn is_replaced(&self) {}
}

/// Converts a part to the axes passed to a sink.
///
/// # Errors
/// [`ErrorKind::Internal`] for positions that are not evenly spaced, which the caller rules out.
pub fn axes_of(part: &[AxisPart<'_>]) -> Result<Vec<ChunkAxis>> {
    let axis = |axis: &AxisPart<'_>| {
        let AxisPart { start, step, count, place, reversed, output, list } = *axis;
        match list {
            None => Ok(ChunkAxis { start, step, count, output, place, reversed }),
            Some(_) => Err(ErrorKind::Internal("a list of positions for a sink of chunks".into()).into()),
        }
    };
    part.iter().map(axis).collect()
}

impl Chunk<'_> {
    /// Hands over the chunk; its shape and part are in stored axis order.
    ///
    /// # Errors
    /// Same as [`read`](Chunk::read), and any error from the sink.
    pub fn hand_over(
        &self,
        sink: &dyn ChunkSink,
        part: &[AxisPart<'_>],
        input: &Input<'_>,
        worker: &mut Worker,
    ) -> Result<()> {
        let internal = |what: &str| ErrorKind::Internal(format!("a sink of chunks does not take {what}"));
        let Layout::Elements(swap) = self.chain.layout() else {
            return Err(internal("this layout").into());
        };
        let word_nbytes = match swap {
            Swap::None => 0,
            Swap::Words(nbytes) => *nbytes,
            Swap::Fields(_) => return Err(internal("structures in the other byte order").into()),
        };
        let decoded_nbytes = shape::nbytes(self.shape, self.chain.item_size().unwrap_or(0))?;
        let axes = axes_of(part)?;
        let kept = self.slot.and_then(|slot| slot.get());
        let (chain, input) = match &kept {
            // The elements are in memory from an earlier read.
            Some(elements) => (&[][..], Input::of_bytes(elements)),
            None => (&self.chain.bytes_to_bytes[..], input.within(self.encoded_limit()?)?),
        };
        let stored_nbytes = usize::try_from(input.nbytes()?).unwrap_or(usize::MAX);
        let compressors = compressors(chain);
        if !compressors.is_empty() {
            self.chain.check_ratio(decoded_nbytes, stored_nbytes)?;
        }
        let compressor = match compressors {
            [BytesToBytes::Compressor { name, .. }] => Some(*name),
            _ => None,
        };
        sink.take(&mut StoredChunk {
            axes: &axes,
            shape: self.shape,
            compressor,
            is_raw: compressors.is_empty(),
            stored_nbytes,
            decoded_nbytes,
            word_nbytes,
            chain,
            input,
            worker,
        })
    }
}
