//! `bytes`: the elements in C order, in a configurable byte order.
//!
//! Source: Zarr core 3.1, `bytes` codec.

use crate::codec::chain::{ArrayToBytes, Layout};
use crate::codec::decompress::{ELEMENTS, decode_elements, decode_range, wrong_elements_size};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::codec::{ChunkElements, Codecs, EncodedChunk, Swap, Uninit, Worker};
use crate::error::Result;
use serde_json::{Value, json};
use std::ops::Range;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &[ELEMENTS],
    parameters: &[("endian", ParameterType::Text)],
    defaults: |data_type| if data_type.word_size() > 1 { json!({ "endian": "little" }) } else { Value::Null },
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(layout.has_fixed_elements())?;
        let item_size = layout.data_type.item_size().unwrap_or(0);
        Ok(Box::new(Bytes { swap: Swap::new(metadata, layout.data_type)?, item_size }))
    }),
    ..Definition::PLAIN
};

/// The plain elements.
#[derive(Debug)]
struct Bytes {
    /// The words to reverse on this machine.
    swap: Swap,
    /// The bytes of an element.
    item_size: usize,
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
        memory: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Worker { codecs, encoded, decoded, .. } = worker;
        let (compressors, nbytes, start) = (chunk.bytes_to_bytes, chunk.nbytes, chunk.bytes_of(&run).start);
        if compressors.is_empty() {
            let input = chunk.input.measured()?;
            if input.nbytes()? != nbytes as u64 {
                return Err(wrong_elements_size(nbytes as u64, input.nbytes()?));
            }
            input.read(start as u64, memory)?;
            return Ok(self.swap.clone());
        }
        let encoded = chunk.input.load(usize::MAX, encoded)?;
        chunk.limits.check_ratio(nbytes, encoded.len())?;
        if !chunk.is_all(&run)
            && let Some(range) = decode_range(compressors, encoded, nbytes, start, memory, codecs)
        {
            range?;
        } else {
            let decode = |memory: &mut [_]| decode_elements(compressors, encoded, memory, codecs);
            chunk.run_of_all(&run, memory, decoded, decode)?;
        }
        Ok(self.swap.clone())
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        let mut bytes = elements.into_fixed()?;
        self.swap.in_place(&mut bytes, self.item_size);
        Ok(bytes)
    }
}
