//! A stored chunk, and the steps that array-to-bytes codecs share when they decode it.

use crate::codec::decompress::{BytesToBytes, ELEMENTS, decode, over_limit};
use crate::codec::{Codecs, DecodeLimits, Decoded, Input, Output, Scratch, Swap, Uninit};
use crate::error::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;
use zarrow_array::allocation;
use zarrow_array::shape;

/// A stored chunk, or a part of a chunk with its own chain.
#[derive(Clone, Copy)]
pub struct EncodedChunk<'a> {
    /// The bytes-to-bytes codecs, in encoding order.
    pub bytes_to_bytes: &'a [BytesToBytes],
    /// Limits against hostile input.
    pub limits: &'a DecodeLimits,
    /// Its stored bytes.
    pub input: &'a Input<'a>,
    /// Its shape, in the order of the stored axes.
    pub shape: &'a [u64],
    /// The bytes of one element; 0 without a fixed size.
    pub item_size: usize,
    /// The number of its elements.
    pub count: usize,
    /// Bytes of all elements; 0 without a fixed size.
    pub nbytes: usize,
}

impl<'a> EncodedChunk<'a> {
    /// Creates a chunk of `shape`, stored as `input`.
    pub fn new(
        bytes_to_bytes: &'a [BytesToBytes],
        limits: &'a DecodeLimits,
        input: &'a Input<'a>,
        shape: &'a [u64],
        item_size: usize,
    ) -> Result<EncodedChunk<'a>> {
        let (count, nbytes) = (shape::nbytes(shape, 1)?, shape::nbytes(shape, item_size)?);
        Ok(EncodedChunk { bytes_to_bytes, limits, input, shape, item_size, count, nbytes })
    }

    /// Checks that the chunk contains `run`, and that `memory` has the size of its elements.
    pub fn check(&self, run: &Range<usize>, memory: &[MaybeUninit<u8>]) -> Result<()> {
        if run.end > self.count || memory.len() != self.bytes_of(run).len() {
            return Err(not_in_chunk());
        }
        Ok(())
    }

    /// Returns the byte range of the elements in `run` among all decoded elements.
    pub fn bytes_of(&self, run: &Range<usize>) -> Range<usize> {
        run.start * self.item_size..run.end * self.item_size
    }

    /// Returns whether `run` is the whole chunk.
    pub fn is_all(&self, run: &Range<usize>) -> bool {
        *run == (0..self.count)
    }

    /// Returns the output of the array-to-bytes codec, at most `limit` bytes.
    pub fn decompressed<'s>(
        &'s self,
        limit: usize,
        scratch: &'s mut Scratch,
        codecs: &mut Codecs,
    ) -> Result<Cow<'s, [u8]>> {
        let encoded = self.input.load(usize::MAX, scratch)?;
        let limit = limit.min(self.limits.decoded_nbytes(encoded.len()));
        if !self.bytes_to_bytes.is_empty() {
            let mut bytes = Vec::new();
            decode(self.bytes_to_bytes, encoded, Output::Growing(&mut bytes, limit), codecs)?;
            return Ok(Cow::Owned(bytes));
        }
        if encoded.len() > limit {
            return Err(over_limit(encoded.len(), limit).in_codec(ELEMENTS));
        }
        Ok(Cow::Borrowed(encoded))
    }

    /// As [`decompressed`](EncodedChunk::decompressed), in a vector.
    pub fn decompressed_vec(
        &self,
        limit: usize,
        scratch: &mut Scratch,
        codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        Ok(match self.decompressed(limit, scratch, codecs)? {
            Cow::Owned(bytes) => bytes,
            Cow::Borrowed(bytes) => allocation::copied(bytes)?,
        })
    }

    /// Fills `memory` with the elements in `run`. `decode` fills memory for all elements.
    pub fn run_of_all(
        &self,
        run: &Range<usize>,
        memory: &mut Uninit,
        scratch: &mut Scratch,
        decode: impl FnOnce(&mut Uninit) -> Result<()>,
    ) -> Result<()> {
        if *run == (0..self.count) {
            return decode(memory);
        }
        let all = scratch.take(self.nbytes)?;
        decode(all)?;
        memory.copy_from_slice(&all[self.bytes_of(run)]);
        Ok(())
    }

    /// Returns the fixed-size elements in `run` in fresh memory that `decode` fills.
    pub fn fixed(
        &self,
        run: &Range<usize>,
        decode: impl FnOnce(&mut Uninit) -> Result<Swap>,
    ) -> Result<Decoded> {
        let nbytes = shape::nbytes(&[run.len() as u64], self.item_size)?;
        let mut swap = Swap::None;
        let bytes = filled(nbytes, |memory| {
            self.check(run, memory)?;
            swap = decode(memory)?;
            Ok(())
        })?;
        Ok(Decoded::Fixed { bytes, swap })
    }
}

/// Error for a run outside its chunk, a bug of the caller.
pub fn not_in_chunk() -> Error {
    ErrorKind::Internal("run exceeds the chunk".into()).into()
}

/// Returns a vector of `nbytes` bytes. `fill` writes every byte or returns an error.
pub fn filled(nbytes: usize, fill: impl FnOnce(&mut Uninit) -> Result<()>) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = allocation::with_capacity(nbytes)?;
    fill(&mut bytes.spare_capacity_mut()[..nbytes])?;
    // SAFETY: a codec fills the memory: without an error, it has written every byte.
    unsafe { bytes.set_len(nbytes) };
    Ok(bytes)
}
