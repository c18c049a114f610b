//! `zarrs.vlen`: strings or bytes as offsets and bytes, each encoded with its own codecs.
//!
//! A chunk consists of the encoded offsets, one more than the number of elements, and the encoded bytes, which are
//! omitted if empty. The length of the encoded offsets (little-endian `u64`) is stored at the start or at the end.
//!
//! Source: zarrs documentation of the codec `vlen`.

use crate::codec::chain::{ArrayToBytes, Chain};
use crate::codec::definition::{ChunkLayout, Definition, Stage};
use crate::codec::encoded_chunk::filled;
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::codec::variable_chunk::{VariableChunk, encode_variable, least_encoded};
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, Input, Swap, Worker};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::{DataType, Number, shape};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &[NAME],
    parameters: &[
        ("index_codecs", ParameterType::List),
        ("data_codecs", ParameterType::List),
        ("index_data_type", ParameterType::Text),
        ("index_location", ParameterType::Text),
    ],
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(matches!(layout.data_type, DataType::String | DataType::Bytes))?;
        Ok(Box::new(IndexedVlen::new(metadata, layout)?))
    }),
    ..Definition::PLAIN
};

/// The name in metadata.
const NAME: &str = "zarrs.vlen";

/// The codecs of both parts.
#[derive(Debug)]
struct IndexedVlen {
    /// Codecs of the offsets.
    index: Chain,
    /// Codecs of the bytes.
    data: Chain,
    wide: bool,
    at_end: bool,
}

impl IndexedVlen {
    /// Parses the configuration.
    fn new(metadata: &CodecMetadata, layout: &ChunkLayout<'_>) -> Result<IndexedVlen> {
        let wrong = |key: &str, expected: &str| wrong_parameter(&metadata.configuration, key, expected);
        let text = |key: &str| metadata.configuration.get(key).map(Value::as_str);
        let wide = match text("index_data_type") {
            Some(Some("uint64")) => true,
            Some(Some("uint32")) => false,
            _ => return Err(wrong("index_data_type", "\"uint32\" or \"uint64\"")),
        };
        let at_end = match text("index_location") {
            None | Some(Some("start")) => false,
            Some(Some("end")) => true,
            _ => return Err(wrong("index_location", "\"start\" or \"end\"")),
        };
        let chain = |key: &str, number: Number| layout.part(metadata, key, &number.into());
        let index = chain("index_codecs", if wide { Number::UInt64 } else { Number::UInt32 })?;
        Ok(IndexedVlen { index, data: chain("data_codecs", Number::UInt8)?, wide, at_end })
    }

    /// Returns the encoded offsets and the encoded bytes of a chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the length exceeds the chunk.
    fn parts<'a>(&self, chunk: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let parts = || {
            let (length, rest) = match self.at_end {
                true => chunk.split_last_chunk::<8>().map(|(rest, length)| (length, rest))?,
                false => chunk.split_first_chunk::<8>()?,
            };
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            match self.at_end {
                true => {
                    rest.split_at_checked(rest.len().checked_sub(length)?).map(|(data, index)| (index, data))
                }
                false => rest.split_at_checked(length),
            }
        };
        parts().ok_or_else(|| ErrorKind::Corrupt("its index is longer than the chunk".into()).into())
    }

    /// Concatenates both encoded parts to a chunk.
    fn joined(&self, index: &[u8], data: &[u8]) -> Vec<u8> {
        let length = (index.len() as u64).to_le_bytes();
        if self.at_end { [data, index, &length].concat() } else { [&length, index, data].concat() }
    }

    /// Returns the offsets of these elements.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if they exceed `uint32`.
    fn offsets(&self, elements: &[&[u8]]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut end = 0u64;
        let mut push = |offset: u64| {
            match (self.wide, u32::try_from(offset)) {
                (true, _) => bytes.extend_from_slice(&offset.to_ne_bytes()),
                (false, Ok(offset)) => bytes.extend_from_slice(&offset.to_ne_bytes()),
                (false, Err(_)) => {
                    return Err(ErrorKind::Unsupported("more than 4 GiB of text in a chunk".into()));
                }
            }
            Ok(())
        };
        push(0)?;
        for element in elements {
            end += element.len() as u64;
            push(end)?;
        }
        Ok(bytes)
    }

    /// Returns the ends of the elements from decoded, native-endian offsets, which must start at 0, not decrease and
    /// not exceed `limit`.
    fn ends(&self, offsets: &[u8], limit: usize) -> Result<Vec<usize>> {
        let corrupt = || Error::from(ErrorKind::Corrupt("its offsets decrease".into()));
        let offsets: Vec<u64> = match self.wide {
            true => offsets.as_chunks::<8>().0.iter().map(|offset| u64::from_ne_bytes(*offset)).collect(),
            false => {
                offsets.as_chunks::<4>().0.iter().map(|offset| u32::from_ne_bytes(*offset).into()).collect()
            }
        };
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        if first != 0 || !offsets.is_sorted() {
            return Err(corrupt());
        }
        if last > limit as u64 {
            let what = "the decoded size";
            return Err(ErrorKind::Limit { what, actual: last, limit: limit as u64 }.into());
        }
        // At most a limit on memory, so it fits.
        Ok(offsets.into_iter().skip(1).map(|end| end as usize).collect())
    }
}

impl IndexedVlen {
    /// Decodes the `count` elements of `chunk`.
    fn decode_chunk(&self, chunk: &[u8], count: usize, limit: usize, worker: &mut Worker) -> Result<Decoded> {
        let (index, data) = self.parts(chunk)?;
        let offsets = decode_part(&self.index, index, count.saturating_add(1), worker)?;
        let ends = self.ends(&offsets, limit)?;
        let data = match ends.last() {
            None | Some(0) => Vec::new(),
            Some(nbytes) => decode_part(&self.data, data, *nbytes, worker)?,
        };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let elements: Option<Vec<&[u8]>> =
            starts.zip(&ends).map(|(start, end)| data.get(start..*end)).collect();
        let elements = elements.ok_or_else(|| ErrorKind::Internal("offsets exceed the bytes".into()))?;
        Ok(Decoded::Variable(Arc::new(VariableChunk::parse(encode_variable(&elements)?, count)?)))
    }
}

/// Decodes the `count` native-endian numbers of one part.
fn decode_part(chain: &Chain, encoded: &[u8], count: usize, worker: &mut Worker) -> Result<Vec<u8>> {
    let (input, shape, item_size) =
        (Input::from_bytes(encoded), [count as u64], chain.item_size().unwrap_or(0));
    let mut swap = Swap::None;
    let mut elements = filled(shape::nbytes(&shape, item_size)?, |memory| {
        swap = chain.decode_run(&input, &shape, 0..count, memory, worker)?;
        Ok(())
    })?;
    swap.in_place(&mut elements, item_size);
    Ok(elements)
}

impl ArrayToBytes for IndexedVlen {
    fn least_encoded(&self, count: usize) -> usize {
        least_encoded(count)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, _run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        let limit = chunk.limits.max_variable_nbytes;
        let bytes = chunk.decompressed_vec(limit, &mut worker.encoded, &mut worker.codecs)?;
        self.decode_chunk(&bytes, chunk.count, limit, worker).map_err(|error| error.in_codec(NAME))
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let elements = elements.into_variable()?;
        let count = elements.len() as u64 + 1;
        let offsets = self.offsets(&elements).map_err(|error| error.in_codec(NAME))?;
        let index = self.index.encode(ChunkElements::Fixed(offsets), &[count], codecs)?;
        let data = match elements.concat() {
            none if none.is_empty() => none,
            data => {
                let nbytes = data.len() as u64;
                self.data.encode(ChunkElements::Fixed(data), &[nbytes], codecs)?
            }
        };
        Ok(self.joined(&index, &data))
    }

    fn check_settings(&self, _fill_value: &FillValue) -> Result<()> {
        let any = FillValue::Variable(Vec::new());
        self.index.check_settings(&any)?;
        self.data.check_settings(&any)
    }
}
