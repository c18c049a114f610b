//! A list of codecs, compiled once when an array is opened.
//!
//! 1. Every codec must be known, and stand on its side of the border between array and bytes. Transposes at the front
//!    become one order of axes: reading them only changes strides.
//! 2. The codec from array to bytes follows. The byte order of `bytes` becomes a flag of the move.
//! 3. The rest are codecs from bytes to bytes.
//! 4. Any other codec from array to array is a filter, and the codecs after it are a chain of their own (see
//!    [`array_to_array`](super::array_to_array)).
//! 5. A list with a codec that is not ours goes to the fallback as a whole, except for the compressors at its end: these
//!    stay ours, since they bound the decoded size. The fallback is the feature `zarrs`; without it such a list is
//!    refused.

use crate::codec::array_to_array::Filtered;
use crate::codec::array_to_array::transpose;
#[cfg(feature = "zarrs")]
use crate::codec::array_to_bytes::fallback::Fallback;
use crate::codec::array_to_bytes::indexed_vlen::IndexedVlen;
use crate::codec::array_to_bytes::optional::OptionalCodec;
use crate::codec::array_to_bytes::packbits::PackBits;
use crate::codec::array_to_bytes::pcodec::Pcodec;
use crate::codec::array_to_bytes::sharding::Sharding;
use crate::codec::built_in;
use crate::codec::byte_order::Swap;
use crate::codec::bytes_to_bytes::BytesToBytes;
use crate::codec::compress::Compressor;
use crate::codec::definition::{ChunkLayout, Stage};
use crate::codec::order;
use crate::codec::registry::{CodecKind, Registered};
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use crate::options::DecodeLimits;
use zarrow_array::DataType;
use zarrow_array::fork::OnceCell;

/// More codecs than anybody chains.
const MAX_CODECS: usize = 32;

/// How the bytes of an array come about.
#[derive(Debug)]
pub enum ArrayToBytes {
    /// The elements themselves.
    Bytes {
        /// What is reversed to come to the machine's byte order.
        swap: Swap,
    },
    /// One bit an element.
    PackBits(PackBits),
    /// Numbers as a file of pco.
    Pcodec(Box<Pcodec>),
    /// Elements behind their lengths.
    Vlen,
    /// Elements, and where each begins.
    IndexedVlen(Box<IndexedVlen>),
    /// A mask, and the elements that it says are there.
    Optional(Box<OptionalCodec>),
    /// Chunks inside the chunk.
    Sharding(Box<Sharding>),
    /// Other elements, or another shape, which have codecs of their own.
    Filtered(Box<Filtered>),
    /// A codec of a user's own.
    Registered(Registered),
    /// Another library's codecs.
    #[cfg(feature = "zarrs")]
    Fallback(Box<Fallback>),
}

/// A compiled list of codecs.
#[derive(Debug)]
pub struct Chain {
    /// The type of the elements that the chain decodes to.
    pub data_type: DataType,
    /// Which axis of the array each stored axis is; `None` for the same order.
    pub order: Option<Vec<usize>>,
    /// The codec from array to bytes.
    pub array_to_bytes: ArrayToBytes,
    /// The codecs from bytes to bytes, in the order in which they encode.
    pub bytes_to_bytes: Vec<BytesToBytes>,
    /// The same codecs as metadata, and as compressors once something was written.
    compressors: (Vec<CodecMetadata>, OnceCell<Vec<Compressor>>),
    /// What is refused as hostile.
    pub limits: DecodeLimits,
}

impl Chain {
    /// Compiles `codecs` for chunks of `chunk_shape`.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCodec`], [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`], with the codec named.
    pub fn new(
        codecs: &[CodecMetadata],
        data_type: &DataType,
        chunk_shape: &[u64],
        fill_value: &FillValue,
        limits: &DecodeLimits,
    ) -> Result<Chain> {
        if codecs.len() > MAX_CODECS {
            let (what, actual, limit) = ("the number of codecs", codecs.len() as u64, MAX_CODECS as u64);
            return Err(ErrorKind::Limit { what, actual, limit }.into());
        }
        order::check(codecs)?;
        let transposes = codecs.iter().take_while(|codec| codec.name == "transpose").count();
        let (transposes, rest) = codecs.split_at(transposes);
        let order = transpose::compose(transposes, chunk_shape.len())?;
        let stored_shape = match &order {
            Some(order) => order.iter().map(|axis| chunk_shape[*axis]).collect(),
            None => chunk_shape.to_vec(),
        };
        let Some((array_to_bytes, bytes_to_bytes)) = rest.split_first() else {
            return Err(ErrorKind::BadCodec(
                "expected a codec from array to bytes (such as \"bytes\")".into(),
            )
            .into());
        };
        if let Some(filtered) =
            Filtered::new(array_to_bytes, bytes_to_bytes, data_type, &stored_shape, limits)?
        {
            return Ok(Chain {
                data_type: data_type.clone(),
                order,
                array_to_bytes: ArrayToBytes::Filtered(Box::new(filtered)),
                compressors: (Vec::new(), OnceCell::new()),
                bytes_to_bytes: Vec::new(),
                limits: *limits,
            });
        }
        let ours = bytes_to_bytes.iter().map(BytesToBytes::parse).collect::<Result<Vec<_>>>()?;
        let ours = ours.into_iter().collect::<Option<Vec<_>>>();
        let layout = ChunkLayout { data_type, shape: &stored_shape, fill_value, limits };
        let known = ArrayToBytes::new(array_to_bytes, &layout)
            .map_err(|error| error.in_codec(&array_to_bytes.name))?;
        if let (Some(array_to_bytes), Some(bytes_to_bytes)) = (known, ours) {
            return Ok(Chain {
                data_type: data_type.clone(),
                order,
                array_to_bytes,
                compressors: (rest[1..].to_vec(), OnceCell::new()),
                bytes_to_bytes,
                limits: *limits,
            });
        }
        let ours = |codec: &CodecMetadata| BytesToBytes::parse(codec).ok().flatten();
        let compressors: Vec<BytesToBytes> = codecs.iter().rev().map_while(ours).collect();
        let (foreign, ours) = codecs.split_at(codecs.len() - compressors.len());
        Ok(Chain {
            data_type: data_type.clone(),
            order: None,
            array_to_bytes: ArrayToBytes::foreign(foreign, data_type, fill_value)?,
            bytes_to_bytes: compressors.into_iter().rev().collect(),
            compressors: (ours.to_vec(), OnceCell::new()),
            limits: *limits,
        })
    }

    /// Bytes of an element, where they are the same for all.
    pub fn item_size(&self) -> Option<usize> {
        self.data_type.item_size()
    }

    /// Whether every element has the same bytes and none is missing.
    pub fn has_fixed_elements(&self) -> bool {
        self.data_type.item_size().is_some() && !matches!(self.data_type, DataType::Optional(_))
    }

    /// The most bytes that `encoded` bytes may decode to, by the limit of their ratio.
    pub fn ratio_limit(&self, encoded: usize) -> usize {
        usize::try_from(self.limits.max_ratio).unwrap_or(usize::MAX).saturating_mul(encoded.max(1))
    }

    /// The codecs from bytes to bytes as they encode. What they were set to is looked at when something is written: a
    /// reader need not mind it.
    ///
    /// # Errors
    /// As [`Compressor::parse`].
    pub fn compressors(&self) -> Result<&[Compressor]> {
        let (metadata, parsed) = &self.compressors;
        if let Some(parsed) = parsed.get() {
            return Ok(parsed);
        }
        let compressors = metadata.iter().map(Compressor::parse).collect::<Result<_>>()?;
        Ok(parsed.get_or_make(|| compressors))
    }

    /// The name of the codec for strings or bytes.
    pub fn vlen_name(&self) -> &'static str {
        if self.data_type == DataType::String { "vlen-utf8" } else { "vlen-bytes" }
    }

    /// Checks all settings for a new array with this fill value, also of inner codecs, and also those that matter to
    /// writers alone.
    ///
    /// # Errors
    /// As [`compressors`](Chain::compressors); [`ErrorKind::BadCodec`] where a filter cannot store the fill value.
    pub fn check_settings(&self, fill_value: &FillValue) -> Result<()> {
        self.compressors()?;
        let any = FillValue::Variable(Vec::new());
        match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => sharding.inner.check_settings(fill_value),
            ArrayToBytes::Filtered(filtered) => filtered.check_settings(fill_value),
            ArrayToBytes::IndexedVlen(vlen) => {
                vlen.index.check_settings(&any)?;
                vlen.data.check_settings(&any)
            }
            ArrayToBytes::Optional(optional) => {
                optional.mask.check_settings(&any)?;
                optional.data.check_settings(&any)
            }
            _ => Ok(()),
        }
    }

    /// The codecs' names, for people.
    pub fn names(codecs: &[CodecMetadata]) -> String {
        codecs.iter().map(|codec| codec.name.as_str()).collect::<Vec<_>>().join(" → ")
    }
}

impl ArrayToBytes {
    /// Codecs of another library (step 5).
    #[cfg(feature = "zarrs")]
    fn foreign(codecs: &[CodecMetadata], data_type: &DataType, fill: &FillValue) -> Result<ArrayToBytes> {
        Ok(ArrayToBytes::Fallback(Box::new(Fallback::new(codecs, data_type, fill)?)))
    }

    /// The refusal of what only another library can do (step 5).
    #[cfg(not(feature = "zarrs"))]
    fn foreign(codecs: &[CodecMetadata], data_type: &DataType, _: &FillValue) -> Result<ArrayToBytes> {
        let names = Chain::names(codecs);
        let text = format!("{names} of {data_type}, which needs the feature \"zarrs\" of the crate zarrow");
        Err(crate::Error::from(ErrorKind::Unsupported(text)).in_codec(&names))
    }

    /// The codec that `metadata` names, `None` where it is not ours.
    fn new(metadata: &CodecMetadata, layout: &ChunkLayout<'_>) -> Result<Option<ArrayToBytes>> {
        match built_in::find(&metadata.name).map(|codec| &codec.stage) {
            Some(Stage::Serializer(compile)) => compile(metadata, layout),
            Some(_) => Ok(None),
            None => {
                let Some(codec) = Registered::of(metadata, CodecKind::ArrayToBytes)? else { return Ok(None) };
                layout.only_if(layout.has_fixed_elements())?;
                Ok(Some(ArrayToBytes::Registered(codec)))
            }
        }
    }
}
