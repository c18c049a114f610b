//! A list of codecs, compiled once when an array is opened.
//!
//! 1. Every codec is known and on the correct side of the border between array and bytes. Leading transposes are
//!    merged into one order of axes: reading them only changes strides.
//! 2. The array-to-bytes codec follows. The byte order of `bytes` becomes a flag of the move.
//! 3. The rest are bytes-to-bytes codecs.
//! 4. Any other array-to-array codec is a filter, and the codecs after it form a nested chain (see
//!    [`array_to_array`](super::array_to_array)).

use crate::codec::DecodeLimits;
use crate::codec::array_to_array::{Filtered, transpose};
use crate::codec::array_to_bytes::{self, ArrayToBytes, Layout, bytes};
use crate::codec::bytes_to_bytes::{BytesToBytes, between_limit, decode};
use crate::codec::compress::{Compressor, Encoded, encode};
use crate::codec::definition::ChunkLayout;
use crate::codec::{ChunkElements, Codecs, Output, Scratch, order};
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue};
use std::mem::MaybeUninit;
use zarrow_array::fork::OnceCell;
use zarrow_array::{DataType, allocation, shape};

/// Maximum number of codecs in a chain, more than any real chain has.
const MAX_CODECS: usize = 32;

/// A compiled list of codecs.
#[derive(Debug)]
pub struct Chain {
    /// Type of the decoded elements.
    pub data_type: DataType,
    /// Array axis of each stored axis; `None` for the same order.
    pub order: Option<Vec<usize>>,
    /// Name of the filter or the array-to-bytes codec, for error messages.
    name: Box<str>,
    /// The array-to-bytes codec.
    pub(super) array_to_bytes: Box<dyn ArrayToBytes>,
    /// The bytes-to-bytes codecs, in encoding order.
    pub bytes_to_bytes: Vec<BytesToBytes>,
    /// The same codecs as metadata, and as compressors after the first write.
    compressors: (Vec<CodecMetadata>, OnceCell<Vec<Compressor>>),
    /// Limits against hostile input.
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
        let Some((codec, bytes_to_bytes)) = rest.split_first() else {
            return Err(ErrorKind::BadCodec(
                "expected a codec from array to bytes (such as \"bytes\")".into(),
            )
            .into());
        };
        if let Some(filtered) = Filtered::new(codec, bytes_to_bytes, data_type, &stored_shape, limits)? {
            return Ok(Chain {
                data_type: data_type.clone(),
                order,
                name: codec.name.as_str().into(),
                array_to_bytes: Box::new(filtered),
                compressors: (Vec::new(), OnceCell::new()),
                bytes_to_bytes: Vec::new(),
                limits: *limits,
            });
        }
        let compressors = (bytes_to_bytes.to_vec(), OnceCell::new());
        let bytes_to_bytes = bytes_to_bytes.iter().map(BytesToBytes::parse).collect::<Result<_>>()?;
        let layout = ChunkLayout { data_type, shape: &stored_shape, fill_value, limits };
        let array_to_bytes =
            array_to_bytes::compile(codec, &layout).map_err(|error| error.in_codec(&codec.name))?;
        let (data_type, name, limits) = (data_type.clone(), codec.name.as_str().into(), *limits);
        Ok(Chain { data_type, order, name, array_to_bytes, bytes_to_bytes, compressors, limits })
    }

    /// Returns the bytes of an element if all elements have the same size.
    pub fn item_size(&self) -> Option<usize> {
        self.data_type.item_size()
    }

    /// Returns the name of the codec that encodes the elements, inside codecs that have a chain for them.
    pub fn elements_codec(&self) -> &str {
        self.array_to_bytes.elements_chain().map_or(&self.name, Chain::elements_codec)
    }

    /// Returns whether all elements have the same size and none can be missing.
    pub fn has_fixed_elements(&self) -> bool {
        self.data_type.item_size().is_some() && !matches!(self.data_type, DataType::Optional(_))
    }

    /// Returns the maximum decoded size of `encoded` bytes, by the ratio limit.
    pub fn ratio_limit(&self, encoded: usize) -> usize {
        usize::try_from(self.limits.max_ratio).unwrap_or(usize::MAX).saturating_mul(encoded.max(1))
    }

    /// Checks by the ratio limit that `encoded` bytes may decode to `nbytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`].
    pub fn check_ratio(&self, nbytes: usize, encoded: usize) -> Result<()> {
        let (actual, limit) = (nbytes as u64, self.ratio_limit(encoded) as u64);
        if actual > limit {
            let what = "the decoded size of a chunk for its stored size (DecodeLimits.max_ratio)";
            return Err(ErrorKind::Limit { what, actual, limit }.into());
        }
        Ok(())
    }

    /// Returns the maximum encoded size of a valid chunk of `shape`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::ShapeOverflow`].
    pub fn encoded_limit(&self, shape: &[u64]) -> Result<usize> {
        if self.data_type.is_variable() {
            return Ok(self.limits.max_variable_nbytes);
        }
        let element = self.item_size().unwrap_or(0).saturating_add(self.array_to_bytes.added_nbytes());
        let nbytes = shape::nbytes(shape, element)?;
        Ok(between_limit(&self.bytes_to_bytes, nbytes).saturating_mul(2).saturating_add(1 << 20))
    }

    /// Returns the minimum encoded size of `count` elements of variable length.
    pub fn least_encoded(&self, count: usize) -> usize {
        self.array_to_bytes.least_encoded(count)
    }

    /// Returns the arrangement of the elements in the bytes of a chunk, before any compressor.
    pub fn layout(&self) -> Layout<'_> {
        self.array_to_bytes.layout()
    }

    /// Returns the arrangement of the elements in the stored bytes of a chunk: [`Layout::Whole`] if they are
    /// compressed.
    pub fn stored_layout(&self) -> Layout<'_> {
        if self.bytes_to_bytes.is_empty() { self.layout() } else { Layout::Whole }
    }

    /// Decompresses the bytes of [elements](Layout::Elements), filling `memory`.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn decompress_elements(
        &self,
        encoded: &[u8],
        memory: &mut [MaybeUninit<u8>],
        codecs: &mut Codecs,
    ) -> Result<()> {
        // Faults outside the compressors are faults of the elements.
        decode(&self.bytes_to_bytes, encoded, Output::Exact(memory), codecs)
            .map_err(|error| error.in_codec(bytes::NAME))
    }

    /// Encodes the elements of a chunk of `shape`.
    ///
    /// # Errors
    /// Errors of the codecs, with the codec named.
    pub fn encode(&self, elements: ChunkElements<'_>, shape: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let bytes = self.array_to_bytes.encode(self, elements, shape, codecs)?;
        let compressors = self.compressors()?;
        if compressors.is_empty() {
            return Ok(bytes);
        }
        let mut scratch = Scratch::default();
        let Encoded { body, tail } = encode(compressors, &bytes, &mut scratch, codecs)?;
        Ok(allocation::concatenated(&[body, &tail])?)
    }

    /// Returns the bytes-to-bytes codecs as encoders. Their settings are parsed at the first write: wrong settings do
    /// not concern readers.
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

    /// Checks all settings for a new array with this fill value, including the settings of inner codecs and
    /// settings for writers alone.
    ///
    /// # Errors
    /// As [`compressors`](Chain::compressors); [`ErrorKind::BadCodec`] if a filter cannot store the fill value.
    pub fn check_settings(&self, fill_value: &FillValue) -> Result<()> {
        self.compressors()?;
        self.array_to_bytes.check_settings(fill_value)
    }
}
