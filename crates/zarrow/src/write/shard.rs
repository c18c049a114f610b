//! Encodes a shard: inner chunks one after the other in the order of their numbers, and an index of their positions.
//! `write/mod.rs` opens the old shard, and publishes the new one.
//!
//! 1. Inner chunks touched by the part are encoded, each like a chunk. The others are copied from the old shard in
//!    encoded form.
//! 2. They go to an [`Output`]: memory for a shard that is an inner chunk itself, otherwise the new shard in the store,
//!    which gathers them in pieces of some size.
//! 3. An inner chunk that cannot be decoded is replaced, if the part covers everything of it inside the array. An inner
//!    chunk beyond the array that cannot be copied is then left out.
//! 4. An inner chunk with only fill values has an empty entry in the index. A shard without inner chunks is not stored.

use crate::codec::{InnerChunks, Input, ShardIndex, Worker};
use crate::decode::shard::inner_chunk_parts;
use crate::error::{ErrorKind, Result};
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::plan::chunk_parts::ChunkParts;
use crate::write::chunk::{Bytes, Target, too_large};
use crate::write::values::Level;
use std::ops::Range;
use zarrow_array::allocation::{self, Grow};

/// Where encoded inner chunks go, one after the other.
pub trait Output {
    /// Takes an inner chunk with this number.
    fn push(&mut self, number: u64, bytes: &Bytes<'_, '_>) -> Result<()>;

    /// Takes a stored inner chunk in encoded form.
    fn carry(&mut self, number: u64, input: &Input<'_>) -> Result<()>;
}

/// Encoded inner chunks in memory.
#[derive(Default)]
pub struct Pieces {
    /// The encoded bytes that are not written yet.
    pub bytes: Vec<u8>,
    /// The number of each and its length.
    pub lengths: Vec<(u64, u64)>,
}

impl Output for Pieces {
    fn push(&mut self, number: u64, bytes: &Bytes<'_, '_>) -> Result<()> {
        let nbytes = bytes.nbytes();
        self.reserve(nbytes)?;
        bytes.body.append_to(&mut self.bytes)?;
        self.bytes.extend_from_slice(&bytes.tail);
        Ok(self.lengths.try_push((number, nbytes as u64))?)
    }

    fn carry(&mut self, number: u64, input: &Input<'_>) -> Result<()> {
        let nbytes = usize::try_from(input.nbytes()?).unwrap_or(usize::MAX);
        self.reserve(nbytes)?;
        let read = input.read(0, &mut self.bytes.spare_capacity_mut()[..nbytes])?.len();
        // SAFETY: `read` has filled all of the spare memory that it was given, which it returned.
        unsafe { self.bytes.set_len(self.bytes.len() + read) };
        Ok(self.lengths.try_push((number, read as u64))?)
    }
}

impl Pieces {
    fn reserve(&mut self, nbytes: usize) -> Result<()> {
        Ok(self.bytes.make_room(nbytes)?)
    }
}

/// A shard to be written.
pub struct ShardTarget<'a> {
    target: Target<'a>,
    inner_chunks: &'a InnerChunks,
    grid: Vec<u64>,
    /// The part of each touched inner chunk.
    chunk_parts: ChunkParts<'a>,
    /// Whether the whole section of the shard inside the array is written.
    is_covered_inside: bool,
    /// The number of each touched inner chunk in the shard and among the touched ones, in ascending order.
    touched: Vec<(u64, u64)>,
}

impl<'a> ShardTarget<'a> {
    /// The shard `target`, with `part` to be written; both in stored axis order.
    ///
    /// # Errors
    /// As [`InnerChunks::grid`] and [`ChunkParts::new`].
    pub fn new(
        target: Target<'a>,
        inner_chunks: &'a InnerChunks,
        part: &[AxisPart<'a>],
    ) -> Result<ShardTarget<'a>> {
        let grid = inner_chunks.grid(target.shape)?;
        let chunk_parts = inner_chunk_parts(inner_chunks, part)?;
        let numbered = |at: u64| {
            let (mut chunk_index, mut inner) = (PerAxis::new(), PerAxis::new());
            chunk_parts.get(at, &mut chunk_index, &mut inner);
            let number =
                chunk_index.iter().zip(&grid).fold(0u64, |number, (index, extent)| number * extent + index);
            (number, at)
        };
        let mut touched: Vec<(u64, u64)> = allocation::collected((0..chunk_parts.count()).map(numbered))?;
        touched.sort_unstable();
        let is_covered_inside = target.is_covered_inside(part);
        Ok(ShardTarget { target, inner_chunks, grid, chunk_parts, is_covered_inside, touched })
    }

    /// The number of inner chunks that fit into the shard.
    pub fn count(&self) -> u64 {
        self.grid.iter().product()
    }

    /// The extents of the grid of inner chunks.
    pub fn grid(&self) -> &[u64] {
        &self.grid
    }

    /// Returns the extents of the inner chunk's section inside the array.
    fn inner_bounds(&self, chunk_index: &[u64]) -> PerAxis<u64> {
        let axes = self.target.bounds.iter().zip(&self.inner_chunks.chunk_shape).zip(chunk_index);
        axes.map(|((bound, extent), index)| bound.saturating_sub(index * extent).min(*extent)).collect()
    }

    /// Passes on a stored inner chunk in encoded form, at most `left` bytes.
    fn carry(&self, number: u64, stored: &Input<'_>, left: &mut u64, output: &mut dyn Output) -> Result<()> {
        let nbytes = stored.nbytes()?;
        *left = left.checked_sub(nbytes).ok_or_else(|| too_large(nbytes, *left))?;
        output.carry(number, stored)
    }

    /// Encodes the inner chunks of these numbers (steps 1, 3 and 4) to `output`.
    ///
    /// # Errors
    /// What old bytes, codecs and the output can give.
    pub fn encode_range(
        &self,
        numbers: Range<u64>,
        values: Level<'_, '_>,
        old: Option<(&Input<'_>, &ShardIndex)>,
        worker: &mut Worker,
        output: &mut dyn Output,
    ) -> Result<()> {
        // Whatever an index says, no more bytes are copied than a valid shard has.
        let mut left = self.target.as_stored().encoded_limit()? as u64;
        let mut next = self.touched.partition_point(|(number, _)| *number < numbers.start);
        let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
        for number in numbers {
            let stored = match old {
                Some((input, index)) => match index.get(number as usize) {
                    Some((offset, length)) => Some(input.slice(offset, length)?),
                    None => None,
                },
                None => None,
            };
            match self.touched.get(next) {
                Some((touched, at)) if *touched == number => {
                    next += 1;
                    self.target.checkpoint.pass()?;
                    self.chunk_parts.get(*at, &mut chunk_index, &mut part);
                    let (chain, shape) = (&self.inner_chunks.chain, &*self.inner_chunks.chunk_shape);
                    let bounds = self.inner_bounds(&chunk_index);
                    let inner = Target { chain, shape, bounds: &bounds, ..self.target };
                    match (inner.encode(&part, values, stored.as_ref(), worker), stored) {
                        (Ok(Some(bytes)), _) => output.push(number, &bytes)?,
                        (Ok(None), _) => {}
                        (Err(error), Some(stored))
                            if self.target.only_clears && error.is_of_stored_bytes() =>
                        {
                            self.carry(number, &stored, &mut left, output)?;
                        }
                        (Err(error), _) => return Err(error),
                    }
                }
                _ => {
                    let Some(stored) = stored else { continue };
                    match self.carry(number, &stored, &mut left, output) {
                        Err(error) if error.is_of_stored_bytes() && self.is_covered_inside => {}
                        carried => carried?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// The entries of a shard's index, and the position of the next inner chunk.
pub struct Entries {
    /// The extents of the grid of inner chunks.
    grid: PerAxis<u64>,
    entries: Vec<Option<(u64, u64)>>,
    end: u64,
    any: bool,
}

impl Entries {
    /// Creates the entries of a shard of `grid`; its inner chunks begin at `start`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn new(grid: &[u64], start: u64) -> Result<Entries> {
        let count: u64 = grid.iter().product();
        let entries = allocation::filled(None, usize::try_from(count).unwrap_or(usize::MAX))?;
        Ok(Entries { grid: grid.iter().copied().collect(), entries, end: start, any: false })
    }

    /// The position of the next inner chunk.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether there is any inner chunk.
    pub fn any(&self) -> bool {
        self.any
    }

    /// Records inner chunks with these numbers and lengths, one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if there is no such number.
    pub fn add(&mut self, lengths: &[(u64, u64)]) -> Result<()> {
        for (number, length) in lengths {
            let entry = self.entries.get_mut(*number as usize);
            let entry =
                entry.ok_or_else(|| ErrorKind::Internal("an inner chunk outside of its shard".into()))?;
            *entry = Some((self.end, *length));
            self.end += length;
            self.any = true;
        }
        Ok(())
    }

    /// Returns the bytes of the index.
    ///
    /// # Errors
    /// As [`InnerChunks::encode_index`].
    pub fn encode(&self, inner_chunks: &InnerChunks) -> Result<Vec<u8>> {
        inner_chunks.encode_index(&self.entries, &self.grid)
    }
}

impl Target<'_> {
    /// Encodes a shard in memory, as an inner chunk or for compression as a whole; `None` if it has no inner chunk.
    ///
    /// # Errors
    /// As [`ShardTarget::encode_range`].
    pub fn encode_shard(
        &self,
        inner_chunks: &InnerChunks,
        part: &[AxisPart<'_>],
        values: Level<'_, '_>,
        old: Option<(&Input<'_>, &ShardIndex)>,
        worker: &mut Worker,
    ) -> Result<Option<Vec<u8>>> {
        let shard = ShardTarget::new(*self, inner_chunks, part)?;
        let mut pieces = Pieces::default();
        let (start, at_start) = inner_chunks.data_start(shard.grid())?;
        pieces.reserve(start as usize)?;
        pieces.bytes.try_resize(start as usize, 0)?;
        shard.encode_range(0..shard.count(), values, old, worker, &mut pieces)?;
        let mut entries = Entries::new(shard.grid(), start)?;
        entries.add(&pieces.lengths)?;
        if !entries.any() {
            return Ok(None);
        }
        let (index, mut bytes) = (entries.encode(inner_chunks)?, pieces.bytes);
        match at_start {
            Some(_) => bytes[..index.len()].copy_from_slice(&index),
            None => bytes.try_append(&index)?,
        }
        Ok(Some(bytes))
    }
}
