//! Chunks that are handed over as they are stored, for memory that this engine does not write: a device's.
//!
//! The read is the same as any other (its plan, its threads, shards and their indexes, checksums, limits), up to where the
//! elements of one chunk would be decoded. There the chunk goes to a [`ChunkSink`], with what of it is wanted. The sink says
//! where the stored bytes are read to, or the elements decoded.

use crate::codec::Input;
use crate::codec::Worker;
use crate::codec::{
    BytesToBytes, Codecs, Layout, Output, Swap, decode, decode_checksums, wrong_elements_size,
};
use crate::error::{ErrorKind, Result};
use crate::exec::chunk::Chunk;
use crate::exec::part::AxisPart;
use crate::store::remote::BodyAlloc;
use std::any::Any;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::shape;

/// What is wanted along one axis of a chunk: positions `start + k × step` go to `place + k`, or `place - k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkAxis {
    /// The first position, counted from the start of the chunk.
    pub start: u64,
    /// The distance of neighbours, at least 1.
    pub step: u64,
    /// How many positions, at least 1.
    pub count: u64,
    /// The axis of the result; `None` for one that is dropped.
    pub output: Option<usize>,
    /// Where the first position goes on that axis.
    pub place: u64,
    /// Whether the next ones go backwards there.
    pub reversed: bool,
}

/// One chunk that is stored, before its bytes are read.
///
/// 1. A sink that takes the chunk as it is stored has the bytes [loaded](StoredChunk::load) to memory of its own, where each
///    is copied once; those of a remote store may have [landed](StoredChunk::landed) there already.
/// 2. Then it looks at them. A chunk that it cannot use after all is [decoded](StoredChunk::decode) from there.
/// 3. Of a chunk that it cannot use anyway, as its compressor tells, it has the elements decoded alone.
#[non_exhaustive]
pub struct StoredChunk<'a> {
    /// What of it is wanted, along each axis in the order in which they are stored.
    pub axes: &'a [ChunkAxis],
    /// Its shape, in the same order.
    pub shape: &'a [u64],
    /// The name of its compressor; `None` where the bytes are those of the elements, and where it has several.
    pub compressor: Option<&'a str>,
    /// Whether the bytes are those of the elements, in C order.
    pub is_raw: bool,
    /// Bytes that are stored, checksums included.
    pub stored_nbytes: usize,
    /// Bytes of all its elements.
    pub decoded_nbytes: usize,
    /// Bytes of the words whose order is to be reversed; 0 for none.
    pub word_nbytes: usize,
    chain: &'a [BytesToBytes],
    input: Input<'a>,
    worker: &'a mut Worker,
}

/// Stored bytes that have landed in memory of the sink's own.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LandedChunk<'a> {
    /// What the sink gave with the memory.
    pub owner: &'a Arc<dyn Any + Send + Sync>,
    /// Where in that memory the bytes begin.
    pub offset: usize,
    /// The bytes without their checksums, which are right.
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
    /// The stored bytes, where they are in memory of the sink's [own](ChunkSink::bodies). Their checksums are verified.
    ///
    /// # Errors
    /// What is wrong with the bytes, with the codec.
    pub fn landed(&self) -> Result<Option<LandedChunk<'a>>> {
        let Some((memory, stored)) = self.input.lent() else { return Ok(None) };
        let bytes = self.verify(stored)?;
        let Some(offset) = memory.offset_of(bytes) else { return Ok(None) };
        Ok(Some(LandedChunk { owner: memory.owner(), offset, bytes }))
    }

    /// Reads the stored bytes to `memory`, which has as many, and verifies their checksums there. Gives the bytes without
    /// these, and where in `memory` they begin.
    ///
    /// # Errors
    /// As any read; what is wrong with the bytes, with the codec.
    pub fn load<'m>(&self, memory: &'m mut [MaybeUninit<u8>]) -> Result<(usize, &'m [u8])> {
        let stored: &'m [u8] = self.input.read(0, memory)?;
        let bytes = self.verify(stored)?;
        // They are a part of what is stored.
        Ok((bytes.as_ptr().addr() - stored.as_ptr().addr(), bytes))
    }

    /// Decodes the chunk into memory of exactly its elements' bytes, in the byte order in which they are stored: from
    /// the `bytes` that were loaded, or have landed; `None` for those of a chunk that was not.
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

/// Where chunks go that are not decoded here. Many threads hand them over at once.
pub trait ChunkSink: Send + Sync {
    /// Takes a chunk.
    ///
    /// # Errors
    /// Any [`ErrorKind`]; the read ends with it.
    fn take(&self, chunk: &mut StoredChunk<'_>) -> Result<()>;

    /// Takes what is wanted of a chunk that is not stored: each element is `value`, in the machine's byte order.
    ///
    /// # Errors
    /// As [`take`](ChunkSink::take).
    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> Result<()>;

    /// Where the bodies of a remote store land; `None` for ordinary memory.
    fn bodies(&self) -> Option<Arc<dyn BodyAlloc>> {
        None
    }

    /// Is told that a value of a remote store was replaced of which something was taken already. The read ends with an error
    /// then: what was taken is of another version than what would be.
    fn is_replaced(&self) {}
}

/// What is wanted, as a sink is told.
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
    /// Hands the chunk over, whose shape and part are in the order of the stored axes.
    ///
    /// # Errors
    /// As [`read`](Chunk::read), and what the sink answers.
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
