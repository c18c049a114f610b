//! `zarrs.optional`: a mask, and the elements that it says are there, each with codecs of its own.
//!
//! A chunk is two lengths (little-endian `u64`), the encoded mask and the encoded elements. The mask is an array
//! of bools, 1 where an element is there; the elements are one run without the missing ones, and are left out
//! where there is none.
//!
//! Source: zarr-extensions pull request 33; the form that the `zarrs` crate writes.

use crate::codec::chain::ArrayToBytes;
use crate::codec::chain::Chain;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::options::DecodeLimits;
use zarrow_array::{DataType, Number};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["zarrs.optional", "optional"],
    parameters: &[("mask_codecs", ParameterType::List), ("data_codecs", ParameterType::List)],
    inner: |data_type| match data_type {
        DataType::Optional(inner) => {
            vec![("mask_codecs", Number::Bool.into()), ("data_codecs", (**inner).clone())]
        }
        _ => Vec::new(),
    },
    stage: Stage::Serializer(|metadata, layout| {
        let DataType::Optional(inner) = layout.data_type else {
            return layout.only_if(false).map(|()| None);
        };
        let codec = OptionalCodec::new(metadata, inner, layout.limits)?;
        Ok(Some(ArrayToBytes::Optional(Box::new(codec))))
    }),
    ..Definition::PLAIN
};

/// Bytes before the mask.
pub const HEADER_NBYTES: usize = 16;

/// The codecs of both parts.
#[derive(Debug)]
pub struct OptionalCodec {
    /// How the mask is encoded.
    pub mask: Chain,
    /// How the elements are encoded.
    pub data: Chain,
}

impl OptionalCodec {
    /// Reads the configuration, for elements of `inner` that may be missing.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], and what either chain refuses.
    pub fn new(metadata: &CodecMetadata, inner: &DataType, limits: &DecodeLimits) -> Result<OptionalCodec> {
        let codecs = |key: &str, data_type: &DataType| -> Result<Vec<CodecMetadata>> {
            let missing = || wrong_parameter(&metadata.configuration, key, "a list of codecs");
            let value = metadata.configuration.get(key).ok_or_else(missing)?;
            Ok(CodecMetadata::parse_chain(value, data_type.item_size().unwrap_or(1))?)
        };
        let bool = DataType::from(Number::Bool);
        let chain = |key: &str, data_type: &DataType| {
            let codecs = codecs(key, data_type)?;
            // Elements lie in one run, so that there is one axis; its extent differs from chunk to chunk.
            if codecs.iter().any(|codec| codec.name == "sharding_indexed") {
                return Err(wrong_parameter(&metadata.configuration, key, "codecs without sharding"));
            }
            Chain::new(&codecs, data_type, &[1], &placeholder(data_type), limits)
        };
        Ok(OptionalCodec { mask: chain("mask_codecs", &bool)?, data: chain("data_codecs", inner)? })
    }

    /// The bytes of the encoded mask and of the encoded elements, by the header of a chunk of `nbytes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where they do not fill the chunk.
    pub fn lengths(&self, header: &[u8], nbytes: u64) -> Result<(u64, u64)> {
        let lengths = || {
            let [mask, data] = header.as_chunks::<8>().0 else { return None };
            let (mask, data) = (u64::from_le_bytes(*mask), u64::from_le_bytes(*data));
            let sum = (HEADER_NBYTES as u64).checked_add(mask)?.checked_add(data)?;
            (sum == nbytes).then_some((mask, data))
        };
        lengths()
            .ok_or_else(|| ErrorKind::Corrupt("the lengths of mask and data do not add up".into()).into())
    }
}

/// A fill value that is never used: an element that is missing has none.
fn placeholder(data_type: &DataType) -> FillValue {
    match data_type {
        DataType::Optional(_) => FillValue::Missing,
        other => match other.item_size() {
            Some(size) => FillValue::Fixed(vec![0; size]),
            None => FillValue::Variable(Vec::new()),
        },
    }
}
