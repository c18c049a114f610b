//! `vlen-utf8` and `vlen-bytes`: a count, then each element after its length, all little-endian `u32`.
//!
//! Source: numcodecs `VLenUTF8`, zarr-extensions `vlen-utf8` and `vlen-bytes`.

use crate::codec::array_to_bytes::ArrayToBytes;
use crate::codec::chain::Chain;
use crate::codec::definition::{Definition, Stage};
use crate::codec::variable_chunk::{VariableChunk, check_text, encode_variable, least_encoded};
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, Worker};
use crate::error::{ErrorKind, Result};
use crate::metadata::NumcodecsForm;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::DataType;

/// Text.
pub const UTF8: Definition = Definition {
    names: &["vlen-utf8", "numcodecs.vlen-utf8"],
    numcodecs: Some(NumcodecsForm::SAME),
    stage: Stage::Serializer(|_, layout| {
        layout.only_if(*layout.data_type == DataType::String)?;
        Ok(Box::new(Vlen))
    }),
    ..Definition::PLAIN
};

/// Bytes.
pub const BYTES: Definition = Definition {
    names: &["vlen-bytes", "numcodecs.vlen-bytes"],
    numcodecs: Some(NumcodecsForm::SAME),
    stage: Stage::Serializer(|_, layout| {
        layout.only_if(*layout.data_type == DataType::Bytes)?;
        Ok(Box::new(Vlen))
    }),
    ..Definition::PLAIN
};

/// Text or bytes: zarrs has one name for both.
pub const EITHER: Definition = Definition {
    names: &["zarrs.vlen_v2"],
    stage: Stage::Serializer(|_, layout| {
        layout.only_if(matches!(layout.data_type, DataType::String | DataType::Bytes))?;
        Ok(Box::new(Vlen))
    }),
    ..Definition::PLAIN
};

/// Elements with length prefixes.
#[derive(Debug)]
struct Vlen;

/// Returns the name of the codec for text or bytes.
fn name(chain: &Chain) -> &'static str {
    if chain.data_type == DataType::String { "vlen-utf8" } else { "vlen-bytes" }
}

impl ArrayToBytes for Vlen {
    fn least_encoded(&self, count: usize) -> usize {
        least_encoded(count)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, _run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        let Worker { codecs, encoded, .. } = worker;
        let bytes = chunk.decompressed_vec(chunk.chain.limits.max_variable_nbytes, encoded, codecs)?;
        let parsed = VariableChunk::parse(bytes, chunk.count);
        Ok(Decoded::Variable(Arc::new(parsed.map_err(|error| error.in_codec(name(chunk.chain)))?)))
    }

    fn encode(
        &self,
        chain: &Chain,
        elements: ChunkElements<'_>,
        _shape: &[u64],
        _codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        let (elements, limit) = (elements.into_variable()?, chain.limits.max_variable_nbytes);
        let encoded = encode_variable(&elements).and_then(|bytes| match chain.data_type {
            _ if bytes.len() > limit => {
                let what = "the size of a chunk of strings (DecodeLimits.max_variable_nbytes)";
                let (actual, limit) = (bytes.len() as u64, limit as u64);
                Err(ErrorKind::Limit { what, actual, limit }.into())
            }
            DataType::String => check_text(&bytes).map(|()| bytes),
            _ => Ok(bytes),
        });
        encoded.map_err(|error| error.in_codec(name(chain)))
    }
}
