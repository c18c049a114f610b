//! Passes a chunk to a sink in encoded form.

use crate::codec::{BytesToBytes, Input, Layout, Swap, Worker};
use crate::decode::chunk::Chunk;
use crate::error::{ErrorKind, Result};
use crate::place::chunk_sink::{ChunkSink, axes_of};
use crate::place::stored_chunk::{StoredChunk, compressors};
use crate::plan::axis_part::AxisPart;
use zarrow_array::shape;

impl Chunk<'_> {
    /// Hands over the chunk; its shape and part are in stored axis order.
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
            Swap::Fields(_) => return Err(internal("non-native-endian structures").into()),
        };
        let decoded_nbytes = shape::nbytes(self.shape, self.chain.item_size().unwrap_or(0))?;
        let axes = axes_of(part)?;
        let kept = self.slot.and_then(|slot| self.cached(slot));
        let (chain, input) = match &kept {
            // The elements are in memory from an earlier read.
            Some(elements) => (&[][..], Input::from_bytes(elements)),
            None => (&self.chain.bytes_to_bytes[..], input.within(self.encoded_limit()?)?),
        };
        let stored_nbytes = usize::try_from(input.nbytes()?).unwrap_or(usize::MAX);
        let compressors = compressors(chain);
        if !compressors.is_empty() {
            self.chain.limits.check_ratio(decoded_nbytes, stored_nbytes)?;
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
