//! `zarrs.vlen`: strings or bytes as their offsets and their bytes, each with codecs of its own.
//!
//! A chunk is the encoded offsets, one more than there are elements, and the encoded bytes, which are left out where there
//! are none; at the start or at the end stands how long the encoded offsets are (little-endian `u64`).
//!
//! Source: the documentation of the codec `vlen` of zarrs.

use crate::codec::chain::ArrayToBytes;
use crate::codec::chain::Chain;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::options::DecodeLimits;
use serde_json::Value;
use zarrow_array::{DataType, Number};

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
        Ok(Some(ArrayToBytes::IndexedVlen(Box::new(IndexedVlen::new(metadata, layout.limits)?))))
    }),
    ..Definition::PLAIN
};

/// The name in metadata.
pub const NAME: &str = "zarrs.vlen";

/// The codecs of both parts.
#[derive(Debug)]
pub struct IndexedVlen {
    /// How the offsets are encoded.
    pub index: Chain,
    /// How the bytes are encoded.
    pub data: Chain,
    wide: bool,
    at_end: bool,
}

impl IndexedVlen {
    /// Reads the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], and what either chain refuses.
    pub fn new(metadata: &CodecMetadata, limits: &DecodeLimits) -> Result<IndexedVlen> {
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
        let chain = |key: &str, number: Number| {
            let data_type = DataType::from(number);
            let value = metadata.configuration.get(key).ok_or_else(|| wrong(key, "a list of codecs"))?;
            let codecs = CodecMetadata::parse_chain(value, number.names().item_size)?;
            if codecs.iter().any(|codec| codec.name == "sharding_indexed") {
                return Err(wrong(key, "codecs without sharding"));
            }
            // One axis, whose extent differs from chunk to chunk.
            Chain::new(&codecs, &data_type, &[1], &FillValue::zero(&data_type), limits)
        };
        let index = chain("index_codecs", if wide { Number::UInt64 } else { Number::UInt32 })?;
        Ok(IndexedVlen { index, data: chain("data_codecs", Number::UInt8)?, wide, at_end })
    }

    /// The encoded offsets and the encoded bytes of a chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where the length does not lie in the chunk.
    pub fn parts<'a>(&self, chunk: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
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

    /// The encoded chunk of both encoded parts.
    pub fn joined(&self, index: &[u8], data: &[u8]) -> Vec<u8> {
        let length = (index.len() as u64).to_le_bytes();
        if self.at_end { [data, index, &length].concat() } else { [&length, index, data].concat() }
    }

    /// The offsets of these elements.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where `uint32` does not hold them.
    pub fn offsets(&self, elements: &[&[u8]]) -> Result<Vec<u8>> {
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

    /// Where the elements end, of decoded offsets in the machine's byte order: they begin at 0 and do not run backwards,
    /// nor behind `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::Limit`].
    pub fn ends(&self, offsets: &[u8], limit: usize) -> Result<Vec<usize>> {
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
        // As large as a limit in memory.
        Ok(offsets.into_iter().skip(1).map(|end| end as usize).collect())
    }
}
