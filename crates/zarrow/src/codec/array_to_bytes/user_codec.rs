//! User-defined array-to-bytes codecs.

use crate::codec::chain::ArrayToBytes;
use crate::codec::user_codecs::{ChunkDescription, UserCodec, most_encoded};
use crate::codec::{ChunkElements, Codecs, EncodedChunk, Output, Uninit};
use crate::error::Result;
use zarrow_array::DataType;

/// A registered codec, for elements of a fixed size.
#[derive(Debug)]
pub struct UserCodecElements {
    /// The codec.
    pub codec: UserCodec,
    /// Type of the elements.
    pub data_type: DataType,
}

impl ArrayToBytes for UserCodecElements {
    fn most_encoded(&self, chunk: &EncodedChunk<'_>) -> usize {
        most_encoded(chunk.nbytes)
    }

    fn decode_whole(&self, encoded: &[u8], chunk: &EncodedChunk<'_>, memory: &mut Uninit) -> Result<()> {
        let description = ChunkDescription { data_type: &self.data_type, shape: chunk.shape };
        self.codec.decode(encoded, Some(description), Output::Exact(memory))
    }

    fn encode(&self, elements: ChunkElements<'_>, shape: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        let description = ChunkDescription { data_type: &self.data_type, shape };
        self.codec.encode(&elements.into_fixed()?, Some(description))
    }
}
