//! Takes chunks in encoded form, for memory that this engine does not write, such as a device's.
//!
//! The read is the same as any other (plan, threads, shards and their indexes, checksums, limits), up to the point of
//! decoding a chunk's elements. There the chunk and its selected parts go to a [`ChunkSink`]
//! ([`encoded_to_sink`](crate::decode::encoded_to_sink)). The sink says where to read the stored bytes, or where to decode the
//! elements.

use crate::error::{ErrorKind, Result};
use crate::place::stored_chunk::{ChunkAxis, StoredChunk};
use crate::plan::axis_part::AxisPart;
use crate::store::remote::BodyAlloc;
use std::sync::Arc;

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
            Some(_) => Err(ErrorKind::Internal("a sink of chunks got a list of positions".into()).into()),
        }
    };
    part.iter().map(axis).collect()
}
