//! `vlen-utf8` and `vlen-bytes`: a count, then each element after its length, all little-endian `u32`.
//!
//! Source: numcodecs `VLenUTF8`, zarr-extensions `vlen-utf8` and `vlen-bytes`.

use crate::codec::chain::ArrayToBytes;
use crate::codec::definition::{ChunkLayout, Definition, Stage};
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
    stage: Stage::Serializer(|_, layout| vlen(layout, &[DataType::String])),
    ..Definition::PLAIN
};

/// Bytes.
pub const BYTES: Definition = Definition {
    names: &["vlen-bytes", "numcodecs.vlen-bytes"],
    numcodecs: Some(NumcodecsForm::SAME),
    stage: Stage::Serializer(|_, layout| vlen(layout, &[DataType::Bytes])),
    ..Definition::PLAIN
};

/// Text or bytes: zarrs has one name for both.
pub const EITHER: Definition = Definition {
    names: &["zarrs.vlen_v2"],
    stage: Stage::Serializer(|_, layout| vlen(layout, &[DataType::String, DataType::Bytes])),
    ..Definition::PLAIN
};

/// Elements with length prefixes.
#[derive(Debug)]
struct Vlen {
    is_text: bool,
    /// Maximum bytes of a chunk.
    limit: usize,
}

fn vlen(layout: &ChunkLayout<'_>, types: &[DataType]) -> Result<Box<dyn ArrayToBytes>> {
    layout.only_if(types.contains(layout.data_type))?;
    let is_text = *layout.data_type == DataType::String;
    Ok(Box::new(Vlen { is_text, limit: layout.limits.max_variable_nbytes }))
}

impl Vlen {
    /// Returns the name of the codec for text or bytes.
    fn name(&self) -> &'static str {
        if self.is_text { "vlen-utf8" } else { "vlen-bytes" }
    }
}

impl ArrayToBytes for Vlen {
    fn least_encoded(&self, count: usize) -> usize {
        least_encoded(count)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, _run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        let Worker { codecs, encoded, .. } = worker;
        let bytes = chunk.decompressed_vec(self.limit, encoded, codecs)?;
        let parsed = VariableChunk::parse(bytes, chunk.count);
        Ok(Decoded::Variable(Arc::new(parsed.map_err(|error| error.in_codec(self.name()))?)))
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        let (elements, limit) = (elements.into_variable()?, self.limit);
        let encoded = encode_variable(&elements).and_then(|bytes| match self.is_text {
            _ if bytes.len() > limit => {
                let what = "the size of a chunk of strings (DecodeLimits.max_variable_nbytes)";
                let (actual, limit) = (bytes.len() as u64, limit as u64);
                Err(ErrorKind::Limit { what, actual, limit }.into())
            }
            true => check_text(&bytes).map(|()| bytes),
            false => Ok(bytes),
        });
        encoded.map_err(|error| error.in_codec(self.name()))
    }
}
