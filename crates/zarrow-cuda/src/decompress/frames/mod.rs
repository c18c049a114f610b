//! The frames of a stored chunk, as their headers say. Nothing is decompressed, and nothing of it is believed that is not
//! checked: sizes come from the array's metadata, and a header that says another is left to the host's decoder.
//!
//! Left to the host too:
//! - zstd frames with a dictionary, without their size, or with anything behind them;
//! - gzip of several members, and zlib with a dictionary;
//! - frames that decode to more bytes than the caller wants of the device.
//!
//! A checksum of the decoded bytes is read here, and verified on the device.

mod blosc;
mod deflate;
mod lz4;
mod zstd;

use super::checksums::Checksum;
use super::format::Format;
use crate::kernel::structs::Shuffle;
use std::ops::Range;

/// The most bytes that a batch decompresses to, where chunks are smaller: zstd needs three times as many beside them.
pub const BATCH_NBYTES: usize = 64 << 20;

/// The most bytes that a frame decodes to, for a batch to have several. Larger ones are for reads that ask for the device;
/// whether the host is faster with others is decided before, by `split`.
pub const LARGEST_FRAME: usize = BATCH_NBYTES;

/// One frame: its range of the stored bytes, and the range of the elements' bytes that it decodes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, of the stored ones.
    pub source: Range<usize>,
    /// Its bytes when decompressed, of the elements'.
    pub destination: Range<usize>,
    /// Whether it is stored as it is.
    pub is_copy: bool,
    /// A byte that is another for the device: its place among the stored ones, and its value there.
    pub patch: Option<(usize, u8)>,
    /// The checksum of its bytes when decompressed.
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

/// What the headers of a chunk say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// How all frames but the copies are compressed.
    pub format: Format,
    /// The frames, which fill the chunk.
    pub frames: Vec<Frame>,
    /// What was done to the bytes before they were compressed.
    pub shuffle: Shuffle,
    /// Bytes of the shuffle's element.
    pub element_nbytes: u32,
    /// Bytes that are shuffled together.
    pub block_nbytes: u64,
}

impl Frames {
    /// How the frames of a chunk of `compressor` may be compressed; none where no device decompresses them.
    #[must_use]
    pub fn formats(compressor: &str) -> &'static [Format] {
        match compressor {
            "zstd" => &[Format::Zstd],
            "lz4" => &[Format::Lz4],
            // nvCOMP's own gzip says nothing of what it verifies: the header is read here, the checksum is verified here.
            "gzip" | "zlib" => &[Format::Deflate],
            "blosc" => &[Format::Lz4, Format::Zstd, Format::Deflate],
            _ => &[],
        }
    }

    /// The one format of frames that are whole chunks; `None` for others, and for Blosc, which has blocks.
    #[must_use]
    pub fn format_of(compressor: &str) -> Option<Format> {
        match Frames::formats(compressor) {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// The frames of `stored`, which `compressor` made of `decoded_nbytes` bytes; `None` where the host is to decode it. No
    /// frame that is decompressed decodes to more than `largest` bytes.
    #[must_use]
    pub fn of(compressor: &str, stored: &[u8], decoded_nbytes: usize, largest: usize) -> Option<Frames> {
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
