//! A frame of Blosc 1, as described by its header.
//!
//! The header has 16 bytes: the version of the format (2), the version of the compressor inside (1), flags, the element
//! size, and three little-endian numbers of four bytes: the decoded size, the block size, and the size of the frame.
//! The start of each block follows, four bytes each. A block consists of one piece, or of one piece for each plane of
//! its elements: the piece's length in four bytes, then its bytes. A piece as long as its decoded form is stored
//! uncompressed. A frame may also be a mere copy of the data after the header.

use super::compressor::Format;
use super::layout::{HEADER, LARGEST, LARGEST_BLOCK, can_split};
use super::settings::Filter;
use crate::codec::failure::Failure;

/// The version of the format.
pub const VERSION: u8 = 2;
/// The version of each compressor's own format.
pub const FORMAT_VERSION: u8 = 1;

/// Bytes are shuffled.
pub const SHUFFLED: u8 = 1;
/// The frame is a copy.
pub const COPIED: u8 = 2;
/// Bits are shuffled.
pub const BIT_SHUFFLED: u8 = 4;
/// Reserved: unused today.
const RESERVED: u8 = 8;
/// Blocks have one piece each.
pub const NOT_SPLIT: u8 = 16;

/// A frame with a valid header; the data after the header is not checked.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The whole frame.
    pub(super) bytes: &'a [u8],
    /// Decoded size that the frame claims, in bytes.
    pub(super) nbytes: usize,
    /// Bytes of a block: from 1 to the decoded size, unless the frame is empty.
    pub(super) block_nbytes: usize,
    /// Bytes of an element, at least 1.
    pub(super) item_size: usize,
    /// The compressor inside, `None` for a copy.
    pub(super) format: Option<Format>,
    flags: u8,
}

fn corrupt(text: impl Into<String>) -> Failure {
    Failure::Corrupt(text.into())
}

impl<'a> Frame<'a> {
    /// Parses the frame at the start of `source`. The frame states its own length; c-blosc and its users rely on that
    /// and ignore any bytes after it.
    ///
    /// # Errors
    /// [`Failure::Corrupt`]; [`Failure::Unsupported`] for snappy.
    pub fn new(source: &'a [u8]) -> Result<Frame<'a>, Failure> {
        let Some((header, _)) = source.split_first_chunk::<HEADER>() else {
            return Err(corrupt(format!("{} bytes are shorter than a Blosc header", source.len())));
        };
        let [version, format_version, flags, item_size, sizes @ ..] = *header;
        let [nbytes, block_nbytes, length] = [0, 4, 8]
            .map(|at| sizes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word) as usize));
        if version != VERSION || flags & RESERVED != 0 {
            return Err(corrupt(format!("not a valid Blosc header: format version {version}, expected 2")));
        }
        let bytes = source.get(..length).filter(|bytes| bytes.len() >= HEADER).ok_or_else(|| {
            let stored = source.len();
            corrupt(format!("not a valid Blosc header: it declares {length} bytes, but {stored} are stored"))
        })?;
        let frame = Frame { bytes, nbytes, block_nbytes, item_size: item_size.into(), format: None, flags };
        if nbytes == 0 {
            return Ok(frame);
        }
        if nbytes > LARGEST || item_size == 0 || block_nbytes == 0 || block_nbytes > nbytes.min(LARGEST_BLOCK)
        {
            return Err(corrupt(format!(
                "not a valid Blosc header: {nbytes} bytes in blocks of {block_nbytes}, of elements of {item_size}"
            )));
        }
        if flags & COPIED != 0 {
            return match length - HEADER {
                stored if stored == nbytes => Ok(frame),
                stored => {
                    Err(corrupt(format!("{nbytes} uncompressed bytes do not match {stored} stored bytes")))
                }
            };
        }
        let format = Format::numbered(flags >> 5)?;
        if format_version != FORMAT_VERSION {
            return Err(corrupt(format!("version {format_version} of {}, expected 1", format.name())));
        }
        // c-blosc up to 1.21.6 overflows an `int` if one BloscLZ block has more than 8 MB of matches; no writer makes
        // blocks of that size.
        const SAFE: usize = 8 << 20;
        if format == Format::BloscLz && length > SAFE && block_nbytes > SAFE {
            return Err(corrupt("a BloscLZ block of more than 8 MiB"));
        }
        if nbytes.div_ceil(block_nbytes) > (length - HEADER) / 4 {
            return Err(corrupt("shorter than its table of block offsets"));
        }
        Ok(Frame { format: Some(format), ..frame })
    }

    /// Returns the decoded size that the frame claims, in bytes.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Returns the filter applied to a block of `nbytes` bytes before compression.
    pub(super) fn filter(&self, nbytes: usize) -> Filter {
        match self.flags {
            flags if flags & SHUFFLED != 0 && self.item_size > 1 => Filter::Shuffle,
            flags if flags & BIT_SHUFFLED != 0 && nbytes >= self.item_size => Filter::BitShuffle,
            _ => Filter::None,
        }
    }

    /// Returns the number of pieces of a block of `nbytes` bytes.
    pub(super) fn pieces(&self, nbytes: usize) -> usize {
        let is_split =
            self.flags & NOT_SPLIT == 0 && nbytes == self.block_nbytes && can_split(self.item_size, nbytes);
        if is_split { self.item_size } else { 1 }
    }

    /// Returns the four bytes at `at` as a size; `None` if they are out of range or negative.
    pub(super) fn size(&self, at: usize) -> Option<usize> {
        let word = self.bytes.get(at..)?.first_chunk::<4>()?;
        usize::try_from(i32::from_le_bytes(*word)).ok()
    }
}
