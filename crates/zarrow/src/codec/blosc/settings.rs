//! Settings of a Blosc codec.

use super::compressor::Compressor;
use crate::codec::bytes_to_bytes::setting;
use crate::error::{ErrorKind, Result};
use crate::metadata::CodecMetadata;

/// Size of the largest element that a frame's header can state, in bytes.
pub const LARGEST_ITEM: usize = 255;

/// Filter applied to a block before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// No filter.
    None,
    /// Shuffles the bytes of elements.
    Shuffle,
    /// Shuffles the bits of elements.
    BitShuffle,
}

/// Settings of the encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The compressor inside.
    pub compressor: Compressor,
    /// Level from 0, which only copies, to 9.
    pub level: u8,
    /// The filter before compression.
    pub filter: Filter,
    /// Bytes of an element, from 1 to 255.
    pub item_size: usize,
    /// Bytes of a block; 0 lets Blosc choose.
    pub block_nbytes: usize,
}

impl Settings {
    /// Parses the configuration: lz4 with level 5 and the byte shuffle by default.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for values out of range; [`ErrorKind::Unsupported`] for snappy.
    pub fn parse(metadata: &CodecMetadata) -> Result<Settings> {
        let integer = |key: &str, default: i64, low: i64, high: i64| {
            setting::integer(metadata, key, default, low, high).map(i64::unsigned_abs)
        };
        let filter = match metadata.text("shuffle") {
            None | Some("shuffle") => Filter::Shuffle,
            Some("noshuffle") => Filter::None,
            Some("bitshuffle") => Filter::BitShuffle,
            Some(other) => {
                let text =
                    format!("shuffle is {other:?}, expected \"noshuffle\", \"shuffle\" or \"bitshuffle\"");
                return Err(ErrorKind::BadCodec(text).into());
            }
        };
        let item_size = integer("typesize", 1, 1, i64::from(i32::MAX))? as usize;
        Ok(Settings {
            compressor: Compressor::named(metadata.text("cname"))?,
            level: integer("clevel", 5, 0, 9)? as u8,
            filter,
            // Blosc treats an element size that exceeds a byte as 1.
            item_size: if item_size > LARGEST_ITEM { 1 } else { item_size },
            block_nbytes: integer("blocksize", 0, 0, i64::from(i32::MAX))? as usize,
        })
    }
}
