//! Array-to-bytes codecs: one file each.
//!
//! 1. [`ArrayToBytes`] is the only interface to such a codec outside its file. [`compile`] finds the codec that the
//!    metadata name: a built-in or registered one.
//! 2. A codec that decodes whole chunks of elements of a fixed size has three functions: `most_encoded`, `decode_whole`
//!    and `encode`. `pcodec.rs` is an example.
//! 3. A codec that splits a chunk into parts (a mask and elements, offsets and bytes) has a [`Chain`] for each part. It
//!    decodes a part by [`EncodedChunk`] and encodes it by [`Chain::encode`], at any depth.
//! 4. A codec does not see the result of a read. It decodes a run of elements to contiguous memory in C order. The
//!    caller passes the memory of the result where the run is contiguous there, and moves the elements otherwise.

pub mod bytes;
pub mod indexed_vlen;
pub mod optional;
pub mod packbits;
pub mod pcodec;
mod registered;
pub mod shard_index;
pub mod sharding;
pub mod vlen;

use crate::codec::chain::Chain;
use crate::codec::definition::{ChunkLayout, Stage};
use crate::codec::registry::Registered;
use crate::codec::{ChunkElements, Codecs, Decoded, EncodedChunk, Sharding, Swap, Worker, built_in};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata, FillValue};
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The arrangement of the elements in the bytes of a chunk, before any compressor. It determines which bytes a part of
/// the chunk needs, and whether the bytes can be mapped.
#[derive(Debug, Clone, Copy)]
pub enum Layout<'c> {
    /// Element after element in C order. These words of each element are reversed.
    Elements(&'c Swap),
    /// Inner chunks, and an index of their places.
    InnerChunks(&'c Sharding),
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
    fn decode_whole(
        &self,
        _encoded: &[u8],
        _chunk: &EncodedChunk<'_>,
        _memory: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
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
        memory: &mut [MaybeUninit<u8>],
        worker: &mut Worker,
    ) -> Result<Swap> {
        let Worker { codecs, encoded, decoded, .. } = worker;
        let encoded = chunk.decompressed(self.most_encoded(chunk), encoded, codecs)?;
        if chunk.is_all(&run) {
            self.decode_whole(&encoded, chunk, memory)?;
        } else {
            let all = decoded.take(chunk.nbytes)?;
            self.decode_whole(&encoded, chunk, all)?;
            memory.copy_from_slice(&all[chunk.bytes_of(&run)]);
        }
        Ok(Swap::None)
    }

    /// Decodes the elements in `run` to fresh memory. Elements without a fixed size are all decoded.
    ///
    /// # Errors
    /// As [`decode_run`](ArrayToBytes::decode_run).
    fn decode(&self, chunk: &EncodedChunk<'_>, run: Range<usize>, worker: &mut Worker) -> Result<Decoded> {
        chunk.fixed(&run, |memory| self.decode_run(chunk, run.clone(), memory, worker))
    }

    /// Decodes the elements in `run` to a mask, 1 for a missing element, and to native-endian elements. Only a codec
    /// with [`Layout::Masked`] implements this.
    ///
    /// # Errors
    /// As [`decode_run`](ArrayToBytes::decode_run).
    fn decode_masked(
        &self,
        _chunk: &EncodedChunk<'_>,
        _run: Range<usize>,
        _mask: &mut [MaybeUninit<u8>],
        _elements: &mut [MaybeUninit<u8>],
        _worker: &mut Worker,
    ) -> Result<()> {
        Err(ErrorKind::Internal("elements without a mask".into()).into())
    }

    /// Encodes the elements of a chunk of `shape`. `chain` is the chain of this codec.
    ///
    /// # Errors
    /// Elements that the codec cannot encode, with the codec; [`zarrow_array::Error::OutOfMemory`].
    fn encode(
        &self,
        chain: &Chain,
        elements: ChunkElements<'_>,
        shape: &[u64],
        codecs: &mut Codecs,
    ) -> Result<Vec<u8>>;

    /// Checks the settings of inner chains for a new array with this fill value.
    ///
    /// # Errors
    /// As [`Chain::check_settings`].
    fn check_settings(&self, _fill_value: &FillValue) -> Result<()> {
        Ok(())
    }
}

/// Compiles the codec that `metadata` name, built-in or registered.
///
/// # Errors
/// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`]; [`ErrorKind::UnknownCodec`] for any other name.
pub fn compile(metadata: &CodecMetadata, layout: &ChunkLayout<'_>) -> Result<Box<dyn ArrayToBytes>> {
    match built_in::find(&metadata.name).map(|codec| &codec.stage) {
        Some(Stage::Serializer(compile)) => compile(metadata, layout),
        Some(_) => Err(ErrorKind::UnknownCodec(metadata.name.clone()).into()),
        None => {
            let codec = Registered::from_metadata(metadata, CodecKind::ArrayToBytes)?;
            layout.only_if(layout.has_fixed_elements())?;
            Ok(Box::new(codec))
        }
    }
}

/// Creates the error for elements of `actual` bytes instead of `expected`.
pub fn wrong_elements_size(expected: u64, actual: u64) -> Error {
    Error::from(ErrorKind::WrongSize { expected, actual }).in_codec(bytes::NAME)
}
