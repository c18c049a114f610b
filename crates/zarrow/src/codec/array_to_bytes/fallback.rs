//! Rare codecs, decoded and encoded by the `zarrs` crate: one chunk at a time, on the calling thread, with panics
//! caught.
//!
//! Only codecs that keep the size of their input are allowed: nothing else bounds their allocations. Compressors are
//! never passed to this module.

use crate::codec::array_to_bytes::{ArrayToBytes, wrong_elements_size};
use crate::codec::chain::Chain;
use crate::codec::{ChunkElements, Codecs, EncodedChunk};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zarrow_array::DataType;
use zarrow_array::allocation;
use zarrs::array::{
    ArrayBytes, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType as ZarrsType,
    FillValue as ZarrsFillValue,
};
use zarrs::metadata::v3::MetadataV3;

/// The allowed codecs.
const ALLOWED: &[&str] = &["transpose", "packbits"];

/// A list of codecs that `zarrs` runs.
#[derive(Debug)]
pub struct Fallback {
    chain: CodecChain,
    data_type: ZarrsType,
    fill_value: ZarrsFillValue,
    names: String,
}

impl Fallback {
    /// Creates the codecs for elements of `data_type`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for a codec that is not allowed and for types that `zarrs`
    /// lacks.
    pub fn new(codecs: &[CodecMetadata], data_type: &DataType, fill_value: &FillValue) -> Result<Fallback> {
        let names = Chain::names(codecs);
        if let Some(other) = codecs.iter().find(|codec| !ALLOWED.contains(&codec.name.as_str())) {
            return Err(Error::from(ErrorKind::Unsupported(names)).in_codec(&other.name));
        }
        let metadata: Vec<MetadataV3> = codecs
            .iter()
            .map(|codec| MetadataV3::new_with_configuration(&codec.name, codec.configuration.clone()))
            .collect();
        let chain = CodecChain::from_metadata(&metadata)
            .map_err(|error| Error::from(ErrorKind::BadCodec(error.to_string())).in_codec(&names))?;
        let unsupported = || ErrorKind::Unsupported(format!("{names} of {data_type}"));
        let FillValue::Fixed(item) = fill_value else { return Err(unsupported().into()) };
        let name = type_name(data_type).ok_or_else(unsupported)?;
        let data_type =
            ZarrsType::from_metadata(&MetadataV3::new(name.as_ref())).map_err(|_| unsupported())?;
        Ok(Fallback { chain, data_type, fill_value: ZarrsFillValue::new(item.clone()), names })
    }

    /// Allocates and frees as much memory as `zarrs` needs for a chunk of `nbytes` bytes, at most two copies per codec:
    /// `zarrs` aborts the process if an allocation fails. Other threads may take the memory after this check.
    fn probe(&self, nbytes: usize) -> Result<()> {
        let copies = self.names.split(',').count().saturating_add(1).saturating_mul(2);
        // No codec's checksum or padding is longer than this.
        let nbytes = nbytes.saturating_add(64).saturating_mul(copies);
        std::hint::black_box(allocation::with_capacity::<u8>(nbytes)?);
        Ok(())
    }
}

impl ArrayToBytes for Fallback {
    fn most_encoded(&self, chunk: &EncodedChunk<'_>) -> usize {
        // Filters before a compressor may widen an element, by a small factor.
        chunk.nbytes.saturating_mul(8).saturating_add(64 << 10)
    }

    fn encode(
        &self,
        _chain: &Chain,
        elements: ChunkElements<'_>,
        shape: &[u64],
        _codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        let elements = elements.into_fixed()?;
        let failed = |text: String| Error::from(ErrorKind::Unsupported(text)).in_codec(&self.names);
        let shape: Option<Vec<NonZeroU64>> = shape.iter().map(|extent| NonZeroU64::new(*extent)).collect();
        let shape = shape.ok_or_else(|| failed("an empty chunk".into()))?;
        let options = CodecOptions::default().with_concurrent_target(1).with_chunk_concurrent_minimum(1);
        self.probe(elements.len())?;
        let elements = ArrayBytes::new_flen(elements);
        let encode = || self.chain.encode(elements, &shape, &self.data_type, &self.fill_value, &options);
        match catch_unwind(AssertUnwindSafe(encode)) {
            Ok(Ok(encoded)) => Ok(encoded.into_owned()),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("the encoder panicked".into())),
        }
    }

    fn decode_whole(
        &self,
        bytes: &[u8],
        chunk: &EncodedChunk<'_>,
        memory: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let failed = |text: String| Error::from(ErrorKind::Corrupt(text)).in_codec(&self.names);
        let shape: Option<Vec<NonZeroU64>> =
            chunk.shape.iter().map(|extent| NonZeroU64::new(*extent)).collect();
        let shape = shape.ok_or_else(|| failed("an empty chunk".into()))?;
        let options = CodecOptions::default().with_concurrent_target(1).with_chunk_concurrent_minimum(1);
        self.probe(bytes.len())?;
        let decode = || self.chain.decode(bytes.into(), &shape, &self.data_type, &self.fill_value, &options);
        match catch_unwind(AssertUnwindSafe(decode)) {
            Ok(Ok(ArrayBytes::Fixed(decoded))) if decoded.len() == memory.len() => {
                memory.write_copy_of_slice(&decoded);
                Ok(())
            }
            Ok(Ok(ArrayBytes::Fixed(decoded))) => {
                Err(wrong_elements_size(memory.len() as u64, decoded.len() as u64))
            }
            Ok(Ok(_)) => Err(failed("decodes to variable-length data".into())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("the decoder panicked".into())),
        }
    }
}

/// Returns the `zarrs` name of a type stored in the same form as `data_type`.
fn type_name(data_type: &DataType) -> Option<Cow<'static, str>> {
    match data_type {
        DataType::Number(number) => Some(number.names().zarr.into()),
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Some("int64".into()),
        DataType::NullTerminatedBytes { length } | DataType::RawBytes { length } => {
            Some(format!("r{}", u64::from(*length) * 8).into())
        }
        _ => None,
    }
}
