//! `bytes`: the elements in C order, in a configurable byte order.
//!
//! Source: Zarr core 3.1, `bytes` codec.

use crate::codec::array_to_bytes::{ArrayToBytes, Layout, wrong_elements_size};
use crate::codec::bytes_to_bytes::decode_range;
use crate::codec::chain::Chain;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::codec::{ChunkElements, Codecs, EncodedChunk, Swap, Worker};
use crate::error::Result;
use serde_json::{Value, json};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &[NAME],
    parameters: &[("endian", ParameterType::Text)],
    defaults: |data_type| if data_type.word_size() > 1 { json!({ "endian": "little" }) } else { Value::Null },
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(layout.has_fixed_elements())?;
        Ok(Box::new(Bytes { swap: Swap::new(metadata, layout.data_type)? }))
    }),
    ..Definition::PLAIN
};

/// The name in metadata.
pub const NAME: &str = "bytes";

/// The plain elements.
#[derive(Debug)]
struct Bytes {
    /// The words to reverse on this machine.
    swap: Swap,
}

impl ArrayToBytes for Bytes {
    fn layout(&self) -> Layout<'_> {
        Layout::Elements(&self.swap)
    }

    fn added_nbytes(&self) -> usize {
        0
    }

    fn decode_run(
        &self,
        chunk: &EncodedChunk<'_>,
        run: Range<usize>,
        memory: &mut [MaybeUninit<u8>],
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Worker { codecs, encoded, decoded, .. } = worker;
        let (compressors, nbytes, place) = (&chunk.chain.bytes_to_bytes, chunk.nbytes, chunk.bytes_of(&run));
        if compressors.is_empty() {
            let input = chunk.input.measured()?;
            if input.nbytes()? != nbytes as u64 {
                return Err(wrong_elements_size(nbytes as u64, input.nbytes()?));
            }
            input.read(place.start as u64, memory)?;
            return Ok(self.swap.clone());
        }
        let encoded = chunk.input.load(usize::MAX, encoded)?;
        chunk.chain.check_ratio(nbytes, encoded.len())?;
        if chunk.is_all(&run) {
            chunk.chain.decompress_elements(encoded, memory, codecs)?;
        } else if let Some(range) = decode_range(compressors, encoded, nbytes, place.start, memory, codecs) {
            range?;
        } else {
            let all = decoded.take(nbytes)?;
            chunk.chain.decompress_elements(encoded, all, codecs)?;
            memory.copy_from_slice(&all[place]);
        }
        Ok(self.swap.clone())
    }

    fn encode(
        &self,
        chain: &Chain,
        elements: ChunkElements<'_>,
        _shape: &[u64],
        _codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        let mut bytes = elements.into_fixed()?;
        self.swap.in_place(&mut bytes, chain.item_size().unwrap_or(0));
        Ok(bytes)
    }
}
