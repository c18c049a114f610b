//! The bytes of a stored chunk that must be present before the selected parts can be decoded.
//!
//! This plans the reading steps of a [`Chunk`] without reading: a pure function of the codecs and the selection. Once
//! the needed bytes are present, [`Chunk::read`] decodes the chunk and requests nothing more.

use crate::codec::{InnerChunks, Layout};
use crate::decode::chunk::Chunk;
use crate::decode::range::{Cuts, each_range};
use crate::error::Result;
use crate::plan::axis_part::{AxisPart, is_whole, run_of};
use crate::plan::output_strides::c_strides;
use std::ops::Range;
use zarrow_array::allocation::Grow;
use zarrow_array::shape;

/// The bytes needed to decode a chunk.
#[derive(Debug)]
pub enum Need<'c> {
    /// The index of a shard, which splits the shard into inner chunks.
    Index(&'c InnerChunks),
    /// These ranges of a chunk, and the chunk's size in bytes.
    Ranges(Vec<Range<u64>>, u64),
    /// The whole chunk, of at most this many bytes.
    Whole(u64),
}

impl<'c> Chunk<'c> {
    /// Returns the bytes that must be present to decode `parts` of a chunk of `shape`; both are in stored axis order.
    ///
    /// # Errors
    /// [`zarrow_array::Error::ShapeOverflow`], [`zarrow_array::Error::OutOfMemory`].
    pub fn need(&self, parts: &[&[AxisPart<'_>]], shape: &[u64]) -> Result<Need<'c>> {
        match self.chain.stored_layout() {
            Layout::InnerChunks(inner_chunks) => Ok(Need::Index(inner_chunks)),
            Layout::Elements(_) => {
                let item_size = self.chain.item_size().unwrap_or(0);
                let nbytes = shape::nbytes(shape, item_size)? as u64;
                let mut ranges = Vec::new();
                for part in parts {
                    uncompressed(part, shape, item_size, &mut ranges)?;
                }
                Ok(Need::Ranges(ranges, nbytes))
            }
            Layout::Masked | Layout::Whole => Ok(Need::Whole(self.encoded_limit()? as u64)),
        }
    }

    /// Returns the stored size of uncompressed elements in bytes; `None` for others.
    pub fn elements_nbytes(&self) -> Option<u64> {
        match self.chain.stored_layout() {
            Layout::Elements(_) => {
                shape::nbytes(self.shape, self.chain.item_size()?).ok().map(|size| size as u64)
            }
            _ => None,
        }
    }
}

/// Adds the ranges of bytes of a part of uncompressed elements.
fn uncompressed(
    part: &[AxisPart<'_>],
    extents: &[u64],
    item_size: usize,
    ranges: &mut Vec<Range<u64>>,
) -> Result<()> {
    let size = item_size as u64;
    if is_whole(part, extents) {
        return Ok(ranges.try_push(0..shape::nbytes(extents, item_size)? as u64)?);
    }
    if let Some((first, count)) = run_of(part, extents) {
        return Ok(ranges.try_push(first * size..(first + count) * size)?);
    }
    let strides = c_strides(extents, item_size);
    each_range(part, &strides, item_size, Cuts::REMOTE, &mut |_, range| {
        Ok(ranges.try_push(range.start as u64..range.end as u64)?)
    })
}
