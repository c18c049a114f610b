//! Frames of a stored chunk, from their headers. Nothing is decompressed, and all header fields are checked: sizes
//! come from the array's metadata, and a chunk with another size is left to the host's decoder.
//!
//! Also left to the host:
//! - zstd frames with a dictionary, without a size, or with trailing bytes;
//! - gzip with several members, and zlib with a dictionary;
//! - frames that decode to more bytes than the caller allows on the device.
//!
//! Checksums of the decoded bytes are read here, and verified on the device.

mod blosc;
mod deflate;
mod lz4;
mod zstd;

use super::checksums::Checksum;
use super::format::Format;
use crate::kernel::structs::Shuffle;
use std::ops::Range;

/// Maximum decompressed bytes of a batch, unless a chunk is larger: zstd needs three times that in temporary
/// memory.
pub const BATCH_NBYTES: usize = 64 << 20;

/// Maximum decoded bytes of a frame, so that a batch has several. Larger frames are only for reads that ask for the
/// device; `split` decides beforehand whether the host is faster with other frames.
pub const LARGEST_FRAME: usize = BATCH_NBYTES;

/// One frame: its range of the stored bytes, and its range of the decoded bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Range of the stored bytes.
    pub source: Range<usize>,
    /// Range of the decoded bytes.
    pub destination: Range<usize>,
    /// Whether it is uncompressed.
    pub is_copy: bool,
    /// A byte to change for the device: its index in the stored bytes, and its new value.
    pub patch: Option<(usize, u8)>,
    /// Checksum of the decompressed bytes.
    pub checksum: Option<Checksum>,
}

impl Frame {
    fn new(source: Range<usize>, destination: Range<usize>) -> Frame {
        Frame { source, destination, is_copy: false, patch: None, checksum: None }
    }

    fn copy(source: Range<usize>, destination: Range<usize>) -> Frame {
        Frame { is_copy: true, ..Frame::new(source, destination) }
    }
}

/// Parsed headers of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Format of all compressed frames.
    pub format: Format,
    /// The frames, which cover the chunk.
    pub frames: Vec<Frame>,
    /// Shuffle applied before compression.
    pub shuffle: Shuffle,
    /// Bytes of the shuffle's element.
    pub element_nbytes: u32,
    /// Bytes shuffled together.
    pub block_nbytes: u64,
}

impl Frames {
    /// Returns the possible frame formats in chunks of `compressor`; empty if devices do not support it.
    #[must_use]
    pub fn formats(compressor: &str) -> &'static [Format] {
        match compressor {
            "zstd" => &[Format::Zstd],
            "lz4" => &[Format::Lz4],
            // nvCOMP does not document the checks of its gzip: so the header is parsed here, and the checksum
            // verified here.
            "gzip" | "zlib" => &[Format::Deflate],
            "blosc" => &[Format::Lz4, Format::Zstd, Format::Deflate],
            _ => &[],
        }
    }

    /// Returns the format of frames that are whole chunks; `None` for other compressors, and for Blosc, which has
    /// blocks.
    #[must_use]
    pub fn format_of(compressor: &str) -> Option<Format> {
        match Frames::formats(compressor) {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Returns the frames of `stored`, compressed by `compressor` from `decoded_nbytes` bytes; `None` if the host
    /// must decode it. Compressed frames decode to at most `largest` bytes.
    #[must_use]
    pub fn parse(compressor: &str, stored: &[u8], decoded_nbytes: usize, largest: usize) -> Option<Frames> {
        if compressor == "blosc" {
            return blosc::frames(stored, decoded_nbytes, largest);
        }
        let format = Frames::format_of(compressor)?;
        if decoded_nbytes > largest || decoded_nbytes as u64 > format.largest_frame() {
            return None;
        }
        let (source, destination) = (0..stored.len(), 0..decoded_nbytes);
        let frame = match compressor {
            "zstd" => zstd::frame(stored, source, destination),
            "lz4" => lz4::frame(stored, destination),
            "gzip" => deflate::gzip(stored, destination),
            _ => deflate::zlib(stored, source, destination),
        };
        frame.map(|frame| Frames::one(format, frame))
    }

    fn one(format: Format, frame: Frame) -> Frames {
        Frames { format, frames: vec![frame], shuffle: Shuffle::None, element_nbytes: 1, block_nbytes: 0 }
    }
}
