//! A mostly selected shard with an unknown index: index and inner chunks are fetched by one request.
//!
//! 1. If half of its inner chunks or more are selected, reading the index first would lead to most of the shard one
//!    round trip later. So the request covers the shard's likely maximum size, from the first byte on.
//! 2. The answer reports the actual size. If every byte has arrived, the index is included, and no other request
//!    follows.
//! 3. If the shard is larger, its index is fetched, unless it is at the start, and then the rest of the inner chunks.
//!    The received bytes take memory until then, so these requests are sent regardless of the memory in flight.
//! 4. The read begins with the index if the shard may be larger than a merged request, or if the store does not accept
//!    a range that extends past the end of a value.

use crate::codec::{InnerChunks, Layout};
use crate::decode::chunk::{Chunk, stored_part};
use crate::decode::shard::inner_chunk_parts;
use crate::error::Result;
use crate::plan::axis_part::AxisPart;
use crate::read::staged::object::{ObjectPlan, RangeFetch};
use crate::store::remote::{ByteRange, FetchPolicy, RequestClass};

/// The section of a shard inside its array.
struct Inside {
    /// The number of inner chunks with elements inside.
    inner_chunks: u64,
    /// The number of elements inside.
    elements: u64,
}

impl ObjectPlan<'_> {
    /// Returns the request for this whole shard; `None` if the read begins with the index.
    ///
    /// # Errors
    /// As [`begin`](ObjectPlan::begin).
    pub fn whole_shard(
        &self,
        chunk: &Chunk<'_>,
        inner_chunks: &InnerChunks,
        policy: &FetchPolicy,
    ) -> Result<Option<RangeFetch>> {
        if !policy.cuts_ranges {
            return Ok(None);
        }
        let inside = self.inside(inner_chunks)?;
        let limit = self.likely_limit(chunk, inner_chunks, inside.inner_chunks)?;
        if limit > policy.merged_nbytes || !self.wants_most(chunk, inner_chunks, &inside)? {
            return Ok(None);
        }
        let (range, class) = (ByteRange::Range(0..limit), RequestClass::Chunk);
        Ok(Some(RangeFetch { range, limit, expected: limit, class, ..RangeFetch::nothing() }))
    }

    /// Returns the section of the shard inside the array: inner chunks outside are rarely stored.
    fn inside(&self, inner_chunks: &InnerChunks) -> Result<Inside> {
        let part = self.reader.part_inside(&self.chunk_index);
        let inner_chunks = inner_chunk_parts(inner_chunks, &stored_part(self.reader.chain, &part))?.count();
        Ok(Inside { inner_chunks, elements: count_of(&part) })
    }

    /// Returns the likely maximum size in bytes of a shard with `count` inner chunks.
    fn likely_limit(&self, chunk: &Chunk<'_>, inner_chunks: &InnerChunks, count: u64) -> Result<u64> {
        /// Bytes that a codec may add to an incompressible inner chunk.
        const ADDED_NBYTES: u64 = 64;
        /// Allowance factor on the estimated size of strings.
        const VARIABLE_FACTOR: u64 = 4;
        let likely = self.reader.likely_nbytes(&inner_chunks.chunk_shape);
        let inner = match self.is_variable() {
            true => likely.saturating_mul(VARIABLE_FACTOR),
            false => likely.saturating_add(likely / 8).saturating_add(ADDED_NBYTES),
        };
        let (_, index_nbytes) = inner_chunks.index_span(&chunk.stored_shape())?;
        Ok(inner.saturating_mul(count).saturating_add(index_nbytes))
    }

    /// Step 1. If inner chunks are uncompressed, a read by index would fetch only the selected elements of each.
    fn wants_most(&self, chunk: &Chunk<'_>, inner_chunks: &InnerChunks, inside: &Inside) -> Result<bool> {
        let mut touched = 0u64;
        match &self.inner[..] {
            [inner] => touched = inner.count(),
            _ => self.each_inner(chunk, &mut |_, _| {
                touched += 1;
                Ok(())
            })?,
        }
        let is_raw = matches!(inner_chunks.chain.stored_layout(), Layout::Elements(_));
        let elements = self.pieces.iter().fold(0u64, |sum, (_, part)| sum.saturating_add(count_of(part)));
        let is_most = |count: u64, all: u64| count >= all.div_ceil(2);
        Ok(is_most(touched, inside.inner_chunks) && (!is_raw || is_most(elements, inside.elements)))
    }
}

/// The number of elements of a part.
fn count_of(part: &[AxisPart<'_>]) -> u64 {
    part.iter().fold(1, |product: u64, axis| product.saturating_mul(axis.count))
}
