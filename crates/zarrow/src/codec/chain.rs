//! A list of codecs, compiled once when an array is opened: see [`compile`](super::compile).
//!
//! 1. Transposes at the start are one order of axes. The array-to-bytes codec follows, then the bytes-to-bytes codecs.
//! 2. [`ArrayToBytes`] is the only interface to an array-to-bytes codec outside its file. Such a codec may have chains
//!    for its parts: the two types refer to each other, so one file defines both.

use crate::codec::compress::{Compressor, Encoded, encode};
use crate::codec::decompress::{BytesToBytes, between_limit};
use crate::codec::encoded_chunk::not_in_chunk;
use crate::codec::{
    ChunkElements, Codecs, DecodeLimits, Decoded, EncodedChunk, Input, Scratch, Swap, Uninit, Worker,
};
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use std::fmt::Debug;
use std::ops::Range;
use zarrow_array::fork::OnceCell;
use zarrow_array::{DataType, allocation, shape};

/// A compiled list of codecs.
#[derive(Debug)]
pub struct Chain {
    /// Type of the decoded elements.
    pub data_type: DataType,
    /// Array axis of each stored axis; `None` for the same order.
    pub order: Option<Vec<usize>>,
    /// Name of the filter or the array-to-bytes codec, for error messages.
    pub(super) name: Box<str>,
    /// The array-to-bytes codec.
    pub(super) array_to_bytes: Box<dyn ArrayToBytes>,
    /// The bytes-to-bytes codecs, in encoding order.
    pub bytes_to_bytes: Vec<BytesToBytes>,
    /// The same codecs as compressors, after the first write.
    pub(super) compressors: OnceCell<Vec<Compressor>>,
    /// Limits against hostile input.
    pub limits: DecodeLimits,
}

impl Chain {
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

    /// Returns the maximum encoded size of a valid chunk of `shape`.
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

    /// Returns whether a cache keeps the elements of a whole chunk: if they have a fixed size and are compressed.
    pub fn caches_whole_chunks(&self) -> bool {
        matches!(self.layout(), Layout::Elements(_)) && !self.bytes_to_bytes.is_empty()
    }

    fn chunk<'a>(&'a self, input: &'a Input<'a>, shape: &'a [u64]) -> Result<EncodedChunk<'a>> {
        EncodedChunk::new(&self.bytes_to_bytes, &self.limits, input, shape, self.item_size().unwrap_or(0))
    }

    /// Decodes the elements in `run`, counted in C order, of a chunk of `shape` to fresh memory. Elements without a fixed
    /// size are all decoded.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that invalid bytes cause, with the codec.
    pub fn decode(
        &self,
        input: &Input<'_>,
        shape: &[u64],
        run: Range<usize>,
        worker: &mut Worker,
    ) -> Result<Decoded> {
        self.array_to_bytes.decode(&self.chunk(input, shape)?, run, worker)
    }

    /// Decodes the fixed-size elements in `run` to all of `memory`. Returns the words of each element that the caller
    /// reverses.
    pub fn decode_run(
        &self,
        input: &Input<'_>,
        shape: &[u64],
        run: Range<usize>,
        memory: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<Swap> {
        let chunk = self.chunk(input, shape)?;
        chunk.check(&run, memory)?;
        self.array_to_bytes.decode_run(&chunk, run, memory, worker)
    }

    /// Decodes the fixed-size elements in `run` to all of `elements`, and to all of `mask`, which has 1 for a missing
    /// element.
    pub fn decode_masked(
        &self,
        input: &Input<'_>,
        shape: &[u64],
        run: Range<usize>,
        mask: &mut Uninit,
        elements: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<()> {
        let chunk = self.chunk(input, shape)?;
        chunk.check(&run, elements)?;
        if mask.len() != run.len() {
            return Err(not_in_chunk());
        }
        self.array_to_bytes.decode_masked(&chunk, run, mask, elements, worker)
    }

    /// Encodes the elements of a chunk of `shape`.
    ///
    /// # Errors
    /// Errors of the codecs, with the codec named.
    pub fn encode(&self, elements: ChunkElements<'_>, shape: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let bytes = self.array_to_bytes.encode(elements, shape, codecs)?;
        let compressors = self.compressors()?;
        if compressors.is_empty() {
            return Ok(bytes);
        }
        let mut scratch = Scratch::default();
        let Encoded { body, tail } = encode(compressors, &bytes, &mut scratch, codecs)?;
        Ok(allocation::concatenated(&[body, &tail])?)
    }

    /// Returns the bytes-to-bytes codecs as encoders. Their settings are parsed at the first write.
    pub fn compressors(&self) -> Result<&[Compressor]> {
        if let Some(parsed) = self.compressors.get() {
            return Ok(parsed);
        }
        let compressors = self.bytes_to_bytes.iter().map(BytesToBytes::compressor).collect::<Result<_>>()?;
        Ok(self.compressors.get_or_make(|| compressors))
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

/// A chunk that contains chunks, and an index of their places.
#[derive(Debug)]
pub struct InnerChunks {
    /// The shape of an inner chunk.
    pub chunk_shape: Vec<u64>,
    /// The codecs of an inner chunk.
    pub chain: Chain,
    /// The codecs of the index.
    pub(super) index: Chain,
    /// Whether the index is at the end.
    pub(super) at_end: bool,
}

/// The arrangement of the elements in the bytes of a chunk, before any compressor. It determines which bytes a part of
/// the chunk needs, and whether the bytes can be mapped.
#[derive(Debug, Clone, Copy)]
pub enum Layout<'c> {
    /// Element after element in C order. These words of each element are reversed.
    Elements(&'c Swap),
    /// Inner chunks, and an index of their places.
    InnerChunks(&'c InnerChunks),
    /// A mask, and the elements that are present. A run of elements is decoded without the others, to a mask and
    /// elements.
    Masked,
    /// Anything else: all elements are decoded together.
    Whole,
}

/// A codec from array to bytes, compiled for the chunks of one array.
///
/// The caller checks that the chunk contains the run, and that run and memory have the same number of bytes. A function
/// that decodes to memory writes every byte or returns an error: without an error, the memory counts as initialised.
pub trait ArrayToBytes: Debug + Send + Sync {
    /// Returns the arrangement of the elements.
    fn layout(&self) -> Layout<'_> {
        Layout::Whole
    }

    /// Returns the chain that encodes the elements, if the codec has one.
    fn elements_chain(&self) -> Option<&Chain> {
        None
    }

    /// Returns the maximum bytes that the codec adds for each element, such as a mask, an index entry or headers.
    fn added_nbytes(&self) -> usize {
        32
    }

    /// Returns the minimum encoded size of `count` elements of variable length.
    fn least_encoded(&self, _count: usize) -> usize {
        0
    }

    /// Returns the maximum size that the codecs after this one may decode to.
    fn most_encoded(&self, _chunk: &EncodedChunk<'_>) -> usize {
        usize::MAX
    }

    /// Decodes all elements of a chunk from `encoded` to native-endian `memory`.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that invalid bytes cause, with the codec.
    fn decode_whole(&self, _encoded: &[u8], _chunk: &EncodedChunk<'_>, _memory: &mut Uninit) -> Result<()> {
        Err(ErrorKind::Internal("elements of no fixed size".into()).into())
    }

    /// Decodes the fixed-size elements in `run` to `memory`. Returns the words of each element that the caller
    /// reverses.
    ///
    /// # Errors
    /// Errors of the store; any [`ErrorKind`] that invalid bytes cause, with the codec.
    fn decode_run(
        &self,
        chunk: &EncodedChunk<'_>,
        run: Range<usize>,
        memory: &mut Uninit,
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Worker { codecs, encoded, decoded, .. } = worker;
        let encoded = chunk.decompressed(self.most_encoded(chunk), encoded, codecs)?;
        chunk.run_of_all(&run, memory, decoded, |memory| self.decode_whole(&encoded, chunk, memory))?;
        Ok(Swap::None)
    }

    /// Decodes the elements in `run` to fresh memory. Elements without a fixed size are all decoded.
    fn decode(&self, chunk: &EncodedChunk<'_>, run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        chunk.fixed(&run, |memory| self.decode_run(chunk, run.clone(), memory, worker))
    }

    /// Decodes the elements in `run` to a mask, 1 for a missing element, and to native-endian elements. Only a codec
    /// with [`Layout::Masked`] implements this.
    fn decode_masked(
        &self,
        _chunk: &EncodedChunk<'_>,
        _run: Range<usize>,
        _mask: &mut Uninit,
        _elements: &mut Uninit,
        _worker: &mut Worker,
    ) -> Result<()> {
        Err(ErrorKind::Internal("elements without a mask".into()).into())
    }

    /// Encodes the elements of a chunk of `shape`.
    ///
    /// # Errors
    /// Elements that the codec cannot encode, with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn encode(&self, elements: ChunkElements<'_>, shape: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>>;

    /// Checks the settings of inner chains for a new array with this fill value.
    fn check_settings(&self, _fill_value: &FillValue) -> Result<()> {
        Ok(())
    }
}
