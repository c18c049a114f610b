//! User-defined array-to-bytes codecs.

use crate::codec::array_to_bytes::ArrayToBytes;
use crate::codec::bytes_to_bytes::Output;
use crate::codec::chain::Chain;
use crate::codec::registry::{ChunkDescription, Registered, most_encoded};
use crate::codec::{ChunkElements, Codecs, EncodedChunk};
use crate::error::Result;
use std::mem::MaybeUninit;

impl ArrayToBytes for Registered {
    fn most_encoded(&self, chunk: &EncodedChunk<'_>) -> usize {
        most_encoded(chunk.nbytes)
    }

    fn decode_whole(
        &self,
        encoded: &[u8],
        chunk: &EncodedChunk<'_>,
        memory: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let description = ChunkDescription { data_type: &chunk.chain.data_type, shape: chunk.shape };
        self.decode(encoded, Some(description), Output::Exact(memory))
    }

    fn encode(
        &self,
        chain: &Chain,
        elements: ChunkElements<'_>,
        shape: &[u64],
        _codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        let description = ChunkDescription { data_type: &chain.data_type, shape };
        Registered::encode(self, &elements.into_fixed()?, Some(description))
    }
}
