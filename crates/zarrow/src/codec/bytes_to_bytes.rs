//! Codecs from bytes to bytes: compressors and checksums, decoded into memory of a known size.
//!
//! 1. [`BytesToBytes::parse`] reads one codec of the metadata; what it does not know is the fallback's.
//! 2. [`decode`] undoes a chain, the last codec first. Stages between have no known size: they grow with what
//!    is really decompressed, up to a limit.
//! 3. The stage next to the array writes [`Output::Exact`]ly the bytes that the metadata asks for, straight to
//!    where they belong; or, for variable-length arrays, grows like a stage between.

use crate::codec::native::{self, DeflateContainer, Failure};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Codecs;
use crate::metadata::CodecMetadata;
use std::mem::MaybeUninit;

/// A codec from bytes to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A checksum behind the bytes.
    Crc32c,
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
    pub fn parse(metadata: &CodecMetadata) -> Option<BytesToBytes> {
        match metadata.name.as_str() {
            "zstd" => Some(BytesToBytes::Zstd),
            "gzip" => Some(BytesToBytes::Deflate(DeflateContainer::Gzip)),
            "zlib" | "numcodecs.zlib" => Some(BytesToBytes::Deflate(DeflateContainer::Zlib)),
            "blosc" => Some(BytesToBytes::Blosc),
            "lz4" | "numcodecs.lz4" => Some(BytesToBytes::Lz4),
            "bz2" | "numcodecs.bz2" => Some(BytesToBytes::Bz2),
            "crc32c" => Some(BytesToBytes::Crc32c),
            _ => None,
        }
    }

    /// The codec's name in metadata.
    pub fn name(self) -> &'static str {
        match self {
            BytesToBytes::Zstd => "zstd",
            BytesToBytes::Deflate(DeflateContainer::Gzip) => "gzip",
            BytesToBytes::Deflate(DeflateContainer::Zlib) => "zlib",
            BytesToBytes::Blosc => "blosc",
            BytesToBytes::Lz4 => "lz4",
            BytesToBytes::Bz2 => "bz2",
            BytesToBytes::Crc32c => "crc32c",
        }
    }

    /// Decompresses to the start of `destination`; returns the bytes written.
    fn decompress(
        self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
        codecs: &mut Codecs,
    ) -> Result<usize, Failure> {
        // Some hundred kilobytes, whatever the data.
        let no_memory = || Failure::OutOfMemory { nbytes: 256 << 10 };
        match self {
            BytesToBytes::Zstd => codecs.zstd().ok_or_else(no_memory)?.decompress(source, destination),
            BytesToBytes::Deflate(container) => {
                // A gzip file may have several members, one behind the other.
                let deflate = codecs.deflate().ok_or_else(no_memory)?;
                let (mut read, mut written) = deflate.decompress(container, source, destination)?;
                while container == DeflateContainer::Gzip && read < source.len() {
                    let (more_read, more) =
                        deflate.decompress(container, &source[read..], &mut destination[written..])?;
                    (read, written) = (read + more_read, written + more);
                }
                if read == source.len() {
                    Ok(written)
                } else {
                    Err(Failure::Corrupt("bytes behind the end".into()))
                }
            }
            BytesToBytes::Blosc => {
                let nbytes = native::blosc_size(source)?;
                let destination = destination.get_mut(..nbytes).ok_or(Failure::TooSmall)?;
                refuse_huge_blosclz(source)?;
                native::blosc_decompress(source, destination)?;
                Ok(nbytes)
            }
            BytesToBytes::Lz4 => {
                let (size, block) = lz4_parts(source)?;
                let destination = destination.get_mut(..size).ok_or(Failure::TooSmall)?;
                match native::lz4_decompress(block, destination)? {
                    written if written == size => Ok(written),
                    _ => Err(Failure::Corrupt("the block is smaller than its size says".into())),
                }
            }
            BytesToBytes::Bz2 => native::bz2_decompress(source, destination),
            BytesToBytes::Crc32c => Err(Failure::Corrupt("a checksum is no compressor".into())),
        }
    }

    /// The most bytes that so many can decompress to, by the codec's own format: what a corrupt stream claims beyond it
    /// is not tried.
    fn most_expanded(self, nbytes: usize) -> usize {
        let ratio = match self {
            // A repeated byte: blocks of 128 KiB in 4 bytes, and Blosc may have such blocks inside.
            BytesToBytes::Zstd | BytesToBytes::Blosc => 1 << 16,
            BytesToBytes::Deflate(_) => 1032,
            BytesToBytes::Lz4 => 255,
            // 900 kB of one byte in some 40 bytes.
            BytesToBytes::Bz2 => 1 << 15,
            BytesToBytes::Crc32c => 1,
        };
        nbytes.saturating_mul(ratio).saturating_add(64 << 10)
    }

    /// A first guess of the decompressed size, never more than the compressed bytes can justify.
    fn first_guess(self, source: &[u8]) -> Result<usize, Failure> {
        match self {
            // Both know their size. LZ4 cannot expand a byte to more than 255, and what Blosc claims is
            // allocated but not touched before it is decompressed.
            BytesToBytes::Blosc => native::blosc_size(source),
            BytesToBytes::Lz4 => match lz4_parts(source)? {
                (size, block) if size <= block.len().saturating_mul(255) => Ok(size),
                _ => Err(Failure::Corrupt("the block cannot be as large as its size says".into())),
            },
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
    let limit = between_limit(match &output {
        Output::Exact(destination) => destination.len(),
        Output::Growing(_, limit) => *limit,
    });
    let mut stage;
    let mut bytes = encoded;
    let mut chain = chain;
    loop {
        match chain {
            [inner @ .., BytesToBytes::Crc32c] => (chain, bytes) = (inner, check_crc32c(bytes)?),
            [] => return copy(bytes, output).map_err(|error| error.in_codec("bytes")),
            [only] => return decompress(*only, bytes, output, codecs),
            [inner @ .., outer] => {
                let mut next = Vec::new();
                decompress(*outer, bytes, Output::Growing(&mut next, limit), codecs)?;
                // The stage before is freed here.
                stage = next;
                (chain, bytes) = (inner, &stage);
            }
        }
    }
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
    let range = match native::blosc_size(encoded) {
        Ok(size) if size == nbytes => refuse_huge_blosclz(encoded)
            .map_or_else(|failure| Some(Err(failure)), |()| native::blosc_range(encoded, start, destination)),
        Ok(size) => return Some(Err(wrong_size(nbytes, size).in_codec("blosc"))),
        Err(failure) => Some(Err(failure)),
    };
    range.map(|range| range.map_err(|failure| failure.into_error(nbytes).in_codec("blosc")))
}

/// The most bytes that a stage may have whose next stages give at most `nbytes`: no codec here makes its input longer
/// by more than an eighth and some headers.
pub fn between_limit(nbytes: usize) -> usize {
    nbytes.saturating_add(nbytes / 8).saturating_add(64 << 10)
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

fn decompress(codec: BytesToBytes, source: &[u8], output: Output<'_>, codecs: &mut Codecs) -> Result<()> {
    decompress_to(codec, source, output, codecs).map_err(|error| error.in_codec(codec.name()))
}

fn decompress_to(codec: BytesToBytes, source: &[u8], output: Output<'_>, codecs: &mut Codecs) -> Result<()> {
    decompress_stage(codec, source, output, codecs).map_err(|error| error.in_codec(codec.name()))
}

fn decompress_stage(
    codec: BytesToBytes,
    source: &[u8],
    output: Output<'_>,
    codecs: &mut Codecs,
) -> Result<()> {
    match output {
        Output::Exact(destination) => match codec.decompress(source, destination, codecs) {
            Ok(written) if written == destination.len() => Ok(()),
            Ok(written) => Err(wrong_size(destination.len(), written)),
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

fn over_limit(size: usize, limit: usize) -> Error {
    let (actual, limit) = (size as u64, limit as u64);
    ErrorKind::Limit { what: "the decoded size", actual, limit }.into()
}

fn reserve(vector: &mut Vec<u8>, nbytes: usize) -> Result<()> {
    vector.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes }.into())
}

/// The bytes before a checksum that matches them.
///
/// # Errors
/// [`ErrorKind::Checksum`], or [`ErrorKind::Corrupt`] where there is no room for a checksum.
pub fn check_crc32c(bytes: &[u8]) -> Result<&[u8]> {
    let Some((data, checksum)) = bytes.split_last_chunk::<4>() else {
        return Err(Error::from(ErrorKind::Corrupt("shorter than its checksum".into())).in_codec("crc32c"));
    };
    let (stored, computed) = (u32::from_le_bytes(*checksum), crc32c::crc32c(data));
    if stored == computed {
        return Ok(data);
    }
    Err(Error::from(ErrorKind::Checksum { stored, computed }).in_codec("crc32c"))
}

/// The decompressed size and the block of numcodecs' LZ4 format.
fn lz4_parts(source: &[u8]) -> Result<(usize, &[u8]), Failure> {
    let (size, block) =
        source.split_first_chunk::<4>().ok_or(Failure::Corrupt("shorter than its size".into()))?;
    let size =
        usize::try_from(i32::from_le_bytes(*size)).map_err(|_| Failure::Corrupt("negative size".into()))?;
    Ok((size, block))
}

/// c-blosc up to 1.21.6 overflows an `int` where one BloscLZ block has more than 8 MB of matches; no writer makes
/// blocks of that size.
fn refuse_huge_blosclz(source: &[u8]) -> Result<(), Failure> {
    const SAFE: usize = 8 << 20;
    let blosclz = source.get(2).is_some_and(|flags| flags >> 5 == 0);
    let block_size = source.get(8..12).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    if blosclz && source.len() > SAFE && block_size as usize > SAFE {
        return Err(Failure::Corrupt("a BloscLZ block of more than 8 MiB".into()));
    }
    Ok(())
}
