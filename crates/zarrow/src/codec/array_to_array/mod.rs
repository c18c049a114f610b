//! Filters: codecs that turn an array into another array, with other elements or another shape.
//!
//! 1. [`Filtered`] is one filter and the chain after it, so a list of filters is nested. A chain without a filter has
//!    no code for filters.
//! 2. A chunk is decoded whole: the chain after the filter gives the stored elements, native-endian in C order, and the
//!    filter computes the chunk's elements from them. Encoding does the reverse.
//! 3. The number and type of the stored elements follow from the metadata alone. A stored element decodes to one
//!    element, or to 8 if it holds bits. So the stored elements bound the decoded size.
//! 4. The `dtype` of a numcodecs filter may differ from the elements' type if both have the same size: the bytes are
//!    reinterpreted, as in numcodecs.
//!
//! Each filter is a file, and a line in [`built_in`].

pub mod astype;
pub mod bitround;
pub mod cast_value;
pub mod categorize;
pub mod delta;
pub(crate) mod element;
pub mod fixed_scale_offset;
pub mod packbits;
mod parameters;
pub mod quantize;
pub mod reshape;
pub mod scale_offset;
pub mod squeeze;
pub mod transpose;

use crate::codec::DecodeLimits;
use crate::codec::array_to_bytes::{ArrayToBytes, wrong_elements_size};
use crate::codec::chain::Chain;
use crate::codec::definition::Stage;
use crate::codec::registry::{ChunkDescription, Registered};
use crate::codec::{
    ChunkElements, Codecs, Decoded, EncodedChunk, Swap, VariableChunk, Worker, built_in, order,
};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata, FillValue};
pub use parameters::{Parameters, number_named};
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::{DataType, shape};

/// A filter of elements of a fixed size.
pub trait Values: Debug + Send + Sync {
    /// Encodes the elements.
    ///
    /// # Errors
    /// [`ErrorKind::BadValue`] if an element cannot be stored by this filter; [`zarrow_array::Error::OutOfMemory`].
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>>;

    /// Decodes `count` elements.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`]; [`zarrow_array::Error::OutOfMemory`].
    fn decode(&self, stored: Vec<u8>, count: usize) -> Result<Vec<u8>>;
}

/// A filter of the shape alone: the elements do not change, in C order.
pub trait Shape: Debug + Send + Sync {
    /// Returns the stored shape of a chunk of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if the stored shape would have another number of elements.
    fn stored(&self, shape: &[u64]) -> Result<Vec<u64>>;
}

/// Effect of a filter.
#[derive(Debug)]
pub enum Filter {
    /// Changes the elements, which are stored in this type.
    Values(Box<dyn Values>, DataType),
    /// Packs 8 bools into a byte, along one axis.
    Bits(packbits::PackBits),
    /// Turns words into numbers.
    Words(categorize::Categorize),
    /// Changes the shape.
    Shape(Box<dyn Shape>),
    /// A user-defined codec: any effect that keeps the number of elements and their type.
    Registered(Registered),
}

/// A filter and the codecs after it (step 1).
#[derive(Debug)]
pub struct Filtered {
    name: String,
    filter: Filter,
    /// Chain that stores the filter's output.
    stored: Chain,
}

impl Filtered {
    /// Returns the filter that `metadata` names with the chain of `rest`, for chunks of `shape`; `None` for a codec
    /// that is not a filter.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`], with the codec named; errors of the rest.
    pub fn new(
        metadata: &CodecMetadata,
        rest: &[CodecMetadata],
        data_type: &DataType,
        shape: &[u64],
        limits: &DecodeLimits,
    ) -> Result<Option<Filtered>> {
        let in_filter = |error: Error| error.in_codec(&metadata.name);
        let filter = match built_in::find(&metadata.name).map(|codec| &codec.stage) {
            Some(Stage::Filter(parse)) => {
                parse(&Parameters { configuration: &metadata.configuration, data_type }).map_err(in_filter)?
            }
            _ if order::kind(&metadata.name) != Some(CodecKind::ArrayToArray) => return Ok(None),
            _ => match Registered::from_metadata(metadata, CodecKind::ArrayToArray)? {
                _ if data_type.item_size().is_none() || matches!(data_type, DataType::Optional(_)) => {
                    return Err(in_filter(ErrorKind::BadCodec(format!("cannot encode {data_type}")).into()));
                }
                codec => Filter::Registered(codec),
            },
        };
        let stored_type = match &filter {
            Filter::Values(_, data_type) => data_type.clone(),
            Filter::Bits(_) => packbits::PackBits::STORED.into(),
            Filter::Words(words) => words.stored().into(),
            Filter::Shape(_) | Filter::Registered(_) => data_type.clone(),
        };
        let stored_shape = filter.stored_shape(shape).map_err(in_filter)?;
        if rest.iter().any(|codec| codec.name == "sharding_indexed") {
            // A missing inner chunk would need a fill value encoded by the filter.
            return Err(in_filter(ErrorKind::Unsupported("a filter before sharding_indexed".into()).into()));
        }
        let stored = Chain::new(rest, &stored_type, &stored_shape, &FillValue::zero(&stored_type), limits)?;
        if stored.order.is_some() && !stored.has_fixed_elements() {
            return Err(in_filter(
                ErrorKind::Unsupported(format!("a filter before transposed {data_type}")).into(),
            ));
        }
        Ok(Some(Filtered { name: metadata.name.clone(), filter, stored }))
    }

    /// Returns the stored shape of a chunk of `shape`, and the same shape in the order of the stored axes.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], with the codec.
    fn stored_shape(&self, shape: &[u64]) -> Result<(Vec<u64>, Vec<u64>)> {
        let shape = self.filter.stored_shape(shape).map_err(|error| error.in_codec(&self.name))?;
        let in_order = match &self.stored.order {
            Some(order) => order.iter().map(|axis| shape[*axis]).collect(),
            None => shape.clone(),
        };
        Ok((shape, in_order))
    }

    /// Decodes all elements of a chunk (step 2).
    fn decode_all(&self, chunk: &EncodedChunk<'_>, worker: &mut Worker) -> Result<Decoded> {
        let (_, stored_shape) = self.stored_shape(chunk.shape)?;
        let stored = EncodedChunk::new(&self.stored, chunk.input, &stored_shape)?;
        self.elements_of(stored.decode(0..stored.count, worker)?, chunk.shape)
    }

    /// Decodes the output of the chain after the filter to the elements of a chunk of `shape` (step 2).
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], [`ErrorKind::Limit`], with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn elements_of(&self, stored: Decoded, shape: &[u64]) -> Result<Decoded> {
        let (_, in_order) = self.stored_shape(shape)?;
        let in_filter = |error: Error| error.in_codec(&self.name);
        let count = shape::nbytes(shape, 1)?;
        let (mut bytes, swap) = match stored {
            Decoded::Fixed { bytes, swap } => (bytes, swap),
            other if matches!(self.filter, Filter::Shape(_)) => return Ok(other),
            _ => return Err(in_filter(element::not_computable())),
        };
        let item_size = self.stored.item_size().unwrap_or(0);
        swap.in_place(&mut bytes, item_size);
        if let Some(order) = &self.stored.order {
            bytes = transpose::permuted(&bytes, &in_order, &transpose::inverse(order), item_size)?;
        }
        let bytes = match &self.filter {
            Filter::Values(values, _) => values.decode(bytes, count),
            Filter::Bits(bits) => bits.decode(bytes, count),
            Filter::Shape(_) => Ok(bytes),
            Filter::Registered(codec) => {
                let data_type = &self.stored.data_type;
                codec.decoded(&bytes, ChunkDescription { data_type, shape }, bytes.len())
            }
            Filter::Words(words) => match words.decode(&bytes, self.stored.limits.max_variable_nbytes) {
                Ok(categorize::Decoded::Padded(bytes)) => Ok(bytes),
                Ok(categorize::Decoded::Variable(bytes)) => {
                    let chunk = VariableChunk::parse(bytes, count).map_err(in_filter)?;
                    return Ok(Decoded::Variable(Arc::new(chunk)));
                }
                Err(error) => Err(error),
            },
        };
        Ok(Decoded::Fixed { bytes: bytes.map_err(in_filter)?, swap: Swap::None })
    }

    /// Encodes the elements of a chunk of `shape`; the result is in the order of the stored axes (step 2).
    ///
    /// # Errors
    /// [`ErrorKind::BadValue`], with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn stored_of<'a>(&self, elements: ChunkElements<'a>, shape: &[u64]) -> Result<ChunkElements<'a>> {
        let (shape, _) = self.stored_shape(shape)?;
        let in_filter = |error: Error| error.in_codec(&self.name);
        let bytes = match (&self.filter, elements) {
            (Filter::Values(values, _), ChunkElements::Fixed(bytes)) => values.encode(bytes),
            (Filter::Bits(bits), ChunkElements::Fixed(bytes)) => bits.encode(&bytes),
            (Filter::Words(words), ChunkElements::Fixed(bytes)) => words.encode_padded(&bytes),
            (Filter::Words(words), ChunkElements::Variable(elements)) => {
                words.encode(elements.iter().copied())
            }
            (Filter::Shape(_), ChunkElements::Fixed(bytes)) => Ok(bytes),
            (Filter::Registered(codec), ChunkElements::Fixed(bytes)) => {
                let data_type = &self.stored.data_type;
                codec.encode_elements(&bytes, ChunkDescription { data_type, shape: &shape })
            }
            (Filter::Shape(_), elements) => return Ok(elements),
            _ => Err(element::not_computable()),
        };
        let bytes = bytes.map_err(in_filter)?;
        Ok(ChunkElements::Fixed(match &self.stored.order {
            Some(order) => transpose::permuted(&bytes, &shape, order, self.stored.item_size().unwrap_or(0))?,
            None => bytes,
        }))
    }
}

impl ArrayToBytes for Filtered {
    fn elements_chain(&self) -> Option<&Chain> {
        matches!(self.filter, Filter::Shape(_)).then_some(&self.stored)
    }

    fn decode(&self, chunk: &EncodedChunk<'_>, run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        if chunk.chain.has_fixed_elements() {
            return chunk.fixed(&run, |memory| self.decode_run(chunk, run.clone(), memory, worker));
        }
        self.decode_all(chunk, worker)
    }

    fn decode_run(
        &self,
        chunk: &EncodedChunk<'_>,
        run: Range<usize>,
        memory: &mut [MaybeUninit<u8>],
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Decoded::Fixed { bytes, swap } = self.decode_all(chunk, worker)? else {
            return Err(ErrorKind::Internal("elements of no fixed size".into()).into());
        };
        let wrong_size = || wrong_elements_size(chunk.nbytes as u64, bytes.len() as u64);
        memory.write_copy_of_slice(bytes.get(chunk.bytes_of(&run)).ok_or_else(wrong_size)?);
        Ok(swap)
    }

    fn encode(
        &self,
        _chain: &Chain,
        elements: ChunkElements<'_>,
        shape: &[u64],
        codecs: &mut Codecs,
    ) -> Result<Vec<u8>> {
        let (_, stored_shape) = self.stored_shape(shape)?;
        self.stored.encode(self.stored_of(elements, shape)?, &stored_shape, codecs)
    }

    /// Checks that the filter can store `fill_value` too. numcodecs stores no fill values, so its filters need not
    /// support one.
    ///
    /// Source: zarr-extensions `scale_offset` and `cast_value`, fill value.
    fn check_settings(&self, fill_value: &FillValue) -> Result<()> {
        let stored = match (&self.filter, fill_value, self.name.as_str()) {
            (Filter::Values(values, _), FillValue::Fixed(bytes), "scale_offset" | "cast_value") => {
                let stored = values.encode(bytes.clone()).map_err(|error| {
                    let text = format!("cannot store the fill value ({error}): choose another fill_value");
                    Error::from(ErrorKind::BadCodec(text)).in_codec(&self.name)
                })?;
                FillValue::Fixed(stored)
            }
            (Filter::Shape(_), other, _) => other.clone(),
            _ => FillValue::Variable(Vec::new()),
        };
        self.stored.check_settings(&stored)
    }
}

impl Filter {
    fn stored_shape(&self, shape: &[u64]) -> Result<Vec<u64>> {
        match self {
            Filter::Values(..) | Filter::Words(_) | Filter::Registered(_) => Ok(shape.to_vec()),
            Filter::Bits(_) => Ok(vec![packbits::PackBits::stored_count(shape::nbytes(shape, 1)?) as u64]),
            Filter::Shape(filter) => filter.stored(shape),
        }
    }
}
