//! Chunks that are handed over as they are stored, for memory that this engine does not write: a device's.
//!
//! The read is the same as any other (its plan, its threads, shards and their indexes, checksums, limits), up to where the
//! elements of one chunk would be decoded. There the chunk goes to a [`ChunkSink`], with what of it is wanted and with a
//! way to decode it here.

use crate::codec::{ArrayToBytes, BytesToBytes, Output, Swap, decode, decode_checksums};
use crate::error::{ErrorKind, Result};
use crate::exec::chunk::Chunk;
use crate::exec::input::Input;
use crate::exec::part::AxisPart;
use crate::exec::worker::Worker;
use std::fmt;
use std::mem::MaybeUninit;
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

/// One chunk as it is stored, its checksums checked.
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
    /// The stored bytes.
    pub bytes: &'a [u8],
    /// Bytes of all its elements.
    pub decoded_nbytes: usize,
    /// Bytes of the words whose order is to be reversed; 0 for none.
    pub word_nbytes: usize,
}

impl fmt::Debug for StoredChunk<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoredChunk")
            .field("axes", &self.axes)
            .field("shape", &self.shape)
            .field("compressor", &self.compressor)
            .field("nbytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Decodes a chunk into memory of exactly its elements' bytes, in the byte order in which they are stored.
pub type DecodeChunk<'a> = dyn FnMut(&mut [MaybeUninit<u8>]) -> Result<()> + 'a;

/// Where chunks go that are not decoded here. Many threads hand them over at once.
pub trait ChunkSink: Send + Sync {
    /// Takes a chunk. `decode` decodes it here, for a sink that does not.
    ///
    /// # Errors
    /// Any [`ErrorKind`]; the read ends with it.
    fn take(&self, chunk: &StoredChunk<'_>, decode: &mut DecodeChunk<'_>) -> Result<()>;

    /// Takes what is wanted of a chunk that is not stored: each element is `value`, in the machine's byte order.
    ///
    /// # Errors
    /// As [`take`](ChunkSink::take).
    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> Result<()>;
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
        let ArrayToBytes::Bytes { swap } = &self.chain.array_to_bytes else {
            return Err(internal("this layout").into());
        };
        let word_nbytes = match swap {
            Swap::None => 0,
            Swap::Words(nbytes) => *nbytes,
            Swap::Fields(_) => return Err(internal("structures in the other byte order").into()),
        };
        let decoded_nbytes = shape::nbytes(self.shape, self.chain.item_size().unwrap_or(0))?;
        let Worker { codecs, encoded, .. } = worker;
        let stored = input.load(self.encoded_limit()?, encoded)?;
        let limit = self.chain.ratio_limit(stored.len());
        let (chain, bytes) = decode_checksums(&self.chain.bytes_to_bytes, stored)?;
        if chain.is_empty() && bytes.len() != decoded_nbytes {
            let (expected, actual) = (decoded_nbytes as u64, bytes.len() as u64);
            return Err(crate::Error::from(ErrorKind::WrongSize { expected, actual }).in_codec("bytes"));
        }
        if !chain.is_empty() && decoded_nbytes > limit {
            let what = "the decoded size of a chunk for its few stored bytes (DecodeLimits.max_ratio)";
            let (actual, limit) = (decoded_nbytes as u64, limit as u64);
            return Err(ErrorKind::Limit { what, actual, limit }.into());
        }
        let compressor = match chain {
            [BytesToBytes::Compressor { name, .. }] => Some(*name),
            _ => None,
        };
        let axes = axes_of(part)?;
        let chunk = StoredChunk {
            axes: &axes,
            shape: self.shape,
            compressor,
            is_raw: chain.is_empty(),
            bytes,
            decoded_nbytes,
            word_nbytes,
        };
        sink.take(&chunk, &mut |memory| {
            decode(chain, bytes, Output::Exact(memory), codecs).map_err(|error| error.in_codec("bytes"))
        })
    }
}
