//! Block size of a frame, and whether blocks are split: c-blosc's rules (`compute_blocksize`, `split_block`), so that a
//! frame is as small as c-blosc's.

use super::compressor::Compressor;
use super::settings::{LARGEST_ITEM, Settings};

/// Bytes of a frame's header.
pub const HEADER: usize = 16;
/// Most bytes that a frame can hold: with its header they are fewer than 2 GiB.
pub const LARGEST: usize = i32::MAX as usize - HEADER;
/// The largest block that c-blosc makes or takes.
pub const LARGEST_BLOCK: usize = (i32::MAX as usize - LARGEST_ITEM * size_of::<i32>()) / 3;
/// Smaller frames are not compressed, and smaller planes not compressed separately.
pub const SMALLEST: usize = 128;
/// Most planes that are compressed separately.
const MOST_PLANES: usize = 16;

/// Division of a frame into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of each block except for the last one, which may be shorter.
    pub block_nbytes: usize,
    /// Whether each plane of a whole block is compressed separately.
    pub is_split: bool,
}

/// Returns whether a block's planes are few enough, and large enough, to be compressed separately.
pub fn can_split(item_size: usize, block_nbytes: usize) -> bool {
    item_size <= MOST_PLANES && block_nbytes / item_size.max(1) >= SMALLEST
}

impl Layout {
    /// Returns the layout of `nbytes` bytes.
    pub fn new(settings: &Settings, nbytes: usize) -> Layout {
        // zstd was added together with the flag for unsplit blocks, so no reader has to guess it.
        let splits = |block| settings.compressor != Compressor::Zstd && can_split(settings.item_size, block);
        let block_nbytes = Self::block_nbytes(settings, nbytes, splits);
        Layout { block_nbytes, is_split: splits(block_nbytes) }
    }

    fn block_nbytes(settings: &Settings, nbytes: usize, splits: impl Fn(usize) -> bool) -> usize {
        /// Typical size of a first-level cache.
        const CACHE: usize = 32 << 10;
        let item_size = settings.item_size;
        if nbytes < item_size {
            return 1;
        }
        let mut block = match settings.block_nbytes.min(nbytes) {
            0 if nbytes >= CACHE => {
                // Compressors with a longer search for matches gain from larger blocks.
                let thorough = usize::from(settings.compressor.is_thorough());
                let usual = CACHE << thorough;
                match settings.level {
                    0 => usual / 4,
                    1 => usual / 2,
                    2 => usual,
                    3 => usual * 2,
                    4 | 5 => usual * 4,
                    6..=8 => usual * 8,
                    _ => (usual * 8) << thorough,
                }
            }
            0 => nbytes,
            asked => asked.clamp(SMALLEST, LARGEST_BLOCK),
        };
        if settings.level > 0 && splits(block) {
            block = (block.min(256 << 10) * item_size).clamp(64 << 10, 1 << 20);
        }
        block = block.min(nbytes);
        if block > item_size { block / item_size * item_size } else { block }
    }
}
