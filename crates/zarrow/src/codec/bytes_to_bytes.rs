//! Codecs from bytes to bytes: compressors and checksums, decoded into memory of a known size.
//!
//! 1. [`BytesToBytes::parse`] reads one codec of the metadata; what it does not know is the fallback's.
//! 2. [`decode`] undoes a chain, the last codec first. Stages between have no known size: they grow with what
//!    is really decompressed, up to a limit.
//! 3. The stage next to the array writes [`Output::Exact`]ly the bytes that the metadata asks for, straight to
//!    where they belong; or, for variable-length arrays, grows like a stage between.
//!
//! A codec that keeps nothing from chunk to chunk is a file of the folder beside: its names, settings and bounds, and both
//! of its ways. It is registered by a variant here, and one in [`compress`](super::compress).

pub mod base64;
pub mod checksum;
mod fletcher32;
mod lookup3;
pub mod lzma;
pub mod setting;
pub mod shuffle;

use checksum::Checksum;
use lzma::Lzma;
use shuffle::Shuffle;

use crate::codec::native::{self, BloscFrame, DeflateContainer, Failure};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Codecs;
use crate::metadata::CodecMetadata;
use std::mem::MaybeUninit;

/// A codec from bytes to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BytesToBytes {
    /// Zstandard frames.
    Zstd,
    /// A deflate stream in its container.
    Deflate(DeflateContainer),
    /// A Blosc 1 buffer.
    Blosc,
    /// An LZ4 block behind its size, as numcodecs writes it.
    Lz4,
    /// Bzip2 streams.
    Bz2,
    /// The formats of liblzma.
    Lzma(Lzma),
    /// The bytes of elements in another order.
    Shuffle(Shuffle),
    /// Text.
    Base64,
    /// A checksum beside the bytes.
    Checksum(Checksum),
}

/// Where a chain's last stage writes.
pub enum Output<'a> {
    /// Memory to be filled, to the last byte.
    Exact(&'a mut [MaybeUninit<u8>]),
    /// An empty vector, and the most that it may hold.
    Growing(&'a mut Vec<u8>, usize),
}

impl BytesToBytes {
    /// The codec that `metadata` names, `None` where this engine has no such codec.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for settings that it cannot be read with; with the codec named.
    pub fn parse(metadata: &CodecMetadata) -> Result<Option<BytesToBytes>> {
        Self::named(metadata).map_err(|error| error.in_codec(&metadata.name))
    }

    fn named(metadata: &CodecMetadata) -> Result<Option<BytesToBytes>> {
        Ok(Some(match metadata.name.as_str() {
            "zstd" => BytesToBytes::Zstd,
            "gzip" => BytesToBytes::Deflate(DeflateContainer::Gzip),
            "zlib" | "numcodecs.zlib" => BytesToBytes::Deflate(DeflateContainer::Zlib),
            "blosc" => BytesToBytes::Blosc,
            "lz4" | "numcodecs.lz4" => BytesToBytes::Lz4,
            "bz2" | "numcodecs.bz2" => BytesToBytes::Bz2,
            lzma::NAME => BytesToBytes::Lzma(Lzma::parse(metadata)?),
            Shuffle::NAME => BytesToBytes::Shuffle(Shuffle::parse(metadata)?),
            base64::NAME => BytesToBytes::Base64,
            _ => return Ok(Checksum::parse(metadata)?.map(BytesToBytes::Checksum)),
        }))
    }

    /// The codec's name in metadata.
    pub fn name(&self) -> &'static str {
        match self {
            BytesToBytes::Zstd => "zstd",
            BytesToBytes::Deflate(DeflateContainer::Gzip) => "gzip",
            BytesToBytes::Deflate(DeflateContainer::Zlib) => "zlib",
            BytesToBytes::Blosc => "blosc",
            BytesToBytes::Lz4 => "lz4",
            BytesToBytes::Bz2 => "bz2",
            BytesToBytes::Lzma(_) => lzma::NAME,
            BytesToBytes::Shuffle(_) => Shuffle::NAME,
            BytesToBytes::Base64 => base64::NAME,
            BytesToBytes::Checksum(checksum) => checksum.name(),
        }
    }

    /// Bytes that `nbytes` are encoded to, where that does not depend on what they are.
    pub fn encoded_size(&self, nbytes: usize) -> Option<usize> {
        match self {
            BytesToBytes::Shuffle(_) => Some(nbytes),
            BytesToBytes::Base64 => base64::encoded_size(nbytes),
            BytesToBytes::Checksum(_) => nbytes.checked_add(checksum::NBYTES),
            _ => None,
        }
    }

    /// Decompresses to the start of `destination`; returns the bytes written.
    fn decompress(
        &self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
        codecs: &mut Codecs,
    ) -> Result<usize, Failure> {
        match self {
            BytesToBytes::Zstd => codecs.zstd().ok_or(Failure::OutOfMemory)?.decompress(source, destination),
            BytesToBytes::Deflate(container) => {
                let deflate = codecs.deflate().ok_or(Failure::OutOfMemory)?;
                let (mut read, mut written) = deflate.decompress(*container, source, destination)?;
                // Behind it may be padding. A gzip file may have several members, and padding behind each.
                while !native::is_padding(&source[read..]) {
                    if *container == DeflateContainer::Zlib {
                        return Err(Failure::Corrupt("bytes behind the end".into()));
                    }
                    read += source[read..].iter().take_while(|byte| **byte == 0).count();
                    let (more_read, more) =
                        deflate.decompress(*container, &source[read..], &mut destination[written..])?;
                    (read, written) = (read + more_read, written + more);
                }
                Ok(written)
            }
            BytesToBytes::Blosc => BloscFrame::new(source)?.decompress(destination),
            BytesToBytes::Lz4 => {
                let (size, block) = lz4_parts(source)?;
                let destination = destination.get_mut(..size).ok_or(Failure::TooSmall)?;
                match native::lz4_decompress(block, destination)? {
                    written if written == size => Ok(written),
                    _ => Err(Failure::Corrupt("the block is smaller than its size says".into())),
                }
            }
            BytesToBytes::Bz2 => native::bz2_decompress(source, destination),
            BytesToBytes::Lzma(lzma) => lzma.decode(source, destination),
            BytesToBytes::Shuffle(shuffle) => shuffle.decode(source, destination),
            BytesToBytes::Base64 => base64::decode(source, destination),
            BytesToBytes::Checksum(_) => Err(Failure::Corrupt("a checksum is no compressor".into())),
        }
    }

    /// The most bytes that so many can decompress to, by the codec's own format: what a corrupt stream claims beyond it
    /// is not tried.
    fn most_expanded(&self, nbytes: usize) -> usize {
        let ratio = match self {
            // A repeated byte: blocks of 128 KiB in 4 bytes, and Blosc may have such blocks inside.
            BytesToBytes::Zstd | BytesToBytes::Blosc => 1 << 16,
            BytesToBytes::Deflate(_) => 1032,
            BytesToBytes::Lz4 => 255,
            // 900 kB of one byte in some 40 bytes.
            BytesToBytes::Bz2 => 1 << 15,
            // A match of 273 bytes takes 14 decisions, none of which takes less than 0.022 bits.
            BytesToBytes::Lzma(_) => 1 << 13,
            BytesToBytes::Shuffle(_) | BytesToBytes::Base64 | BytesToBytes::Checksum(_) => 1,
        };
        nbytes.saturating_mul(ratio).saturating_add(64 << 10)
    }

    /// A first guess of the decompressed size, never more than the compressed bytes can justify.
    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        match self {
            // Both know their size. LZ4 cannot expand a byte to more than 255, and what Blosc claims is
            // allocated but not touched before it is decompressed.
            BytesToBytes::Blosc => Ok(BloscFrame::new(source)?.nbytes()),
            BytesToBytes::Lz4 => match lz4_parts(source)? {
                (size, block) if size <= block.len().saturating_mul(255) => Ok(size),
                _ => Err(Failure::Corrupt("the block cannot be as large as its size says".into())),
            },
            BytesToBytes::Shuffle(_) | BytesToBytes::Base64 => Ok(source.len()),
            _ => {
                // What the bytes say they have, as far as such bytes can have it.
                let usual = source.len().saturating_mul(4);
                let most = source.len().saturating_mul(256);
                let says = match self {
                    BytesToBytes::Zstd => native::zstd_size(source),
                    BytesToBytes::Deflate(DeflateContainer::Gzip) => {
                        source.last_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize)
                    }
                    _ => None,
                };
                Ok(says.unwrap_or(usual).min(most).max(64 << 10))
            }
        }
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
            [] => return copy(bytes, output).map_err(|error| error.in_codec("bytes")),
            [only] => return decompress(only, bytes, output, codecs),
            [inner @ .., outer] => {
                let mut next = Vec::new();
                let limit = between_limit(inner, most);
                decompress(outer, bytes, Output::Growing(&mut next, limit), codecs)?;
                // The stage before is freed here.
                stage = next;
                (chain, bytes) = decode_checksums(inner, &stage)?;
            }
        }
    }
}

/// Checks the checksums at the end of `chain`; what is left of the chain, and the bytes that it encodes to.
///
/// # Errors
/// As [`Checksum::check`].
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

/// Decompresses the bytes from `start` on of a chunk of `nbytes` bytes to all of `destination`, where the chain can give
/// a part without the whole; `None` where it cannot.
///
/// # Errors
/// As [`decode`].
pub fn decode_range(
    chain: &[BytesToBytes],
    encoded: &[u8],
    nbytes: usize,
    start: usize,
    destination: &mut [MaybeUninit<u8>],
) -> Option<Result<()>> {
    let [BytesToBytes::Blosc] = chain else { return None };
    let range = match BloscFrame::new(encoded) {
        Ok(frame) if frame.nbytes() == nbytes => frame.range(start, destination)?,
        Ok(frame) => return Some(Err(wrong_size(nbytes, frame.nbytes()).in_codec("blosc"))),
        Err(failure) => Err(failure),
    };
    Some(range.map_err(|failure| failure.into_error(nbytes).in_codec("blosc")))
}

/// The most bytes that `chain` may encode `nbytes` to. No codec makes its input longer by more than an eighth and some
/// headers, but for those that say by how much, and no chain does so at every codec.
pub fn between_limit(chain: &[BytesToBytes], nbytes: usize) -> usize {
    let usual = nbytes.saturating_add(nbytes / 8).saturating_add(64 << 10);
    chain.iter().fold(usual, |nbytes, codec| codec.encoded_size(nbytes).unwrap_or(nbytes))
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
    decompress_stage(codec, source, output, codecs).map_err(|error| error.in_codec(codec.name()))
}

fn decompress_stage(
    codec: &BytesToBytes,
    source: &[u8],
    output: Output<'_>,
    codecs: &mut Codecs,
) -> Result<()> {
    match output {
        Output::Exact(destination) => match codec.decompress(source, destination, codecs) {
            Ok(written) if written == destination.len() => Ok(()),
            Ok(written) => Err(wrong_size(destination.len(), written)),
            Err(Failure::TooSmall) => Err(counted(codec, source, destination.len(), codecs)),
            Err(failure) => Err(failure.into_error(destination.len())),
        },
        Output::Growing(destination, limit) => {
            let limit = limit.min(codec.most_expanded(source.len()));
            let mut space = codec.first_guess(source).map_err(|failure| failure.into_error(limit))?;
            loop {
                space = space.min(limit);
                destination.clear();
                reserve(destination, space)?;
                match native::extend(destination, space, |spare| codec.decompress(source, spare, codecs)) {
                    Ok(()) => return Ok(()),
                    Err(Failure::TooSmall) if space < limit => space = space.saturating_mul(2),
                    Err(Failure::TooSmall) => return Err(over_limit(limit.saturating_add(1), limit)),
                    Err(failure) => return Err(failure.into_error(limit)),
                }
            }
        }
    }
}

fn wrong_size(expected: usize, actual: usize) -> Error {
    ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 }.into()
}

fn too_long(expected: usize, least: usize) -> Error {
    ErrorKind::TooLong { expected: expected as u64, least: least as u64 }.into()
}

/// The error of a chunk that is longer than `expected`, with its size: it is decompressed once more, to memory of its own,
/// as far as an honest chunk of this size could be encoded to.
fn counted(codec: &BytesToBytes, source: &[u8], expected: usize, codecs: &mut Codecs) -> Error {
    let (mut whole, most) =
        (Vec::new(), between_limit(&[], expected).saturating_mul(2).saturating_add(1 << 20));
    match decompress_stage(codec, source, Output::Growing(&mut whole, most), codecs) {
        Ok(()) => wrong_size(expected, whole.len()),
        Err(error) => match error.kind() {
            ErrorKind::Limit { limit, .. } => {
                too_long(expected, usize::try_from(*limit).unwrap_or(usize::MAX).max(expected))
            }
            _ => error,
        },
    }
}

fn over_limit(size: usize, limit: usize) -> Error {
    let (actual, limit) = (size as u64, limit as u64);
    ErrorKind::Limit { what: "the decoded size", actual, limit }.into()
}

fn reserve(vector: &mut Vec<u8>, nbytes: usize) -> Result<()> {
    vector.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes }.into())
}

impl Failure {
    /// The failure of a codec whose output was to be `expected` bytes.
    pub fn into_error(self, expected: usize) -> Error {
        match self {
            Failure::TooSmall => too_long(expected, expected),
            Failure::Corrupt(text) => ErrorKind::Corrupt(text).into(),
            Failure::Unsupported(text) => ErrorKind::Unsupported(text).into(),
            Failure::OutOfMemory => zarrow_array::Error::OutOfMemory { nbytes: expected }.into(),
        }
    }
}

/// The decompressed size and the block of numcodecs' LZ4 format.
fn lz4_parts(source: &[u8]) -> Result<(usize, &[u8]), Failure> {
    let (size, block) =
        source.split_first_chunk::<4>().ok_or(Failure::Corrupt("shorter than its size".into()))?;
    let size =
        usize::try_from(i32::from_le_bytes(*size)).map_err(|_| Failure::Corrupt("negative size".into()))?;
    Ok((size, block))
}
