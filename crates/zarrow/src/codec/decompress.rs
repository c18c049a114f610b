//! Decompression: bytes-to-bytes codecs, decoded into memory of a known size.
//!
//! 1. [`decode`] undoes a chain, the last codec first. Intermediate stages have no known size: they grow with the bytes
//!    actually decompressed, up to a limit.
//! 2. The stage next to the array writes [`Output::Exact`]ly the bytes that the metadata require, straight to their
//!    destination. For variable-length arrays it grows like an intermediate stage.
//! 3. Checksums do not move the bytes, and are removed without a copy.
//!
//! The codecs are in [`bytes_to_bytes`](super::bytes_to_bytes). [`compress`](super::compress) encodes.

use crate::codec::bytes_to_bytes::checksum::{self, Checksum};
use crate::codec::compress::{Compressor, Encoder};
use crate::codec::failure::{Failure, too_long};
use crate::codec::user_codecs::UserCodec;
use crate::codec::{Codecs, Output, Uninit};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecMetadata;
use std::fmt::Debug;

/// The codec that errors name if the fault is in plain elements, outside any compressor.
pub const ELEMENTS: &str = "bytes";

/// Decoder of a codec. It must have written as many bytes as it reports: the caller takes them for initialised.
pub trait Decoder: Debug + Send + Sync {
    /// Decompresses to the start of `destination`; returns the bytes written.
    ///
    /// # Errors
    /// [`Failure::TooSmall`] if the destination is too small for the output, and any other [`Failure`].
    fn decode(&self, source: &[u8], destination: &mut Uninit, codecs: &mut Codecs) -> Result<usize, Failure>;

    /// Returns the maximum decompressed size of one byte in the codec's format: larger claims of a corrupt stream are
    /// not tried.
    fn max_ratio(&self) -> usize;

    /// Returns a first guess of the decompressed size, never more than the compressed bytes can justify.
    ///
    /// # Errors
    /// Any [`Failure`] that is already evident.
    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        Ok(guess(source, None))
    }

    /// Returns the encoded size of `nbytes` bytes if it does not depend on their content.
    fn encoded_size(&self, _nbytes: usize) -> Option<usize> {
        None
    }

    /// Returns whether the codec can decode a part without the whole.
    fn decodes_ranges(&self) -> bool {
        false
    }

    /// Decompresses the bytes from `start` on of a chunk of `nbytes` bytes to all of `destination`; `None` if only the
    /// whole chunk can be decompressed.
    fn decode_range(
        &self,
        _source: &[u8],
        _nbytes: usize,
        _start: usize,
        _destination: &mut Uninit,
        _codecs: &mut Codecs,
    ) -> Option<Result<()>> {
        None
    }
}

/// A bytes-to-bytes codec.
#[derive(Debug)]
pub enum BytesToBytes {
    /// A codec that transforms the bytes.
    Compressor {
        /// Name for error messages.
        name: &'static str,
        /// The decoder.
        decoder: Box<dyn Decoder>,
        /// Parses the settings for encoding.
        encoder: fn(&CodecMetadata) -> Result<Box<dyn Encoder>>,
        /// The codec in the metadata.
        metadata: CodecMetadata,
    },
    /// A checksum next to the bytes.
    Checksum(Checksum),
    /// A registered codec of a user.
    UserCodec(UserCodec),
}

impl BytesToBytes {
    /// Returns the codec for encoding. Wrong settings do not concern readers, so they are parsed here.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for settings out of range, [`ErrorKind::Unsupported`] for a Blosc compressor that this
    /// crate lacks; with the codec named.
    pub fn compressor(&self) -> Result<Compressor> {
        Ok(match self {
            BytesToBytes::Compressor { name, encoder, metadata, .. } => {
                let encoder = encoder(metadata).map_err(|error| error.in_codec(&metadata.name))?;
                Compressor::Encoder { name, encoder }
            }
            BytesToBytes::Checksum(checksum) => Compressor::Checksum(checksum.clone()),
            BytesToBytes::UserCodec(codec) => Compressor::UserCodec(codec.clone()),
        })
    }

    /// Returns the name for error messages.
    pub fn name(&self) -> &str {
        match self {
            BytesToBytes::Compressor { name, .. } => name,
            BytesToBytes::Checksum(checksum) => checksum.name(),
            BytesToBytes::UserCodec(codec) => codec.name(),
        }
    }

    /// Returns the encoded size of `nbytes` bytes if it does not depend on their content.
    pub fn encoded_size(&self, nbytes: usize) -> Option<usize> {
        match self {
            BytesToBytes::Compressor { decoder, .. } => decoder.encoded_size(nbytes),
            BytesToBytes::Checksum(_) => nbytes.checked_add(checksum::NBYTES),
            BytesToBytes::UserCodec(_) => None,
        }
    }

    /// Returns whether the codec can decode a part without the whole.
    pub fn decodes_ranges(&self) -> bool {
        matches!(self, BytesToBytes::Compressor { decoder, .. } if decoder.decodes_ranges())
    }
}

/// Undoes `chain` on `encoded`.
///
/// # Errors
/// [`ErrorKind::Corrupt`], [`ErrorKind::Checksum`], [`ErrorKind::WrongSize`], [`ErrorKind::Limit`], each with
/// the codec named.
pub fn decode(chain: &[BytesToBytes], encoded: &[u8], output: Output<'_>, codecs: &mut Codecs) -> Result<()> {
    let most = match &output {
        Output::Exact(destination) => destination.len(),
        Output::Growing(_, limit) => *limit,
    };
    let mut stage;
    let (mut chain, mut bytes) = decode_checksums(chain, encoded)?;
    loop {
        match chain {
            [] => return copy(bytes, output).map_err(|error| error.in_codec(ELEMENTS)),
            [only] => return decompress(only, bytes, output, codecs),
            [inner @ .., outer] => {
                let mut next = Vec::new();
                let limit = between_limit(inner, most);
                decompress(outer, bytes, Output::Growing(&mut next, limit), codecs)?;
                // The previous stage is freed here.
                stage = next;
                (chain, bytes) = decode_checksums(inner, &stage)?;
            }
        }
    }
}

/// Undoes `chain` on the bytes of elements, filling `memory`.
pub fn decode_elements(
    chain: &[BytesToBytes],
    encoded: &[u8],
    memory: &mut Uninit,
    codecs: &mut Codecs,
) -> Result<()> {
    decode(chain, encoded, Output::Exact(memory), codecs).map_err(|error| error.in_codec(ELEMENTS))
}

/// Creates the error for elements of `actual` bytes instead of `expected`.
pub fn wrong_elements_size(expected: u64, actual: u64) -> Error {
    Error::from(ErrorKind::WrongSize { expected, actual }).in_codec(ELEMENTS)
}

/// Verifies the checksums at the end of `chain`; returns the rest of the chain and its encoded bytes.
pub fn decode_checksums<'a, 'b>(
    chain: &'a [BytesToBytes],
    encoded: &'b [u8],
) -> Result<(&'a [BytesToBytes], &'b [u8])> {
    let (mut chain, mut bytes) = (chain, encoded);
    while let [inner @ .., BytesToBytes::Checksum(checksum)] = chain {
        (chain, bytes) = (inner, checksum.check(bytes)?);
    }
    Ok((chain, bytes))
}

/// Decompresses the bytes from `start` on of a chunk of `nbytes` bytes to all of `destination`, if the chain can decode
/// a part without the whole; otherwise returns `None`.
pub fn decode_range(
    chain: &[BytesToBytes],
    encoded: &[u8],
    nbytes: usize,
    start: usize,
    destination: &mut Uninit,
    codecs: &mut Codecs,
) -> Option<Result<()>> {
    let [BytesToBytes::Compressor { name, decoder, .. }] = chain else { return None };
    let range = decoder.decode_range(encoded, nbytes, start, destination, codecs)?;
    Some(range.map_err(|error| error.in_codec(name)))
}

/// Returns the maximum encoded size of `nbytes` with `chain`. A codec lengthens its input by at most an eighth and some
/// headers unless it states its own bound, and no chain does so at every codec.
pub fn between_limit(chain: &[BytesToBytes], nbytes: usize) -> usize {
    let usual = nbytes.saturating_add(nbytes / 8).saturating_add(64 << 10);
    chain.iter().fold(usual, |nbytes, codec| match codec {
        // Its behaviour is unknown: numbers as text take several digits for each byte.
        BytesToBytes::UserCodec(_) => nbytes.saturating_mul(4),
        codec => codec.encoded_size(nbytes).unwrap_or(nbytes),
    })
}

fn copy(bytes: &[u8], output: Output<'_>) -> Result<()> {
    match output {
        Output::Exact(destination) if destination.len() == bytes.len() => {
            destination.write_copy_of_slice(bytes);
            Ok(())
        }
        Output::Exact(destination) => Err(wrong_size(destination.len(), bytes.len())),
        Output::Growing(destination, limit) => {
            if bytes.len() > limit {
                return Err(over_limit(bytes.len(), limit));
            }
            reserve(destination, bytes.len())?;
            destination.extend_from_slice(bytes);
            Ok(())
        }
    }
}

fn decompress(codec: &BytesToBytes, source: &[u8], output: Output<'_>, codecs: &mut Codecs) -> Result<()> {
    let decompressed = match codec {
        BytesToBytes::Compressor { decoder, .. } => run(&**decoder, source, output, codecs),
        BytesToBytes::UserCodec(codec) => codec.decode(source, None, output),
        BytesToBytes::Checksum(checksum) => copy(checksum.check(source)?, output),
    };
    decompressed.map_err(|error| error.in_codec(codec.name()))
}

/// Steps 1 and 2, for one codec.
fn run(decoder: &dyn Decoder, source: &[u8], output: Output<'_>, codecs: &mut Codecs) -> Result<()> {
    match output {
        Output::Exact(destination) => match decoder.decode(source, destination, codecs) {
            Ok(written) if written == destination.len() => Ok(()),
            Ok(written) => Err(wrong_size(destination.len(), written)),
            Err(Failure::TooSmall) => Err(counted(decoder, source, destination.len(), codecs)),
            Err(failure) => Err(failure.into_error(destination.len())),
        },
        Output::Growing(destination, limit) => {
            let most = source.len().saturating_mul(decoder.max_ratio()).saturating_add(64 << 10);
            let limit = limit.min(most);
            let mut space = decoder.first_guess(source).map_err(|failure| failure.into_error(limit))?;
            loop {
                space = space.min(limit);
                destination.clear();
                reserve(destination, space)?;
                match extend(destination, space, |spare| decoder.decode(source, spare, codecs)) {
                    Ok(()) => return Ok(()),
                    Err(Failure::TooSmall) if space < limit => space = space.saturating_mul(2),
                    Err(Failure::TooSmall) => return Err(over_limit(limit.saturating_add(1), limit)),
                    Err(failure) => return Err(failure.into_error(limit)),
                }
            }
        }
    }
}

/// Returns a first guess of the decompressed size of `source`: its own claim, as far as these bytes can justify it.
pub fn guess(source: &[u8], says: Option<usize>) -> usize {
    let usual = source.len().saturating_mul(4);
    let most = source.len().saturating_mul(256);
    says.unwrap_or(usual).min(most).max(64 << 10)
}

/// Returns whether there are only zeros: some stores pad their last block with zeros.
pub fn is_padding(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Appends the output of `fill` to the vector's spare memory, which must have `space` bytes.
fn extend(
    vector: &mut Vec<u8>,
    space: usize,
    fill: impl FnOnce(&mut Uninit) -> Result<usize, Failure>,
) -> Result<(), Failure> {
    let spare = vector.spare_capacity_mut().get_mut(..space).ok_or(Failure::TooSmall)?;
    let written = fill(spare)?;
    if written > space {
        return Err(Failure::corrupt("the decompressor wrote too much"));
    }
    // SAFETY: `fill` has written `written` bytes from the end of the vector on, inside its spare memory: a decoder has
    // written as many bytes as it reports.
    unsafe { vector.set_len(vector.len() + written) };
    Ok(())
}

/// Creates the error for a size that differs from the metadata.
pub fn wrong_size(expected: usize, actual: usize) -> Error {
    ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 }.into()
}

/// Creates the error for a chunk longer than `expected`, with its actual size: the chunk is decompressed again to fresh
/// memory, up to the maximum encoded size of a valid chunk of this size.
fn counted(decoder: &dyn Decoder, source: &[u8], expected: usize, codecs: &mut Codecs) -> Error {
    let (mut whole, most) =
        (Vec::new(), between_limit(&[], expected).saturating_mul(2).saturating_add(1 << 20));
    match run(decoder, source, Output::Growing(&mut whole, most), codecs) {
        Ok(()) => wrong_size(expected, whole.len()),
        Err(error) => match error.kind() {
            ErrorKind::Limit { limit, .. } => {
                too_long(expected, usize::try_from(*limit).unwrap_or(usize::MAX).max(expected))
            }
            _ => error,
        },
    }
}

/// Creates the error for output larger than `limit`.
pub fn over_limit(size: usize, limit: usize) -> Error {
    let (actual, limit) = (size as u64, limit as u64);
    ErrorKind::Limit { what: "the decoded size", actual, limit }.into()
}

fn reserve(vector: &mut Vec<u8>, nbytes: usize) -> Result<()> {
    vector.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes }.into())
}
