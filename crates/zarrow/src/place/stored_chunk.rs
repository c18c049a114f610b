//! A chunk before it is decoded: its selected positions, and the ways to get its bytes or its elements.

use crate::codec::{BytesToBytes, Input, Worker, decode_checksums, decode_elements, wrong_elements_size};
use crate::error::Result;
use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;

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
    pub(crate) chain: &'a [BytesToBytes],
    pub(crate) input: Input<'a>,
    pub(crate) worker: &'a mut Worker,
}

/// Stored bytes that have landed in the sink's own memory.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ReceivedChunk<'a> {
    /// The owner that the sink returned with the memory.
    pub owner: &'a Arc<dyn Any + Send + Sync>,
    /// The bytes' offset in that memory.
    pub offset: usize,
    /// The bytes without their checksums, which are verified.
    pub bytes: &'a [u8],
}

impl fmt::Debug for ReceivedChunk<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, nbytes) = (self.offset, self.bytes.len());
        formatter
            .debug_struct("ReceivedChunk")
            .field("offset", &offset)
            .field("nbytes", &nbytes)
            .finish_non_exhaustive()
    }
}

impl<'a> StoredChunk<'a> {
    /// Returns the stored bytes, if they are in the sink's [own](crate::ChunkSink::bodies) memory. Their checksums are
    /// verified.
    ///
    /// # Errors
    /// Invalid bytes, reported with the codec.
    pub fn landed(&self) -> Result<Option<ReceivedChunk<'a>>> {
        let Some((memory, stored)) = self.input.borrowed() else { return Ok(None) };
        let bytes = self.verify(stored)?;
        let Some(offset) = memory.offset_of(bytes) else { return Ok(None) };
        Ok(Some(ReceivedChunk { owner: memory.owner(), offset, bytes }))
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
            Some(bytes) => return decode_elements(compressors(self.chain), bytes, memory, codecs),
            None => self.input.load(self.stored_nbytes, encoded)?,
        };
        let (chain, bytes) = decode_checksums(self.chain, stored)?;
        decode_elements(chain, bytes, memory, codecs)
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

/// The chain without the checksums at its end.
pub(crate) fn compressors(chain: &[BytesToBytes]) -> &[BytesToBytes] {
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
