//! What of a stored chunk has to be there before what is wanted of it can be decoded.
//!
//! It is the plan of the same steps by which a [`Chunk`] is read, without a read: a pure function of the codecs and of what
//! is wanted, so that a chunk that has what it needs is decoded by [`Chunk::read`] and asks for nothing more.

use crate::codec::{Layout, Sharding};
use crate::error::Result;
use crate::exec::chunk::Chunk;
use crate::exec::output_strides::c_strides;
use crate::exec::part::{AxisPart, is_whole, run_of};
use crate::exec::range::{Cuts, each_range};
use std::ops::Range;
use zarrow_array::allocation::Grow;
use zarrow_array::shape;

/// What a chunk needs.
#[derive(Debug)]
pub enum Need<'c> {
    /// The index of a shard, by which it is split to its inner chunks.
    Index(&'c Sharding),
    /// These ranges of a chunk that has so many bytes.
    Ranges(Vec<Range<u64>>, u64),
    /// All of it, which is so many bytes at most.
    Whole(u64),
}

impl<'c> Chunk<'c> {
    /// What has to be there for `parts`, whose axes are in the order in which they are stored, of a chunk of `shape`, the
    /// same order.
    ///
    /// # Errors
    /// [`zarrow_array::Error::ShapeOverflow`], [`zarrow_array::Error::OutOfMemory`].
    pub fn need(&self, parts: &[&[AxisPart<'_>]], shape: &[u64]) -> Result<Need<'c>> {
        match self.chain.stored_layout() {
            Layout::InnerChunks(sharding) => Ok(Need::Index(sharding)),
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
